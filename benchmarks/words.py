"""Numbers as text in pages that benchmarks write."""

from __future__ import annotations

import math
import re

from seesaw_cf.base.terminal import interval, number
from seesaw_cf.base.terminal import markdown_table as markdown_table

# A hyphen that is a minus sign: of a number, of an exponent, between two spaces. Those of names are none.
_MINUS = re.compile(r"(?<!\w)-(?=\d|\.\d|inf)|(?<=\de)-(?=\d)|(?<= )-(?= )")


def estimate(
    value: float | None,
    low: float | None,
    high: float | None,
    spec: str = ".2f",
    unit: str = "",
    missing: str = "",
    scale: float = 1.0,
) -> str:
    """Return a value, its unit and its interval, all three numbers in one format, so that none excludes another.

    Args:
        value: The number; "-" is returned for None and NaN.
        low: Lower end of its interval; None or NaN when there is none.
        high: Upper end.
        spec: Format of the three numbers, such as ".2f".
        unit: Follows the value, such as "%".
        missing: Stands in place of an interval that does not exist.
        scale: Multiplies the three numbers; 100 for percent.
    """
    if value is None or math.isnan(value):
        return "-"
    scaled = [end if end is None else scale * end for end in (low, high)]
    ends = interval(scaled[0], scaled[1], spec=spec)
    return f"{scale * value:{spec}}{unit} {missing if ends == '-' else ends}".rstrip()


def effect(value: float, low: float, high: float, zero_limit: float = 0.0, digits: int = 3, unit: str = "") -> str:
    """Return a signed effect with its unit and its interval, where it has one, as `number` shows them."""
    return f"{number(value, zero_limit, digits)}{unit} {interval(low, high, zero_limit, digits)}".removesuffix(" -")


def percent_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Return a share and its interval in percent with one decimal."""
    return estimate(value, low, high, ".1f", "%", scale=100)


def p_value(value: float | None) -> str:
    """Return a p-value with three decimals or "<0.001"; "-" for None and NaN."""
    if value is None or math.isnan(value):
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def minus(text: str) -> str:
    """Return text with typographic minus signs in its numbers, also in exponents; a lone "-" becomes a dash."""
    return _MINUS.sub("\u2212", text) if text != "-" else "\u2013"
