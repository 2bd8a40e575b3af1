"""Tables and paragraphs fit every terminal, numbers stay whole, and columns align in terminal columns."""

from __future__ import annotations

import pytest
import wcwidth
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base import terminal

CLUSTERS = ("a", "b ", "\u65e5", "e\u0301", "\U0001f469\u200d\U0001f4bb")
names = st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=60).map("".join)
numbers = st.floats(-1e6, 1e6).map(lambda value: f"{value:+.3f}")
rows = st.lists(st.tuples(names, names, numbers, numbers, numbers, numbers, numbers), min_size=1, max_size=4)
HEADS = ("one", "two", "D_d", "low", "high", "log-odds", "n")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@given(rows=rows, width=st.sampled_from((40, 60, 80, 200)))
def test_tables_fit_the_terminal_and_numbers_stay_whole(rows: list[tuple[str, ...]], width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        drawn = terminal.column_table(HEADS, rows, left=2)
    assert max(map(wcwidth.width, drawn.split("\n"))) <= width
    words = drawn.split()
    assert all(
        words.count(number) >= [cell for row in rows for cell in row[2:]].count(number)
        for row in rows
        for number in row[2:]
    )


@given(st.lists(names, min_size=2, max_size=5))
def test_wide_and_combining_characters_do_not_shift_the_columns(found: list[str]) -> None:
    header, _, *lines = terminal.column_table(("name", "n"), [(name, 7) for name in found]).split("\n")
    assert {wcwidth.width(line) for line in (header, *lines)} == {wcwidth.width(header)}


@pytest.mark.usefixtures("narrow")
def test_columns_that_do_not_fit_move_to_a_second_line_with_their_headers() -> None:
    row = ("memit", "citizenship", "North America", "-0.123", "[-0.234, +0.345]", "-0.4", "[-0.5, +0.6]", 12, 345)
    heads = ("editor", "relation", "group", "D_d", "95 % interval", "log-odds", "interval", "prompts", "people")
    drawn = terminal.column_table(heads, [row], left=3).split("\n")
    assert len(drawn) == 5
    assert drawn[1].split() == ["interval", "prompts", "people"]
    assert drawn[4].split() == ["[-0.5,", "+0.6]", "12", "345"]


@pytest.mark.usefixtures("narrow")
def test_cut_names_show_that_they_were_cut() -> None:
    assert "x\u2026 " in terminal.column_table(("a", "n"), [("x" * 200, 1)])
    assert "x" * 60 in terminal.column_table(("a", "n"), [("x" * 60, 1)])


def test_control_characters_never_reach_the_terminal() -> None:
    assert terminal.column_table(("a",), [("\x1b[31mred\nline\u202e",)]).split("\n")[2] == "[31mred line"


def test_the_width_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", None)
    assert terminal.terminal_width() == 100
    for columns, width in (("200", 200), ("80", 80), ("3", 40), ("none", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        assert terminal.terminal_width() == width


@pytest.mark.usefixtures("narrow")
def test_the_last_column_of_a_list_is_broken_under_its_beginning() -> None:
    drawn = terminal.description_list([("ft", "word " * 30), ("memit", "short")], indent="  ").split("\n")
    assert max(map(len, drawn)) <= 80
    assert drawn[0].startswith("  ft     word")
    assert drawn[1].startswith(" " * 9 + "word")
    assert drawn[-1] == "  memit  short"


MARKDOWN = """# What \\*was\\* found

**Bold** and `code`, a\\_b &lt;c&gt;.

| Name | n |
| --- | ---: |
| *a\\|b* | 1<br>2 |

![picture](a.png)
"""


@pytest.mark.usefixtures("narrow")
def test_a_markdown_report_is_laid_out_for_the_terminal() -> None:
    title, prose, table = terminal.markdown_for_terminal(MARKDOWN).split("\n\n")
    assert (title, prose) == ("# What *was* found", "Bold and code, a_b <c>.")
    assert table.split("\n")[2].split(maxsplit=1) == ["a|b", "1; 2"]
