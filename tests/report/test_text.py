"""Numbers and names as text."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable

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
        (3.5e62, "+∞"),
        (-1e7, "-∞"),
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


_FORMS = (text.percent_interval, text.points, text.effect, text.estimate)


@given(st.lists(st.floats(-2, 2), min_size=3, max_size=3).map(sorted), st.sampled_from(_FORMS))
def test_a_printed_interval_contains_the_printed_value(
    ends: list[float], form: Callable[[float, float, float], str]
) -> None:
    shown = form(ends[1], ends[0], ends[2])
    value, low, high = map(float, re.findall(r"[+-]?\d+\.\d+(?:e[+-]\d+)?", shown))
    assert low <= value <= high


@given(st.floats(-2, 2), st.sampled_from((None, math.nan)))
def test_a_value_without_an_interval_has_no_brackets(value: float, end: float | None) -> None:
    assert text.estimate(value, end, end) == f"{value:.2f}"
    assert text.estimate(value, end, end, missing="(too few)") == f"{value:.2f} (too few)"
    assert text.estimate(end, end, end) == "-"


def test_values_up_to_the_limit_print_as_0() -> None:
    assert text.number(-1.3e-15, 1e-9) == "0.000"
    assert text.interval(-2.7e-15, 3e-7, 1e-9) == "[0.000, +3.0e-07]"
    assert text.interval(math.nan, math.nan) == "-"


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


@pytest.mark.parametrize(("value", "shown"), [(0.0001, "p<0.001"), (0.0123, "p=0.012"), (math.nan, "p=-")])
def test_a_p_value_has_one_sign_before_it(value: float, shown: str) -> None:
    assert text.p_equals(value) == shown


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("-0.5 [-1.2e-05, +0.1], -inf", "−0.5 [−1.2e−05, +0.1], −inf"),
        ("p(new target) - p(true target)", "p(new target) − p(true target)"),
        ("non-binary, gpt-2: -3 nats on 2026-11-27", "non-binary, gpt-2: −3 nats on 2026-11-27"),
        ("-", "–"),
    ],
)
def test_hyphens_of_names_are_no_minus_signs(plain: str, shown: str) -> None:
    assert text.minus(plain) == shown
