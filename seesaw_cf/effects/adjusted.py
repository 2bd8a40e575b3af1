"""Estimands other than the raw contrast of groups: contrasts at equal confidence, familiarity or fame.

None of them is the default. The raw contrast measures what an edit did to people as they are. An adjusted one
tests a rival explanation. It also removes what a group has to do with fame, so that an adjusted contrast near 0 does
not show that the group was spared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit

from seesaw_cf.effects.groups import SCALES
from seesaw_cf.stats.adjustment import residuals
from seesaw_cf.stats.bootstrap import Floats


def _log_odds_before(prompts: pd.DataFrame) -> pd.Series:
    return pd.Series(logit(np.clip(prompts["held_share_pre"], 1e-12, 1 - 1e-12)), prompts.index)


def _known(prompts: pd.DataFrame) -> pd.Series:
    return prompts["known"].astype("Float64").astype(np.float64)


def _log_sitelinks(prompts: pd.DataFrame) -> pd.Series:
    recorded = prompts["sitelinks"] if "sitelinks" in prompts else pd.Series(pd.NA, prompts.index)
    return pd.Series(np.log1p(recorded.astype("Float64").to_numpy(np.float64, na_value=np.nan)), prompts.index)


@dataclass(frozen=True, slots=True)
class Covariate:
    """Something that people or questions differ in before the edit.

    Attributes:
        value: Prompts -> one number each, NaN where unknown.
        missing: Name of people without a value.
        powers: It enters with these powers, so that its effect need not be a line.
    """

    value: Callable[[pd.DataFrame], pd.Series]
    missing: str
    powers: tuple[int, ...] = (1,)


@dataclass(frozen=True, slots=True)
class Estimand:
    """A contrast of groups other than the raw one.

    Attributes:
        about: One sentence: what it is, and when to use it.
        covariates: What is held equal within edits, with one slope for all edits.
        precise: Edits weigh by how many people they compare, m o / (m + o), in place of equally.
    """

    about: str
    covariates: tuple[Covariate, ...] = ()
    precise: bool = False


_CONFIDENCE = Covariate(_log_odds_before, "no right answer of the two is recorded", (1, 2))
_FAMILIARITY = Covariate(_known, "whether the model knew the answer is not recorded")
_FAME = Covariate(_log_sitelinks, "no sitelinks are recorded", (1, 2))
ESTIMANDS: Mapping[str, Estimand] = {
    "precision": Estimand(
        "Edits weigh by how many people they compare (m o / (m + o) for m and o people on the two sides). For edits of "
        "very uneven size; it is a mean over people more than over edits.",
        precise=True,
    ),
    "confidence": Estimand(
        "At equal confidence before the edit (log-odds of the answer that the person holds, and their square). For the "
        "question whether a group lost more because there was more to lose.",
        (_CONFIDENCE,),
    ),
    "familiarity": Estimand(
        "At equal familiarity: whether the answer that the person holds came first of the two before the edit. For the "
        "question whether a group is only less known to this model.",
        (_FAMILIARITY,),
    ),
    "fame": Estimand(
        "At equal fame (log of 1 + sitelinks, and its square). For the question whether popularity explains what "
        "differs between groups.",
        (_FAME,),
    ),
    "popularity": Estimand("At equal fame and equal familiarity, see both.", (_FAME, _FAMILIARITY)),
}
"""Name -> estimand, as `seesaw-cf report --estimand` takes them."""


def covariates_of(prompts: pd.DataFrame, estimand: Estimand) -> Floats:
    """Return the covariates of each prompt, (prompts, columns); NaN where unknown, without columns where none."""
    columns = [
        covariate.value(prompts).to_numpy(np.float64) ** power
        for covariate in estimand.covariates
        for power in covariate.powers
    ]
    return np.column_stack([np.empty((len(prompts), 0)), *columns])


def unadjustable(prompts: pd.DataFrame, estimand: Estimand) -> pd.Series:
    """Return why each prompt cannot be adjusted; "" where it can."""
    reasons = pd.Series("", prompts.index)
    for covariate in reversed(estimand.covariates):
        reasons = reasons.mask(covariate.value(prompts).isna(), covariate.missing)
    return reasons


def without_covariates(prompts: pd.DataFrame, estimand: Estimand) -> pd.DataFrame:
    """Return prompts with effects that covariates do not explain within edits, of each editor and kind of holder.

    People's labels are permuted over these (Freedman and Lane 1983): had labels no effect, a person could have had any.
    """
    x = covariates_of(prompts, estimand)
    if not x.shape[1]:
        return prompts
    columns = ["D", *SCALES]
    left = prompts[columns].to_numpy(np.float64).copy()
    for rows in prompts.groupby(["editor", "holds"], sort=True).indices.values():
        case: NDArray[np.intp] = pd.factorize(prompts["case_id"].iloc[rows])[0]
        left[rows] = residuals(left[rows], x[rows], case)
    return prompts.assign(**dict(zip(columns, left.T)))
