"""The gallery of flaws as one HTML page without scripts; every text in it is escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping

import pyarrow as pa

from seesaw_cf.longform.flaw_items import FLAWS_BY_NAME
from seesaw_cf.report.text import printable

__all__ = ["gallery_page"]

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Flaws in texts of edited language models</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222; }
article { border-top: 1px solid #ccc; padding: 1em 0; }
.texts { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5em; }
.texts p { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
h3 { margin: 0 0 .3em; font-size: 1em; }
h4 { margin: 0; font-size: .85em; color: #555; }
small { color: #555; }
mark { background: #ffe08a; }
@media (max-width: 45em) { .texts { grid-template-columns: 1fr; } }
</style>
</head>
<body>
<h1>Flaws in texts of edited language models</h1>
<p>Each entry is a pair of texts about one person, from a model before and after one fact in it was edited, and a flaw
that a rater found more present in one of them. Models wrote the texts; what they say about people is often false.</p>
"""


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
    parts = [_HEAD, f"<nav><ul>{''.join(links)}</ul></nav>\n"]
    for name, found in by_flaw.items():
        if found:
            parts.append(f'<section id="{name}"><h2>{_text(FLAWS_BY_NAME[name].title)}</h2>\n')
            parts += [_entry(row) for row in found]
            parts.append("</section>\n")
    return "".join([*parts, "</body>\n</html>\n"])


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
