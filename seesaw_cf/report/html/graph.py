"""Two-sided graphs: names on the left, statements on the right, a line for each link; no label can lie on another.

The layout is made of estimated text widths that are never too small, each label has a separate row, and a label that
is too long ends with an ellipsis and shows whole in its title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import wcwidth

_SIZE = 12  # pixels of a letter's height
_ROW, _TOP = 20, 14
_LEFT, _GAP, _RIGHT = 190, 110, 480  # widths: names at the most, lines, statements
_WIDE, _NARROW = frozenset("mwMW@%—…&▲▼→"), frozenset("fijlrt.,:;'|!()[] ")


@dataclass(frozen=True, slots=True)
class Link:
    """That a name is linked to a statement.

    Attributes:
        name, statement: Its ends.
        kind: One of the four dashings and weights: 0 to 3.
        colour: Number of a colour.
        sign: A character that stands before the statement, so that colour alone carries no meaning.
    """

    name: str
    statement: str
    kind: int = 0
    colour: int = 6
    sign: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A text of the picture: its place (y, pixels), what is shown, all of it, and whether it is heavy."""

    y: float
    shown: str
    whole: str
    heavy: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from one side (y1) to the other (y2)."""

    y1: float
    y2: float
    kind: int
    colour: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """The picture, in pixels."""

    kind: ClassVar[str] = "graph"
    about: str
    width: int
    height: int
    left: int
    right: int
    names: Sequence[Label]
    statements: Sequence[Label]
    edges: Sequence[Edge]


def text_width(text: str) -> float:
    """Return an upper estimate of a text's width in pixels, in any usual sans-serif font at the picture's size."""
    return _SIZE * sum(map(_em, text))


def _em(letter: str) -> float:
    """Return the width of a letter in heavy type, as a multiple of its height."""
    if wcwidth.wcwidth(letter) != 1 or letter in _WIDE:
        return 1.1
    return 0.45 if letter in _NARROW else 0.86 if letter.isupper() or not letter.isascii() else 0.7


def fitted(text: str, width: float) -> str:
    """Return the text, or as much of it as fits with an ellipsis."""
    if text_width(text) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text_width(f"{text[:middle]}…") <= width else (low, middle - 1)
    return f"{text[:low].rstrip()}…"


def draw_links(links: Sequence[Link], about: str) -> Drawing:
    """Lay the links out: every statement in a row, those of one name together, shared ones between their names.

    Args:
        links: What is drawn; texts as they are to be shown.
        about: Text for those who do not see the picture.
    """
    order = {name: number for number, name in enumerate(dict.fromkeys(link.name for link in links))}
    of: dict[str, list[Link]] = {}
    for link in links:
        of.setdefault(link.statement, []).append(link)
    middle = {text: sum(order[entry.name] for entry in own) / len(own) for text, own in of.items()}
    rows = {text: _TOP + _ROW * row for row, text in enumerate(sorted(of, key=lambda entry: middle[entry]))}
    heights = {name: [float(rows[entry.statement]) for entry in links if entry.name == name] for name in order}
    places = _apart({name: sum(ys) / len(ys) for name, ys in heights.items()})
    left = int(min(_LEFT, max((text_width(name) for name in order), default=0) + 10))
    names = [Label(y, fitted(name, left - 8), name, True) for name, y in places.items()]
    statements = []
    for text, y in rows.items():
        signs = "".join(dict.fromkeys("".join(entry.sign for entry in of[text])))
        whole = f"{signs} {text}".strip()
        statements.append(Label(y, fitted(whole, _RIGHT - 8), whole, len(of[text]) > 1))
    edges = [Edge(places[entry.name], rows[entry.statement], entry.kind, entry.colour) for entry in links]
    height = int(max([*rows.values(), *places.values(), 0]) + _TOP)
    return Drawing(about, left + _GAP + _RIGHT, height, left, left + _GAP, names, statements, edges)


def _apart(heights: dict[str, float]) -> dict[str, float]:
    """Return places in the order wanted, at least a row from each other."""
    places: dict[str, float] = {}
    last = -float("inf")
    for name in sorted(heights, key=lambda key: heights[key]):
        last = max(heights[name], last + _ROW, _TOP)
        places[name] = last
    return places
