"""Pages that show what models wrote, as a browser reads them: report of a run, card of an annotator."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markdown
import pytest

from seesaw_cf.io.files import write_text
from seesaw_cf.longform.annotate.reports import AnnotatorReport, ClassifierScores, Interval
from seesaw_cf.longform.report.summary import leme_results, write_leme_report
from seesaw_cf.longform.tables import ANNOTATIONS, PASSAGES, RATINGS
from seesaw_cf.longform.train.card import annotator_card, held_out_lines, shown
from seesaw_cf.longform.write.writing import EDITS
from seesaw_cf.stats.plain import json_text
from seesaw_cf.tables import write_table

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


def test_the_results_of_a_run_are_counted_by_hand(tmp_path: Path) -> None:
    found = leme_results(write_run(tmp_path))
    assert found["edits"] == {"memit": {"ok": 5, "no answer": 1}}
    assert found["demonstrations"] == {"n": 6, "least": 2, "most": 7}
    assert found["ratings_without_value"] == {"no answer": 1}
    before, after = found["passages"]
    assert before == {
        "editor": "none",
        "passage": "subject",
        "n": 6,
        "n_ok": 6,
        "n_empty": 0,
        "n_cut": 1,
        "failures": {},
    }
    assert (after["n"], after["n_ok"], after["n_empty"], after["failures"]) == (8, 7, 1, {"no answer": 1})
    claims = {row["editor"]: row for row in found["annotations"]}
    assert claims["memit"]["n"] == 6
    assert claims["memit"]["shares"]["contradicts"]["value"] == 0.5
    assert claims["memit"]["shares"]["neutral"]["value"] == 0
    item = found["survey"]["judge"]["methods"]["memit"]["items"]["fluency"]
    assert (item["mean"], item["difference"]["mean"]) == pytest.approx((2.0, -2.0))
    assert item["n"] == 6
    assert found["annotator"] == []


def test_the_page_of_a_run_says_its_numbers(tmp_path: Path) -> None:
    page = write_leme_report(write_run(tmp_path))
    assert page == (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Generation settings *short*: temperature 0.9; 1 per prompt." in page, "settings of 0 are not said"
    assert "In-context edits were shown 2 to 7 demonstrations (n=6)" in page
    assert "| memit | subject | 8 | 7 | 1 | 1 | no answer (1) |" in page
    assert "| none | subject | 6 | 6 | 0 | 1 |  |" in page
    fluency = next(line for line in page.split("\n") if line.startswith("| ") and "4.00" in line)
    cells = [cell.strip() for cell in fluency.strip("|").split("|")]
    assert cells[2:] == ["4.00 (all equal) n=6", "2.00 (all equal) n=6", "\N{MINUS SIGN}2.00 (all equal)"]
    claims = next(line for line in page.split("\n") if line.startswith("| memit | subject | ground_truth"))
    assert re.search(r"\| 50\.0% \[\d+\.\d, \d+\.\d\] \| 0\.0% \[0\.0, 39\.3\] \| 50\.0% \[", claims)
    assert claims.endswith("| 6 | 0 |")
    assert "| no answer | 1 |" in page.split("## Ratings without a value")[1]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_page_of_a_run_shows_names_and_runs_none(tmp_path: Path, name: str) -> None:
    plain = Page(markdown.markdown(write_leme_report(write_run(tmp_path / "a")), extensions=["tables"]))
    text = write_leme_report(write_run(tmp_path / "b", editor=name, status=name, model=name))
    page = Page(markdown.markdown(text, extensions=["tables"]))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert all(not attrs or set(attrs) == {"style"} for _, attrs in page.tags), "only the alignment of columns"
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
    assert max(re.findall(r"\w+", name), key=len) in page.of["h1"][0]


def test_a_run_without_annotations_or_demonstrations(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "annotations.parquet").unlink()
    rows = [{"editor": "memit", "case_id": 1, "status": "ok", "demonstrations": None}]
    write_table(tmp_path / "edits.parquet", table(EDITS, rows))
    page = write_leme_report(tmp_path)
    assert "## Claims in the passages" not in page
    assert "demonstrations" not in page
    write_text(tmp_path / "annotator.json", json_text({"name": "own", "report": {}}))
    assert leme_results(tmp_path)["annotator"][0].startswith("This annotator comes without held-out figures.")


def interval(value: float | None, low: float | None = None, high: float | None = None) -> Interval:
    return {"value": value, "low": low, "high": high}


def scores(accuracy: float, n: int = 10) -> ClassifierScores:
    recall = [interval(0.5, 0.25, 0.75), interval(None), interval(0.125, 0.0, 0.5)]
    return {
        "accuracy": interval(accuracy, 0.1, 0.9),
        "macro_f1": interval(accuracy),
        "recall": recall,
        "ece": 0.25,
        "confusion": [[2, 2, 0], [0, 0, 0], [3, 2, 1]],
        "n": n,
        "n_groups": 2,
    }


def report(**more: Any) -> AnnotatorReport:
    made: AnnotatorReport = {
        "recipe": "words",
        "encoder": "minilm",
        "seed": 1,
        "folds": 2,
        "n": 10,
        "n_groups": 2,
        "notes": ("two words",),
        "figures": {
            name: {"sentence": scores(accuracy)}
            for name, accuracy in (("majority", 0.4), ("lexical", 0.5), ("words", 0.625), ("tfidf", 0.3))
        },
        "samples": [
            {
                "sample": "Ada Oak",
                "unit": "sentence",
                "n": 3,
                "low": 0.2,
                "high": 0.8,
                "accuracy": {"majority": 0.4, "words": 0.5},
            }
        ],
    }
    made.update(more)  # type: ignore[typeddict-item]
    return made


def test_intervals_in_words() -> None:
    assert shown(interval(0.644, 0.571, 0.708)) == "0.64 [0.57, 0.71]"
    assert shown(interval(0.644, None, 0.708), 1) == "0.6"
    assert shown(interval(None)) == "-"


def test_what_a_reader_of_labels_is_told() -> None:
    accuracy, recall = held_out_lines(report())
    assert accuracy == (
        "Held-out accuracy on single sentences: 0.62 [0.10, 0.90] (n = 10, 2 samples; majority 0.40 [0.10, 0.90], "
        "lexical 0.50 [0.10, 0.90])."
    )
    # Rows of the confusion are 4 supports, 0 neutral and 6 contradicts; a class that never occurs has no recall.
    assert recall == "Recall on single sentences: 0.50 [0.25, 0.75] of 4 supports, 0.12 [0.00, 0.50] of 6 contradicts."


def test_the_card_of_an_annotator() -> None:
    card = annotator_card(report(), "")
    assert "- Recipe words, seed 1, 10 rows of 2 samples.\n- Where the data come from was not said" in card
    assert "- Note on the data: two words." in card
    assert "| words | single sentences | 10 | 0.62 [0.10, 0.90] | 0.62 | 0.50 [0.25, 0.75] | - |" in card
    assert "| Ada Oak | single sentences | 3 | 0.50 [0.20, 0.80] | 0.40 |" in card
    assert "it finds a share of 0.12 [0.00, 0.50]" in card
    unmeasured = report()
    del unmeasured["figures"], unmeasured["samples"]
    assert "Held out" not in annotator_card(unmeasured, "mine")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_card_shows_names_of_the_data_as_text(text: str) -> None:
    plain = Page(markdown.markdown(annotator_card(report(), "source"), extensions=["tables"]))
    rows = [{**report()["samples"][0], "sample": text}]
    card = annotator_card(report(samples=rows, notes=(text,)), text)
    page = Page(markdown.markdown(card, extensions=["tables"]))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert all(not attrs or set(attrs) == {"style"} for _, attrs in page.tags)
