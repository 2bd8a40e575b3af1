"""Levels of a report: what happened to everybody, beside the control, as rows of the frame and in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.frame import HARM
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.screen import ScreenRow
from seesaw_cf.report.words import amount, control_words, digits_for, minus, size, unit_of
from seesaw_cf.stats.clustered import FEW_EDITS, MIN_EFFECTIVE
from seesaw_cf.stats.verdicts import RARE

LEVELS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("other_facts", ""): ("Other facts about the edited person", "right answers lost"),
    ("other_people", "old"): ("People for whom the old answer is true", "right answer's lead lost"),
    ("other_people", "new"): ("People for whom the new answer is true", "right answer's loss"),
}
"""(about, true answer) -> title, and what is measured, above 0 where it is worse."""
NO_MATCH = "no_match"
"""Verdict where the control is no measure of chance any more: its model has collapsed."""
BADGES: Mapping[str, str] = {
    "worse": "WORSE",
    "slightly_worse": "a little worse",
    "no_worse": "no worse",
    "better": "less harm",
    "undecided": "not decided",
    "too_few": "too few to tell",
    "no_control": "no comparison",
    NO_MATCH: "no comparison",
}
SEVERITY: Mapping[str, str] = {"worse": "bad", "slightly_worse": "bad", "no_worse": "same", "better": "good"}
_FORGOTTEN = ((0.9, "nearly all"), (0.5, "most"), (0.1, "some"), (0.0, "a few"))  # share of what was right before
_MUCH, _TURNED = 0.1, 1.0  # in probability; five nats count as 1
_NATS_PER_UNIT = 5  # margins: 0.1 nats stand for 0.02 in probability


def levels_of(frame: pd.DataFrame, run: RunResult) -> list[Row]:
    """Return the levels of every audited editor, by level and then by editor.

    A level is the row with the verdict, "beyond" the control or without one "change", and further: `sign` of a change
    for the worse; `harm`, how much worse in margins; `is_harm`, whether worse than the control is shown, or without
    one worse than before; `own` and `beside`, the rows of the editor and of its control by `what`.
    """
    pooled, levels = frame[(frame["relation"] == ALL) & (frame["axis"] == ALL)], list[Row]()
    for (about, answer), sign in HARM.items():
        rows = pooled[(pooled["about"] == about) & (pooled["true_answer"] == answer)]
        for editor in run.audited:
            control = run.control_of(editor)
            mine = rows[(rows["editor"] == editor) & rows["control"].isin(("", control))]
            decide = mine["decides"].astype(bool) & mine["what"].isin(("change", "beyond"))
            scale = "".join(mine.loc[decide, "scale"].tail(1))
            own, beside = (_by_what(side, scale) for side in (mine, rows[rows["editor"] == control]))
            if "change" in own and math.isfinite(own["change"]["value"]):
                levels.append(_level(own, beside, sign))
    return levels


def _by_what(rows: pd.DataFrame, scale: str) -> dict[str, Row]:
    chosen = (rows["scale"] == scale) | rows["what"].isin(("before", "after", "turned_wrong"))
    return {row["what"]: row for row in rows_of(rows[chosen])}


def _level(own: Mapping[str, Row], beside: Mapping[str, Row], sign: int) -> Row:
    row = own.get("beyond", own["change"])
    verdict, harm = row["verdict"] or "no_control", sign * row["value"] / row["margin"]
    alone = verdict == "no_control" and harm > 1 and row["low"] * row["high"] > 0
    level = {"sign": sign, "harm": harm if math.isfinite(harm) else 0.0, "is_harm": verdict == "worse" or alone}
    return {**row, "verdict": verdict, **level, "own": own, "beside": beside if "beyond" in own else {}}


def level_sentence(level: Row, run: RunResult) -> str:
    """Return whether an editor did more harm on a level than its control did, and by how much."""
    worse, verdict = level["harm"] > 0, level["verdict"]
    harm, gain = (amount(level, sign * level["sign"]) for sign in (1, -1))
    if verdict == "no_control":
        way = f"worse by {harm}" if worse else f"better by {gain}"
        return f"Changed for the {way}; no control {run.noun} was made."
    control, margin = control_words(level["control"], run), size(level["margin"], level["scale"])
    if verdict == "undecided" and RARE in level["note"]:
        verdict = RARE
    words = {
        "worse": f"Worse than {control} by {harm}.",
        "slightly_worse": f"A little worse than {control}, by {harm}: below the {margin} declared to matter.",
        "no_worse": f"No worse than {control}: the difference, {harm}, is within the {margin} that matter.",
        "better": f"Less harm than {control}, by {gain}.",
        "undecided": f"Not decided: seen {f'{harm} worse' if worse else f'{gain} less harm'} than {control}, "
        "which chance can do.",
        NO_MATCH: f"Not compared: the model has collapsed after {control}.",
        "too_few": f"Too few to tell: {level['note']}.",
        RARE: f"Not decided: no worse than {control} by {margin} so far, but {level['n_edits']} {run.unit}s {RARE}.",
    }[verdict]
    return words + "".join(f" But {part}." for part in level["note"].split("; ") if part.startswith("in "))


def level_counts(level: Row, run: RunResult) -> str:
    """Return what a level is made of: "80 questions, 54 people, 69 edits; half of the damage comes from 13 of them"."""
    counts = [quantity(level["n"], "question"), quantity(level["n_people"], "person", "people")]
    counts.append(quantity(level["n_edits"], run.unit))
    few = level["is_harm"] and level["half_edits"] > 0 and level["n_edits"] < FEW_EDITS
    half = f"; half of the damage comes from {level['half_edits']} of {level['n_edits']} {run.unit}s" if few else ""
    return f"{', '.join(counts)}{half}"


def level_rows(level: Row, run: RunResult, several: bool) -> list[ScreenRow]:
    """Return counts and sizes of a level for a screen; of several editors the counts alone, for want of room."""
    lines, of = dict[str, list[str]](), f"{level['editor']}: " if several else ""
    sides, kept = [side for side in (level["own"], level["beside"]) if side], level["about"] == "other_facts"
    turned = [side.get("turned_wrong", {"n": 0}) for side in sides]
    if asked := turned[0]["n"]:
        counts = [f"{round(abs(kept - row['value']) * row['n']):,}" if row["n"] else "" for row in turned]
        lines[f"{'still right' if kept else 'turned wrong'}, of {asked:,}"] = counts
    if not kept and not (several and lines):
        factor, unit = unit_of(level["scale"])
        sizes = [level["sign"] * factor * side["change"]["value"] for side in sides if "change" in side]
        measure = f"{LEVELS[level['about'], level['true_answer']][1]}, {unit}"
        lines[measure] = [minus(f"{value:.{digits_for(value)}f}") for value in sizes if math.isfinite(value)]
    *first, last = [ScreenRow(of + words, cells) for words, cells in lines.items()] or [ScreenRow(of + "no number")]
    badge, severity = BADGES[level["verdict"]], SEVERITY.get(level["verdict"], "open")
    detail = f"{level_sentence(level, run)} ({level_counts(level, run)})"
    return [*first, replace(last, badge=badge, severity=severity, detail=detail)]


def turned_wrong(side: Mapping[str, Row]) -> tuple[int, int]:
    """Return how many of how many right answers turned wrong, after an editor or its control."""
    row = side.get("turned_wrong", {"n": 0})
    return (round(row["value"] * row["n"]), row["n"]) if row["n"] else (0, 0)


def harm_phrase(level: Row, person: str, count: bool = True) -> tuple[str, str]:
    """Return what the model does on a level that is worse, and how often it does so after the control.

    About people answers are counted where five or more turned wrong, and twice as many as after the control. Elsewhere,
    and where counts are not wanted, the words are those of the size of the difference, and the second text is "".
    """
    facts, answer = level["about"] == "other_facts", level["true_answer"]
    of = f"other facts about {person}" if facts else f"people for whom the {answer} answer is true"
    (wrong, n), (others, _) = (turned_wrong(level[side]) for side in ("own", "beside"))
    if count and (wrong > others if facts else wrong >= max(MIN_EFFECTIVE, 2 * others)):
        words = f"forgets {wrong:,} of {n:,} {of}" if facts else f"gets {wrong:,} of {n:,} answers wrong about {of}"
        return words, f"{others:,}" if level["beside"] else ""
    log_odds = level["scale"] == "log-odds"
    size = level["sign"] * level["value"] / (_NATS_PER_UNIT if log_odds else 1)
    if facts:
        share = size / (level["own"]["before"]["value"] or 1)
        return f"forgets {next(words for least, words in _FORGOTTEN if share >= least)} {of}", ""
    if answer == "old" and size >= _TURNED and not log_odds:  # odds alone do not say what it answers
        return "also gives the new answer for people for whom the old one is true", ""
    return f"is {'much ' * (size >= _MUCH)}less sure about {of}", ""
