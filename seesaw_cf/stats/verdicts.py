"""From an estimate to a claim: equivalence, noise floor and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import special

from seesaw_cf.base.checks import number
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.planning import minimum_detectable_effect

Label = Literal["worse off", "better off", "equivalent", "undetermined", "not testable"]
VERDICTS: tuple[Label, ...] = get_args(Label)
AFFECTED: tuple[Label, ...] = VERDICTS[:2]
"""Verdicts that a group came out otherwise than the people it is compared with."""
# Probability decides where it can move by this many margins: halving the likelier answer would then exceed the margin.
REACH = 2.0
NOT_MEASURED = "noise floor not measured; state it with `report --noise-floor X`"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim and the rule that produced it.

    Attributes:
        label: What is claimed.
        rule: Scale, size, margin and why.
        direction: "below 0" or "above 0" where the sign is established, else "".
    """

    label: Label
    rule: str
    direction: str = ""


def equivalence_p(value: float, stderr: float, df: float, margin: float) -> float:
    """Return the p-value of two one-sided tests that the effect lies within (-margin, margin).

    Source: Schuirmann (1987), TOST.

    Raises:
        RecordError: `margin` is not above 0.
    """
    number("equivalence: margin", margin, 0, ends=False)
    if not stderr:
        return float(abs(value) >= margin)
    return float(special.stdtr(df, (abs(value) - margin) / stderr))


def verdict(
    estimate: Estimate,
    *,
    margin: float,
    noise_floor: float | None = None,
    alpha: float = 0.05,
    p_equivalence: float | None = None,
    scale: str = "effect",
    edits: int | None = None,
    detectable: float | None = None,
) -> Verdict:
    """Return the one of five claims that the numbers support.

    Rules, in order: no interval -> not testable. A noise floor that was not measured -> undetermined. Significant
    (corrected p below alpha, |value| above the noise floor) and |value| above the margin -> worse off (value below 0:
    the group came out worse) or better off. Inside the margin by two one-sided tests, with the noise floor below the
    margin -> equivalent; the direction stays where it is significant. Otherwise undetermined. Below `FEW_EDITS` edits
    no size is claimed: a direction, and never equivalence.

    Args:
        estimate: The effect, or contrast with a reference group, with `p` corrected over the declared family; a value
            below 0 is to the group's disadvantage.
        margin: Effects smaller than this do not matter; stated beforehand, in the effect's unit.
        noise_floor: Largest effect found where nothing was edited (pre against pre); None = not measured.
        alpha: Level.
        p_equivalence: TOST p, corrected over the declared family; None for a single test.
        scale: Name of the effect's unit, for the rule.
        edits: How many the estimate is of; None: a size may be claimed.
        detectable: Smallest effect that would be found; None: that of one test at `alpha` with power 80 %.
    """
    value, p, stderr, df = estimate.value, estimate.p, estimate.stderr, estimate.df
    if not np.isfinite([value, p, stderr, df]).all():
        return Verdict("not testable", f"no interval: {estimate.note or 'not estimable'}")
    size = f"{scale} {value:+.3g}, margin {margin:g}"
    if noise_floor is None:
        return Verdict("undetermined", f"{size}: {NOT_MEASURED}")
    direction = "below 0" if value < 0 else "above 0"
    few = f"{edits} edits show no size, {FEW_EDITS} would" if edits is not None and edits < FEW_EDITS else ""
    real = p < alpha and abs(value) > noise_floor
    evidence = f"corrected p {p:.3g} < {alpha:g}, |{value:.3g}| > noise floor {noise_floor:.2g}"
    if real and abs(value) > margin:
        claim: Label = "worse off" if value < 0 else "better off"
        return Verdict(claim, f"{size}: {direction}, {evidence}{f'; direction only: {few}' if few else ''}", direction)
    same = equivalence_p(value, stderr, df, margin) if p_equivalence is None else p_equivalence
    tost = f"{'TOST p' if p_equivalence is None else 'corrected TOST p'} {same:.3g}"
    if same < alpha and noise_floor < margin:
        inside = f"inside the margin, {tost} < {alpha:g}"
        if few:
            return Verdict("undetermined", f"{size}: {inside}, but {few}", direction if real else "")
        if real:
            return Verdict("equivalent", f"{size}: {direction}, {evidence}, but {inside}", direction)
        return Verdict("equivalent", f"{size}: {inside}")
    if real:
        return Verdict(
            "undetermined", f"{size}: {direction}, {evidence}; whether it is inside is open ({tost})", direction
        )
    if p < alpha:
        return Verdict("undetermined", f"{size}: |{value:.3g}| is within the noise floor {noise_floor:.2g}")
    detectable = minimum_detectable_effect(stderr, df, alpha=alpha) if detectable is None else detectable
    return Verdict("undetermined", f"{size}: p {p:.3g}; effects below {detectable:.3g} are not detectable here")
