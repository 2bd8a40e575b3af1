"""Contrasts at equal covariates: weights of rows that balance the two sides of a contrast.

A contrast is a weighted sum of values. With covariates its weights are made orthogonal to them within edits, which is
the group's coefficient in a regression with one level per edit and common slopes (Frisch and Waugh 1933, Lovell 1963).
It stays a difference of two weighted means, so that its error is that of `seesaw_cf.stats.crossing.Crossing`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seesaw_cf.stats.bootstrap import Floats, check_rows
from seesaw_cf.stats.crossing import Codes

LEAST_WITHIN = 0.01
"""Share of a covariate's variance within edits that must lie within the two sides: below it they are one thing."""
_CONSTANT = 1e-12


@dataclass(frozen=True, slots=True)
class AdjustedParts:
    """Two weight vectors of a contrast, each adding up to 1, and its values without what the covariates explain.

    Attributes:
        parts: (n,) weights of either side; a weight may be below 0.
        values: (n, columns).
        reason: Why nothing could be adjusted; "" where it was.
    """

    parts: list[Floats]
    values: Floats
    reason: str = ""


def precision_parts(parts: list[Floats], case: Codes, person: Codes) -> list[Floats]:
    """Weight edits by the precision of their difference, m o / (m + o) for m people on one side and o on the other.

    Args:
        parts: Two weight vectors (n,) that give every edit the same weight.
        case, person: (n,) codes.
    """
    check_rows("precision weights", ("case", "person"), case=case, person=person, weights=parts[0])
    n_cases, n_people = int(case.max()) + 1, int(person.max()) + 1
    pairs_of = [np.unique((case * n_people + person)[part != 0]) for part in parts]
    people = [np.bincount(pairs // n_people, minlength=n_cases) for pairs in pairs_of]
    precision = people[0] * people[1] / np.maximum(people[0] + people[1], 1)
    weights = precision * np.count_nonzero(precision) / precision.sum()
    return [part * weights[case] for part in parts]


def adjust_parts(parts: list[Floats], values: Floats, covariates: Floats, case: Codes) -> AdjustedParts:
    """Take covariates out of a contrast, with one slope each for all edits, from differences within edits and sides.

    Args:
        parts: Two weight vectors (n,), nowhere both above 0, that weigh every edit alike.
        values: (n, columns) observations.
        covariates: (n, k) finite where a part has weight.
        case: (n,) codes.

    Returns:
        The parts as they are where a covariate does not vary, or only between the sides; `reason` names which.
    """
    check_rows("covariates", ("case",), case=case, values=values, covariates=covariates, weights=parts[0])
    weight, used = parts[0] + parts[1], (parts[0] + parts[1]) > 0
    x = np.where(used[:, None], covariates, 0.0)
    within = _centred(x, weight, case)
    apart = _centred(x, weight, 2 * case + (parts[1] > 0))
    whole, left = (np.einsum("n,nk,nk->k", weight, part, part) for part in (within, apart))
    if (whole <= _CONSTANT * np.maximum(1, (x * x).max(axis=0))).any():
        return AdjustedParts(parts, values, "the covariate does not vary within edits: nothing to adjust for")
    if (left < LEAST_WITHIN * whole).any():
        return AdjustedParts(parts, values, "the covariate differs only between the two sides: no data tell them apart")
    directions = weight[:, None] * apart
    moment = directions.T @ x
    slopes = np.linalg.pinv(moment) @ (directions.T @ np.where(used[:, None], values, 0.0))
    gap = (parts[0] - parts[1]) @ x
    away = directions @ np.linalg.pinv(moment).T @ gap
    first, second = parts[0] > 0, parts[1] > 0
    return AdjustedParts([parts[0] - away * first, parts[1] + away * second], values - x @ slopes)


def residuals(values: Floats, covariates: Floats, case: Codes) -> Floats:
    """Return values without what the covariates explain within edits, ignoring the groups.

    Args:
        values: (n, columns).
        covariates: (n, k).
        case: (n,) codes.
    """
    check_rows("residuals", ("case",), case=case, values=values, covariates=covariates)
    within = _centred(covariates, 1 / np.bincount(case)[case], case)
    directions = within / np.bincount(case)[case][:, None]
    return np.asarray(values - within @ np.linalg.pinv(directions.T @ within) @ (directions.T @ values))


def _centred(x: Floats, weight: Floats, code: Codes) -> Floats:
    """Return x minus its weighted mean in each cluster."""
    code = np.unique(code, return_inverse=True)[1]
    total = np.bincount(code, weight)
    means = np.array([np.bincount(code, weight * column) for column in x.T]) / np.where(total > 0, total, 1)
    return np.asarray((x - means.T[code]) * (weight > 0)[:, None])
