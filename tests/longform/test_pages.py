"""Pages that show what models wrote, as a browser reads them: report of a run."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markdown
import pandas as pd
import pytest

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts.report.page import annotator_lines, write_leme_report
from seesaw_cf.texts.report.tables import longform_sections
from seesaw_cf.texts.tables import ANNOTATIONS, PASSAGES, RATINGS
from seesaw_cf.texts.train.scores import label_scores
from seesaw_cf.texts.write.writing import EDITS

from .analysis_samples import table

HTML = "</p><script>alert(1)</script><img src=x onerror=alert(2)>"
MARKDOWN = "| x | *y* [z](javascript:alert(3)) `w` # v <b>"
RIGHT_TO_LEFT = "שלום \N{RIGHT-TO-LEFT OVERRIDE}txt.exe עולם"
LONG = "w" * 5_000
HOSTILE = [HTML, MARKDOWN, RIGHT_TO_LEFT, LONG]


class Page(HTMLParser):
    """Tags with attributes; the text of each tag, and all of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.of: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr", "img", "line", "circle", "input"):
            self.inside.append(tag)
            self.of.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("br", "hr", "img", "line", "circle", "input"):
            assert self.inside.pop() == tag, "tags are closed in order"

    def handle_data(self, data: str) -> None:
        for tag in dict.fromkeys(self.inside):
            self.of[tag][-1] += data


def write_run(folder: Path, editor: str = "memit", status: str = "no answer", model: str = "tiny") -> Path:
    """A finished run of six cases, with round numbers: ratings 4 before and 2 after, every other claim contradicted."""
    both = ("none", editor)
    texts = [
        {
            "editor": name,
            "phase": "pre" if name == "none" else "post",
            "case_id": case,
            "text": "It is.",
            "finish": "stop" if case else "length",
            "passage": "subject",
        }
        for name in both
        for case in range(6)
    ]
    texts += [texts[-1] | {"case_id": 6, "text": " "}, texts[-1] | {"case_id": 7, "text": "", "status": status}]
    rated = [
        row | {"item": "fluency", "rater": "judge", "rating": 4.0 if row["editor"] == "none" else 2.0}
        for row in texts[:12]
    ]
    rated.append(rated[-1] | {"case_id": 7, "rating": None, "status": status})
    said = [
        row
        | {
            "claim_kind": "ground_truth",
            "claim_id": "P1",
            "annotator": "lexical",
            "label": "contradicts" if int(str(row["case_id"])) % 2 else "supports",
        }
        for row in texts[:12]
    ]
    edits = [
        {"editor": editor, "case_id": case, "status": "ok" if case < 5 else status, "demonstrations": case + 2}
        for case in range(6)
    ]
    for name, schema, rows in (
        ("passages", PASSAGES, texts),
        ("ratings", RATINGS, rated),
        ("edits", EDITS, edits),
        ("annotations", ANNOTATIONS, said),
    ):
        write_table(folder / f"{name}.parquet", table(schema, rows))
    settings = {"generation": "short", "sampling": {"temperature": 0.9, "top_k": 0}, "samples": 1}
    write_text(folder / "manifest.json", json_text({"model": {"id": model}, "seed": 3, "settings": settings}))
    return folder


def records(file: Path) -> list[dict[str, Any]]:
    table = pd.read_csv(file, keep_default_na=False, na_values=[""])
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def written(folder: Path) -> str:
    names = {"passages": PASSAGES, "ratings": RATINGS, "annotations": ANNOTATIONS, "edits": EDITS}
    tables = {
        name: read_table(folder / f"{name}.parquet", schema)
        for name, schema in names.items()
        if (folder / f"{name}.parquet").exists()
    }
    write_leme_report(folder, folder, longform_sections(**tables))
    return (folder / "report.md").read_text(encoding="utf-8")


