"""A mixed model as an alternative to clustered errors: crossed random effects of edits and people."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats

from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import LEVEL, Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, too_few
from seesaw_cf.stats.crossing import Codes

# The likelihood needs dense matrices of this many columns.
MAX_LEVELS = 1500


def mixed_contrast(values: Floats, member: NDArray[np.bool_], clusters: Mapping[str, Codes]) -> Estimate:
    """Return members minus the rest in a linear mixed model with a random intercept for each cluster of each dimension.

    Args:
        values: (n,) finite observations.
        member: (n,) the fixed effect.
        clusters: Dimension -> (n,) codes.

    Returns:
        The `Estimate`: restricted maximum likelihood, Wald interval with t and the clusters of the smallest dimension
        minus 1 as degrees of freedom.

    Raises:
        MissingExtraError: statsmodels is missing; install `seesaw_cf[mixed]`.
        RecordError: More than `MAX_LEVELS` clusters, values that are not finite, or a group of none or of all.

    Deviates: prompts are weighted by precision, so it estimates the contrast of `clustered_mean` only when the effect
        does not depend on how many people an edit was scored on. Trust it less than the default when the effects are
        skewed or vary by edit.
    """
    with need("statsmodels", extra="mixed", what_for="the mixed model"):
        from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec
    codes = {name: pd.factorize(code)[0] for name, code in clusters.items()}
    counts = {name: int(code.max(initial=-1)) + 1 for name, code in codes.items()}
    if not np.isfinite(values).all() or member.all() or not member.any():
        raise RecordError(
            f"mixed model: {int((~np.isfinite(values)).sum())} values are not finite, {int(member.sum())} of "
            f"{member.size} are about members; expected finite values about members and others."
        )
    if sum(counts.values()) > MAX_LEVELS:
        raise RecordError(
            f"mixed model: {counts} clusters, at most {MAX_LEVELS} in all fit its dense matrices. "
            "Use the default method (clustered errors), which has no such limit."
        )
    every = {name: float(count) for name, count in counts.items()}
    method = "mixed model (REML, crossed)"
    base = Estimate(float("nan"), n=values.size, clusters=counts, effective=every, method=method)
    sides = {name: min(len(np.unique(code[side])) for side in (member, ~member)) for name, code in codes.items()}
    if few := {name: [("the smaller side", n, n)] for name, n in sides.items() if n < MIN_EFFECTIVE}:
        return replace(base, note=too_few(few))
    zeros = np.zeros(values.size)
    dense = {
        name: sparse.csr_array((zeros + 1, (np.arange(zeros.size), code))).toarray() for name, code in codes.items()
    }
    spec: Any = VCSpec(
        list(dense),
        [[[f"{name} {level}" for level in range(counts[name])]] for name in dense],
        [[m] for m in dense.values()],
    )
    scale = float(values.std()) or 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about components at 0, which is a legitimate estimate
        model: Any = MixedLM(
            values / scale, np.column_stack([zeros + 1, member]), groups=zeros, exog_re=None, exog_vc=spec
        )
        fitted: Any = model.fit(reml=True)
    value, stderr = float(fitted.fe_params[1]) * scale, float(fitted.bse_fe[1]) * scale
    df = min(counts.values()) - 1.0
    half = float(stats.t.ppf((1 + LEVEL) / 2, df)) * stderr
    p = float(2 * stats.t.sf(abs(value) / stderr, df))
    return replace(base, value=value, low=value - half, high=value + half, stderr=stderr, p=p, df=df)
