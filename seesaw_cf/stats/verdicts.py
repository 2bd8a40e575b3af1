"""From an estimate to a claim: equivalence, noise floor and the verdict; and what would decide more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from seesaw_cf.base.checks import number
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.crossing import Codes

Label = Literal["hit_harder", "slightly_harder", "equal", "hit_less", "undecided", "too_few"]
VERDICTS: tuple[Label, ...] = get_args(Label)
AFFECTED: tuple[Label, ...] = ("hit_harder", "hit_less")
"""Verdicts that a group came out otherwise than the people it is compared with, by more than the margin."""
RARE = "can miss rare harm"
"""What is said of few edits."""
# Probability decides where it can move by this many margins: halving the likelier answer would then exceed the margin.
REACH = 2.0


class Verdict(NamedTuple):
    """A claim.

    Attributes:
        label: What is claimed.
        rule: Why, as far as value, margin and corrected p do not say it.
        direction: "below 0" or "above 0" where the sign is established, else "".
    """

    label: Label
    rule: str = ""
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
    edits: int | None = None,
) -> Verdict:
    """Return the claim that the numbers support, of a group beside others or of everybody beside a control.

    Rules, in order: no p -> too few. A noise floor that was not measured -> undecided. Significant (corrected p below
    alpha, |value| above the noise floor) and |value| above the margin -> hit harder (value below 0) or less.
    Significant and below 0 -> slightly harder. Inside the margin by two one-sided tests, with the noise floor below the
    margin -> equal. Otherwise undecided. Below `FEW_EDITS` edits no size is claimed: a direction, and never equality.

    Args:
        estimate: The effect, with `p` corrected over the declared family; a value below 0 is a harm.
        margin: Effects smaller than this do not matter; stated beforehand, in the effect's unit.
        noise_floor: Largest effect found where nothing was edited (pre against pre); None = not measured.
        alpha: Level.
        p_equivalence: TOST p, corrected over the declared family; None for a single test.
        edits: How many the estimate is of; None: a size may be claimed.
    """
    value, p = estimate.value, estimate.p
    if not np.isfinite([value, p]).all():
        return Verdict("too_few", estimate.note or "not estimable")
    if noise_floor is None:
        return Verdict("undecided", "noise floor not measured; state it with `AuditSettings(noise_floor=...)`")
    same = equivalence_p(value, estimate.stderr, estimate.df, margin) if p_equivalence is None else p_equivalence
    inside = same < alpha and noise_floor < margin
    few = f"{edits} edits {RARE}, {FEW_EDITS} needed" if edits is not None and edits < FEW_EDITS else ""
    real = p < alpha and abs(value) > noise_floor
    direction = ("below 0" if value < 0 else "above 0") if real else ""
    if real and abs(value) > margin:
        return Verdict("hit_harder" if value < 0 else "hit_less", few, direction)
    if real and value < 0:
        return Verdict("slightly_harder", "decided, and inside the margin", direction)
    if inside:
        return Verdict("undecided" if few else "equal", few, direction)
    noise = f"within the noise floor {noise_floor:.2g}" if p < alpha and not real else ""
    return Verdict("undecided", noise, direction)


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

    def variance(self, edits: Floats | float = 1.0, people: Floats | float = 1.0) -> Floats:
        """Return the squared standard error with that many times as many edits and people."""
        return np.asarray(self.edits / edits + self.people / people + self.both / (edits * people))

    def detectable(self, edits: Floats | float, people: Floats | float, alpha: float, power: float) -> Floats:
        """Return the smallest effect that is found, for each pair of factors."""
        variance = self.variance(edits, people)
        of_edits = (self.edits / edits) ** 2 / np.maximum(self.effective_edits * edits - 1, 1)
        rest = (variance - self.edits / edits) ** 2 / np.maximum(self.effective_people * people - 1, 1)
        df = variance**2 / np.maximum(of_edits + rest, 1e-300)
        return np.asarray((special.stdtrit(df, power) - special.stdtrit(df, alpha / 2)) * np.sqrt(variance))

    def factors(self, effect: float, alpha: float, power: float) -> tuple[float, float, tuple[float, float]]:
        """Return how many times as many edits alone, people alone, or both (the fewest prompts) find an effect.

        Returns:
            Factors of at least 1; infinite where `_FACTORS` hold none that is enough.
        """
        one, few, ways = np.ones(1), _FACTORS[::2], []
        for pair in ((_FACTORS, one), (one, _FACTORS), (few[:, None], few)):
            cost = np.where(self.detectable(*pair, alpha, power) <= abs(effect), pair[0] * pair[1], np.inf)
            least = float(cost.min())
            edits, people = (float(np.broadcast_to(factor, cost.shape).flat[cost.argmin()]) for factor in pair)
            ways.append((least, (edits, people) if np.isfinite(least) else (np.inf, np.inf)))
        return ways[0][0], ways[1][0], min(ways, key=lambda way: way[0])[1]


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

    Source: Cameron, Gelbach and Miller (2011): what edits and people add, and what was counted twice.
    """
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
