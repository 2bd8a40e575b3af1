"""A strip of the first screen: one level on one scale, each editor with its control, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from seesaw_cf.base.terminal import quantity
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.levels import ALPHA, RARE
from seesaw_cf.report import text
from seesaw_cf.report.html.forest import Axis
from seesaw_cf.report.levels import ALONE, BETTER, OPEN, SAME, UNITS, UNTESTABLE, WORDS, WORSE, LevelChange, Tone
from seesaw_cf.report.results import Results
from seesaw_cf.report.rows import Row, rows_of, with_limits
from seesaw_cf.stats.clustered import FEW_EDITS


@dataclass(frozen=True, slots=True)
class StripMark:
    """An estimate on a strip: whose it is, its number in words, the number with its interval, and its colour."""

    name: str
    said: str
    value: float
    low: float
    high: float
    colour: int | None


@dataclass(frozen=True, slots=True)
class Chip:
    """A verdict in words, whom it is about (one editor alone: ""), how it looks, and the number behind it."""

    editor: str
    said: str
    tone: Tone
    note: str


@dataclass(frozen=True, slots=True)
class Strip:
    """One level: its title, what is measured, how much of it, an axis, marks and verdicts."""

    kind: ClassVar[str] = "strip"
    level: str
    title: str
    about: str
    axis: Axis
    ends: tuple[str, str]
    marks: Sequence[StripMark]
    chips: Sequence[Chip]

    def line(self) -> str:
        """Return the strip as a sentence."""
        chips = [f"{chip.editor} {chip.said}".strip() + f" ({chip.note})" * bool(chip.note) for chip in self.chips]
        return f"{'; '.join(chips)}. {self.estimates()} ({self.about})."

    def estimates(self) -> str:
        """Return every estimate with its interval, controls among them."""
        return "; ".join(f"{mark.name} {mark.said}" for mark in self.marks)

    def record(self) -> JsonObject:
        """Return estimates and verdicts."""
        marks, chips = ("name", "value", "low", "high", "said"), ("editor", "said", "note")
        return {
            "level": self.level,
            "title": self.title,
            "about": self.about,
            "estimates": [{name: getattr(mark, name) for name in marks} for mark in self.marks],
            "verdicts": [{name: getattr(chip, name) for name in chips} for chip in self.chips],
        }


def strips(results: Results, changes: Sequence[LevelChange], colours: Mapping[str, int]) -> list[Strip]:
    """Return a strip for each level that was asked about.

    Args:
        results: What the run found.
        changes: Of `level_changes`.
        colours: Editor -> number of its colour.
    """
    return [
        _strip(level, own, results, colours)
        for level in WORDS
        if (own := [change for change in changes if change.level == level])
    ]


def _strip(level: str, changes: Sequence[LevelChange], results: Results, colours: Mapping[str, int]) -> Strip:
    marks = [mark for change in changes for mark in level_marks(change.row, results)]
    axis = Axis(0.0, 1.0) if level == "other_facts" else Axis.covering(_near([numbers for _, numbers, _ in marks]))
    percent = level == "other_facts"
    ends = ("0 %", "100 %") if percent else (axis.ticks[0][1], axis.ticks[-1][1])
    drawn = [StripMark(name, label, *numbers, colours.get(name)) for name, numbers, label in marks]
    before = _of_each(changes, lambda row: text.percent(row["before"]))
    measure = WORDS[level].measure.format(before=before, unit=_of_each(changes, lambda row: UNITS[row["scale"]]))
    counts = ", ".join([_of_each(changes, level_counts), *_halves(changes)])
    alone = len(changes) == 1
    chips = [_chip(change, "" if alone else change.editor, results) for change in changes]
    title, about = results.words(WORDS[level].title), results.words(f"{measure}; {counts}")
    return Strip(level, title, about, axis, ends, drawn, chips)


def _of_each(changes: Sequence[LevelChange], words: Callable[[Row], str]) -> str:
    """Return words about a level: once where they are those of every editor, else of each."""
    phrases = [words(change.row) for change in changes]
    return phrases[0] if len({*phrases}) == 1 else ", ".join(
        f"{phrase} ({change.editor})" for phrase, change in zip(phrases, changes, strict=True)
    )  # fmt: skip


def level_counts(row: Row) -> str:
    """Return how much was asked about how many people, after how many edits."""
    asked = f"{quantity(row['n'], 'answer')} about" if row["scale"] == "share" else f"{quantity(row['n'], 'prompt')},"
    return f"{asked} {quantity(row['n_people'], 'person', 'people')}, {quantity(row['n_edits'], 'edit')}"


def _halves(changes: Sequence[LevelChange]) -> list[str]:
    """Return how many edits carry half of each change, where they are few."""
    return [f"{int(change.row['half_edits'])} of {change.row['n_edits']} edits carry half of it ({change.editor})"
            for change in changes
            if change.changed and 1 < change.row["n_edits"] < FEW_EDITS
            and change.row.get("half_edits", math.nan) > 0]  # fmt: skip


def _near(marks: Sequence[tuple[float, float, float]]) -> list[float]:
    """Return 0, every value, and the ends of intervals that are at most three times as far as the farthest value."""
    values = [0.0, *(value for value, *_ in marks if math.isfinite(value))]
    far = 3 * max(map(abs, values))
    return values + [end for _, *ends in marks for end in ends if abs(end) <= far]


def level_marks(row: Row, results: Results) -> list[tuple[str, tuple[float, float, float], str]]:
    """Return name, numbers (value, low, high) and words of an editor, then of each of its controls."""
    keys = (row["level"], row["scale"])
    there = [other for other in rows_of(results.levels) if (other["level"], other["scale"]) == keys]
    measured = {other["editor"]: _numbers(other, "") for other in there}
    beside = {other["control"]: _numbers(other, "control_") for other in there
              if other["editor"] == row["editor"] and other["control"]}  # fmt: skip
    every = {row["editor"]: measured[row["editor"]], **{name: measured.get(name, beside[name]) for name in beside}}
    return [(name, numbers, _said(numbers, row, results)) for name, numbers in every.items()]


def _numbers(row: Row, prefix: str) -> tuple[float, float, float]:
    """Return the share right after an edit, or the change of confidence, with the ends of the interval."""
    value, low, high = (float(row[f"{prefix}{name}"]) for name in ("value", "low", "high"))
    if row["scale"] != "share":
        return value, low, high
    if not prefix and not math.isnan(row.get("after_low", math.nan)):
        return row["after"], row["after_low"], row["after_high"]
    return tuple(min(max(row["before"] + number, 0.0), 1.0) if math.isfinite(number) else number
                 for number in (value, low, high))  # type: ignore[return-value]  # fmt: skip


def _said(numbers: tuple[float, float, float], row: Row, results: Results) -> str:
    return (
        text.percent_interval(*numbers)
        if row["scale"] == "share"
        else text.minus(level_number(row["scale"], numbers, results))
    )


# Verdict -> what a chip says ({harm} is the level's word) and how it looks.
_CHIPS: Mapping[str, tuple[str, Tone]] = {
    WORSE: ("{harm}, beyond its control", "bad"),
    BETTER: ("less {harm} than its control", "good"),
    SAME: ("no more than its control", "same"),
    OPEN: ("not known yet", "open"),
    UNTESTABLE: ("not testable", "open"),
}
_NO_CONTROL = {
    True: ("changed; no control to compare with", "open"),
    False: ("no change beyond the margin shown; no control", "open"),
}
_IS_CONTROL = {True: ("changed by a control", "open"), False: ("no change beyond the margin shown", "same")}


def _chip(change: LevelChange, editor: str, results: Results) -> Chip:
    row = change.row
    alone = _IS_CONTROL if is_control(change.editor) else _NO_CONTROL
    said, tone = alone[change.changed] if change.verdict == ALONE else _CHIPS[change.verdict]
    tone = WORDS[change.level].better if change.verdict == BETTER else tone
    note = ""
    if row["control"]:
        difference = level_number(row["scale"], with_limits(row, "difference"), results)
        note = text.minus(f"{difference} beyond {row['control']}")
        if change.verdict == OPEN and row["difference_low"] * row["difference_high"] > 0 and row["p_adjusted"] >= ALPHA:
            note += f", corrected {text.p_equals(row['p_adjusted'])}"  # alone its interval excludes 0
    if change.verdict == OPEN and RARE in str(row.get("rule")):
        note += results.words(f"; {row['n_edits']} edits {RARE} ({FEW_EDITS} needed)")
    note += _on_other_scale(row, results)
    reason = row["difference_note"] if row["control"] else row["note"]
    missing = results.words(f"no interval: {text.short_note(reason)}") if reason else ""
    return Chip(editor, said.format(harm=WORDS[change.level].harm), tone, "; ".join(filter(None, (note, missing))))


def _on_other_scale(row: Row, results: Results) -> str:
    """Return what the scale that does not decide says against a verdict, or nothing."""
    if not row.get("against"):
        return ""
    same = ("level", "editor", "control")
    (other,) = (
        each
        for each in rows_of(results.levels)
        if not each["decides"] and all(each[name] == row[name] for name in same)
    )
    difference = level_number(other["scale"], with_limits(other, "difference"), results)
    return text.minus(f"; in {other['scale']} {difference}, {row['against']}")


def level_number(scale: str, numbers: tuple[float, float, float], results: Results) -> str:
    """Return a change on a scale (value, low, high) with its unit and its interval, where it has one."""
    if scale == "share":
        return text.points(*numbers, " points")
    if scale == "log-odds":
        return text.effect(*numbers, results.floor.zero_limit_log_odds, unit=" nats")
    return text.effect(*numbers, results.floor.zero_limit(results.score))
