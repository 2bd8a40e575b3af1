"""Words of a report: sizes with their intervals, shares and lists, controls, relations and groups in their order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pandas as pd

from seesaw_cf.editors.control_names import split_control
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.report.pairs import RunResult

Name = TypeVar("Name", str, tuple[str, str])
CONTROL_WORDS: Mapping[str, str] = {
    "random": "a random {noun} of the same size",
    "identity": "the same {noun} to the right answer",
    "unrelated": "an edit of an unrelated fact",
}

FORM_WORDS: Mapping[str, str] = {
    "plain": "as a text to continue",
    "question": "as a question in chat",
    "prefill": "in chat, with the answer begun",
}


def amount(row: Mapping[str, Any] | pd.Series, sign: int = 1) -> str:
    """Return a size with its interval: "36 points [24, 49]", "4.0 points [2.3, 6.3]" or "0.31 nats [0.2, 0.4]"."""
    factor, unit = unit_of(row["scale"])
    return with_interval(row, sign * factor, unit=f" {unit}")


def with_interval(
    row: Mapping[str, Any] | pd.Series, factor: float = 1, digits: int | None = None, unit: str = ""
) -> str:
    """Return a number with its interval, if it has one; without `digits` as many as show two of the largest end."""
    value, *ends = (factor * float(row[name]) for name in ("value", "low", "high"))
    low, high = sorted(ends)
    digits = digits_for(value, low, high) if digits is None else digits
    interval = f" [{low:.{digits}f}, {high:.{digits}f}]" if math.isfinite(low) else ""
    return minus(f"{value:.{digits}f}{unit}{interval}")


def size(value: float, scale: str) -> str:
    """Return a size alone: "2.0 points" or "0.10 nats"."""
    return amount({"value": value, "low": math.nan, "high": math.nan, "scale": scale})


def unit_of(scale: str) -> tuple[float, str]:
    """Return what numbers on a scale are multiplied by to be shown, and their unit."""
    return (1.0, "nats") if scale == "log-odds" else (100.0, "points")


def digits_for(*numbers: float) -> int:
    """Return how many decimals show two digits of the largest number; at most 4, and none above 10."""
    largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0.0)
    return 0 if largest >= 10 else int(min(4, max(1, 1 - math.floor(math.log10(largest))))) if largest > 0 else 1


def minus(text: str) -> str:
    """Return text with typographic minus signs, and none before a 0."""
    return text.replace("-", "\u2212") if any(digit in text for digit in "123456789") else text.replace("-", "")


def percent(value: float) -> str:
    """Return a share in whole per cent, with as many digits as matter near 0 and 1."""
    if not math.isfinite(value):
        return "\u2013"
    rest = min(value, 1 - value)
    if 0 < rest < 0.0001:
        return "<0.01 %" if value < 0.5 else ">99.99 %"
    digits = 0 if rest >= 0.01 or rest == 0 else 1 if rest >= 0.001 else 2
    return f"{100 * value:.{digits}f} %"


def and_list(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list in a sentence."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else words[0]


def capital(text: str) -> str:
    """Return a sentence with a capital letter."""
    return text[:1].upper() + text[1:]


def control_words(control: str, run: RunResult) -> str:
    """Return what a control is: "a random edit of the same size"; another editor is its name."""
    kind, of = split_control(control)
    facts = run.manifest.get("edited", {}).get(of, {})
    if kind == "random" and facts.get("null") == "given":
        return f"the change that was given as {of}'s control"
    return CONTROL_WORDS[kind].format(noun=run.noun) if kind else control


# Relations and groups: their words and their order.


def relation_name(relation_id: str) -> str:
    """Return the papers' word for a relation ("P27" -> "citizenship"); the id itself when it is none of the five."""
    return RELATIONS[relation_id].name if relation_id in RELATIONS else relation_id


def in_order(names: Iterable[Name], order: Iterable[Name], last: Name | None = None) -> list[Name]:
    """Return names without repeats: those of an order, then any other, and one last."""
    places = {name: number for number, name in enumerate(order)}
    others = len(places)
    return sorted(set(names), key=lambda name: (others + 1 if name == last else places.get(name, others), name))