def test_the_results_of_a_run_are_counted_by_hand(tmp_path: Path) -> None:
    written(write_run(tmp_path))
    numbers = {file.stem: records(file) for file in (tmp_path / "tables").iterdir()}
    ok, failed = numbers["edits"]
    assert ok == {"editor": "memit", "status": "ok", "n": 5, "n_demonstrated": 5, "fewest": 2, "most": 6}
    assert failed == {"editor": "memit", "status": "no answer", "n": 1, "n_demonstrated": 1, "fewest": 7, "most": 7}
    assert numbers["unrated"] == [{"rater": "judge", "status": "no answer", "n": 1}]
    counts = [(row["method"], row["status"], row["n"], row["n_empty"], row["n_cut"]) for row in numbers["passages"]]
    assert counts == [("memit", "no answer", 1, 0, 0), ("memit", "ok", 7, 1, 1), ("none", "ok", 6, 0, 1)]
    shares = {(row["method"], row["label"]): row for row in numbers["labels"]}
    assert (shares["memit", "contradicts"]["n"], shares["memit", "contradicts"]["value"]) == (6, 0.5)
    assert shares["memit", "neutral"]["value"] == 0
    means = {row["method"]: row for row in numbers["survey"]}
    assert (means["memit"]["value"], means["none"]["value"]) == pytest.approx((2.0, 4.0))
    assert means["memit"]["n"] == 6
    for name in ("survey_tests", "survey_type_tests"):
        (row,) = numbers[name]
        assert (row["method"], row["n_cases"]) == ("memit", 6)
        assert row["difference"] == pytest.approx(-2.0)
    types = {row["method"]: row["value"] for row in numbers["survey_types"]}
    assert types == pytest.approx({"memit": 2.0, "none": 4.0})


@pytest.mark.slow
def test_the_page_of_a_run_says_its_numbers(tmp_path: Path) -> None:
    page = written(write_run(tmp_path))
    assert "Generation settings *short*: temperature 0.9; 1 per prompt." in page, "settings of 0 are not said"
    assert "| memit | ok | 5 | 5 | 2 | 6 |" in page
    assert "| memit | subject | no answer | 1 | 0 | 0 |" in page
    assert "| none | subject | ok | 6 | 0 | 1 |" in page
    survey = page.split("## Survey")[1]
    assert "4.00 ± 0.00 (n = 6 of 6 edits)" in survey
    assert "2.00 ± 0.00 (n = 6 of 6 edits, 1 missing)" in survey
    assert re.search(r"\| 0\.50 \[\d\.\d\d, \d\.\d\d\] \(n = 6 of 6 edits\) \| 0\.00 \[0\.00, 0\.39\]", page)
    assert "| judge | no answer | 1 |" in page.split("## Ratings without a value")[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_the_page_of_a_run_shows_names_and_runs_none(tmp_path: Path, name: str) -> None:
    plain = Page(markdown.markdown(written(write_run(tmp_path / "a")), extensions=["tables"]))
    text = written(write_run(tmp_path / "b", editor=name, status=name, model=name))
    page = Page(markdown.markdown(text, extensions=["tables"]))
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in plain.tags}
    assert all(not attrs or set(attrs) <= {"style", "src", "alt"} for _, attrs in page.tags), "columns and pictures"
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
    assert max(re.findall(r"\w+", name), key=len) in page.of["h1"][0]


def test_a_run_without_annotations_or_demonstrations(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "annotations.parquet").unlink()
    rows = [{"editor": "memit", "case_id": 1, "status": "ok", "demonstrations": None}]
    write_table(tmp_path / "edits.parquet", table(EDITS, rows))
    page = written(tmp_path)
    assert "## Labels of claims" not in page
    assert "| memit | ok | 1 | 0 | - | - |" in page
    write_text(tmp_path / "annotator.json", json_text({"name": "own", "report": {}}))
    assert annotator_lines(tmp_path)[0].startswith("This annotator comes without held-out figures.")
    parts = [{"all": label_scores(range(3), answers, range(3), LABELS)} for answers in ([0, 1, 0], [0, 0, 0])]
    report = {"figures": dict(zip(("trained", "constant"), parts, strict=True))}
    write_text(tmp_path / "annotator.json", json_text({"name": "own", "report": report}))
    assert annotator_lines(tmp_path) == [
        "On 3 claims of 3 samples that it was not trained on the annotator is right about 0.67, always the commonest "
        "label about 0.33.",
        "It finds 0.00 of the 1 contradictions there.",
    ]
