"""Numbers and names as text."""

from __future__ import annotations

import html
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.report import text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0123, "+0.012"),
        (-0.5, "-0.500"),
        (0.0, "0.000"),
        (3.1e-5, "+3.1e-05"),
        (-2e-7, "-2.0e-07"),
        (12.0, "+12.000"),
    ],
)
def test_number_keeps_small_effects_visible(value: float, expected: str) -> None:
    assert text.number(value) == expected


def test_numbers_that_do_not_exist_are_dashes() -> None:
    nan = math.nan
    assert [text.number(nan), text.percent(nan), text.percent_interval(nan, nan, nan), text.p_value(nan)] == ["-"] * 4


def test_shares_and_p_values() -> None:
    assert text.percent_interval(0.5, 0.123, 1.0) == "50.0% [12.3, 100.0]"
    assert [text.p_value(0.0004), text.p_value(0.0312)] == ["<0.001", "0.031"]


@pytest.mark.parametrize(
    ("value", "p", "holds", "starred"),
    [
        (-0.1, 0.01, "target_new", True),
        (0.1, 0.01, "target_new", False),  # the papers star losses only
        (-0.1, 0.06, "target_new", False),
        (-0.1, math.nan, "target_new", False),
        (-0.1, 0.01, "target_true", False),  # for holders of the old target a fall is no harm
    ],
)
def test_star(value: float, p: float, holds: str, starred: bool) -> None:
    assert text.is_starred({"D": value, "p": p, "holds": holds}) is starred


@given(st.text())
def test_escaped_text_stays_in_its_cell_and_makes_no_markup(raw: str) -> None:
    shown = text.escape(raw)
    assert "<" not in shown
    assert ">" not in shown
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u202e]", shown)
    without_escapes = re.sub(r"\\[\\`*_\[\]|~$#]", "", shown)
    assert not re.search(r"[\\`*_\[\]|~$#]", without_escapes)


@given(st.text(alphabet=st.characters(exclude_categories=("C", "Z"))))
def test_escaped_text_reads_as_before(raw: str) -> None:
    unescaped = html.unescape(re.sub(r"\\([\\`*_\[\]|~$#])", r"\1", text.escape(raw)))
    assert unescaped == html.unescape(html.escape(raw, quote=False))


@given(st.text(alphabet="`ab\n"))
def test_a_code_block_cannot_be_ended_from_inside(raw: str) -> None:
    bar, *body, end = text.fence(raw).split("\n")
    assert bar == end
    assert set(bar) == {"`"}
    assert all(bar not in line for line in body)


@pytest.mark.parametrize(("value", "shown"), [(0.0001, "p<0.001"), (0.0123, "p=0.012"), (math.nan, "p=-")])
def test_a_p_value_has_one_sign_before_it(value: float, shown: str) -> None:
    assert text.p_equals(value) == shown
