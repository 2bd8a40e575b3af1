"""How far a study is, from its file alone; nothing is written, so it may be asked while raters work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.report.table import Column, Row, Table
from seesaw_cf.stats import clustered_mean
from seesaw_cf.texts.people.forms import agrees, in_other_order
from seesaw_cf.texts.people.progress import GoldJudgements, Standing, standing
from seesaw_cf.texts.people.store import Entry, StudyStore
from seesaw_cf.texts.people.study import RatingStudy


@dataclass(frozen=True, slots=True)
class RaterStatus:
    """One rater.

    Attributes:
        rater: Name.
        now: Where the rater stands.
        repeats: Judgements of items shown twice that should be the same again.
        late: Answers after submission; they are kept and do not count.
    """

    rater: str
    now: Standing
    repeats: GoldJudgements
    late: int

    def row(self) -> dict[str, Any]:
        """Return plain values, each share as the mean over items, with its counts and an interval clustered by item."""
        names = ("done", "total", "consented", "submitted", "qualified", "seconds", "last")
        shares = {"gold": self.now.gold, "attention": self.now.attention, "repeats": self.repeats}
        row = {"rater": self.rater} | {name: getattr(self.now, name) for name in names}
        row |= {name: _share(judgements) for name, judgements in shares.items()}
        return row | {"late": self.late, "clock_back": self.now.back}


def _share(judged: GoldJudgements) -> dict[str, Any]:
    counts = {"n": judged.asked, "n_items": len(judged.items), "right": judged.right}
    if not judged.asked:
        return {"value": None, "low": None, "high": None, **counts, "note": "nothing was asked"}
    of_items = np.array([sum(own) / len(own) for own in judged.items if own])
    number = len(of_items)
    estimate = clustered_mean(of_items, [np.full(number, 1 / number)], {"item": np.arange(number)})
    low, high = np.clip((estimate.low, estimate.high), 0, 1).tolist()
    return {"value": float(of_items.mean()), "low": low, "high": high, **counts, "note": estimate.note}


def status_of(store: StudyStore) -> list[RaterStatus]:
    """Return every rater, in order."""
    statuses = []
    for rater in store.study.raters:
        now, late = standing(store, rater), sum(entry.act == "late" for entry in store.entries(rater))
        statuses.append(RaterStatus(rater, now, _repeats(store, rater, now.answers), late))
    return statuses


def _repeats(store: StudyStore, rater: str, answers: Mapping[int, Entry]) -> GoldJudgements:
    """Return which judgements of items shown twice are the same; free texts are left out."""
    first = {task.item: task for task in store.tasks[rater] if task.role == "item"}
    same = []
    for task in store.tasks[rater]:
        other = first.get(task.item)
        if task.role != "repeat" or other is None or not {task.position, other.position} <= answers.keys():
            continue
        own = []
        for question in store.study.asked(store.items[task.item]):
            if question.shape not in ("line", "text"):
                value, again = (answers[shown.position].content.get(question.name) for shown in (other, task))
                value = in_other_order(value) if task.first != other.first else value
                own.append(agrees(again, value, exactly=True) if value else not again)
        same.append(tuple(own))
    return GoldJudgements(tuple(same))


def status_table(study: RatingStudy, statuses: Sequence[RaterStatus]) -> Table:
    """Return how far the raters are, one row each, with what should be looked at."""
    answered, total = sum(status.now.done for status in statuses), sum(status.now.total for status in statuses)
    about = f"Study {study.id}, {study.kind}: {answered} of {total} items have an answer."
    lines = [
        f"{status.rater}: the clock went back {status.now.back} times; the order of answers does not rest on it."
        for status in statuses
        if status.now.back
    ]
    lines += [
        f"{status.rater}: {status.late} answers after submission; they are kept and do not count."
        for status in statuses
        if status.late
    ]
    frame = pd.DataFrame([status.row() for status in statuses])
    return Table("status", "Status", about, _COLUMNS, frame, lines=lines)


def _judged(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name]['right']}/{row[name]['n']}" if row[name]["n"] else ""


_COLUMNS = (
    Column("rater", words=True),
    Column("done"),
    Column("of", "total"),
    Column(
        "submitted", lambda row: "not qualified" if row["qualified"] is False else "yes" if row["submitted"] else "no"
    ),
    Column("gold right", _judged("gold")),
    Column("attention right", _judged("attention")),
    Column("same again", _judged("repeats")),
    Column("s/item", "seconds", digits=0),
    Column("last answer", "last"),
)
