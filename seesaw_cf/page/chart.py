"""Line charts of a page, in per cent of their width and height, so that they need no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from seesaw_cf.page.axis import Axis

_LEFT, _RIGHT, _TOP, _FLOOR = 11.0, 98.0, 4.0, 88.0  # per cent of the picture


@dataclass(frozen=True, slots=True)
class Point:
    """A value at one of the places along a chart, with its interval (NaN without one), and in words."""

    place: int
    value: float
    low: float
    high: float
    said: str
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one colour and one dashing."""

    colour: int
    dash: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Dot:
    """A point as it is drawn, per cent."""

    x: float
    y: float
    low: float | None
    high: float | None
    said: str
    alarm: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """A curve as it is drawn: lines from point to point (x1, y1, x2, y2), and the points."""

    colour: int
    dash: int
    lines: Sequence[tuple[float, float, float, float]]
    dots: Sequence[Dot]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as it is drawn, every place in per cent.

    Attributes:
        title, about: Above it.
        places: (x, what stands there) of the places along it.
        ticks: (y, what stands there).
        levels: y of the reference lines.
        curves: The curves.
    """

    title: str
    about: str
    places: Sequence[tuple[float, str]]
    ticks: Sequence[tuple[float, str]]
    levels: Sequence[float]
    curves: Sequence[Drawn]


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts beside each other."""

    kind: ClassVar[str] = "charts"
    unit: str
    charts: Sequence[Chart]


def draw_chart(
    title: str, about: str, places: Sequence[str], curves: Sequence[Curve], levels: Sequence[float] = ()
) -> Chart:
    """A chart; points of different curves at one place stand beside each other.

    Args:
        title, about: See `Chart`.
        places: What stands at the places along it, left to right, evenly spaced.
        curves: What is drawn; points that are not finite are left out.
        levels: Values of reference lines.
    """
    finite = [
        Curve(source.colour, source.dash, [p for p in source.points if math.isfinite(p.value)]) for source in curves
    ]
    points = [point for source in finite for point in source.points]
    axis = Axis.covering(
        [v for p in points for v in (p.value, p.low, p.high)] + [v for v in levels if math.isfinite(v)]
    )

    def y(value: float) -> float:
        return round(_FLOOR - (_FLOOR - _TOP) * axis.at(value) / 100, 2)

    step = (_RIGHT - _LEFT) / max(1, len(places))
    xs = [round(_LEFT + step * (number + 0.5), 2) for number in range(len(places))]

    def drawn(number: int, curve: Curve) -> Drawn:
        beside = 0.5 * step * ((number + 0.5) / max(1, len(finite)) - 0.5)
        dots = [
            Dot(
                round(xs[p.place] + beside, 2),
                y(p.value),
                y(p.low) if math.isfinite(p.low) else None,
                y(p.high) if math.isfinite(p.high) else None,
                p.said,
                p.alarm,
            )
            for p in curve.points
        ]
        return Drawn(curve.colour, curve.dash, [(a.x, a.y, b.x, b.y) for a, b in pairwise(dots)], dots)

    ticks = [(y(axis.low + (axis.high - axis.low) * n / 4), label) for n, (_, label) in enumerate(axis.ticks)]
    marks = [drawn(number, curve) for number, curve in enumerate(finite)]
    lines = [y(value) for value in levels if math.isfinite(value)]
    return Chart(title, about, list(zip(xs, places, strict=True)), ticks, lines, marks)
