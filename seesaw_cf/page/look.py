"""Lists to look into: rows that a page's script filters, sorts and gives an address to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from markupsafe import Markup

from seesaw_cf.io.terminal import printable
from seesaw_cf.page.render import data_block

_SHOWN = 100  # lines of the table at once: more would take a phone seconds to lay out

Choice = tuple[str, str, Sequence[tuple[str, str]]]
"""Name of a column (or of a column of lists, without its s), label, (value, as shown) of each."""

Sizes = tuple[Sequence[str], Mapping[Any, int]]
"""Names that a view is told by, and tuples of their values -> rows."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list: its heading, what it is, and whether it holds text (or lists of texts)."""

    head: str
    about: str
    text: bool = False


@dataclass(frozen=True, slots=True)
class PromptList:
    """What the macro `look_into` shows.

    Attributes:
        name: Its id in the page; addresses of views begin with it.
        title, about: Heading, and the sentence below.
        choices: The lists that a reader chooses from.
        heads: Heading and meaning of each column.
        data: For the script.
    """

    kind: ClassVar[str] = "look"
    name: str
    title: str
    about: str
    choices: Sequence[Choice]
    heads: Sequence[tuple[str, str]]
    data: Markup


def make_look(
    name: str,
    texts: tuple[str, str, str],
    columns: Mapping[str, Column],
    rows: Sequence[Mapping[str, Any]],
    choices: Sequence[Choice],
    *,
    search: Sequence[str],
    sort: str,
    sizes: Sizes = ((), {}),
) -> PromptList:
    """A list, its texts stored once each.

    Args:
        name: Its id.
        texts: Title, sentence below it, and what a row is ("prompts").
        columns: Name -> column.
        rows: Name -> text, list of texts, number or None.
        choices: See `Choice`.
        search: Columns of text that the search looks into.
        sort: Column that rows are sorted by at first, the largest in front.
        sizes: How many rows there are in a view, kept here or not.
    """
    words: dict[str, dict[str, int]] = {
        key: {} for key, column in columns.items() if column.text and all(isinstance(row[key], str) for row in rows)
    }
    packed = [
        [words[key].setdefault(row[key], len(words[key])) if key in words else row[key] for key in columns]
        for row in rows
    ]
    data = {
        "id": name,
        "noun": texts[2],
        "columns": [
            {"name": key, "text": column.text, "words": list(words[key]) if key in words else None}
            for key, column in columns.items()
        ],
        "rows": packed,
        "choices": [choice[0] for choice in choices],
        "search": list(search),
        "sort": sort,
        "key": list(sizes[0]),
        "counts": {_key(values): n for values, n in sizes[1].items()},
        "shown": _SHOWN,
    }
    heads = [(column.head, column.about) for column in columns.values()]
    return PromptList(name, *texts[:2], choices, heads, data_block(data))


def view_link(name: str, **choices: str) -> str:
    """The address of a view, within the page."""
    return f"#{name}?" + urlencode({key: printable(value) for key, value in choices.items()})


def short(value: float) -> float | None:
    """Three digits are what a table shows; more would make the page larger. None where there is no number."""
    return float(f"{value:.3g}") if math.isfinite(value) else None


def _key(values: Sequence[str]) -> str:
    """As JSON.stringify writes it."""
    return json.dumps(list(map(printable, values)), ensure_ascii=False, separators=(",", ":"))
