"""Every place that cites a paper has its title, its number on arXiv and its authors."""

from __future__ import annotations

import re
from pathlib import Path

import evaluate
import pytest
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


@pytest.mark.parametrize("page", ["README.md", "dataset_card.md"])
def test_pages_cite_both_papers_whole(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert bibtex("seesaw_cf") in text
    assert bibtex("leme") in text


@pytest.mark.parametrize("folder", METRICS, ids=lambda folder: folder.name)
def test_metric_cards_cite_what_the_metric_cites(folder: Path) -> None:
    citation = evaluate.load(str(folder)).citation
    assert citation
    assert citation in (folder / "README.md").read_text(encoding="utf-8")


def test_the_citation_file_agrees_with_the_table() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "title", "message", "authors"} <= set(found)
    for key, reference in zip(("seesaw_cf", "leme", "memit", "rome"), found["references"], strict=True):
        paper = fields(PAPERS[key])
        names = " and ".join(f"{who['family-names']}, {who['given-names']}" for who in reference["authors"])
        assert (reference["title"], str(reference["year"]), names) == (paper["title"], paper["year"], paper["author"])
        assert reference["identifiers"][0]["value"] == f"arXiv:{paper['eprint']}"
