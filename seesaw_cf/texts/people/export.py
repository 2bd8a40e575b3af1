"""From a study to the tables that judges write: the answers that count, un-blinded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seesaw_cf.base.files import write_new
from seesaw_cf.base.tables import table_bytes
from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts.people.make import KINDS
from seesaw_cf.texts.people.making import RatedTask
from seesaw_cf.texts.people.progress import standing
from seesaw_cf.texts.people.status import RaterStatus, status_of
from seesaw_cf.texts.people.store import StudyStore


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.

    Attributes:
        rows: File -> rows.
        raters: The raters with answers in them.
        left_out: Rater -> why there are none of theirs.
    """

    rows: dict[str, int]
    raters: list[str]
    left_out: dict[str, str]


def export_study(store: StudyStore, out: Path, *, attention: float = 0.0, overwrite: bool = False) -> Exported:
    """Write the tables of a study, and `raters.json` with how well hidden items were answered.

    Only the last answer to each item counts. An item without one has a row with the status "not rated".

    Args:
        store: The study; it may be in use.
        out: Folder.
        attention: Share of attention judgements that must be right; raters below it are left out and named.
        overwrite: Replace tables with other content.

    Raises:
        StorageError: A table is there with other content, or cannot be written.
    """
    statuses = status_of(store)
    left_out = {status.rater: why for status in statuses if (why := _unfit(status, attention))}
    raters = [status.rater for status in statuses if status.rater not in left_out]
    rated = [status for rater in raters for status in _rated(store, rater)]
    study = store.study
    tables = {f"{name}.parquet": table for name, table in KINDS[study.kind].tables(rated, study.questions)}
    about = {"study": study.id, "kind": study.kind, "seed": study.seed, **study.facts, "left_out": left_out}
    about["raters"] = [status.row() for status in statuses]
    files: list[tuple[Path, bytes | str]] = [(out / name, table_bytes(table)) for name, table in tables.items()]
    write_new([*files, (out / "raters.json", json_text(about))], overwrite=overwrite)
    return Exported({name: table.num_rows for name, table in tables.items()}, raters, left_out)


def _unfit(status: RaterStatus, attention: float) -> str:
    if not status.now.consented:
        return "did not begin"
    if status.now.qualified is False:
        return f"gold items: {status.now.gold.right} of {status.now.gold.asked} right, too few"
    right, total = status.now.attention.right, status.now.attention.asked
    return f"attention: {right} of {total} right, below {attention:g}" if total and right < attention * total else ""


def _rated(store: StudyStore, rater: str) -> Sequence[RatedTask]:
    answers = standing(store, rater).answers
    return [
        RatedTask(store.items[task.item], task, answers[task.position].content if task.position in answers else None)
        for task in store.tasks[rater]
        if task.role in ("item", "repeat")
    ]
