"""The graph as one HTML file: search, filter by identity and score. Nothing is loaded from anywhere.

Model text travels as JSON that cannot end its script element, and is put into the page as text, never as HTML.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from seesaw_cf.io.files import write_text
from seesaw_cf.stereotypes.folder import Crawl

__all__ = ["export_page"]

_PAGE = Path(__file__).with_name("page.html")


def export_page(crawl: Crawl, file: Path) -> None:
    """Writes the page.

    Raises:
        StorageError: The disk is full.
    """
    rows = crawl.triples if crawl.scores is None else crawl.scored()
    columns = ("identity", "predicate", "object", "regard", "regard_masked", "attack", "attack_masked", "strategy")
    triples = [[_plain(row.get(name)) for name in columns] for row in rows.to_dict("records")]
    data = {
        "about": f"{crawl.name}; {len(triples)} triples. Masked: the same sentence about \u201cSome people\u201d.",
        "identities": sorted(rows["identity"].unique()),
        "regards": sorted({str(row[3]) for row in triples if row[3]}),
        "triples": triples,
    }
    text = json.dumps(data, ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    write_text(file, _PAGE.read_text(encoding="utf-8").replace("__DATA__", text))


def _plain(value: str | float | None) -> str | float | None:
    return None if pd.isna(value) else value
