"""Means of case means and their differences, with intervals clustered by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.stats import adjust, case_weights, clustered_mean, clustered_share
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE


class CaseMean(TypedDict):
    """A mean over cases: the value with its interval, p-value and counts; `note` tells why an interval is missing."""

    value: float
    low: float
    high: float
    p: float
    n: int
    n_cases: int
    note: str


class CaseMeanRecord(TypedDict):
    """A `CaseMean` as plain JSON: None where it is NaN."""

    value: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int
    n_cases: int
    note: str


class CaseDifference(CaseMean):
    """A difference of two such means, and how many cases each side has."""

    n_first: int
    n_second: int


def with_adjusted(rows: Sequence[Mapping[str, object]]) -> list[JsonObject]:
    """Add `p_adjusted`, by Holm, to rows that are one family of tests.

    Args:
        rows: Each with `p`, NaN where nothing was tested.
    """
    adjusted = adjust([cast(float, row["p"]) for row in rows])
    return [{**row, "p_adjusted": float(p)} for row, p in zip(rows, adjusted, strict=True)]


def case_estimate(
    values: pd.Series, case: pd.Series, *sides: NDArray[np.bool_], within: tuple[float, float] = (-np.inf, np.inf)
) -> Estimate:
    """Return the mean of case means, or of one side minus another, with a 95 % interval clustered by case.

    Args:
        values: One finite number per row.
        case: Which case each row belongs to.
        sides: Which rows; none = all rows, two = the first minus the second. A case may have rows in both.
        within: Ends of the values' scale; an interval is cut there, as a mean cannot lie outside.
    """
    codes = pd.factorize(case)[0]
    parts = [case_weights(codes, side) for side in sides or (codes >= 0,)]
    if not all(part.any() for part in parts):
        return Estimate(float("nan"), clusters={"case": 0}, note="no rows")
    estimate = clustered_mean(values.to_numpy(np.float64), parts, {"case": codes})
    low, high = np.clip([estimate.low, estimate.high], *within).tolist()
    return replace(estimate, low=low, high=high)


def share_estimate(flags: pd.Series, case: pd.Series, weights: Floats | None = None, against: float = 0.0) -> Estimate:
    """Return the mean of case means of what is so or not so, with the interval of a share; none below five cases.

    Args:
        flags: True, or 1, where it is so; nothing is missing.
        case: Which case each row belongs to.
        weights: Of the rows; None = those of a mean of case means.
        against: What the p-value tests the share against, inside 0..1; the test is the interval's own (score test).
    """
    codes = pd.factorize(case)[0]
    weights = case_weights(codes, codes >= 0) if weights is None else weights
    share = clustered_share(flags.to_numpy(np.float64), weights, codes, fewest=MIN_EFFECTIVE)
    if not (0 < against < 1 and share.low == share.low):
        return replace(share, p=float("nan"))
    error = (against * (1 - against) / share.effective["case"]) ** 0.5
    return replace(share, p=float(2 * norm.sf(abs(share.value - against) / error)))


def case_mean(values: pd.Series, case: pd.Series, within: tuple[float, float] = (-np.inf, np.inf)) -> CaseMean:
    """Return `case_estimate` of all rows as columns: `value`, `low`, `high`, `p`, `n` rows, `n_cases`, and `note`."""
    return _plain(case_estimate(values, case, within=within))


def case_share(flags: pd.Series, case: pd.Series, against: float = 0.0) -> CaseMean:
    """Return `share_estimate` as columns."""
    return _plain(share_estimate(flags, case, against=against))


def row_share(flags: pd.Series, case: pd.Series) -> CaseMean:
    """Return the share of rows, each of which counts once, also where a case has several; arguments as `case_share`."""
    return _plain(share_estimate(flags, case, np.full(len(flags), 1 / max(len(flags), 1))))


def case_difference(
    values: pd.Series, case: pd.Series, first: NDArray[np.bool_], second: NDArray[np.bool_]
) -> CaseDifference:
    """Return the mean of case means over some rows minus that over the rest, as columns; a case may have rows in both.

    `n_first` and `n_second` are the cases on each side. Fewer than five on a side give no interval: what
    differs between so few cases may be the cases.
    """
    n_first, n_second = (case[side].nunique() for side in (first, second))
    return {**_plain(case_estimate(values, case, first, second)), "n_first": n_first, "n_second": n_second}


def _plain(estimate: Estimate) -> CaseMean:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "p": estimate.p,
        "n": estimate.n,
        "n_cases": estimate.clusters["case"],
        "note": estimate.note,
    }
