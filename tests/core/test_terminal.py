"""Lists and reports fit every terminal."""

from __future__ import annotations

import pytest

from seesaw_cf.base import terminal


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("narrow")
def test_the_last_column_of_a_list_is_broken_under_its_beginning() -> None:
    drawn = terminal.description_list([("ft", "word " * 30), ("memit", "short")], indent="  ").split("\n")
    assert max(map(len, drawn)) <= 80
    assert drawn[0].startswith("  ft     word")
    assert drawn[1].startswith(" " * 9 + "word")
    assert drawn[-1] == "  memit  short"


MARKDOWN = """# What \\*was\\* found

**Bold** and `code`, a\\_b &lt;c&gt; \x1b[31mred\u202e.

| Name | n |
| --- | ---: |
| *a\\|b* | 1,234 |
"""


@pytest.mark.usefixtures("narrow")
def test_a_markdown_report_is_laid_out_for_the_terminal() -> None:
    drawn = terminal.markdown_for_terminal(MARKDOWN)
    assert max(map(len, drawn.split("\n"))) <= 80
    assert "\x1b" not in drawn
    assert "\u202e" not in drawn
    for text in ("What *was* found", "Bold and code, a_b <c>", "a|b", "1,234"):
        assert text in drawn
