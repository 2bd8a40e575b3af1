"""Forest plots of a page: estimates with intervals on one axis, their controls below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from seesaw_cf.page.axis import Axis, AxisInterval

_COLOURS = 7


@dataclass(frozen=True, slots=True)
class Control:
    """The same of a control: place and interval in per cent, and which way its line is dashed."""

    at: float
    span: AxisInterval | None
    dash: int


@dataclass(frozen=True, slots=True)
class Mark:
    """An estimate: place and interval in per cent, number of its colour, the numbers in words, and its controls."""

    at: float
    span: AxisInterval | None
    colour: int
    said: str
    controls: Sequence[Control] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A line of a panel: one mark for each side, None where there is nobody."""

    name: str
    count: str
    marks: Sequence[Mark | None]
    href: str = ""


@dataclass(frozen=True, slots=True)
class ForestColumn:
    """A column of marks that share an axis; a noise floor and margins, in per cent."""

    title: str
    axis: Axis
    floor: AxisInterval | None = None
    margins: Sequence[float] = field(default_factory=tuple)


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


@dataclass(frozen=True, slots=True)
class Forest:
    """Panels under one heading."""

    axis_name: str
    panels: Sequence[Panel]


def key_colours(names: Iterable[str]) -> dict[str, int]:
    """Name -> number of its colour, in order."""
    return {name: number % _COLOURS for number, name in enumerate(dict.fromkeys(names))}
