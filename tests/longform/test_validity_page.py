"""The page of `flaws validate`: its numbers are those of the comparison, whatever people and judge are called."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from seesaw_cf.base.tables import write_table
from seesaw_cf.cli import main
from seesaw_cf.report.html.findings import findings_page, title_by
from seesaw_cf.texts.flaws.validity import validate_judge
from seesaw_cf.texts.report.validity_page import VALIDITY_TITLE, JudgeSummary, validity_findings
from seesaw_cf.texts.write.pairs import FlawAnswer, flaw_row, flaw_table

from ..page_reader import HOSTILE, Read, check_alone, csv_files
from .flaw_samples import pair

ANSWERS = [1, -1, 0, 1] * 5


def page_of(judge: Sequence[int | None], name: str = "gpt", person: str = "A") -> Read:
    raters = {person: ANSWERS, name: judge}
    rows = [
        flaw_row(pair(number), flaw, rater, "pre", FlawAnswer(change))
        for flaw, raters_of in (("sexism", raters), ("religion", {person: ANSWERS, name: ANSWERS}))
        for rater, answers in raters_of.items()
        for number, change in enumerate(answers)
    ]
    table = flaw_table(rows)
    return check_alone(findings_page(validity_findings(table, validate_judge(table, name, draws=50), name)))


def test_the_page_says_which_flaws_a_judge_can_be_believed_on() -> None:
    page = page_of([-one for one in ANSWERS])
    assert "gpt agrees with people beyond chance on some of 2 flaws: " in page.text
    assert "20 pairs of texts, rated by gpt and by 1 person (A)" in page.text
    assert "sign in doubt: turned round it agrees with people more often (1.000 against 0.250)" in page.text
    rows = {row["flaw"]: row for row in csv.DictReader(io.StringIO(csv_files(page)["validity.csv"]))}
    assert (rows["sexism"]["judge_median"], rows["sexism"]["flipped"], rows["sexism"]["n"]) == ("0.25", "1.0", "20")
    assert (rows["religion"]["judge_median"], rows["religion"]["kappa"]) == ("1.0", "1.0")
    marks = [str(tag["aria-label"]) for tag in page.all("svg") if "kappa" in str(tag.get("aria-label"))]
    assert any("kappa 1.00 [0." in mark for mark in marks), "full agreement on 20 pairs is no proof of it"
    assert "more before" in page.text


@pytest.mark.parametrize(
    ("agrees", "pairs", "title"),
    [
        ((), 0, "No pair was rated by both gpt and people."),
        ((), 9, "gpt is not shown to agree with people beyond chance on any of 2 flaws."),
        (("Sexism", "Religion"), 9, "gpt agrees with people beyond chance on all 2 flaws."),
        (("Sexism",), 9, "gpt agrees with people beyond chance on some of 2 flaws: Sexism."),
    ],
)
def test_the_title_says_on_how_many_flaws(agrees: Sequence[str], pairs: int, title: str) -> None:
    assert title_by(VALIDITY_TITLE, JudgeSummary("gpt", 2, agrees, pairs)) == title


def test_a_flaw_that_nobody_rated_together_has_no_number() -> None:
    page = page_of([None] * 20)
    assert "not compared: no pair was rated by people and judge" in page.text
    assert "0 to 20 pairs with an answer of both" in page.text
    assert " nan" not in page.text


@pytest.mark.parametrize("kind", HOSTILE)
def test_names_of_raters_are_texts(kind: str) -> None:
    page = page_of(ANSWERS, f"judge {HOSTILE[kind]}", f"person {HOSTILE[kind]}")
    assert "judge" in page.text
    assert "person" in page.text


@pytest.mark.slow
def test_the_command_writes_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        flaw_row(pair(n), "sexism", r, "pre", FlawAnswer(one)) for r in ("A", "gpt") for n, one in enumerate(ANSWERS)
    ]
    write_table(tmp_path / "all.parquet", flaw_table(rows))
    command = ["flaws", "validate", str(tmp_path / "all.parquet"), "--judge", "gpt"]
    page, record = (tmp_path / "out" / name for name in ("report.html", "report.json"))
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    first = page.read_bytes()
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert page.read_bytes() == first
    assert "agrees with people beyond chance" in check_alone(first.decode()).text
    said = capsys.readouterr().out
    written = json.loads(record.read_text(encoding="utf-8"))
    assert written["findings"]["title"] in said
    assert written["flaws"]["sexism"]["confusion"]["1"] == {"-1": 0, "0": 0, "1": 10}
    assert {"tables/verdicts.csv", "tables/validity.csv", "tables/confusion.csv"} < set(written["files"])
