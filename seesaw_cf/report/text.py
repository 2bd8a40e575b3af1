"""Numbers and names as text, for the terminal and for Markdown."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence

from seesaw_cf.io.terminal import printable
from seesaw_cf.report.rows import EffectRow

_MARKUP = re.compile(r"([\\`*_\[\]|~$#])")

# What D is made of -> (its formula, its unit, the range of D_d).
ABOUT_SCORE: Mapping[str, tuple[str, str, str]] = {
    "summed": ("p(new target) - p(true target)", "probability, summed over target tokens", "-2..2"),
    "normalised": ("p(new target) - p(true target)", "probability per target token (geometric mean)", "-2..2"),
    "log_odds": ("log p(new target) - log p(true target)", "nats", "unbounded"),
}

# What the people of a prompt hold -> words.
HOLDS: Mapping[str, str] = {"target_new": "new target", "target_true": "true target", "": "neither, or unknown"}


def number(value: float, zero_limit: float = 0.0, digits: int = 3) -> str:
    """A signed number, in exponent form when its decimals would hide it; 0 up to `zero_limit`; "-" for NaN."""
    if math.isnan(value):
        return "-"
    if abs(value) <= zero_limit:
        return f"{0:.{digits}f}"
    return f"{value:+.1e}" if abs(value) < 0.5 * 10**-digits else f"{value:+.{digits}f}"


def interval(low: float, high: float, zero_limit: float = 0.0, digits: int = 3) -> str:
    """`[low, high]`; "-" when there is none."""
    if math.isnan(low):
        return "-"
    return f"[{number(low, zero_limit, digits)}, {number(high, zero_limit, digits)}]"


def no_interval(row: EffectRow) -> str:
    """Why an effect has no interval, in a few words; "" when it has one."""
    if not math.isnan(row["low"]):
        return ""
    counts = {"edits": row.get("effective_edits"), "people": row.get("effective_people")}
    few = {name: n for name, n in counts.items() if n is not None}
    if row["note"].startswith("too few clusters") and few:
        name = min(few, key=lambda one: few[one])
        return f"too few {name}: {math.floor(10 * few[name]) / 10:g}"
    return {"all values equal: no error to estimate": "all values equal"}.get(row["note"], row["note"])


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


def pictures(files: Mapping[str, str], word: str) -> list[str]:
    """The pictures (file -> description) that have `word` in their names, as Markdown."""
    return [f"![{escape(about)}]({name})" for name, about in files.items() if word in name]


def minus(text: str) -> str:
    """Formatted numbers with typographic minus signs, also in exponents."""
    return text.replace("-", "\u2212") if text != "-" else "\u2013"
