"""How large a study must be: variance components of crossed values, and the smallest design that finds an effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from seesaw_cf.base.checks import number, whole
from seesaw_cf.base.errors import RecordError
from seesaw_cf.stats.bootstrap import Floats, check_rows
from seesaw_cf.stats.crossing import Codes

# Beyond, squares and their products leave the range of floats.
_LARGEST = 1e60


@dataclass(frozen=True, slots=True)
class Components:
    """Standard deviations of what crossed values are made of, in the effect's unit.

    Attributes:
        edit: Between edits: of what an edit does to all people.
        person: Between people: what is the same under every edit.
        pair: Of a person under one edit: what the prompts of both share.
        rest: What is left: one prompt.
    """

    edit: float = 0.05
    person: float = 0.05
    pair: float = 0.0
    rest: float = 0.10

    def __post_init__(self) -> None:
        """Refuse anything but standard deviations.

        Raises:
            RecordError: One is negative or not finite.
        """
        for field in fields(self):
            number(f"standard deviation {field.name}", getattr(self, field.name), 0, _LARGEST)


def variance_components(values: Floats, edit: Codes, person: Codes) -> Components:
    """Return the components of a mean, by moments: squared sums per edit, person, both and value.

    Args:
        values: (n,) finite values.
        edit, person: (n,) codes.

    Raises:
        RecordError: Fewer than two edits or people, lengths differ, or values are not finite.

    Source: Henderson (1953), method 1, with the grand mean taken out; no component is below 0. A person
        under an edit who has one prompt is in `rest`.
    """
    check_rows("variance components", ("edit", "person"), values=values, edit=edit, person=person)
    n_edits, n_people = np.unique(edit).size, np.unique(person).size
    if min(n_edits, n_people) < 2:
        raise RecordError(
            f"variance components: {n_edits} edits and {n_people} people, expected at least two of each. "
            "Give a larger run, or state the standard deviations."
        )
    pair = np.asarray(np.unique(edit * (int(person.max()) + 1) + person, return_inverse=True)[1], np.intp)
    several = n_edits < int(pair.max()) + 1 < edit.size  # neither whole edits nor single values
    dimensions = {"edit": edit, "person": person} | ({"pair": pair} if several else {})
    return Components(**_moments(values, dimensions | {"rest": np.arange(edit.size)}))


def _moments(values: Floats, dimensions: Mapping[str, Codes]) -> dict[str, float]:
    """Return the standard deviation of each dimension's effects.

    The squared sums of residuals from the mean are set equal to what they are on average: with Z the indicators of a
    dimension and M the projection off the mean, |Z' M Z_k|^2 times the variance of dimension k.
    """
    if not np.isfinite(values).all():
        raise RecordError("variance components: values are not all finite. Leave unscored rows out and count them.")
    n, residual = values.size, values - values.mean()
    counts = {name: np.bincount(code).astype(np.float64) for name, code in dimensions.items()}
    matrix = np.zeros((len(counts), len(counts)))
    for row, (name, count) in enumerate(counts.items()):
        for column, (other, others) in enumerate(counts.items()):
            shared = sparse.csr_array((np.ones(n), (dimensions[name], dimensions[other])))
            crossed = count @ np.asarray(shared @ others) / n
            matrix[row, column] = shared.power(2).sum() - 2 * crossed + (count @ count) * (others @ others) / n**2
    squares = np.array([float((np.bincount(code, residual) ** 2).sum()) for code in dimensions.values()])
    scale = 1 / np.maximum(np.diag(matrix), 1e-300)
    variances, _ = optimize.nnls(matrix * scale[:, None], squares * scale)
    return {name: float(np.sqrt(variance)) for name, variance in zip(dimensions, variances)}


def minimum_detectable_effect(stderr: float, df: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the effect that a two-sided test of level `alpha` with this standard error detects with power `power`."""
    return float((special.stdtrit(df, power) - special.stdtrit(df, alpha / 2)) * stderr)


@dataclass(frozen=True, slots=True)
class Design:
    """Who is scored under which edits.

    Attributes:
        people_per_edit: People scored under each edit.
        edits_per_person: Edits each person is scored under.
    """

    people_per_edit: int
    edits_per_person: float = 10.0

    def __post_init__(self) -> None:
        """Refuse what no study can be.

        Raises:
            RecordError: A number is below 1.
        """
        whole("plan: people_per_edit", self.people_per_edit, 1)
        number("plan: edits_per_person", self.edits_per_person, 1, _LARGEST)


@dataclass(frozen=True, slots=True)
class Plan:
    """How large a study must be.

    Attributes:
        edits, people, prompts: Numbers needed.
        detectable: The minimum detectable effect with them.
        reachable: False when even the largest design tried cannot find the effect.
    """

    edits: int
    people: int
    prompts: int
    detectable: float
    reachable: bool


def plan(
    delta: float,
    components: Components,
    design: Design,
    *,
    tests: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    max_edits: int = 100_000,
) -> Plan:
    """Return the study with the fewest edits, at least five, that finds an effect `delta`.

    The variance of a mean over E edits, P people and Q people under an edit, each asked once, is
    edit^2 / E + person^2 / P + (pair^2 + rest^2) / Q.

    Args:
        delta: The effect to find, in the effect's unit.
        components: Standard deviations.
        design: Who is scored under which edits.
        tests: Size of the family; the level is divided by it (the first step of Holm's correction).
        alpha, power: Of the two-sided test.
        max_edits: Where to give up.

    Raises:
        RecordError: `delta` is 0, a number is below 1, or `alpha` or `power` is outside 0..1.
    """
    if number("plan: delta", delta, -_LARGEST, _LARGEST) == 0:
        raise RecordError("plan: delta is 0, expected the effect to find. No study can find an effect of 0.")
    whole("plan: tests", tests, 1)
    whole("plan: max_edits", max_edits, 5)
    for name, value in {"alpha": alpha, "power": power}.items():
        number(f"plan: {name}", value, 0, 1, ends=False)

    def of_size(edits: int) -> Plan:
        prompts = edits * design.people_per_edit
        people = max(design.people_per_edit, round(prompts / design.edits_per_person))
        of_edit, of_person = components.edit**2 / edits, components.person**2 / people
        variance = of_edit + of_person + (components.pair**2 + components.rest**2) / prompts
        spread = of_edit**2 / max(1, edits - 1) + (variance - of_edit) ** 2 / max(1, people - 1)
        df = variance**2 / spread if spread else np.inf
        effect = minimum_detectable_effect(variance**0.5, df, alpha=alpha / tests, power=power)
        return Plan(edits, people, prompts, effect, effect <= abs(delta))

    low, high = 4, 5  # fewer clusters are refused, see `clustered_mean`
    while not of_size(high).reachable and high < max_edits:
        low, high = high, min(2 * high, max_edits)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of_size(middle).reachable else (middle, high)
    return of_size(high)


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
