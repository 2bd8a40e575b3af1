"""Means of case means and their differences, with intervals clustered by case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from seesaw_cf.base.types import Estimate
from seesaw_cf.stats import case_weights, clustered_mean, clustered_share
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE


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


def row_share(flags: pd.Series, case: pd.Series) -> dict[str, float]:
    """Return the share of rows, each of which counts once, as `value`, `low` and `high`; as `share_estimate`."""
    found = share_estimate(flags, case, np.full(len(flags), 1 / max(len(flags), 1)))
    return {"value": found.value, "low": found.low, "high": found.high}
