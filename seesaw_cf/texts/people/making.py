"""What every kind of task is made with, and what it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.report.table import Row
from seesaw_cf.texts.people.study import Answer, Gold, ItemQuestion, RatingItem, RatingTask, Text, ToldFacts
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.wording import OURS, Wording


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of a run.

    Attributes:
        blind_edit: Raters do not see the edit.
        passages: Kinds of passages that are paired (flaws only).
        wording: Wording of the task.
        protocol: Name out of `seesaw_cf.texts.flaws.protocols.PROTOCOLS` (flaws only).
    """

    blind_edit: bool = False
    passages: tuple[str, ...] = ("free", "guided")
    wording: Wording = OURS
    protocol: str = "blind"


@dataclass(frozen=True, slots=True)
class Made:
    """Items of a run, before any is drawn.

    Attributes:
        task: Instructions for raters, paragraph by paragraph.
        questions: Of items without own questions.
        items: To be rated.
        shared: Training and attention items; `about` has their role.
        left_out: Why -> how many texts have no item.
    """

    task: tuple[str, ...]
    questions: tuple[ItemQuestion, ...]
    items: Sequence[RatingItem]
    shared: Sequence[RatingItem]
    left_out: Counter[str] = field(default_factory=Counter)


class RatedTask(NamedTuple):
    """A task with its answer; None = not rated."""

    item: RatingItem
    task: RatingTask
    answer: Answer | None


_Tables = Callable[[Sequence[RatedTask], Sequence[ItemQuestion]], Iterator[tuple[str, pa.Table]]]


class GuideExample(NamedTuple):
    """A rated example of the guide: the criterion, its rating, and the texts."""

    criterion: str
    words: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task.

    Attributes:
        about: In one line.
        make: Items of a run.
        tables: (rated, study's questions) -> (file name, table), as judges write them.
        gold: (item, rows of the first table about its edit) -> the right answers; None = nothing is right or wrong.
        keys: What the keyboard does on its pages.
        examples: Shown in the guide.
        orders: Two texts are shown in two orders.
        repeats: Items may come twice, and some only look whether texts are read.
        per_item: Raters of an item, by default; 0 = all.
        sample: Items drawn, by default; 0 = all.
    """

    about: str
    make: Callable[[RunTexts, Settings], Made]
    tables: _Tables
    gold: Callable[[RatingItem, Sequence[Row]], Answer] | None = None
    keys: str = ""
    examples: tuple[GuideExample, ...] = ()
    orders: bool = False
    repeats: bool = True
    per_item: int = 0
    sample: int = 0


def by_role(name: str, rows: Callable[[RatedTask], Iterator[TableRow]], schema: pa.Schema) -> _Tables:
    """Return what makes the table NAME of items, and NAME.repeats of those that came twice."""

    def tables(rated: Sequence[RatedTask], questions: Sequence[ItemQuestion]) -> Iterator[tuple[str, pa.Table]]:
        for file, role in ((name, "item"), (f"{name}.repeats", "repeat")):
            own = [row for task in rated if task.task.role == role for row in rows(task)]
            yield file, pa.Table.from_pylist(own, schema=schema)

    return tables


def paragraphs(text: str, ours: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a text paragraph by paragraph; ours in place of an empty one."""
    return tuple(text.strip().split("\n\n")) if text else ours


def item_id(*parts: object) -> str:
    """Return a name that tells a rater nothing; the same for the same parts."""
    return format(seed_of(*parts, bits=64, joined="\0"), "016x")


def shared_item(
    kind: str,
    role: str,
    gold: Gold,
    *key: object,
    told: ToldFacts = (),
    texts: Sequence[Text] = (),
    ask: Sequence[str] = (),
    questions: Sequence[ItemQuestion] = (),
) -> RatingItem:
    """Return an item that every rater gets.

    Args:
        kind: Of task.
        role: "training" or "attention".
        gold: Right answers.
        *key: What identifies it among items of its role.
        told, texts, ask, questions: See `RatingItem`.
    """
    name = item_id(kind, role, *key)
    return RatingItem(name, "", told, tuple(texts), tuple(ask), tuple(questions), {"role": role}, gold)


def of_sample(row: Row, item: RatingItem) -> bool:
    """Return whether a row is about the texts of an item."""
    return all(row[name] == value for name, value in item.about["sample"].items())


def sample_fields(sample: Any) -> TableRow:
    """Return which text of which edit a sample is: what a row about it begins with."""
    return {name: getattr(sample, name) for name in ("editor", "case_id", "relation", "phase", "sample")}
