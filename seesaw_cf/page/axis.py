"""A horizontal axis in per cent of its width, so that a mark needs no script and no size in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_ENDS = (1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_EDGE = 2.0  # per cent left free on both sides


@dataclass(frozen=True, slots=True)
class AxisInterval:
    """An interval on an axis.

    Attributes:
        left, right: Its ends, per cent.
        cut_left, cut_right: The end lies beyond the axis.
    """

    left: float
    right: float
    cut_left: bool
    cut_right: bool

    @property
    def width(self) -> float:
        """Per cent."""
        return round(self.right - self.left, 2)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis.

    Attributes:
        low, high: Its ends, in the unit of the values; low < high.
    """

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], ends: Iterable[float]) -> Axis:
        """An axis with 0 in its middle that shows every value whole, and ends of intervals up to twice as far.

        Args:
            values: What is marked.
            ends: Ends of intervals; NaN where there is none.
        """
        most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
        far = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
        limit = _round_up(max(most, min(far, 2 * most)) or 1.0, _ENDS)
        return cls(-limit, limit)

    @classmethod
    def covering(cls, values: Iterable[float]) -> Axis:
        """An axis that shows every finite value, and 0 where that is no further off than the values are apart."""
        finite = [value for value in values if math.isfinite(value)] or [0.0]
        least, most = min(finite), max(finite)
        least, most = (min(least, 0.0), max(most, 0.0)) if _near_zero(least, most) else (least, most)
        step = _round_up((most - least) / 4 or abs(most) / 4 or 0.25)
        low = math.floor(least / step + 1e-9) * step
        return cls(low, max(low + 4 * step, math.ceil(most / step - 1e-9) * step))

    def at(self, value: float) -> float:
        """Where a value is, per cent; values beyond the axis at its end."""
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return round(_EDGE + share * (100 - 2 * _EDGE), 2)

    def span(self, low: float, high: float) -> AxisInterval | None:
        """An interval; None where there is none."""
        if not (math.isfinite(low) and math.isfinite(high)):
            return None
        return AxisInterval(self.at(low), self.at(high), low < self.low, high > self.high)

    @property
    def zero(self) -> float | None:
        """Where 0 is; None where the axis does not reach it."""
        return self.at(0.0) if self.low <= 0 <= self.high else None

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Five places and what stands there; signs where the axis has both."""
        values = [self.low + (self.high - self.low) * share for share in (0, 0.25, 0.5, 0.75, 1)]
        form = "+.3g" if self.low < 0 < self.high else ".3g"
        near = 1e-9 * (self.high - self.low)
        labels = ["0" if abs(value) < near else format(value, form).replace("-", "\u2212") for value in values]
        return list(zip(map(self.at, values), labels, strict=True))


def _near_zero(least: float, most: float) -> bool:
    return min(abs(least), abs(most)) <= most - least


def _round_up(value: float, steps: tuple[float, ...] = _STEPS) -> float:
    """The next of the steps, or of their tens and tenths."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in steps if step * power >= value * (1 - 1e-12))
