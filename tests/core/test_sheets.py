"""Text from data is never a formula in a spreadsheet, and what is not a number is null in JSON, not in a text."""

from __future__ import annotations

import io
import math
import re

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.files import csv_text, neutral
from tests.page_reader import original

FORMULA = ("=", "+", "-", "@", "\t", "\r")


@given(st.text(alphabet="'=+-@\t\ra1", max_size=6))
def test_no_text_begins_as_a_formula_and_the_original_comes_back(text: str) -> None:
    number = re.fullmatch(r"[+-]\d+", text) or len(text) == 1
    assert number or not neutral(text).startswith(FORMULA)
    assert original(neutral(text)) == text


def test_numbers_and_lone_signs_are_no_formulas() -> None:
    numbers = (
        "-",
        "-0.3",
        "+1.2e-05*",
        "-75.0% [-80.1, -3.0]",
        "+0.014 (too few people: 3 in women, 5 needed)",
        "+1,234 n=3",
    )
    assert [neutral(text) for text in numbers] == [*numbers]
    formulas = ("=1", "-1+cmd|' /C calc'!A0", "-1 (SUM(A1))", "+0.1 [0.1, B1]", "=\n1", "-1\n=1", "+A1", "@a")
    assert [neutral(text) for text in formulas] == [f"'{text}" for text in formulas]


def test_csv_keeps_numbers_and_neutralises_text() -> None:
    frame = pd.DataFrame({"subject": ["=HYPERLINK(1)", "Ada", None], "D": [-0.5, math.nan, 2.0], "=n": [-1, 2, 3]})
    shown = csv_text(frame)
    assert shown.split("\n")[:2] == ["subject,D,'=n", "'=HYPERLINK(1),-0.5,-1"]
    back = pd.read_csv(io.StringIO(shown))
    assert back["D"].tolist()[0::2] == [-0.5, 2.0]
    assert back["'=n"].tolist() == [-1, 2, 3]
