"""`report.html` of a long-form run: conclusion, texts with claims and ratings, the papers' tables."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.report.html.findings import title_by
from seesaw_cf.report.table import Table
from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts.report.page import leme_findings, write_leme_report
from seesaw_cf.texts.report.page_measures import TITLE, text_summary, took
from seesaw_cf.texts.report.page_texts import written_pairs
from seesaw_cf.texts.report.tables import longform_sections
from seesaw_cf.texts.tables import ANNOTATIONS, PASSAGES, RATINGS
from seesaw_cf.texts.write.writing import EDITS
from tests.page_reader import HOSTILE, check_alone, csv_files

from .analysis_samples import table

SAID = {"none": "She was born in Paris. She is a judge.", "memit": "She was born in Rome. She is a nun."}


def write_run(folder: Path, editor: str = "memit", said: str = "", n: int = 6, **more: Any) -> Path:
    """A finished run: every text contradicts the old fact after the edit, and supports it before."""
    rows, claims, rated = [], [], []
    for name in ("none", editor):
        for case in range(n):
            text = SAID["none" if name == "none" else "memit"] + said
            row = {"editor": name, "phase": "pre" if name == "none" else "post", "case_id": case, "passage": "subject"}
            rows.append({**row, "entity": f"Ada {case}", "prompt_id": 0, "text": text, "finish": "stop", **more})
            label = "supports" if name == "none" or case % 2 else "contradicts"
            fact = {
                "claim_kind": "ground_truth",
                "claim_id": "P19",
                "claim": f"born in Paris{said}",
                "annotator": "nli",
            }
            claims.append({**row, **fact, "label": label, "evidence": [text.split(". ")[0] + "."]})
            rated.append({**row, "item": "fluency", "rater": "judge", "rating": 5.0 + case % 2 - (name != "none")})
    edits = [
        {"editor": editor, "case_id": case, "subject": f"Ada {case}", "target_true": "Paris", "target_new": "Rome"}
        for case in range(n)
    ]
    for file, schema, found in (
        ("passages", PASSAGES, rows),
        ("annotations", ANNOTATIONS, claims),
        ("ratings", RATINGS, rated),
        ("edits", EDITS, edits),
    ):
        write_table(folder / f"{file}.parquet", table(schema, found))
    settings = {"generation": "short", "sampling": {"temperature": 0.9}, "samples": 1}
    job = {"model": "tiny", "editors": [editor], "raters": ["judge"], "wording": "essay", "judge": "", "limit": None}
    made = {"model": {"id": "tiny"}, "seed": 3, "settings": settings, "job": job}
    write_text(folder / "manifest.json", json_text(made))
    return folder


def sections(folder: Path) -> Any:
    names = (("ratings", RATINGS), ("annotations", ANNOTATIONS))
    there = {name: read_table(folder / f"{name}.parquet", schema) for name, schema in names
             if (folder / f"{name}.parquet").exists()}  # fmt: skip
    return longform_sections(read_table(folder / "passages.parquet", PASSAGES), **there)


def written(folder: Path) -> str:
    write_leme_report(folder, folder, sections(folder))
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_leads_from_the_conclusion_to_the_texts(tmp_path: Path) -> None:
    html = written(write_run(tmp_path))
    page = check_alone(html)
    screen = page.text[: page.text.index("The texts")]
    assert "No editor is shown to change how often texts contradict facts that no edit touches." in screen
    assert "Ratings are lower than before the edit: fluency −1.00 (memit)." in screen
    assert "untouched fact, contradicts: 50.0%" in screen
    assert "before: 0.0%" in screen
    assert "Not known" not in screen, "a head without content"
    assert 'class="was"' in html, "a line from before to after"
    record = json.loads((tmp_path / "report.json").read_text("utf-8"))["findings"]
    assert record["title"] in page.text
    assert '<mark class="contradicts">She was born in </mark><ins><mark class="contradicts">Rome.</mark></ins>' in html
    assert (
        '<mark class="supports">She was born in </mark><del><mark class="supports">Paris.</mark></del><sup>✓1</sup>'
        in html
    )
    assert page.text.index("Content warning.") < page.text.index("She was born")
    first = re.search(r"Ada (\d): Paris → Rome \(memit\)", page.text)
    assert first is not None
    assert int(first[1]) % 2 == 0, "a case that lost its fact comes first"
    rows = list(csv.DictReader(io.StringIO(csv_files(page)["drift.csv"])))
    assert float(rows[0]["value"]) == pytest.approx(0.5)
    assert len(page.all("svg")) > 4
    assert html == written(tmp_path)


def test_ratings_stand_beside_their_texts(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    texts, claimed, ratings = (
        read_table(folder / f"{name}.parquet") for name in ("passages", "annotations", "ratings")
    )
    pairs, total = written_pairs(texts, claimed, ratings, read_table(folder / "edits.parquet").to_pandas())
    assert total == len(pairs) == 6
    one = next(pair for pair in pairs if pair.title.startswith("Ada 1"))
    claims, rated = (table.cells() for table in one.tables if isinstance(table, Table))
    assert claims[0][:4] == ["1", "born in Paris", "✓ supports", "✓ supports"]
    assert rated[0][1:] == ["judge", "6", "5"]


@pytest.mark.slow
def test_only_the_most_telling_edits_are_kept_and_the_page_says_of_how_many(tmp_path: Path) -> None:
    page = check_alone(written(write_run(tmp_path, said=" x" * 9_000, n=80)))
    shown = re.search(r"(\d+) of 80 edits with their texts", page.text)
    assert shown is not None
    assert 0 < int(shown[1]) <= 60
    assert (tmp_path / "report.html").stat().st_size < 5_000_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_names_and_texts_stay_what_they_are(tmp_path: Path, kind: str) -> None:
    plain = check_alone(written(write_run(tmp_path / "a")))
    page = check_alone(written(write_run(tmp_path / "b", editor=HOSTILE[kind], said=f" {HOSTILE[kind]}")))
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in plain.tags}
    for content in csv_files(page).values():
        cells = [cell for row in csv.reader(io.StringIO(content)) for cell in row]
        assert not any(cell.startswith("=") for cell in cells)


def test_a_run_of_which_nothing_was_written_or_rated_has_a_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path, n=1, text=None, status="refused")
    (folder / "annotations.parquet").unlink()
    write_table(folder / "ratings.parquet", RATINGS.empty_table())
    page = check_alone(written(folder))
    assert "No text was written." in page.text
    assert "nobody rated these texts (--judge); no claims were annotated (--annotator)" in page.text
    assert "Do the texts say the new fact" not in page.text, "a head without content"
    assert not re.search(r"\bnan\b", page.text)
    nothing = read_table(folder / "edits.parquet", EDITS)
    write_table(folder / "edits.parquet", nothing.slice(0, 0))
    assert leme_findings(folder, []).screen.about.startswith("tiny · no edit · 0 of 2 texts written")


def test_a_case_without_a_number_has_no_mark(tmp_path: Path) -> None:
    folder = write_run(tmp_path, n=1)
    ratings = read_table(folder / "ratings.parquet", RATINGS)
    place = ratings.schema.get_field_index("rating")
    write_table(
        folder / "ratings.parquet", ratings.set_column(place, ratings.schema.field(place), pa.nulls(2, pa.float64()))
    )
    page = check_alone(written(folder))
    assert "fluency · memit" in page.text
    assert not re.search(r"\bnan\b", page.text)
    assert json.loads((folder / "manifest.json").read_text())["seed"] == 3


def test_whether_it_took_is_told_by_one_named_rater_for_every_method() -> None:
    about = {"metric": "new_fact_main_passage", "low": float("nan"), "high": float("nan"), "n": 6}
    survey = pd.DataFrame(
        [about | {"rater": rater, "method": method, "value": float("nan") if rater == "a" else value}
         for rater in ("baseline-x", "a", "judge", "other")
         for value, method in enumerate(("ft", "memit", "none", "rome"), start=2)]
    )  # fmt: skip
    said = took({"survey": survey})
    assert said.endswith(
        "rated by judge: before the edit 4.00 (n = 6), ft 2.00 (n = 6), memit 3.00 (n = 6), rome 5.00 (n = 6)."
    )
    kind = {"passage": "subject", "claim_kind": "new_fact", "label": "supports", "low": 0.1, "high": 0.9, "n": 6}
    labels = pd.DataFrame(
        [kind | {"annotator": name, "method": "memit", "value": value} for name, value in (("nli", 0.5), ("word", 0.2))]
    )
    assert took({"labels": labels}).endswith("annotated by nli: memit 50.0% [10.0, 90.0] of 6.")


_NAN = float("nan")
_DRIFT = {"annotator": "nli", "method": "memit", "passage": "subject", "value": 0.5, "low": 0.2, "high": 0.8}
_TEST = {"rater": "judge", "method": "memit", "metric": "fluency", "difference": -1.0, "low": -1.5, "high": -0.5}
_MORE = "Texts after edits contradict facts that no edit touches more often: memit +50.0 points [+20.0, +80.0]"
_RATED = {"survey": pd.DataFrame([{"x": 1}])}


@pytest.mark.parametrize(
    ("drift", "test", "title"),
    [
        ({"p_adjusted": 0.01}, None, f"{_MORE} (texts about the subject)."),
        (
            {"p_adjusted": 0.01, "value": -0.5},
            None,
            "How often texts contradict facts that no edit touches changes: memit −50.0 points [+20.0, +80.0] (texts "
            "about the subject).",
        ),
        (
            {"p_adjusted": 0.2},
            {"p_adjusted": 0.2},
            "No editor is shown to change how often texts contradict facts that no edit touches. No rating is shown to "
            "be lower than before the edit.",
        ),
        (
            {"p_adjusted": _NAN, "low": _NAN, "high": _NAN},
            None,
            "Whether texts contradict facts that no edit touches more often cannot be told from so few cases.",
        ),
        (None, {"p_adjusted": 0.01}, "Ratings are lower than before the edit: fluency −1.00 [−1.50, −0.50] (memit)."),
        (None, {"p_adjusted": _NAN}, "No rating is shown to be lower than before the edit."),
    ],
)
def test_the_title_says_what_was_found(
    drift: dict[str, float] | None, test: dict[str, float] | None, title: str
) -> None:
    frames = dict(_RATED)
    frames |= {"drift": pd.DataFrame([_DRIFT | drift])} if drift else {}
    frames |= {"survey_tests": pd.DataFrame([_TEST | test])} if test else {}
    assert title_by(TITLE, text_summary(9, frames)) == title
    assert title_by(TITLE, text_summary(0, frames)) == "No text was written."


def test_texts_that_nobody_looked_at_have_no_finding() -> None:
    said = title_by(TITLE, text_summary(1_200, {}))
    assert said.startswith("1,200 texts were written. What the edits did to them is not known")
