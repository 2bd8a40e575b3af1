"""Reports about texts, written: sentences for each verdict, hostile names, files, the commands."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.cli import main
from seesaw_cf.texts.pairs import flaw_row
from seesaw_cf.texts.report import report_people, report_run
from seesaw_cf.texts.report.rows import frame_of, text_row
from seesaw_cf.texts.report.screen import text_findings
from seesaw_cf.texts.tables import ANNOTATIONS, PASSAGES, RATINGS
from seesaw_cf.types import Estimate
from tests.fakes import slowly
from tests.page_reader import HOSTILE, Read

from .analysis_samples import flaw_table, pair, table
from .people_runs import write_run
from .test_report_numbers import people

_NAN = float("nan")


def long_run(folder: Path, text: str = "", editor: str = "memit") -> Path:
    """A run of six edits: fluency falls from 4 to 2 in each, and all texts but one contradict a fact after the edit."""
    write_run(folder, 6, text, editor)
    about: list[dict[str, Any]] = [
        {"editor": name, "phase": "pre" if name == "none" else "post", "case_id": case, "passage": "subject"}
        for name in ("none", editor)
        for case in range(1, 7)
    ]
    rated = [
        row | {"item": "fluency", "rater": f"judge{text}", "rating": 4.0 if row["phase"] == "pre" else 2.0}
        for row in about
    ]
    fact = {"claim_kind": "ground_truth", "claim_id": "P1", "claim": f"a fact{text}", "annotator": "nli"}
    marked = [
        row | fact | {"label": "contradicts" if row["phase"] == "post" and row["case_id"] > 1 else "supports"}
        for row in about
    ]
    write_table(folder / "ratings.parquet", table(RATINGS, rated))
    write_table(folder / "annotations.parquet", table(ANNOTATIONS, marked))
    return folder


@pytest.mark.parametrize(
    ("what", "numbers", "word"),
    [
        ("contradicted_more", {"p_adjusted": 0.01}, "more often: by 50 points [20, 80]"),
        ("contradicted_more", {"p_adjusted": 0.01, "value": -0.5, "low": -0.8, "high": -0.2}, "less often: by 50"),
        ("contradicted_more", {"low": _NAN, "high": _NAN, "note": "one edit"}, "is not known: one edit."),
        ("lower", {"p_adjusted": 0.01, "value": -1.0, "low": -1.5, "high": -0.5}, "by 1.0 [0.5, 1.5] (memit)"),
        ("lower", {"p_adjusted": 0.2}, "No rating is shown"),
    ],
)
def test_what_texts_are_said_to_do(what: str, numbers: Mapping[str, Any], word: str) -> None:
    usual = {"value": 0.5, "low": 0.2, "high": 0.8, "p_adjusted": _NAN, "scale": "share", "asked": "fluency"}
    row = text_row(what, Estimate(0.0), about="subject", editor="memit", rater="nli", **usual | {**numbers})
    (finding,) = text_findings(frame_of([row]))
    assert word in finding


def test_a_report_has_a_page_its_record_and_tables(tmp_path: Path) -> None:
    run = long_run(tmp_path / "run")
    text = report_run(run, pictures=True)
    for words in (
        "Ratings are lower after edits, from 1 to 7: “fluency” by 2.0 (memit).",
        "the most that was seen, 83 points [−27, 100] (memit), chance can do. ",
        "fluency 4.0 2.0 WORSE",
        "no edit touches 0 % 83 % not decided",
    ):
        assert words in " ".join(text.split())
    folder = run / "report"
    assert {file.name for file in folder.iterdir()} == {"report.html", "report.json", "tables", "pictures"}
    record = json.loads((folder / "report.json").read_text("utf-8"))
    assert set(record["tables"]) == {file.stem for file in (folder / "tables").iterdir()}
    drift = pd.read_csv(folder / "tables" / "claims.csv").query("what == 'contradicted_more'")
    assert drift["value"].tolist() == pytest.approx([5 / 6])
    first = {file: file.read_bytes() for file in folder.rglob("*.*")}
    (run / "annotations.parquet").unlink()
    report_run(run)
    assert not (folder / "tables" / "claims.csv").exists(), "what an earlier report had is gone"
    assert "No claims were annotated." in (folder / "report.html").read_text("utf-8")
    long_run(run)
    report_run(run, pictures=True)
    assert first == {file: file.read_bytes() for file in folder.rglob("*.*")}, "the same run gives the same bytes"


@pytest.mark.slow
def test_people_beside_a_run(tmp_path: Path) -> None:
    run = long_run(tmp_path / "run")
    for name, answers in people().items():
        write_table(tmp_path / "people" / f"{name}.parquet", answers)
    assert main(["texts", "report", str(run), "--people", str(tmp_path / "people")]) == 0
    tables = run / "report" / "people" / "tables"
    assert set(pd.read_csv(tables / "judges.csv")["rater"]) == {"judge", "nli", "the commonest", "another person"}
    assert set(pd.read_csv(tables / "measures.csv")["what"]) == {"measure_correlation"}
    assert (tables / "failure_examples.csv").exists()


@pytest.mark.parametrize("kind", ["html", "formula", *slowly("right to left", "long", "emoji")])
def test_names_and_texts_stay_what_they_are(tmp_path: Path, kind: str) -> None:
    word, pages = HOSTILE[kind], []
    for name, text, editor in (("plain", "", "memit"), ("hostile", word, word)):
        run = long_run(tmp_path / name, text, editor)
        report_run(run)
        pages.append(run / "report")
        rows = [
            flaw_row(pair(case, entity=word, post=word, editor=editor), "sexism", rater, "pre", case % 2)
            | {"quote": word}
            for case in range(6)
            for rater in ("A", editor)
        ]
        write_table(tmp_path / f"{name}.parquet", flaw_table(rows))
        report_people([tmp_path / f"{name}.parquet"], tmp_path / f"{name}-people")
        pages.append(tmp_path / f"{name}-people")
    reads = [Read((page / "report.html").read_text("utf-8")) for page in pages]
    for plain, page in (reads[::2], reads[1::2]):
        assert {tag for tag, _ in page.tags} == {tag for tag, _ in plain.tags}
    for file in (file for page in pages for file in (page / "tables").iterdir()):
        cells = [cell for row in csv.reader(io.StringIO(file.read_text("utf-8"), newline="")) for cell in row]
        assert not any(cell.startswith("=") for cell in cells)


def test_a_run_of_which_nothing_was_written_or_rated_has_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", 1)
    passages = read_table(run / "passages.parquet", PASSAGES).to_pylist()
    nothing = [row | {"text": None, "status": "refused"} for row in passages]
    write_table(run / "passages.parquet", pa.Table.from_pylist(nothing, schema=PASSAGES))
    text = report_run(run)
    assert "No text was written." in text
    assert "6 texts are missing" in text
    assert "nan" not in Read((run / "report" / "report.html").read_text("utf-8")).text
