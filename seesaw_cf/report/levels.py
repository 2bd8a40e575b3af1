"""Sentences about what edits did over all groups: to other facts, and to people who hold either answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from seesaw_cf.editors.control_names import is_control, split_control
from seesaw_cf.report import text
from seesaw_cf.report.moved import is_given
from seesaw_cf.report.results import Results

_CONTROLS = {
    "random": "a random change of the same size",
    "unrelated": "an edit of an unrelated fact",
    "identity": "no change at all",
}
# Level -> its head, what is measured, what to say where nothing was asked.
_LEVELS = {
    "other_facts": (
        "Other facts",
        "{after} of the other facts about the edited person are still right, {before} before: {value} ({n:,} answers "
        "about {n_people:,} people)",
        "Nothing was asked about the edited people's other properties (no candidates or no gold answers).",
    ),
    "target_true": (
        "Old answer",
        "people who hold the old answer moved by {value} towards the new, false one ({n:,} prompts, {n_people:,} "
        "people, {n_edits:,} {edits})",
        "Nothing was asked about people who hold the old answer.",
    ),
    "target_new": (
        "New answer",
        "confidence in what is right about people who hold the new answer changed by {value} ({n:,} prompts, "
        "{n_people:,} people, {n_edits:,} {edits})",
        "Nothing was asked about people who hold the new answer.",
    ),
}


def level_head(level: str) -> str:
    """Return the head of a level, such as "Other facts"."""
    return _LEVELS[level][0]


def level_sentences(results: Results) -> dict[str, str]:
    """Return what happened on each level, by its head: one editor after the other, each with its controls."""
    sentences = {}
    rows = [row for row in results.levels.to_dict("records") if row["decides"]]
    for level, (head, words, nothing) in _LEVELS.items():
        own = [row for row in rows if row["level"] == level]
        edits = [row for row in own if not is_control(row["editor"])]
        parts = [_change(row, words, results) + _beside_control(row, results) for row in edits]
        parts += ["Only controls were made: there is no edit to speak of."] if own and not edits else []
        alone = any(not row["control"] for row in edits)
        parts += ["Without a control nothing of this is put down to an edit."] if alone else []
        sentences[head] = " ".join(parts) or nothing
    return sentences


def _change(row: Mapping[Any, Any], words: str, results: Results) -> str:
    shares = {"before": text.percent(row["before"]), "after": text.percent_interval(*_after(row))}
    value = level_number(row, ("value", "low", "high"), results) + _why(row["note"])
    if row["scale"] == "log-odds" and results.score != "log_odds":
        value += f" in log-odds ({text.number(row['after'] - row['before'])} in probability)"
    counts = {name: int(row[name]) for name in ("n", "n_edits", "n_people")}
    edits = "facts" if is_given(row["editor"], results.manifest) else "edits"
    return f"After {row['editor']}, {words.format(**shares, **counts, value=value, edits=edits)}"


def _after(row: Mapping[Any, Any]) -> tuple[float, float, float]:
    return row["after"], row.get("after_low", math.nan), row.get("after_high", math.nan)


def _beside_control(row: Mapping[Any, Any], results: Results) -> str:
    if not row["control"]:
        return "."
    kind = _CONTROLS.get(split_control(row["control"])[0], row["control"])
    control = level_number(row, ("control_value", "control_low", "control_high"), results)
    difference = level_number(row, ("difference", "difference_low", "difference_high"), results)
    return f"; after {kind} {control}. Difference {difference}: {level_verdict(row)}."


def level_verdict(row: Mapping[Any, Any]) -> str:
    """Return what can be said of a level beside its control, and why there is no interval."""
    return f"{row['verdict']}{_why(row['difference_note'])}"


def _why(note: str) -> str:
    return f" (no interval: {note.partition(' (')[0]})" if note else ""


def _zero_limit(row: Mapping[Any, Any], results: Results) -> float:
    if row["scale"] == "share":
        return 0.0
    floor = results.floor
    return floor.zero_limit_log_odds if row["scale"] == "log-odds" else floor.zero_limit(results.score)


def level_number(row: Mapping[Any, Any], names: tuple[str, str, str], results: Results) -> str:
    """Return a change with its unit and its interval, where it has one: value, low and high are columns of `names`."""
    value, low, high = (row[name] for name in names)
    if row["scale"] == "share":
        return text.points(value, low, high, " points")
    limit = _zero_limit(row, results)
    unit = " nats" * (row["scale"] == "log-odds")
    return f"{text.number(value, limit)}{unit} {text.interval(low, high, limit)}".removesuffix(" -")
