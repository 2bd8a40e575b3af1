"""From estimates to verdicts: corrected equivalence tests, words, and how many items would decide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from seesaw_cf.base.types import Estimate, TableRow
from seesaw_cf.logs.settings import CompareSettings
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.stats import adjust, agreeing, equivalence_p, minimum_detectable_effect, verdict
from seesaw_cf.stats.bootstrap import Floats

POWER = 0.8
LOST_SCORES = 0.1
"""Where the shares of items without a score differ by this, a mean over the others says nothing about the change."""
_NAN = float("nan")
_Z = 1.959964
# What happened: the verdict on a change -> words for a task, and for a group against the rest.
VERDICT_WORDS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("worse off", "below 0"): ("fell", "lost more"),
    ("better off", "above 0"): ("rose", "lost less"),
    ("equivalent", "below 0"): ("fell, too little to matter", "lost more, too little to matter"),
    ("equivalent", "above 0"): ("rose, too little to matter", "lost less, too little to matter"),
    ("equivalent", ""): ("no change that matters", "no difference that matters"),
    ("undetermined", "below 0"): ("fell, size open", "lost more, size open"),
    ("undetermined", "above 0"): ("rose, size open", "lost less, size open"),
    ("undetermined", ""): ("undetermined", "undetermined"),
    ("not testable", ""): ("not testable", "not testable"),
}
DECIDED = frozenset(
    words for (label, side), pair in VERDICT_WORDS.items() if side and label != "equivalent" for words in pair
)
"""Verdicts that something changed, and not too little to matter."""


def finished_row(row: dict[Any, Any], estimates: Sequence[Estimate], corrected: Floats) -> TableRow:
    """Return a row with its estimate; of answers that all moved alike the interval is that of paired shares."""
    at = int(row["at"])
    estimate, limits = estimates[at], row.pop("limits", None)
    if isinstance(limits, tuple) and not math.isfinite(estimate.stderr) and "no error" in estimate.note:
        p = estimate.p if math.isfinite(estimate.p) else 1.0
        low, high, p = agreeing(float(limits[0]), float(limits[1]), p)
        error, free = (high - low) / (2 * _Z), float(max(1, int(row["clusters"]) - 1))
        estimate = replace(estimate, low=low, high=high, p=p, stderr=error, df=free, note="")
    names = ("value", "low", "high", "stderr", "df", "p", "note")
    p_adjusted = float(corrected[at]) if row["family"] else _NAN
    p_adjusted = estimate.p if row["family"] and math.isnan(p_adjusted) else p_adjusted
    return row | estimate.columns(*names) | {"p_adjusted": p_adjusted}


def judged(table: pd.DataFrame, settings: CompareSettings) -> pd.DataFrame:
    """Add `verdict`, `rule` and `needed`."""
    table = _without_lost_scores(table.assign(p_equivalence=_NAN))
    for _, rows in table[table["family"] != ""].groupby("family"):
        tested = rows[rows["p_adjusted"].notna() & rows["stderr"].notna()]
        raw = [
            equivalence_p(*numbers)
            for numbers in tested[["value", "stderr", "df", "margin"]].itertuples(index=False, name=None)
        ]
        table.loc[tested.index, "p_equivalence"] = adjust(raw)
    sizes = table[table["p_adjusted"].notna()].groupby("family").size()
    judged = [_verdict(row, settings, int(sizes.get(row["family"], 1))) for row in rows_of(table)]
    return pd.concat([table.drop(columns=["at", "p_equivalence"]), pd.DataFrame(judged, index=table.index)], axis=1)


def _without_lost_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table without means over items that the change left a score: which these are is its effect."""
    unscored = table[["unscored_before", "unscored_after"]]
    total = table["n"] + unscored.max(axis=1)
    lost = (unscored["unscored_after"] - unscored["unscored_before"]).abs() >= LOST_SCORES * total
    numbers = ["before", "after", "value", "low", "high", "stderr", "p", "p_adjusted", "p_mcnemar"]
    table.loc[lost, [name for name in numbers if name in table]] = _NAN
    words = unscored.astype(str).agg(" before, ".join, axis=1) + " after, have no score"
    table["note"] = table["note"].where(~lost, words)
    return table


def _verdict(row: Row, settings: CompareSettings, tests: int) -> TableRow:
    numbers = {name: float(row[name]) for name in ("value", "stderr", "df", "margin", "floor", "p_adjusted")}
    if not row["family"]:
        return {"verdict": "", "rule": "", "needed": _NAN}
    if row["moved_most"] == row["moved_most"] and float(row["moved_most"]) <= numbers["floor"] and row["n"]:
        word = "scored item" if row["unscored_before"] or row["unscored_after"] else "item"
        return {"verdict": f"no {word} changed", "rule": "no item moved by more than rounding", "needed": _NAN}
    estimate = Estimate(
        numbers["value"], stderr=numbers["stderr"], df=numbers["df"], p=numbers["p_adjusted"], note=str(row["note"])
    )
    same = float(row["p_equivalence"])
    judged = verdict(
        estimate,
        margin=numbers["margin"],
        noise_floor=numbers["floor"],
        alpha=settings.alpha,
        p_equivalence=None if math.isnan(same) else same,
        scale="change",
    )
    words = VERDICT_WORDS[judged.label, judged.direction][bool(row["contrast"])]
    return {"verdict": words, "rule": judged.rule, "needed": _needed(row, settings.alpha / tests)}


def _needed(row: Row, alpha: float) -> float:
    """Return how many items like these find a change as large as the margin."""
    stderr, df, margin, n = (float(row[name]) for name in ("stderr", "df", "margin", "n"))
    if not math.isfinite(stderr) or not stderr:
        return _NAN
    return float(math.ceil(n * (minimum_detectable_effect(stderr, df, alpha=alpha, power=POWER) / margin) ** 2))
