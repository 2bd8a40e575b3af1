"""Means of case means and their differences, with intervals that know which rows share a case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.stats import case_weights, clustered_mean

__all__ = ["case_difference", "case_mean"]


def case_mean(values: pd.Series, case: pd.Series, against: float = 0.0) -> dict[str, Any]:
    """The mean of case means, with a 95 % interval clustered by case.

    Args:
        values: One finite number per row.
        case: Which case each row belongs to.
        against: What the p-value tests the mean against.

    Returns:
        `value`, `low`, `high`, `p`, `n` rows, `n_cases`, and `note`: why there is no interval.
    """
    codes = pd.factorize(case)[0]
    return _estimate(values, codes, [np.ones(len(codes), dtype=bool)], against)


def case_difference(
    values: pd.Series, case: pd.Series, first: NDArray[np.bool_], second: NDArray[np.bool_]
) -> dict[str, Any]:
    """The mean of case means over some rows minus that over others; a case may have rows in both.

    Args:
        values: One finite number per row.
        case: Which case each row belongs to.
        first, second: Which rows.

    Returns:
        As `case_mean`; `n_first` and `n_second` are the cases on each side.
    """
    codes = pd.factorize(case)[0]
    sides = {"n_first": len(np.unique(codes[first])), "n_second": len(np.unique(codes[second]))}
    return _estimate(values, codes, [first, second], 0.0) | sides


def _estimate(
    values: pd.Series, codes: NDArray[np.intp], members: list[NDArray[np.bool_]], against: float
) -> dict[str, Any]:
    if not all(member.any() for member in members):
        nan = float("nan")
        return {"value": nan, "low": nan, "high": nan, "p": nan, "n": 0, "n_cases": 0, "note": "no rows"}
    parts = [case_weights(codes, member) for member in members]
    found = clustered_mean(values.to_numpy(np.float64) - against, parts, {"case": codes})
    ends = {"value": found.value + against, "low": found.low + against, "high": found.high + against}
    return ends | {"p": found.p, "n": found.n, "n_cases": found.clusters["case"], "note": found.note}
