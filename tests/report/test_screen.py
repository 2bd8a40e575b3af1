"""The first screen fits a terminal, whatever names it holds."""

from __future__ import annotations

from pathlib import Path

import pytest
import wcwidth
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.report import Report, Screen, report
from seesaw_cf.report.screen import ScreenRow
from tests.report.conftest import BOTH, QUICK
from tests.report.runs import cases, property_cases, write_run


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Report:
    made = cases(("P27", "P101"), 5, 12, holds=BOTH) + property_cases(3)
    return report(write_run(tmp_path_factory.mktemp("alone"), made, ("memit", "random(memit)")), QUICK)


def test_one_editor_fits_a_screen(alone: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = alone.terminal(Path("report")).split("\n")
    assert len(lines) <= 26
    assert max(map(wcwidth.width, lines)) <= 80


_WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me")), max_size=60
)


@given(_WORDS, st.lists(_WORDS, min_size=1, max_size=2), _WORDS, st.integers(60, 100))
def test_no_line_is_wider_than_the_terminal(words: str, cells: list[str], title: str, width: int) -> None:
    rows = [ScreenRow(words, cells, "not decided")]
    screen = Screen(f"about {title}", [f"It {title}."], columns=["after memit", "random edit"], sections={title: rows})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        for line in screen.terminal().split("\n"):
            assert wcwidth.width(line) <= width, line
