"""What was measured about one shared edit: the numbers a model card shows, each with its interval and n."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import StorageError, unknown_name
from seesaw_cf.base.files import safe_name
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import Estimate
from seesaw_cf.records.relations import TASKS
from seesaw_cf.report.table import Row

if TYPE_CHECKING:
    import pandas as pd

    from seesaw_cf.effects.prompts import ScoreForm

_LEAST = 5  # people in a group whose number is shown


@dataclass(frozen=True, slots=True)
class Result:
    """One number about the edit.

    Attributes:
        task: Out of `seesaw_cf.records.relations.TASKS`.
        estimate: The number after the edit (for D: the change), with n prompts and n_clusters people or edits.
        before: The same number before the edit; None for changes.
        group: People it is about, such as "race Black"; "" for all people.
    """

    task: str
    estimate: Estimate
    before: float | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Results of one edit that go onto its card.

    Attributes:
        results: In the order of the tasks, groups last.
        data: What was measured on: "sample", a Hub data set such as "org/seesaw_cf", or a file name.
        config: Which config(s) of it, e.g. "cross_subject".
        protocol: "single" (each case edited alone) or "batch"; "" when unknown.
        revision: Commit of the Hub data set that was read; "" when unknown or local.
        date: Day of the measurement (UTC), YYYY-MM-DD; "" when unknown, as it is of a run, whose files may be copies.
        scores: The rows that the numbers are made of; pushed with the card when given.
    """

    results: tuple[Result, ...]
    data: str = ""
    config: str = ""
    protocol: str = ""
    revision: str = ""
    date: str = ""
    scores: pa.Table | None = None


def edit_evidence(run: str | os.PathLike[str], editor: str, unit: str) -> Evidence:
    """Return what a finished run measured about one of its edits, and about no other.

    Args:
        run: A run folder with `manifest.json`, `edits.parquet` and `scores.parquet`.
        editor: Which of its editors.
        unit: Which edit: the name of its folder below `deltas/EDITOR/`.

    Returns:
        The measures that are defined for this edit. Intervals are clustered by the person asked about, and by edit
        where the unit holds several; below five effective clusters there is none.

    Raises:
        UnknownNameError: The run has no such editor or unit.
        StorageError: The run is not finished or the folder is something else.
        RecordError: Its files are damaged.
    """
    folder = Path(run)
    manifest = read_json(folder / "manifest.json")
    rows = _rows_of(folder, editor, unit, str(manifest.get("protocol", "")))
    data = manifest.get("data", {})
    source, revision = str(data.get("source", "")), str(data.get("revision", ""))
    return Evidence(
        tuple(_results(rows)),
        data=source if revision else Path(source).name,  # a local path says nothing elsewhere
        config=",".join(data.get("configs", [])),
        protocol=str(manifest.get("protocol", "")),
        revision=revision,
        scores=rows,
    )


def _rows_of(folder: Path, editor: str, unit: str, protocol: str) -> pa.Table:
    """Return the score rows of one unit of one editor."""
    tables = {}
    for name, schema in (("scores", SCORES), ("edits", None)):
        file = folder / f"{name}.parquet"
        if not file.exists():
            raise StorageError(
                f"{file}: no such file; the run is not finished. Run the same command again to continue it."
            )
        tables[name] = read_table(file, schema)
    edits = tables["edits"].to_pylist()
    names = sorted({row["editor"] for row in edits})
    one_of(f"editor of the run {folder}", editor, names)
    keys = {row["case_id"]: _unit(row, protocol) for row in edits if row["editor"] == editor}
    cases = [case for case, key in keys.items() if key == unit]
    if not cases:
        raise unknown_name(f"edit of the run {folder}", unit, sorted(set(keys.values())))
    scores = tables["scores"]
    own = pc.and_(pc.equal(scores["editor"], editor), pc.is_in(scores["case_id"], pa.array(cases, pa.int64())))
    return scores.filter(own)


def _unit(row: Row, protocol: str) -> str:
    """Return the name of the folder of the unit that an edit belongs to; see `seesaw_cf.run.units.units`."""
    name = "-".join(filter(None, (row["relation_id"], row["effect_relation_id"])))
    return safe_name(name if protocol == "batch" else f"{name}-{row['case_id']:08d}")


