"""Survey means by hand: cases weigh alike, what is missing is counted, differences are within the same edits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects.ratings import survey_of_columns
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats.plain import as_json

MAIN = "new_fact_main_passage"
Row = tuple[int, str, str, float | None]


def survey(rows: list[Row], reference: str | None = None) -> dict[str, Any]:
    columns = pd.DataFrame(rows, columns=["case_id", "method", "item", "rating"])
    found: dict[str, Any] = as_json(survey_of_columns)(columns, reference=reference)["methods"]
    return found


def test_cases_weigh_alike_and_missing_ratings_are_counted() -> None:
    """Case 1 has ratings 1, 1, 4 (mean 2), case 2 has 6, case 3 none: mean of case means 4."""
    rows: list[Row] = [(1, "ft", MAIN, 1), (1, "ft", MAIN, 1), (1, "ft", MAIN, 4), (2, "ft", MAIN, 6)]
    rows += [(3, "ft", MAIN, None), (3, "ft", MAIN, math.nan)]
    cell = survey(rows)["ft"]["items"][MAIN]
    assert (cell["mean"], cell["n"], cell["n_cases"], cell["n_missing"]) == (4.0, 4, 2, 2)
    assert cell["low"] is None
    assert "too few " in str(cell["note"])
    assert survey([(1, "ft", MAIN, None)])["ft"]["items"][MAIN]["mean"] is None


def test_the_interval_of_a_mean_lies_on_the_scale() -> None:
    ratings = [1, 1, 1, 1, 1, 1, 1, 7]
    cell = survey([(case, "ft", MAIN, rating) for case, rating in enumerate(ratings)])["ft"]["items"][MAIN]
    assert cell["mean"] == 1.75
    assert (cell["low"], cell["low"] < cell["mean"] < cell["high"] <= 7) == (1.0, True)


def test_differences_use_the_edits_that_both_have() -> None:
    """Cases 1 and 2 have both: (7 + 5)/2 - (1 + 2)/2 = 4.5; case 3 has no reference and does not count."""
    rows: list[Row] = [(1, "none", MAIN, 1), (2, "none", MAIN, 2), (1, "ft", MAIN, 7), (2, "ft", MAIN, 5)]
    found = survey([*rows, (3, "ft", MAIN, 1), (4, "none", MAIN, None)], "none")
    cell = found["ft"]["items"][MAIN]["difference"]
    assert (cell["mean"], cell["n_cases"]) == (4.5, 2)
    assert "difference" not in found["none"]["items"][MAIN]
    apart = survey([(1, "none", MAIN, 1), (2, "ft", MAIN, 7)], "none")["ft"]["items"][MAIN]["difference"]
    assert apart["note"] == "no edit in common"


def test_the_interval_of_a_paired_difference_is_that_of_a_paired_t_test_or_wider() -> None:
    """One rating per case and method: what cases share cancels; the error is that of the mean of differences."""
    rng = np.random.default_rng(0)
    base = rng.uniform(1, 4, 40)
    change = rng.normal(1, 0.3, 40)
    rows: list[Row] = [(n, "none", MAIN, float(value)) for n, value in enumerate(base)]
    rows += [(n, "ft", MAIN, float(value)) for n, value in enumerate(base + change)]
    cell = survey(rows, "none")["ft"]["items"][MAIN]["difference"]
    plain = change.std(ddof=1) / math.sqrt(40)
    assert cell["stderr"] == pytest.approx(plain, rel=0.05)
    assert cell["low"] < change.mean() < cell["high"]
    assert cell["p"] < 1e-6


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        ([(1, "ft", "fluently", 3.0)], UnknownNameError, "fluency"),
        ([(1, "ft", MAIN, 8.0)], RecordError, "rating 8.0"),
        ([(1, "ft", MAIN, 0.0)], RecordError, "rating 0.0"),
        ([(1, "ft", MAIN, 3.0)], UnknownNameError, "method 'none'"),
    ],
)
def test_bad_input(rows: list[Row], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        survey(rows, "none")
