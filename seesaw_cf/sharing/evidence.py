"""What was measured about one shared edit: rows of its report, for a model card."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import unknown_name
from seesaw_cf.base.files import safe_name
from seesaw_cf.base.tables import SCORES, read_table, write_table
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.run.store import EDITS

if TYPE_CHECKING:
    from seesaw_cf.report.rows import Row

_FEWEST = 5  # people of a group whose number is quoted
# Task of `seesaw_cf.records.relations.TASKS` -> the row of a report that it is: what, about, true answer, scale.
_TASK_ROWS: Mapping[tuple[str, str, str, str], str] = {
    ("efficacy_after", "edited_fact", "", "share"): "efficacy",
    ("after", "other_facts", "", "share"): "other_facts",
    ("change", "other_people", "old", "probability"): "other_people_old",
    ("change", "other_people", "new", "probability"): "other_people_new",
    ("turned_wrong", "other_people", "old", "share"): "other_people_old_turned_wrong",
    ("turned_wrong", "other_people", "new", "share"): "other_people_new_turned_wrong",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Results of one edit that go onto its card.

    Attributes:
        rows: Rows of its report's frame, see `seesaw_cf.report.frame`, with `task`, out of
            `seesaw_cf.records.relations.TASKS`.
        data: What was measured on: "sample", a Hub data set such as "org/seesaw_cf", or a file name.
        config: Which config(s) of it, e.g. "cross_subject".
        protocol: "single" (each case edited alone) or "batch"; "" when unknown.
        revision: Commit of the Hub data set that was read; "" when unknown or local.
        scores: The score rows that the numbers are made of; pushed with the card when given.
    """

    rows: tuple[Row, ...] = ()
    data: str = ""
    config: str = ""
    protocol: str = ""
    revision: str = ""
    scores: pa.Table | None = field(default=None, repr=False)


def edit_evidence(run: str | os.PathLike[str], editor: str, unit: str) -> Evidence:
    """Return what a finished run measured about one of its edits, and about no other: the rows of its report.

    Args:
        run: A run folder.
        editor: Which of its editors.
        unit: Which edit: the name of its folder below `deltas/EDITOR/`.

    Raises:
        UnknownNameError: The run has no such editor or unit.
        RunFolderError: The run is not finished or the folder is something else.
        RecordError: Its files are damaged.
    """
    from seesaw_cf.report import report  # lazily: statistics are not needed to save a delta
    from seesaw_cf.report.rows import rows_of

    folder = RunFolder.open(Path(run))
    edits, scores = read_table(folder / "edits.parquet", EDITS), read_table(folder / "scores.parquet", SCORES)
    protocol = str(folder.manifest.get("protocol", ""))
    one_of(f"editor of the run {run}", editor, sorted(set(edits["editor"].to_pylist())))
    own = edits.filter(pc.equal(edits["editor"], editor))
    units = [_unit(row, protocol) for row in own.to_pylist()]
    if unit not in units:
        raise unknown_name(f"edit of the run {run}", unit, sorted(set(units)))
    own = own.filter(pa.array([name == unit for name in units]))
    rows = scores.filter(pc.and_(pc.equal(scores["editor"], editor), pc.is_in(scores["case_id"], own["case_id"])))
    with tempfile.TemporaryDirectory() as place:  # a run of this edit alone
        for name, table in (("edits", own), ("scores", rows)):
            write_table(Path(place) / f"{name}.parquet", table)
        (Path(place) / "manifest.json").write_text(json.dumps(folder.manifest), encoding="utf-8")
        frame = report(place).frame
    quoted = frame[frame["what"].isin(("efficacy_after", "before", "after", "change", "turned_wrong"))]
    quoted = quoted[(quoted["relation"] == "all") & (quoted["scale"] != "log-odds")]
    quoted = quoted[(quoted["axis"] == "all") | ((quoted["what"] == "change") & (quoted["n_people"] >= _FEWEST))]
    keys = list(zip(*(quoted[name] for name in ("what", "about", "true_answer", "scale"))))
    tasks = [_TASK_ROWS.get(key, "") if axis == "all" else "" for key, axis in zip(keys, quoted["axis"])]
    data: Any = folder.manifest.get("data", {})
    source, revision = str(data.get("source", "")), str(data.get("revision", ""))
    return Evidence(
        tuple(rows_of(quoted.assign(task=tasks))),
        data=source if revision else Path(source).name,  # a local path says nothing elsewhere
        config=",".join(data.get("configs", [])),
        protocol=protocol,
        revision=revision,
        scores=rows,
    )


def _unit(row: Row, protocol: str) -> str:
    """Return the name of the folder of the unit that an edit belongs to; see `seesaw_cf.run.units`."""
    name = "-".join(filter(None, (row["relation_id"], row["effect_relation_id"])))
    return safe_name(name if protocol == "batch" else f"{name}-{row['case_id']:08d}")
