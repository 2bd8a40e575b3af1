"""Templates to pages: everything inlined, nothing fetched, only the page's own style and script allowed to act."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from seesaw_cf.base.terminal import printable, quantity
from seesaw_cf.report.table import Table

_HERE = Path(__file__).parent
_NONE = "'none'"


@dataclass(frozen=True, slots=True)
class PageTemplate:
    """What pages of one sort are made with.

    Attributes:
        styles, scripts: Files that are inlined, in order.
        folder: Where templates are looked for, before this package.
        allowed: What pages may do beyond their own style and script.
    """

    styles: tuple[Path, ...]
    scripts: tuple[Path, ...]
    folder: Path = _HERE
    allowed: str = "form-action 'none'"


REPORTS = PageTemplate((_HERE / "style.css",), (_HERE / "look.js",))
"""Pages that are files: they ask nobody anything."""


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([folder, _HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Text of models and records: no control characters, no changes of writing direction; autoescape does the rest.
    environment.filters["plain"] = printable
    environment.filters["lines"] = _lines
    return environment


def _lines(text: object) -> str:
    """Clean text as `printable` does, but keep line ends."""
    return "\n".join(printable(line) for line in str(text).split("\n"))


@cache
def _inlined(look: PageTemplate) -> dict[str, Any]:
    style, script = ("\n".join(file.read_text("utf-8") for file in files) for files in (look.styles, look.scripts))
    scripts = _hash(script) if script else _NONE
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {scripts}; img-src data:; base-uri 'none'; "
        f"{look.allowed}"
    )
    return {
        "style": Markup(style),
        "script": Markup(script),
        "policy": policy,
        "served": look.allowed != REPORTS.allowed,
    }


def policy(look: PageTemplate) -> str:
    """Return the Content-Security-Policy of pages: their style and script by hash, and what the look allows."""
    return str(_inlined(look)["policy"])


def render(template: str, values: Mapping[str, object], look: PageTemplate = REPORTS) -> str:
    """Render a whole page.

    Args:
        template: A file of this package, or of the look's folder, that extends `base.html`.
        values: What it shows. Texts are escaped; only what `data_block` and `download` make is trusted.
        look: Its style, script and rights.

    Returns:
        HTML with a Content-Security-Policy that names its style and script by hash and forbids all else: no
        request, no frame, no inline handler, and no form unless the look allows it. The same values give the same
        bytes.
    """
    return _environment(look.folder).get_template(template).render(**values, **_inlined(look))


def data_block(value: object) -> Markup:
    """Return JSON for a `<script type="application/json">`: no text in it can end the block or begin a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def download(text: str) -> Markup:
    """Return a CSV file as a link that needs no server."""
    return Markup(f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}")


def downloads(tables: Iterable[Table]) -> list[tuple[str, str, Markup]]:
    """Return tables to take away from a page: name of the file, its size in words, and the file as a link."""
    return [
        (f"{table.name}.csv", quantity(len(table.frame), "row"), download(table.csv))
        for table in tables
        if len(table.frame)
    ]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
