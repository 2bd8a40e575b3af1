"""What a study is made of: questions, items, tasks. All of it is plain data that a file of SQLite keeps as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

ToldFacts = tuple[tuple[str, tuple[str, ...]], ...]
"""What stands above the texts of an item: labels and lines."""
About = Mapping[str, Any]
"""What a table needs of an item: its place in the run, its role, and what un-blinds it."""
Answer = Mapping[str, Any]
"""Question -> text of a choice, list of choices, free text, or {"choice", "sentences", "spans"} of a claim."""


@dataclass(frozen=True, slots=True)
class ItemQuestion:
    """One question about an item.

    Attributes:
        name: In answers and tables.
        text: What raters read.
        choices: (value, words); none for a free text.
        help: What counts, one line each.
        shape: "choice" (one of), "several" (any of), "claim" (one of, and sentences or words of the first text), "line"
            or "text" (free).
        needed: An item is not answered without it.
    """

    name: str
    text: str
    choices: tuple[tuple[str, str], ...] = ()
    help: tuple[str, ...] = ()
    shape: str = "choice"
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is judged, or facts to write from.

    Attributes:
        title: Above it.
        body: As it was written.
        marked: Its sentences are numbered, to be marked; so are stretches of words.
    """

    title: str
    body: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Gold:
    """What an item should be answered with.

    Attributes:
        answers: Question -> the right value; for texts in two orders, of the order as stored.
        why: Explanation after a training item.
    """

    answers: Answer = field(hash=False)
    why: str = ""


@dataclass(frozen=True, slots=True)
class RatingItem:
    """Something to rate.

    Attributes:
        id: The same for the same texts in every study.
        group: What items are sampled by: the relation of the edit.
        told: Facts above the texts: (label, lines).
        texts: To be judged; in the flaws task before and after the edit.
        ask: Names of the study's questions that are asked.
        questions: Its own questions, where they differ from item to item.
        about: What the table needs of it; never shown.
        gold: What is right, where that is known.
    """

    id: str
    group: str
    told: ToldFacts
    texts: tuple[Text, ...]
    ask: tuple[str, ...] = ()
    questions: tuple[ItemQuestion, ...] = ()
    about: About = field(default_factory=dict, hash=False)
    gold: Gold | None = None

    def shown(self, first: str) -> dict[str, str]:
        """Return title -> text in the order shown; "post" shows the text after an edit first."""
        texts = self.texts[::-1] if first == "post" else self.texts
        return {text.title or f"Text {'AB'[place]}": text.body for place, text in enumerate(texts)}


@dataclass(frozen=True, slots=True)
class RatingTask:
    """An item in the sequence of one rater.

    Attributes:
        rater: Who.
        position: From 1.
        item: Its id.
        role: What it is for: "training" or "gold", of which raters are told; "item", "repeat" or "attention", which
            look alike.
        first: Which of two texts is shown first, "pre" or "post"; "" where they have no order.
    """

    rater: str
    position: int
    item: str
    role: str = "item"
    first: str = ""


@dataclass(frozen=True, slots=True)
class RatingStudy:
    """What holds for every item.

    Attributes:
        id: Of this study; copies of its file share it.
        kind: Name out of `kinds.KINDS`.
        raters: Their names, such as "R1-4f09ac": a number, and the beginning of the study's id, so that tables of
            several studies fit together. Nothing else is known of them.
        task: Instructions for raters, paragraph by paragraph.
        questions: Of every item without own questions.
        consent: Shown before anything else.
        qualify: Share of gold answers that must be right; 0 = no such test.
        breaks: A break is offered after this many items; 0 = never.
        seed: Of the sample and the design.
        facts: Where the items come from, the wording, and the settings of the design.
    """

    id: str
    kind: str
    raters: tuple[str, ...]
    task: tuple[str, ...]
    questions: tuple[ItemQuestion, ...]
    consent: str
    qualify: float = 0.0
    breaks: int = 20
    seed: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def asked(self, item: RatingItem) -> tuple[ItemQuestion, ...]:
        """Return the questions about an item."""
        return item.questions or tuple(
            question for question in self.questions if not item.ask or question.name in item.ask
        )


def plain_study(fields: Mapping[str, Any]) -> RatingStudy:
    """Return a study from what `dataclasses.asdict` and JSON made of it."""
    questions = tuple(map(_question, fields["questions"]))
    lists = {name: tuple(fields[name]) for name in ("raters", "task")}
    return RatingStudy(**{**fields, **lists, "questions": questions})


def plain_item(fields: Mapping[str, Any]) -> RatingItem:
    """Return an item from what `dataclasses.asdict` and JSON made of it."""
    facts = tuple((label, tuple(lines)) for label, lines in fields["told"])
    texts = tuple(Text(**text) for text in fields["texts"])
    gold = Gold(**fields["gold"]) if fields["gold"] else None
    questions = tuple(map(_question, fields["questions"]))
    lists = {"told": facts, "texts": texts, "ask": tuple(fields["ask"]), "questions": questions}
    return RatingItem(**{**fields, **lists, "gold": gold})


def _question(fields: Mapping[str, Any]) -> ItemQuestion:
    choices = tuple((value, words) for value, words in fields["choices"])
    return replace(ItemQuestion(**fields), choices=choices, help=tuple(fields["help"]))
