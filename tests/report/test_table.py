"""One table in four forms."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.terminal import printable
from seesaw_cf.report.forms import SCREEN, Report
from seesaw_cf.report.html.findings import Findings, FirstScreen, PageSection, findings_page
from seesaw_cf.report.table import Column, EstimateColumn, Table, table_of
from tests.page_reader import original

_NAMES = st.text(min_size=1, max_size=12).filter(
    lambda name: printable(name) == name and name == " ".join(name.split())
)
_NUMBERS = st.floats(-2, 2) | st.just(math.nan)
_ROWS = st.fixed_dictionaries(
    {
        "who": _NAMES,
        "effect": _NUMBERS,
        "effect_low": _NUMBERS,
        "effect_high": _NUMBERS,
        "share": st.floats(0, 1),
        "share_low": st.just(0.0),
        "share_high": st.just(1.0),
        "reason": st.sampled_from(("", "too few edits")),
        "edits": st.integers(0, 2000),
        "star": st.booleans(),
    }
)
_COLUMNS = (
    Column("name of it", "who", words=True),
    EstimateColumn("change", "effect", zero=1e-9, star="star", note="reason", n=lambda row: f"n={row['edits']}"),
    EstimateColumn("part", "share", scale=100, digits=1, unit="%"),
    Column("edits"),
)


def _table(rows: list[dict[str, object]], most: int = 9) -> Table:
    return Table(
        "effects", "Effects", "What the edit did.", _COLUMNS, (frame := pd.DataFrame(rows)), view=frame.head(most)
    )


def _page(table: Table) -> str:
    """A page with one table."""
    return findings_page(Findings(FirstScreen("", "", {}), (PageSection("", "", (table,)),)))


def _unescaped(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("| ")][2:]
    cells = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1] for line in lines]
    return [[html.unescape(re.sub(r"\\([\\`*_\[\]|~$#])", r"\1", cell)).strip() for cell in row] for row in cells]


@given(st.lists(_ROWS, min_size=1, max_size=4))
def test_every_cell_occurs_in_the_same_order_in_four_forms(rows: list[dict[str, object]]) -> None:
    table = _table(rows)
    cells = table.cells()
    page = [
        [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", line)]
        for line in _page(table).split("<tr>")[2:]
    ]
    sheet = [[original(cell) for cell in row[:4]] for row in csv.reader(io.StringIO(table.csv))]
    assert page == cells
    assert sheet == [table.heads, *cells]
    assert "".join(table.terminal().split()).endswith("".join("".join(map("".join, cells)).split()))
    if not any("\\" in str(row["who"]) or "&" in str(row["who"]) for row in rows):
        assert _unescaped(table.markdown()) == cells


@given(_NAMES)
def test_names_make_no_markup(name: str) -> None:
    row = {"who": f"<b>|{name}", "effect": 0.1, "share": 0.5, "edits": 3, "star": True}
    table = _table([row])
    assert "<b>" not in _page(table) + table.markdown()
    line = table.markdown().splitlines()[-1]
    assert len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) == len(_COLUMNS) + 1


def test_files_hold_every_number_in_full() -> None:
    row = {
        "who": "=SUM(A1)",
        "effect": 0.123456789,
        "effect_low": math.nan,
        "share": 1 / 3,
        "reason": "few",
        "edits": 7,
    }
    table = _table([row | {"effect_high": math.nan, "share_low": 0.25, "share_high": 0.5}])
    record = pd.read_csv(io.StringIO(table.csv)).iloc[0]
    assert record["change"] == "+0.123 (few) n=7"
    assert record["part"] == "33.3% [25.0, 50.0]"
    assert (record["effect"], record["share"], record["edits"]) == (0.123456789, 1 / 3, 7)
    assert math.isnan(record["effect_low"])
    assert "'=SUM(A1)" in _table([row]).csv


def test_files_hold_no_control_characters() -> None:
    frame = pd.DataFrame({"status": ["refused: \x1b[31mno\nsolution"], "n": [3]})
    table = Table("edits", "Edits", "", [Column("edit", "status", words=True), Column("n")], frame)
    assert table.csv.count("refused:  [31mno solution") == 2
    assert pd.read_csv(io.StringIO(table.csv))["n"].tolist() == [3]


def test_words_come_first() -> None:
    with pytest.raises(AssertionError, match="edits: words come first"):
        Table("edits", "Edits", "", [Column("n"), Column("status", words=True)], pd.DataFrame({"status": ["ok"]}))


def test_people_see_the_first_rows_and_files_all() -> None:
    rows: list[dict[str, object]] = [{"who": str(at), "effect": 0.0, "edits": at} for at in range(5)]
    table = _table(rows, most=2)
    assert len(table.cells()) == 2
    assert len(pd.read_csv(io.StringIO(table.csv))) == 5
    assert "3 more rows are in tables/effects.csv." in table.sentences


def test_values_of_a_column_become_columns() -> None:
    rows = [("memit", "ES", 0.5, ""), ("memit", "PS", 0.25, "few"), ("ft", "ES", math.nan, "")]
    frame = pd.DataFrame(rows, columns=["editor", "metric", "value", "note"]).assign(
        low=[0.4, math.nan, math.nan],
        high=[0.6, math.nan, math.nan],
        sd=[0.1, 0.2, 0.3],
        n=3,
        n_cases=4,
        n_missing=[0, 1, 0],
    )
    table = table_of("short", "Short form", "Shares.", frame.assign(p_adjusted=[0.01, 1.0, math.nan]), "metric")
    assert table.heads == ["editor", "ES", "PS", "note"]
    assert table.cells() == [
        ["memit", "0.50* ± 0.10 [0.40, 0.60] (n = 3 of 4 edits)", "0.25 ± 0.20 (n = 3 of 4 edits, 1 missing)", "few"],
        ["ft", "- (n = 3 of 4 edits)", "", ""],
    ]
    assert original(pd.read_csv(io.StringIO(table.csv))["shown"][2]) == "- (n = 3 of 4 edits)"


@pytest.mark.parametrize("value", [None, math.nan, pd.NA])
def test_a_missing_value_is_a_dash(value: object) -> None:
    assert Column("n").text({"n": value}) == "-"
    assert EstimateColumn("n", note="why").text({"n": value, "why": "unscored"}) == "unscored"
    assert EstimateColumn("n").text({"n": value}) == "-"


def test_a_report_shows_brief_tables_and_names_the_others(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"who": "women", "effect": -0.25, "edits": 3}]
    table = _table(rows)
    other = replace(table, name="other", title="Other", brief=False)
    report = Report("# Head", "FINDINGS\n\nLine.\n  More.\n" + "Line.\n" * 60, [table, other])
    shown = report.write(tmp_path)
    link = "- [tables/other.csv](tables/other.csv), 1 rows: Other"
    page = (tmp_path / "report.md").read_text("utf-8")
    assert page == f"# Head\n\n{table.markdown()}\n\n## More tables\n\n{link}\n"
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["effects.csv", "other.csv"]
    assert len(shown.splitlines()) == SCREEN
    assert shown.endswith("The rest is in report.md.")
