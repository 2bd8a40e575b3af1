"""Templates to pages: everything inlined, nothing fetched, only the page's own style allowed to act."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from seesaw_cf.base.terminal import printable, quantity
from seesaw_cf.report.table import Table

_HERE = Path(__file__).parent


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # Text of models and records: no control characters, no changes of writing direction; autoescape does the rest.
    environment.filters["plain"] = printable
    return environment


def render(template: str, values: Mapping[str, object]) -> str:
    """Render a whole page.

    Args:
        template: A file of this package that extends `base.html`.
        values: What it shows. Texts are escaped; only what `download` makes is trusted.

    Returns:
        HTML with a Content-Security-Policy that names its style by hash and forbids all else: no request, no frame, no
        script and no form. The same values give the same bytes.
    """
    style = (_HERE / "style.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; script-src 'none'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return _environment().get_template(template).render(**values, style=Markup(style), policy=policy)


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
