"""From an estimate to a claim: equivalence, noise floor and the verdict; and what would decide more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from seesaw_cf.base.checks import number
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import Floats, check_rows
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.crossing import Codes

Label = Literal["worse off", "better off", "equivalent", "undetermined", "not testable"]
VERDICTS: tuple[Label, ...] = get_args(Label)
AFFECTED: tuple[Label, ...] = VERDICTS[:2]
"""Verdicts that a group came out otherwise than the people it is compared with."""
# Probability decides where it can move by this many margins: halving the likelier answer would then exceed the margin.
REACH = 2.0
NOT_MEASURED = "noise floor not measured; state it with `AuditSettings(noise_floor=...)`"


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


# What would decide more: more edits or more people.


def minimum_detectable_effect(stderr: float, df: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the effect that a two-sided test of level `alpha` with this standard error detects with power `power`."""
    return float((special.stdtrit(df, power) - special.stdtrit(df, alpha / 2)) * stderr)


_FACTORS = 2.0 ** (np.arange(81) / 8)  # up to 1,024 times as many


@dataclass(frozen=True, slots=True)
class Precision:
    """The variance of a contrast, by what makes it smaller; `edits` and `people` times as many of each divide it.

    Attributes:
        edits: What only more edits make smaller: edits that treat the groups differently.
        people: What only more people make smaller: people who differ under every edit.
        both: What either makes smaller: one person under one edit, prompts and what is left.
        effective_edits, effective_people: Equal clusters that would tell as much about the error.
    """

    edits: float
    people: float
    both: float
    effective_edits: float
    effective_people: float

    @property
    def variance(self) -> float:
        """The squared standard error as it is."""
        return self.edits + self.people + self.both

    def stderr(self, edits: float = 1.0, people: float = 1.0) -> float:
        """Return the standard error with that many times as many edits and people."""
        return float(np.sqrt(self._variances(edits, people)))

    def _variances(self, edits: Floats | float, people: Floats | float) -> Floats:
        return np.asarray(self.edits / edits + self.people / people + self.both / (edits * people))

    def detectable(self, edits: Floats | float, people: Floats | float, alpha: float, power: float) -> Floats:
        """Return the smallest effect that is found, for each pair of factors."""
        variance = self._variances(edits, people)
        of_edits = (self.edits / edits) ** 2 / np.maximum(self.effective_edits * edits - 1, 1)
        rest = (variance - self.edits / edits) ** 2 / np.maximum(self.effective_people * people - 1, 1)
        df = variance**2 / np.maximum(of_edits + rest, 1e-300)
        return np.asarray((special.stdtrit(df, power) - special.stdtrit(df, alpha / 2)) * np.sqrt(variance))

    def factors(self, effect: float, alpha: float, power: float) -> tuple[float, float, tuple[float, float]]:
        """Return how many times as many edits alone, people alone, or both (the fewest prompts) find an effect.

        Returns:
            Factors of at least 1; infinite where `_FACTORS` hold none that is enough.
        """
        ones = np.ones_like(_FACTORS)
        alone = [self.detectable(*pair, alpha, power) <= abs(effect) for pair in ((_FACTORS, ones), (ones, _FACTORS))]
        edits, people = (float(_FACTORS[is_enough.argmax()]) if is_enough.any() else np.inf for is_enough in alone)
        grid = np.meshgrid(_FACTORS[::2], _FACTORS[::2], indexing="ij")
        enough = self.detectable(grid[0], grid[1], alpha, power) <= abs(effect)
        cost = np.where(enough, grid[0] * grid[1], np.inf)
        at = int(cost.argmin())
        fewest = (edits, 1.0) if edits <= people else (1.0, people)
        if cost.ravel()[at] < fewest[0] * fewest[1]:
            fewest = (float(grid[0].ravel()[at]), float(grid[1].ravel()[at]))
        return edits, people, fewest


def contrast_precision(
    values: Floats, edit: Codes, person: Codes, member: NDArray[np.bool_], stderr: float, effective: tuple[float, float]
) -> Precision:
    """Return what the squared standard error of a contrast within edits is made of.

    Args:
        values: (n,) finite values of edits with members and non-members.
        edit, person: (n,) codes.
        member: (n,) whether the value is about a member.
        stderr: The standard error of the contrast; the parts add up to its square.
        effective: Edits and people.

    Raises:
        RecordError: Lengths differ.

    Source: Cameron, Gelbach and Miller (2011): what edits and people add, and what was counted twice.
    """
    check_rows("precision", ("edit", "person"), values=values, edit=edit, person=person, member=member)
    edit, person = (pd.factorize(code, sort=True)[0] for code in (edit, person))
    n_edits, n_people = int(edit.max()) + 1, int(person.max()) + 1
    cell = edit * 2 + member
    counts = np.bincount(cell, minlength=2 * n_edits).astype(np.float64)
    means = np.bincount(cell, values, 2 * n_edits) / np.maximum(counts, 1)
    difference = means[1::2] - means[::2]
    of_edits = float(difference.var(ddof=1)) / n_edits if n_edits > 1 else 0.0
    n_rows = counts[::2] + counts[1::2]
    middle = (np.bincount(edit, values, n_edits) / n_rows)[edit]
    residual = (values - middle) * np.sqrt(n_rows / np.maximum(n_rows - 1, 1))[edit]
    weight = np.where(member, 1.0, -1.0) / counts[cell] / n_edits
    side = np.bincount(member, np.abs(weight) * residual)  # the mean of each side
    weighted = weight * (residual - side[member.astype(np.intp)])
    pair = pd.factorize(edit * n_people + person, sort=True)[0]
    of_people, of_pairs = (float((np.bincount(code, weighted) ** 2).sum()) for code in (person, pair))
    # The effect of a person is in its pairs with edits, too.
    shared, apart = (float((np.bincount(code, weight) ** 2).sum()) for code in (person, pair))
    people = max(0.0, of_people - of_pairs) * (shared / (shared - apart) if shared > apart * (1 + 1e-9) else 1.0)
    people = min(people, of_people)
    rest = max(0.0, of_pairs - people * apart / max(shared, 1e-300))
    edits = max(0.0, of_edits - of_pairs)
    total = edits + people + rest
    scale = stderr**2 / total if total > 0 else 0.0
    return Precision(edits * scale, people * scale, rest * scale, *effective)
