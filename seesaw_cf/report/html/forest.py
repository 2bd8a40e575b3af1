"""Forest plots of a page: estimates with intervals on one axis."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# A horizontal axis in per cent of its width, so that a mark needs no script and no size in pixels.

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
        """Return an axis with 0 in its middle that shows every value, and ends of intervals up to twice as far.

        Args:
            values: What is marked.
            ends: Ends of intervals; NaN where there is none.
        """
        most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
        far = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
        limit = _round_up(max(most, min(far, 2 * most)) or 1.0, _ENDS)
        return cls(-limit, limit)

    def at(self, value: float) -> float:
        """Return where a value is, in per cent; values beyond the axis are at its end."""
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return round(_EDGE + share * (100 - 2 * _EDGE), 2)

    def span(self, low: float, high: float) -> AxisInterval | None:
        """Return where an interval is; None where there is none."""
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


def _round_up(value: float, steps: tuple[float, ...] = _STEPS) -> float:
    """Round a value up to the next step, steps being multiplied by a power of ten."""
    value = max(value, sys.float_info.min)  # of smaller numbers steps are not multiples
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in steps if step * power >= value * (1 - 1e-12))


_COLOURS = 7


@dataclass(frozen=True, slots=True)
class Mark:
    """An estimate: place and interval in per cent, number of its colour, and the numbers in words.

    `before` is where it was before an edit: both ends are joined.
    """

    at: float
    span: AxisInterval | None
    colour: int
    said: str
    before: float | None = None


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A line of a panel: one mark for each side, None for a side without people."""

    name: str
    count: str
    marks: Sequence[Mark | None]


@dataclass(frozen=True, slots=True)
class ForestColumn:
    """A column of marks that share an axis; margins, in per cent."""

    title: str
    axis: Axis
    margins: Sequence[float] = field(default_factory=tuple)

    @classmethod
    def with_margin(cls, title: str, axis: Axis, margin: float) -> ForestColumn:
        """Return a column with its margins where they are on the axis."""
        margins = [axis.at(value) for value in (-margin, margin) if margin <= axis.high]
        return cls(title, axis, margins)


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines with a mark in each column.

    Attributes:
        title, about: What is above it, and in its caption.
        heads: What the names and what the counts of its lines are.
        sides: The columns.
        unit: Of their axes.
        opened: Shown at first.
    """

    title: str
    about: str
    heads: tuple[str, str]
    sides: Sequence[ForestColumn]
    unit: str
    rows: Sequence[ForestRow]
    opened: bool = True


def key_colours(names: Iterable[str]) -> dict[str, int]:
    """Return name -> number of its colour, in order."""
    return {name: number % _COLOURS for number, name in enumerate(dict.fromkeys(names))}


# Line charts of a page, in per cent of their width and height, so that they need no script.

_LEFT, _RIGHT, _TOP, _FLOOR = 11.0, 98.0, 4.0, 88.0  # per cent of the picture
