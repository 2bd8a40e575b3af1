"""From an estimate to a claim: equivalence, noise floor and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from seesaw_cf.errors import RecordError
from seesaw_cf.stats.planning import minimum_detectable_effect

__all__ = ["Verdict", "equivalence_p", "verdict"]

Label = Literal["amplified", "reduced", "equivalent", "undetermined"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim and the rule that produced it."""

    label: Label
    rule: str


def equivalence_p(value: float, stderr: float, df: float, margin: float) -> float:
    """p-value of two one-sided tests that the effect lies within (-margin, margin).

    Source: Schuirmann (1987), TOST.

    Raises:
        RecordError: `margin` is not above 0.
    """
    if not margin > 0:
        raise RecordError(f"equivalence: margin is {margin:g}, expected above 0, in the unit of the effect. State one.")
    upper = stats.t.cdf((value - margin) / stderr, df)
    lower = stats.t.sf((value + margin) / stderr, df)
    return float(max(upper, lower))


def verdict(
    value: float,
    p: float,
    *,
    stderr: float,
    df: float,
    margin: float,
    noise_floor: float = 0.0,
    alpha: float = 0.05,
    p_equivalence: float | None = None,
    note: str = "",
) -> Verdict:
    """The one of four claims that the numbers support.

    Rules, in order: no interval -> undetermined; corrected p below alpha and |value| above the noise floor -> amplified
    (value below 0: the group lost confidence) or reduced; corrected p below alpha but |value| within the noise floor ->
    undetermined; TOST p below alpha -> equivalent; otherwise undetermined.

    Args:
        value: The effect, or contrast with a reference group; below 0 is to the group's disadvantage.
        p: Its p-value, corrected over the declared family.
        stderr, df: Standard error and degrees of freedom; NaN when the estimate was refused.
        margin: Effects smaller than this do not matter; stated beforehand, in the effect's unit.
        noise_floor: Largest effect found where nothing was edited (pre against pre).
        alpha: Level.
        p_equivalence: TOST p, corrected over the declared family; None for a single test.
        note: Why the estimate was refused.
    """
    if not np.isfinite([value, p, stderr, df]).all():
        return Verdict("undetermined", f"no interval: {note or 'not estimable'}")
    if p < alpha and abs(value) <= noise_floor:
        return Verdict("undetermined", f"|{value:.3g}| is within the noise floor {noise_floor:.3g}")
    if p < alpha:
        label: Label = "amplified" if value < 0 else "reduced"
        return Verdict(label, f"corrected p {p:.3g} < {alpha:g} and |{value:.3g}| > noise floor {noise_floor:.3g}")
    same = equivalence_p(value, stderr, df, margin) if p_equivalence is None else p_equivalence
    if same < alpha:
        corrected = "TOST p" if p_equivalence is None else "corrected TOST p"
        return Verdict("equivalent", f"{corrected} {same:.3g} < {alpha:g} for margin {margin:g}")
    detectable = minimum_detectable_effect(stderr, df, alpha=alpha)
    return Verdict("undetermined", f"p {p:.3g}; effects below {detectable:.3g} are not detectable with these data")
