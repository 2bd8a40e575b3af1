"""Every place that cites a paper has its title, its number on arXiv and its authors."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from seesaw_cf.base.text import PAPERS, bibtex
from seesaw_cf.editors import EDITORS

ROOT = Path(__file__).resolve().parents[2]
METRICS = sorted(path.parent for path in (ROOT / "metrics").glob("*/README.md"))


def fields(entry: str) -> dict[str, str]:
    return dict(re.findall(r"^  (\w+) = \{(.*)\},?$", entry, re.MULTILINE))


def test_entries_are_whole() -> None:
    assert len(PAPERS) == 8
    for key in PAPERS:
        text = bibtex(key, note="section 1")
        assert re.match(rf"@\w+\{{{key},\n", text)
        assert text.count("{") == text.count("}")
        assert {"title", "author", "year", "eprint", "note"} <= set(fields(text))
    assert len(set(PAPERS) & set(EDITORS)) == 5
    assert bibtex("leme", "rome") == bibtex("leme") + "\n" + bibtex("rome")


def test_the_citation_file_agrees_with_the_table() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "title", "message", "authors"} <= set(found)
    for key, reference in zip(("seesaw_cf", "leme", "memit", "rome"), found["references"], strict=True):
        paper = fields(PAPERS[key])
        names = " and ".join(f"{who['family-names']}, {who['given-names']}" for who in reference["authors"])
        assert (reference["title"], str(reference["year"]), names) == (paper["title"], paper["year"], paper["author"])
        assert reference["identifiers"][0]["value"] == f"arXiv:{paper['eprint']}"
