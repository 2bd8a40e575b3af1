"""Where a rater stands: what is answered, what comes next, the time left, how well hidden items were answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from seesaw_cf.texts.people.forms import agrees, expected
from seesaw_cf.texts.people.store import Entry, StudyStore
from seesaw_cf.texts.people.study import Answer, RatingTask

MAIN = ("item", "repeat", "attention")
"""Roles of the items that a rater counts."""
_TIMED = 3  # answers whose time is known before a time is promised


@dataclass(frozen=True, slots=True)
class GoldJudgements:
    """Judgements of which is known what they should be.

    Attributes:
        items: For each item, judgement by judgement, whether it is so.
    """

    items: tuple[tuple[bool, ...], ...] = ()

    @property
    def right(self) -> int:
        """Judgements that are so."""
        return sum(map(sum, self.items))

    @property
    def asked(self) -> int:
        """All of them."""
        return sum(map(len, self.items))


@dataclass(frozen=True, slots=True)
class Standing:
    """One rater, now.

    Attributes:
        tasks: In order.
        answers: Position -> the entry that counts, the last one.
        drafts: Position -> the last entry of a form that is not sent yet.
        consented, submitted: Whether.
        gold: Judgements of the qualifying items.
        attention: Judgements of the attention items.
        qualified: None while there are qualifying items without an answer.
        seconds: Middle time of an item; None while too few are known.
        last: When the rater last did something; "" before that.
        back: Entries with an earlier clock than the entry before them.
    """

    tasks: Sequence[RatingTask]
    answers: Mapping[int, Entry]
    drafts: Mapping[int, Entry]
    consented: bool
    submitted: bool
    gold: GoldJudgements
    attention: GoldJudgements
    qualified: bool | None
    seconds: float | None
    last: str
    back: int

    @property
    def next(self) -> int | None:
        """The first task without an answer; None when all have one."""
        return next((task.position for task in self.tasks if task.position not in self.answers), None)

    @property
    def total(self) -> int:
        """Items that a rater counts."""
        return sum(task.role in MAIN for task in self.tasks)

    @property
    def done(self) -> int:
        """Those that have an answer."""
        return sum(task.role in MAIN and task.position in self.answers for task in self.tasks)

    @property
    def minutes_left(self) -> int | None:
        """About; None while nothing is known, and when nothing is left."""
        if self.seconds is None or self.next is None:
            return None
        return max(1, round(self.seconds * (len(self.tasks) - len(self.answers)) / 60))

    def number(self, position: int) -> int:
        """Return the number that an item has for the rater, from 1."""
        return sum(task.role in MAIN for task in self.tasks[:position])

    def locked(self, task: RatingTask) -> bool:
        """Return whether its answer can no longer be changed."""
        return self.submitted or (task.role == "gold" and self.qualified is not None)

    def may_open(self, position: int) -> bool:
        """Return whether a task may be opened: none is skipped, and raters who failed to qualify see no main item."""
        if not 1 <= position <= len(self.tasks):
            return False
        first = self.next or len(self.tasks)
        return position <= first and (self.qualified is not False or self.tasks[position - 1].role not in MAIN)


def standing(store: StudyStore, rater: str) -> Standing:
    """Read where a rater stands from the log."""
    log, tasks = store.entries(rater), store.tasks[rater]
    answers = {entry.position: entry for entry in log if entry.act == "answer"}
    drafts = {entry.position: entry for entry in log if entry.act == "draft"}
    golds = [task for task in tasks if task.role == "gold"]
    gold = _right(store, golds, answers)
    complete = all(task.position in answers for task in golds)
    times = [entry.seconds for entry in answers.values() if entry.seconds is not None]
    dates, acts = [entry.at for entry in log], {entry.act for entry in log}
    return Standing(
        tasks,
        answers,
        {place: entry for place, entry in drafts.items() if place not in answers or entry.seq > answers[place].seq},
        "consent" in acts,
        "submit" in acts,
        gold,
        _right(store, [task for task in tasks if task.role == "attention"], answers, exactly=True),
        None if not complete else not golds or gold.right >= store.study.qualify * gold.asked,
        median(times) if len(times) >= _TIMED else None,
        dates[-1] if dates else "",
        sum(later < earlier for earlier, later in pairwise(dates)),
    )


def _right(
    store: StudyStore, tasks: Sequence[RatingTask], answers: Mapping[int, Entry], *, exactly: bool = False
) -> GoldJudgements:
    """Return which judgements of the answered tasks are right."""
    judgements = []
    for task in tasks:
        if task.position in answers:
            answer: Answer = answers[task.position].content
            item = store.items[task.item]
            right, names = expected(item, task), [question.name for question in store.study.asked(item)]
            own = (agrees(answer.get(name), right[name], exactly=exactly) for name in names if name in right)
            judgements.append(tuple(own))
    return GoldJudgements(tuple(judgements))
