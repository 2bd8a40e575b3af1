"""Numbers and names as text, for the terminal and for Markdown."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from seesaw_cf.terminal import column_table, markdown_for_terminal, printable, wrap

__all__ = [
    "ABOUT_SCORE",
    "HOLDS",
    "STAR_LEVEL",
    "column_table",
    "escape",
    "fence",
    "interval",
    "is_starred",
    "markdown_for_terminal",
    "markdown_table",
    "minus",
    "number",
    "p_equals",
    "p_value",
    "percent",
    "percent_interval",
    "printable",
    "wrap",
]

STAR_LEVEL = 0.05
_MARKUP = re.compile(r"([\\`*_\[\]|~$#])")

# What D is made of -> (its formula, its unit, the range of D_d).
ABOUT_SCORE: Mapping[str, tuple[str, str, str]] = {
    "summed": ("p(new target) - p(true target)", "probability, summed over target tokens", "-2..2"),
    "normalised": ("p(new target) - p(true target)", "probability per target token (geometric mean)", "-2..2"),
    "log_odds": ("log p(new target) - log p(true target)", "nats", "unbounded"),
}

# What the people of a prompt hold -> words.
HOLDS: Mapping[str, str] = {"target_new": "new target", "target_true": "true target", "": "neither, or unknown"}


def number(value: float) -> str:
    """A signed number with three decimals, in exponent form when those would hide it; "-" for NaN."""
    if math.isnan(value):
        return "-"
    if value == 0:
        return "0.000"
    return f"{value:+.1e}" if abs(value) < 0.0005 else f"{value:+.3f}"


def interval(low: float, high: float) -> str:
    """`[low, high]`."""
    return f"[{number(low)}, {number(high)}]"


def percent(value: float) -> str:
    """A share as a percentage with one decimal; "-" for NaN."""
    return "-" if math.isnan(value) else f"{100 * value:.1f}%"


def percent_interval(value: float, low: float, high: float, digits: int = 1) -> str:
    """A share with its interval, in percent, the ends with `digits` decimals; "-" when there is none."""
    return "-" if math.isnan(value) else f"{percent(value)} [{100 * low:.{digits}f}, {100 * high:.{digits}f}]"


def p_value(value: float) -> str:
    """A p-value with three decimals or "<0.001"; "-" for NaN."""
    if math.isnan(value):
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def p_equals(value: float) -> str:
    """`p=0.012` or `p<0.001`."""
    shown = p_value(value)
    return f"p{shown}" if shown.startswith("<") else f"p={shown}"


def is_starred(row: Mapping[str, Any]) -> bool:
    """The papers' star: a negative D_d of people who hold the new target, with p < 0.05."""
    return bool(row["holds"] == "target_new" and row["D"] < 0 and row["p"] < STAR_LEVEL)


def escape(text: object) -> str:
    """Text from data or a model that Markdown and HTML show as it is."""
    return _MARKUP.sub(r"\\\1", html.escape(printable(text), quote=False))


def fence(text: str) -> str:
    """A fenced code block that its content cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    bar = "`" * max(3, longest + 1)
    return f"{bar}\n{text}\n{bar}"


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table. Cells are taken as they are: escape what comes from data."""
    rule = ["---" if column < left else "---:" for column in range(len(headers))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headers, rule, *rows))


def minus(text: str) -> str:
    """Formatted numbers with typographic minus signs, also in exponents."""
    return text.replace("-", "\u2212") if text != "-" else "\u2013"
