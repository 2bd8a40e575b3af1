"""Levels of a report: what happened to everybody, beside the control, as rows of the frame and in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.frame import HARM, RARE
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.screen import ScreenRow
from seesaw_cf.report.words import amount, control_words, digits_for, minus, size, unit_of
from seesaw_cf.stats.clustered import FEW_EDITS

LEVELS: Mapping[tuple[str, str], tuple[str, str]] = {  # (about, true answer) -> title, what the numbers are
    ("other_facts", ""): ("Other facts about the edited person", "still right"),
    ("other_people", "old"): ("People for whom the old answer is true", "false answer's gain"),
    ("other_people", "new"): ("People for whom the new answer is true", "right answer's loss"),
}
BADGES: Mapping[str, str] = {
    "worse": "WORSE",
    "slightly_worse": "a little worse",
    "no_worse": "no worse",
    "better": "less harm",
    "undecided": "not decided",
    "too_few": "too few to tell",
    "no_control": "no comparison",
}
SEVERITY: Mapping[str, str] = {"worse": "bad", "slightly_worse": "bad", "no_worse": "same", "better": "good"}
# Level -> least harm (share of what was right before; probability; five nats count as 1) -> what the model does.
_HARMS: Mapping[tuple[str, str], Sequence[tuple[float, str]]] = {
    ("other_facts", ""): (
        (0.9, "forgets nearly all other facts about {person}"),
        (0.5, "forgets most other facts about {person}"),
        (0.1, "forgets some other facts about {person}"),
        (0.0, "forgets a few other facts about {person}"),
    ),
    ("other_people", "old"): (
        (1.0, "also gives the new answer for people for whom the old one is true"),
        (0.1, "is much less sure about people for whom the old answer is true"),
        (0.0, "is less sure about people for whom the old answer is true"),
    ),
    ("other_people", "new"): (
        (0.1, "is much less sure about people for whom the new answer is true"),
        (0.0, "is less sure about people for whom the new answer is true"),
    ),
}
_NATS_PER_UNIT = 5  # margins: 0.1 nats stand for 0.02 in probability


@dataclass(frozen=True)
class Level:
    """What one editor did to everybody on one level, beside the control that decides.

    Attributes:
        about, true_answer, editor: Which level of whom.
        rows: "before", "after", "change", "beyond", "turned_wrong" -> its row on the deciding scale, if any.
        control: The same of the control: "after", "change", "turned_wrong".
        sign: Of a change for the worse.
    """

    about: str
    true_answer: str
    editor: str
    rows: Mapping[str, pd.Series]
    control: Mapping[str, pd.Series]
    sign: int

    @property
    def decided(self) -> pd.Series:
        """The row that has the verdict: beyond the control, or the change alone."""
        return self.rows.get("beyond", self.rows["change"])

    @property
    def verdict(self) -> str:
        """One of `seesaw_cf.report.frame.LEVEL_VERDICTS`."""
        return str(self.decided["verdict"] or "no_control")

    @property
    def harm(self) -> float:
        """Size for the worse, in margins."""
        size = self.sign * float(self.decided["value"]) / float(self.decided["margin"])
        return size if math.isfinite(size) else 0.0

    @property
    def is_harm(self) -> bool:
        """Whether it is shown to be worse: than the control, or without one than before."""
        row = self.decided
        alone = self.verdict == "no_control" and self.sign * row["value"] > row["margin"]
        return self.verdict == "worse" or bool(alone and row["low"] * row["high"] > 0)

    @property
    def title(self) -> str:
        """Who or what it is about."""
        return LEVELS[self.about, self.true_answer][0]


def levels_of(frame: pd.DataFrame, run: RunResult) -> list[Level]:
    """Return the levels of every audited editor, on the scale that decides, by level and then by editor."""
    everybody = frame[(frame["relation"] == ALL) & (frame["axis"] == ALL)]
    found = []
    for about, true_answer in LEVELS:
        own = everybody[(everybody["about"] == about) & (everybody["true_answer"] == true_answer)]
        for editor in run.audited:
            control = run.control_of(editor)
            beyond = own[(own["what"] == "beyond") & (own["editor"] == editor) & (own["control"] == control)]
            decides = beyond[beyond["decides"].astype(bool)]
            scale = decides["scale"].iloc[0] if len(decides) else None
            rows = _by_what(own[own["editor"] == editor], scale) | ({"beyond": decides.iloc[0]} if scale else {})
            if "change" in rows and math.isfinite(rows["change"]["value"]):
                beside = _by_what(own[own["editor"] == control], rows["change"]["scale"]) if scale else {}
                found.append(Level(about, true_answer, editor, rows, beside, HARM[about, true_answer]))
    return found


def _by_what(rows: pd.DataFrame, scale: str | None) -> dict[str, pd.Series]:
    """Return each row of a level by its name: changes on one scale, the deciding one where none is given."""
    out = {}
    for _, row in rows.iterrows():
        chosen = row["decides"] if scale is None else row["scale"] == scale
        if row["what"] in ("before", "after", "turned_wrong") or (row["what"] == "change" and chosen):
            out[str(row["what"])] = row
    return out


def level_sentence(level: Level, run: RunResult) -> str:
    """Return whether an editor did more harm on a level than its control did, and by how much."""
    row, sign, worse = level.decided, level.sign, level.harm > 0
    harm, gain = amount(row, sign), amount(row, -sign)
    if level.verdict == "no_control":
        way = f"worse by {harm}" if worse else f"better by {gain}"
        return f"Changed for the {way}; no control {run.noun} was made."
    control, margin = control_words(str(row["control"]), run), size(row["margin"], row["scale"])
    seen = f"seen {harm} worse" if worse else f"seen {gain} less harm"
    words = {
        "worse": f"Worse than {control} by {harm}.",
        "slightly_worse": f"A little worse than {control}, by {harm}: below the {margin} declared to matter.",
        "no_worse": f"No worse than {control}: within {margin}, {harm}.",
        "better": f"Less harm than {control}, by {gain}.",
        "undecided": f"Not decided: {seen} than {control}, which chance can do.",
        "too_few": f"Too few to tell: {row['note']}.",
    }[level.verdict]
    if level.verdict == "undecided" and RARE in row["note"]:
        words = f"Not decided: no worse than {control} by {margin} so far, but {row['n_edits']} {run.noun}s {RARE}."
    return words + "".join(f" But {part}." for part in str(row["note"]).split("; ") if part.startswith("in "))


def level_counts(level: Level, run: RunResult) -> str:
    """Return what a level is made of: "80 questions, 54 people, 69 edits; half of the damage comes from 13 of them"."""
    row = level.decided
    counts = f"{quantity(row['n'], 'question')}, {quantity(row['n_people'], 'person', 'people')}, "
    counts += quantity(row["n_edits"], run.noun)
    few = bool(row["n_edits"] < FEW_EDITS and level.is_harm and row["half_edits"] > 0)
    return counts + (f"; half of the damage comes from {row['half_edits']} of {row['n_edits']} {run.noun}s" * few)


def level_numbers(level: Level) -> list[tuple[str, str, str]]:
    """Return (measure, after the editor, after its control) of a level: natural frequencies, then points."""
    lines = []
    turned, beside = level.rows.get("turned_wrong"), level.control.get("turned_wrong")
    if turned is not None and turned["n"]:
        of_facts = level.about == "other_facts"
        words = f"still right, of {turned['n']:,}" if of_facts else f"turned wrong, of {turned['n']:,}"
        lines.append((words, _count(turned, of_facts), _count(beside, of_facts)))
    if level.about == "other_people":
        measure = f"{LEVELS[level.about, level.true_answer][1]}, {unit_of(level.rows['change']['scale'])[1]}"
        own, control = (_signed(row, level.sign) for row in (level.rows["change"], level.control.get("change")))
        lines.append((measure, own, control))
    return lines


def _count(row: pd.Series | None, kept: bool) -> str:
    if row is None or not row["n"]:
        return ""
    share = 1 - row["value"] if kept else row["value"]
    return f"{round(share * row['n']):,}"


def _signed(row: pd.Series | None, sign: int) -> str:
    if row is None or not math.isfinite(row["value"]):
        return ""
    value = sign * row["value"] * unit_of(row["scale"])[0]
    return minus(f"{value:.{digits_for(value)}f}")


def level_rows(level: Level, run: RunResult, several: bool) -> list[ScreenRow]:
    """Return counts and sizes of a level for a screen; of several editors the counts alone, for want of room."""
    numbers, of = level_numbers(level), f"{level.editor}: " if several else ""
    rows = [
        ScreenRow(of + words, [cell for cell in cells if cell]) for words, *cells in numbers[: 1 if several else None]
    ]
    last = rows.pop() if rows else ScreenRow(of + "no number")
    badge, severity = BADGES[level.verdict], SEVERITY.get(level.verdict, "open")
    detail = f"{level_sentence(level, run)} ({level_counts(level, run)})"
    return [*rows, ScreenRow(last.words, last.cells, badge, severity, detail)]


def harm_phrase(level: Level, person: str) -> str:
    """Return what the model does on a level that is worse, by the size of the difference."""
    row = level.decided
    size = level.sign * row["value"] / (_NATS_PER_UNIT if row["scale"] == "log-odds" else 1)
    if level.about == "other_facts" and (before := level.rows["before"]["value"]):
        size /= before
    largest = 1.0 if row["scale"] != "log-odds" else 0.1  # odds alone do not say what the model answers
    return next(words for least, words in _HARMS[level.about, level.true_answer] if size >= least <= largest).format(
        person=person
    )
