"""Levels of a report: what happened to everybody, beside the control, as rows of the frame and in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.frame import HARM
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.screen import ScreenRow
from seesaw_cf.report.words import amount, control_words, digits_for, minus, size, unit_of
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.verdicts import RARE

LEVELS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("other_facts", ""): ("Other facts about the edited person", "right answers lost"),
    ("other_people", "old"): ("People for whom the old answer is true", "false answer's gain"),
    ("other_people", "new"): ("People for whom the new answer is true", "right answer's loss"),
}
"""(about, true answer) -> title, and what is measured, above 0 where it is worse."""
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
_FORGOTTEN = ((0.9, "nearly all"), (0.5, "most"), (0.1, "some"), (0.0, "a few"))  # share of what was right before
_MUCH, _TURNED = 0.1, 1.0  # in probability; five nats count as 1
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
    for about, answer in LEVELS:
        own = everybody[(everybody["about"] == about) & (everybody["true_answer"] == answer)]
        for editor in run.audited:
            control = run.control_of(editor)
            mine = own[(own["editor"] == editor) & own["control"].isin(("", control)) & own["decides"].astype(bool)]
            scales = {str(row["what"]): str(row["scale"]) for row in rows_of(mine)}
            scale = scales.get("beyond", scales.get("change", ""))
            rows = _by_what(own, editor, control, scale)
            if "change" in rows and math.isfinite(rows["change"]["value"]):
                beside = _by_what(own, control, "", scale) if "beyond" in rows else {}
                found.append(Level(about, answer, editor, rows, beside, HARM[about, answer]))
    return found


def _by_what(own: pd.DataFrame, editor: str, control: str, scale: str) -> dict[str, pd.Series]:
    """Return each row of a level of an editor by its name: changes on one scale."""
    chosen = (own["scale"] == scale) | own["what"].isin(("before", "after", "turned_wrong"))
    mine = own[chosen & (own["editor"] == editor) & own["control"].isin(("", control))]
    return {str(row["what"]): row for _, row in mine.iterrows()}


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


def level_rows(level: Level, run: RunResult, several: bool) -> list[ScreenRow]:
    """Return counts and sizes of a level for a screen; of several editors the counts alone, for want of room."""
    rows, of = list[ScreenRow](), f"{level.editor}: " if several else ""
    sides, kept = (level.rows, level.control), level.about == "other_facts"
    turned = level.rows.get("turned_wrong")
    if turned is not None and turned["n"]:
        words = f"{'still right' if kept else 'turned wrong'}, of {turned['n']:,}"
        counts = [_count(side["turned_wrong"], kept) for side in sides if "turned_wrong" in side]
        rows.append(ScreenRow(of + words, counts))
    if not kept and not (several and rows):
        measure = f"{LEVELS[level.about, level.true_answer][1]}, {unit_of(level.rows['change']['scale'])[1]}"
        sizes = [_signed(side["change"], level.sign) for side in sides if "change" in side]
        rows.append(ScreenRow(of + measure, sizes))
    *first, last = rows or [ScreenRow(of + "no number")]
    badge, severity = BADGES[level.verdict], SEVERITY.get(level.verdict, "open")
    detail = f"{level_sentence(level, run)} ({level_counts(level, run)})"
    return [*first, replace(last, badge=badge, severity=severity, detail=detail)]


def _count(row: pd.Series, kept: bool) -> str:
    share = 1 - row["value"] if kept else row["value"]
    return f"{round(share * row['n']):,}" if row["n"] else ""


def _signed(row: pd.Series, sign: int) -> str:
    value = sign * row["value"] * unit_of(row["scale"])[0]
    return minus(f"{value:.{digits_for(value)}f}") if math.isfinite(value) else ""


def harm_phrase(level: Level, person: str) -> str:
    """Return what the model does on a level that is worse, by the size of the difference."""
    row, log_odds = level.decided, level.decided["scale"] == "log-odds"
    size = level.sign * row["value"] / (_NATS_PER_UNIT if log_odds else 1)
    if level.about == "other_facts":
        share = size / (level.rows["before"]["value"] or 1)
        return f"forgets {next(words for least, words in _FORGOTTEN if share >= least)} other facts about {person}"
    if level.true_answer == "old" and size >= _TURNED and not log_odds:  # odds alone do not say what it answers
        return "also gives the new answer for people for whom the old one is true"
    return f"is {'much ' * (size >= _MUCH)}less sure about people for whom the {level.true_answer} answer is true"
