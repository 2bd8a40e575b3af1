"""The gallery of flaws as one HTML page without scripts; every text in it is escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from seesaw_cf.longform.flaw_items import FLAWS_BY_NAME
from seesaw_cf.report.text import printable

__all__ = ["gallery_page"]

_PAGE = Path(__file__).with_name("gallery.html")


def gallery_page(table: pa.Table) -> str:
    """A page that needs nothing beside it.

    Args:
        table: Rows of `seesaw_cf.longform.flaws.gallery.GALLERY`.
    """
    rows = table.to_pylist()
    by_flaw = {flaw.name: [row for row in rows if row["flaw"] == flaw.name] for flaw in FLAWS_BY_NAME.values()}
    links = [
        f'<li><a href="#{name}">{_text(FLAWS_BY_NAME[name].title)}</a> ({len(found)})</li>'
        for name, found in by_flaw.items()
        if found
    ]
    parts = [f"<nav><ul>{''.join(links)}</ul></nav>\n"]
    for name, found in by_flaw.items():
        if found:
            parts.append(f'<section id="{name}"><h2>{_text(FLAWS_BY_NAME[name].title)}</h2>\n')
            parts += [_entry(row) for row in found]
            parts.append("</section>\n")
    return _PAGE.read_text(encoding="utf-8").replace("__FLAWS__", "".join(parts))


def _text(value: object) -> str:
    return html.escape(printable(value))


def _entry(row: Mapping[str, object]) -> str:
    where = "after" if row["change"] == 1 else "before"
    known = [f"{name}: {row[name]}" for name in ("model", "editor", "relation", "rater") if row[name]]
    columns = [
        f"<div><h4>{title}</h4><p>{_marked(str(row[phase]), str(row['quote'] or ''))}</p></div>"
        for phase, title in (("pre", "before the edit"), ("post", "after the edit"))
    ]
    return (
        f"<article><h3>{_text(row['entity'] or 'unnamed person')}: more present {where} the edit</h3>\n"
        f'<div class="texts">{"".join(columns)}</div>\n<small>{_text("; ".join(known))}</small></article>\n'
    )


def _marked(text: str, quote: str) -> str:
    """The text with line ends kept and the quote marked; escaped piece by piece."""
    if not quote or quote not in text:
        shown = "".join(char if char.isprintable() or char == "\n" else " " for char in text)
        return html.escape(shown)
    before, _, after = text.partition(quote)
    return f"{_marked(before, '')}<mark>{_marked(quote, '')}</mark>{_marked(after, '')}"
