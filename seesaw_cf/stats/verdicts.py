"""From an estimate to a claim: equivalence, noise floor, minimum detectable effect and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from seesaw_cf.errors import RecordError

__all__ = ["Plan", "Verdict", "equivalence_p", "minimum_detectable_effect", "plan", "verdict"]

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


def minimum_detectable_effect(stderr: float, df: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The effect that a two-sided test of level `alpha` with this standard error finds with probability `power`."""
    return float((stats.t.ppf(1 - alpha / 2, df) + stats.t.ppf(power, df)) * stderr)


def verdict(
    value: float,
    p: float,
    *,
    stderr: float,
    df: float,
    margin: float,
    noise_floor: float = 0.0,
    alpha: float = 0.05,
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
        note: Why the estimate was refused.
    """
    if not np.isfinite([value, p, stderr, df]).all():
        return Verdict("undetermined", f"no interval: {note or 'not estimable'}")
    if p < alpha and abs(value) <= noise_floor:
        return Verdict("undetermined", f"|{value:.3g}| is within the noise floor {noise_floor:.3g}")
    if p < alpha:
        label: Label = "amplified" if value < 0 else "reduced"
        return Verdict(label, f"corrected p {p:.3g} < {alpha:g} and |{value:.3g}| > noise floor {noise_floor:.3g}")
    same = equivalence_p(value, stderr, df, margin)
    if same < alpha:
        return Verdict("equivalent", f"TOST p {same:.3g} < {alpha:g} for margin {margin:g}")
    detectable = minimum_detectable_effect(stderr, df, alpha=alpha)
    return Verdict("undetermined", f"p {p:.3g}; effects below {detectable:.3g} are not detectable with these data")


@dataclass(frozen=True, slots=True)
class Plan:
    """How large a study must be.

    Attributes:
        edits, people: Numbers needed.
        detectable: The minimum detectable effect with them.
        reachable: False when even the largest design tried cannot find the effect.
    """

    edits: int
    people: int
    detectable: float
    reachable: bool


def plan(
    delta: float,
    *,
    sd_edit: float,
    sd_person: float,
    sd_prompt: float,
    people_per_edit: int,
    alpha: float = 0.05,
    power: float = 0.8,
    max_edits: int = 100_000,
) -> Plan:
    """Edits and people for an effect `delta`, when people are drawn anew for every ten edits.

    The variance of a mean over E edits, P people and N = E x people_per_edit prompts is
    sd_edit^2 / E + sd_person^2 / P + sd_prompt^2 / N.

    Args:
        delta: The effect to find, in the effect's unit.
        sd_edit, sd_person, sd_prompt: Standard deviations of the three components, e.g. from a pilot run.
        people_per_edit: People scored under each edit.
        alpha, power: Of the two-sided test.
        max_edits: Where to give up.

    Raises:
        RecordError: `delta` is 0, or a size is below 1.
    """
    if delta == 0 or people_per_edit < 1:
        raise RecordError(
            f"plan: delta {delta:g}, people_per_edit {people_per_edit}; expected delta != 0 and at least 1."
        )

    def detectable(edits: int) -> tuple[float, int]:
        people = people_per_edit * max(1, edits // 10)
        variance = sd_edit**2 / edits + sd_person**2 / people + sd_prompt**2 / (edits * people_per_edit)
        effect = minimum_detectable_effect(variance**0.5, max(1, min(edits, people) - 1), alpha=alpha, power=power)
        return effect, people

    low, high = 2, 2
    while detectable(high)[0] > abs(delta) and high < max_edits:
        low, high = high, min(2 * high, max_edits)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if detectable(middle)[0] <= abs(delta) else (middle, high)
    effect, people = detectable(high)
    return Plan(high, people, effect, effect <= abs(delta))
