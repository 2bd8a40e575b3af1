"""Arguments that are refused, and the words they are refused with."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base import checks
from seesaw_cf.errors import RecordError, UnknownNameError


@given(st.floats() | st.integers(), st.floats(allow_nan=False), st.floats(allow_nan=False), st.booleans())
def test_a_number_is_taken_exactly_when_it_is_finite_and_in_range(
    value: float, low: float, high: float, ends: bool
) -> None:
    good = abs(value) < 2.0**1023 and (low <= value <= high if ends else low < value < high)
    if good:
        assert checks.number("x", value, low, high, ends=ends) == value
    elif not abs(value) < math.inf:
        with pytest.raises(RecordError, match="x is "):
            checks.number("x", value, low, high, ends=ends)


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (math.nan, {}, "plan: delta is nan, expected a finite number."),
        (math.inf, {}, "plan: delta is inf, expected a finite number."),
        (10**400, {}, "expected a finite number."),
        (-1, {"low": 0}, "plan: delta is -1, expected a finite number of at least 0."),
        (0, {"low": 0, "ends": False}, "plan: delta is 0, expected a finite number above 0."),
        (2, {"low": 0, "high": 1}, "plan: delta is 2, expected a finite number from 0 to 1."),
        (1, {"low": 0, "high": 1, "ends": False}, "plan: delta is 1, expected a finite number between 0 and 1, both"),
        ("1", {}, "plan: delta is '1', expected a finite number."),
        (None, {}, "plan: delta is None, expected a finite number."),
        (True, {}, "plan: delta is True, expected a finite number."),
    ],
)
def test_numbers_that_are_refused(value: object, limits: dict[str, float], message: str) -> None:
    with pytest.raises(RecordError) as caught:
        checks.number("plan: delta", value, **limits)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [b"x", 3, None, "\ud800", "a\udfffb"])
def test_texts_that_are_refused(value: object) -> None:
    with pytest.raises(RecordError, match="subject is "):
        checks.text("subject", value)


def test_lists_name_the_position_of_what_is_wrong() -> None:
    assert checks.each("texts", ("a", "b"), checks.text) == ("a", "b")
    with pytest.raises(RecordError, match=r"texts\[1\] is 3, expected text"):
        checks.each("texts", ["a", 3], checks.text)
    for value in ("abc", 3, None):
        with pytest.raises(RecordError, match=r"texts is .*, expected a list"):
            checks.each("texts", value, checks.text)


@pytest.mark.parametrize("value", [None, 3, "race ", ["race"], "x" * 10**6])
def test_names_of_any_kind_are_refused_by_name(value: object) -> None:
    with pytest.raises(UnknownNameError, match="unknown axis") as caught:
        checks.one_of("axis", value, ("race", "gender"))
    assert len(str(caught.value)) < 400
