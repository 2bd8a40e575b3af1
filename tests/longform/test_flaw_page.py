"""`report.html` of ratings of flaws, by people or by a judge."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.report.html.findings import findings_page
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.report.flaw_page import flaw_findings, write_flaw_report
from seesaw_cf.texts.report.flaws import flaw_sections
from seesaw_cf.texts.write.pairs import FlawAnswer, flaw_row, flaw_table

from ..page_reader import HOSTILE, check_alone, csv_files
from .flaw_samples import pair


def ratings(n: int = 8, change: int | None = 1, said: str = "Ada Oak is a nun.", **more: str):  # type: ignore[no-untyped-def]
    """Every rater sees sexism in every pair; in the first they also see religion."""
    rows = []
    for case in range(n):
        for rater in ("A1", "A2"):
            answer = FlawAnswer(
                change, quote="a nun" if "a nun" in said else "", status="ok" if change else "no answer"
            )
            rows.append(flaw_row(pair(case, post=said, **more), "sexism", rater, "pre", answer))
            rows.append(flaw_row(pair(case, post=said, **more), "religion", rater, "pre", FlawAnswer(int(case == 0))))
    return flaw_table(rows)


def sections(table: pa.Table, judges: Sequence[str] = ()) -> list[Table]:
    return flaw_sections(Collected({"flaws": table}), judges, draws=50)


def test_the_report_of_people_opens_with_what_changed(tmp_path: Path) -> None:
    write_flaw_report(tmp_path, Collected({"flaws": ratings()}), draws=50)
    page = check_alone((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "No flaw is shown to be more or less present after the edits; the largest mean of ratings is" in page.text
    assert "whether the texts say what the edit says: nobody was asked." in page.text
    assert "8 pairs of texts about 1 people, written before and after edits by memit" in page.text
    assert "Sexism" in page.text
    assert "32 ratings by A1, A2" in page.text
    assert page.text.index("Content warning.") < page.text.index("Ada Oak is a")
    first = page.text[page.text.index("Content warning.") :]
    assert first.index("more after") < first.index("equal"), "the pair in which most was seen is the first"
    assert set(csv_files(page)) >= {"flaws.csv", "raters.csv"}
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# No flaw is shown")
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["findings"]["title"] in page.text


def test_a_page_shows_as_many_pairs_as_it_holds_and_says_so() -> None:
    long = flaw_findings(ratings(8, said="w" * 400_000), [], {})
    assert "3 of 8 pairs" in check_alone(findings_page(long)).text
    many = flaw_findings(ratings(70), [], {})
    assert "60 of 70 pairs" in check_alone(findings_page(many)).text


@pytest.mark.parametrize("kind", HOSTILE)
def test_names_and_texts_stay_what_they_are(kind: str) -> None:
    table = ratings(2, said=f"She {HOSTILE[kind]}", entity=HOSTILE[kind], editor=HOSTILE[kind])
    page = check_alone(findings_page(flaw_findings(table, sections(table), {"model": HOSTILE[kind]})))
    assert max(re.findall(r"\w+|\S", HOSTILE[kind]), key=len) in page.text


def test_the_page_of_a_judge_says_what_it_found() -> None:
    """A judge stands for itself: its means are clustered by edit alone, and need no five raters."""
    table = ratings().filter([row["rater"] == "A1" for row in ratings().to_pylist()])
    frame = next(one.frame for one in sections(table, ["A1"]) if one.name == "flaws")
    assert frame["low"].notna().tolist() == [False, True], "sexism in every pair, so no spread; religion in one"
    page = check_alone(findings_page(flaw_findings(table, sections(table, ["A1"]), {})))
    assert "Nothing was rated" not in page.text
    assert "the largest mean of ratings is Sexism (memit, gender): +1.00, n = 8." in page.text
    assert len([tag for tag in page.all("circle") if tag["class"] in ("dot", "open")]) == len(frame)


def test_a_judge_whose_replies_could_not_be_read_has_a_page() -> None:
    table = ratings(2, change=None)
    page = check_alone(findings_page(flaw_findings(table, sections(table), {})))
    assert "4 of 8 ratings are missing or could not be read" in page.text
    assert not re.search(r"\bnan\b|\bNone\b", page.text)
    silent = table.filter([row["change"] is None for row in table.to_pylist()])
    page = check_alone(findings_page(flaw_findings(silent, sections(silent), {})))
    assert "Nothing was rated:" in page.text, "no answer was usable: the table has no p at all"
    nothing = table.slice(0, 0)
    assert "Nothing was rated:" in check_alone(findings_page(flaw_findings(nothing, [], {}))).text


def test_a_p_value_of_zero_is_the_strongest_and_a_missing_one_is_none() -> None:
    means = pd.DataFrame(
        [{"flaw": flaw, "value": value, "p_adjusted": p, "n": 9}
         for flaw, value, p in (("sexism", 0.9, 0.0), ("religion", 0.8, float("nan")), ("age", 0.7, None))]
    )  # fmt: skip
    means = means.astype({"p_adjusted": object})
    title = flaw_findings(ratings(2), [table_of("flaws", "Flaws", "", means)], {}).screen.title
    assert title == "Texts after edits have more of a flaw: Sexism (): +0.90, n = 9."


@pytest.mark.parametrize(
    ("values", "title"),
    [
        ((0.9, 0.0), "Texts after edits have more of a flaw: Sexism (ft): +0.90, n = 9."),
        ((-0.9, 0.0), "Less after the edits: Sexism (ft): −0.90, n = 9."),
        (
            (0.9, -0.8),
            "Texts after edits have more of a flaw: Sexism (ft): +0.90, n = 9. Less after the edits: Religious "
            "injection (ft): −0.80, n = 9.",
        ),
    ],
)
def test_the_title_names_what_there_is_more_and_less_of(values: tuple[float, float], title: str) -> None:
    means = pd.DataFrame(
        [{"flaw": flaw, "editor": "ft", "value": value, "p_adjusted": 0.01 if value else 1.0, "n": 9}
         for flaw, value in zip(("sexism", "religion"), values, strict=True)]
    )  # fmt: skip
    assert flaw_findings(ratings(2), [table_of("flaws", "Flaws", "", means)], {}).screen.title == title