def _results(rows: pa.Table) -> Iterator[Result]:
    """Yield all results; records that ask about other properties have their own tasks, also about the edits."""
    cases = pc.unique(rows.filter(pc.equal(rows["kind"], "cross_property"))["case_id"])
    of_properties = pc.is_in(rows["case_id"], cases)
    for part, prefix in ((rows.filter(pc.invert(of_properties)), ""), (rows.filter(of_properties), "cross_property_")):
        kinds = set(pc.unique(part["kind"]).to_pylist())
        for task, (kind, sign) in _OWN.items():
            if kind in kinds and prefix + task in TASKS:
                yield from _log_odds(prefix + task, _prompts(part, kind, "log_odds"), sign)
    if len(cases):
        yield from _log_odds("cross_property_log_odds", _properties(rows), 1)
    if pc.any(pc.equal(rows["kind"], "cross_subject")).as_py():
        yield from _changes(rows)


# Task, without what says of which records -> the kind of its prompts, and whether the new target is the wanted one.
_OWN = {
    "efficacy_log_odds": ("efficacy", 1),
    "paraphrase_log_odds": ("paraphrase", 1),
    "neighborhood_log_odds": ("neighborhood", -1),
}


def _log_odds(task: str, prompts: pd.DataFrame, sign: int) -> Iterator[Result]:
    if len(prompts):
        after = _estimate(prompts, sign * prompts["D_post"], ("prompt",))
        yield Result(task, after, before=_estimate(prompts, sign * prompts["D_pre"], ("prompt",)).value)


def _changes(rows: pa.Table) -> Iterator[Result]:
    """Yield D for people who hold the new target (in log-odds and probability) or the old one; then by group."""
    prompts = _prompts(rows, "cross_subject", "summed")
    new = prompts[prompts["holds"] == "target_new"]
    odds = _prompts(rows, "cross_subject", "log_odds")
    for task, part in (
        ("other_people_d_log_odds", odds[odds["holds"] == "target_new"]),
        ("other_people_d", new),
        ("old_target_people_d", prompts[prompts["holds"] == "target_true"]),
    ):
        if len(part):
            yield Result(task, _estimate(part, part["D"], ("person",)))
    for axis in ("gender", "race", "region"):
        tags = [set() if cell is None else set(cell) for cell in new[axis]]
        for group in sorted(set().union(*tags)):
            part = new[[group in own for own in tags]]
            if part["person"].nunique() >= _LEAST:
                yield Result("other_people_d", _estimate(part, part["D"], ("person",)), group=f"{axis} {group}")


def _prompts(rows: pa.Table, kind: str, score: ScoreForm) -> pd.DataFrame:
    """Return one row per scored prompt of a kind."""
    from seesaw_cf.effects import prompt_effects  # lazily: statistics are not needed to save a delta

    effects = prompt_effects(rows, score=score, kind=kind)
    return effects[effects["status"] == "ok"]


def _properties(rows: pa.Table) -> pd.DataFrame:
    """Return log-odds of the best right against the best wrong candidate, before and after, per case and property."""
    import pandas as pd

    from seesaw_cf.effects.answers import answers

    changes = []
    for row in answers(rows).to_dict("records"):
        right = [name in set(row["gold"]) for name in row["candidates"]]
        if any(right) and not all(right):
            sides = {f"D_{phase}": _best(row[phase], right) for phase in ("pre", "post")}
            changes.append({"case_id": row["case_id"], "prompt": row["prompt_post"], **sides})
    return pd.DataFrame(changes).dropna() if changes else pd.DataFrame()


def _best(logprobs: Sequence[float], right: list[bool]) -> float:
    """Return the best right minus the best wrong log-probability; NaN where one is missing."""
    sides = {side: [value for value, is_right in zip(logprobs, right) if is_right is side] for side in (True, False)}
    return float("nan") if any(value != value for value in logprobs) else max(sides[True]) - max(sides[False])


def _estimate(prompts: pd.DataFrame, values: pd.Series, clusters: tuple[str, ...]) -> Estimate:
    """Return the mean of case means, clustered by columns of `prompts`, and by edit where there are several."""
    import numpy as np

    from seesaw_cf.stats import case_weights, clustered_mean

    names = (*clusters, "case_id") if prompts["case_id"].nunique() > 1 else clusters
    codes = {name: np.unique(prompts[name].astype(str), return_inverse=True)[1] for name in (*names, "case_id")}
    weights = case_weights(codes["case_id"], np.ones(len(prompts), dtype=bool))
    return clustered_mean(values.to_numpy(np.float64), [weights], {name: codes[name] for name in names})
