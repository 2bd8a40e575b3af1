"""The authors' annotated data as a table of people's answers."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.texts.report.collected import collect
from seesaw_cf.texts.tables import ANNOTATIONS
from seesaw_cf.texts.train.released import released_annotations

PASSAGE = "Oslo is old. It is the capital of Norway. It is in Sweden."
HEAD = ("content", "sample_id", "example_id", "classification", "method", "label")


def write(file: Path, *rows: tuple[str, ...]) -> Path:
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([HEAD, *rows])
    return file


def row(
    premise: str, said: str, *, gap: str = " ", example: str = "e1", method: str = "rome", **more: str
) -> tuple[str, ...]:
    label, claim = more.get("label", "new_fact_and_main_passage"), more.get("claim", "Oslo is in Norway")
    return f"Passage: {premise}{gap}Claim: {claim}", more.get("sample", "s1"), example, said, method, label


WHOLE = {"gap": " \n\n "}


def test_a_passage_and_its_stretches_become_one_row(tmp_path: Path) -> None:
    related = {"label": "ground_truth_and_related_passage", "claim": "Sweden has a king"}
    file = write(
        tmp_path / "a.csv",
        row("It is in Sweden.", "contradicts"),
        row("It is the capital of Norway.", "supports"),
        row("In Norway, somewhere else.", "contradicts"),
        row(PASSAGE, "contradicts", **WHOLE),
        row(PASSAGE, "neutral", **WHOLE, example="e2", method="no_edit", **related),
        row(PASSAGE, "supports", **WHOLE, example="e3", method="human", sample="s2"),
        row("It is in Sweden.", "supports", example="e4"),
    )
    table, left_out = released_annotations(file)
    assert table.schema.equals(ANNOTATIONS)
    first, second, third = table.to_pylist()
    assert (first["label"], first["evidence"]) == ("contradicts", ["It is in Sweden."]), "with its label, from its text"
    assert (first["editor"], first["phase"], first["passage"], first["claim_kind"]) == (
        "rome",
        "post",
        "subject",
        "new_fact",
    )
    assert (second["editor"], second["phase"], second["passage"]) == ("none", "pre", "related")
    assert (second["claim_kind"], second["claim"], second["evidence"]) == ("ground_truth", "Sweden has a king", [])
    assert (third["editor"], third["phase"]) == ("human", "post")
    assert first["case_id"] == second["case_id"] != third["case_id"]
    assert left_out == {"stretches of a passage that has no row of its own": 1}


def test_the_table_is_all_that_a_report_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        row(PASSAGE, said, **WHOLE, example=f"e{said}{n}", sample=f"s{n}") for n in range(6) for said in ("supports",)
    ]
    file, people = write(tmp_path / "a.csv", *rows), tmp_path / "people"
    assert main(["leme", "import", str(file), "--annotator", "A1", "--out", str(people)]) == 0
    assert "annotations.parquet: 6 claims. Next: seesaw-cf leme report" in capsys.readouterr().out
    assert set(collect([people], ["annotations"]).get("annotations")["annotator"].to_pylist()) == {"A1"}
    assert main(["leme", "report", "--raters", str(people), "--out", str(tmp_path / "tables")]) == 0
    assert "supports" in (tmp_path / "tables" / "tables" / "labels.csv").read_text(encoding="utf-8")
    assert main(["leme", "import", str(file), "--annotator", "A2", "--out", str(people)]) == 1
    assert "--overwrite" in capsys.readouterr().err


def test_what_is_no_such_file_is_refused_with_its_row(tmp_path: Path) -> None:
    good = row(PASSAGE, "supports", **WHOLE)
    cases: list[tuple[list[tuple[str, ...]], type[Exception], str]] = [
        ([good, row(PASSAGE, "supports", **WHOLE, label="new_fact", example="e2")], RecordError, "row 1: label 'new_f"),
        ([good, row(PASSAGE, "agrees", **WHOLE)], UnknownNameError, "row 1: .*agrees"),
        ([row("It is in Sweden.", "supports")], RecordError, "no row is about a whole passage"),
        ([("Oslo", "s", "e", "supports", "rome", "x")], RecordError, "row 0: content 'Oslo'"),
    ]
    for number, (rows, error, said) in enumerate(cases):
        with pytest.raises(error, match=said):
            released_annotations(write(tmp_path / f"{number}.csv", *rows))
    (tmp_path / "x.csv").write_text("content,label\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"columns \['sample_id'.*are missing"):
        released_annotations(tmp_path / "x.csv")
