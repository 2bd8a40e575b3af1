"""How large a study must be: variance components of crossed values, and the smallest design that finds an effect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

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
        edit: Between edits: of what an edit does to all people (for a mean), or to one group more than to the other
            (for a contrast).
        person: Between people under the same edit.
        prompt: What is left: the same person under different edits and prompts.
    """

    edit: float = 0.05
    person: float = 0.05
    prompt: float = 0.10

    def __post_init__(self) -> None:
        """Refuse anything but standard deviations.

        Raises:
            RecordError: One is negative or not finite.
        """
        for name in ("edit", "person", "prompt"):
            number(f"standard deviation {name}", getattr(self, name), 0, _LARGEST)


def variance_components(values: Floats, edit: Codes, person: Codes) -> Components:
    """The components of a mean, by moments: squared sums per edit, per person and per value.

    Args:
        values: (n,) finite values.
        edit, person: (n,) codes.

    Raises:
        RecordError: Fewer than two edits or people, or lengths differ.

    Source: Henderson (1953), method 1, with the grand mean taken out; a component below 0 is 0.
    """
    check_rows("variance components", ("edit", "person"), values=values, edit=edit, person=person)
    n_edits, n_people = np.unique(edit).size, np.unique(person).size
    if min(n_edits, n_people) < 2:
        raise RecordError(
            f"variance components: {n_edits} edits and {n_people} people, expected at least two of each. "
            "Give a larger run, or state the standard deviations."
        )
    centred = values - values.mean()
    together = _same(edit, person)
    of_edit, of_person = (float((np.bincount(code) ** 2).sum()) for code in (edit, person))
    moments = [float((np.bincount(code, centred) ** 2).sum()) for code in (edit, person)] + [float(centred @ centred)]
    n = values.size
    matrix = np.array([[of_edit, together, n], [together, of_person, n], [n, n, n]], dtype=np.float64)
    # The mean that was taken out held this much of each component.
    mean = np.array([of_edit, of_person, n]) / n**2
    lost = np.array([of_edit, of_person, n])[:, None] * mean
    variances = np.linalg.lstsq(matrix - lost, np.array(moments), rcond=None)[0]
    return Components(*(float(np.sqrt(max(0.0, variance))) for variance in variances))


def contrast_components(values: Floats, edit: Codes, person: Codes, member: NDArray[np.bool_]) -> Components:
    """Return the components of a contrast between members and non-members within edits.

    Args:
        values: (n,) finite values.
        edit, person: (n,) codes.
        member: (n,) whether the value is about a member.

    Returns:
        Components; `edit` also holds what differs because other people were asked, so plans err on the large side.

    Raises:
        RecordError: Fewer than two edits have both members and non-members, or lengths differ.
    """
    check_rows("variance components", ("edit", "person"), values=values, edit=edit, person=person, member=member)
    cell = edit * 2 + member
    counts = np.bincount(cell, minlength=2 * (int(edit.max(initial=0)) + 1)).reshape(-1, 2).astype(np.float64)
    compared: NDArray[np.bool_] = np.asarray((counts > 0).all(axis=1))
    if compared.sum() < 2:
        raise RecordError(
            f"variance components: {int(compared.sum())} edits were scored on both groups, expected at least two. "
            "Choose another group, give a larger run, or state the standard deviations."
        )
    means = np.bincount(cell, values, counts.size).reshape(-1, 2) / np.maximum(counts, 1)
    rows = compared[edit]
    rest = (values - means.ravel()[cell])[rows]
    free = max(1, rest.size - 2 * int(compared.sum()))
    total = float(rest @ rest) / free
    of_person = np.bincount(person[rows]).astype(np.float64)
    pairs = float((of_person**2).sum() - rest.size)
    shared = (float((np.bincount(person[rows], rest) ** 2).sum()) - float(rest @ rest)) / pairs if pairs else 0.0
    variance = min(max(0.0, shared), total)
    difference = (means[:, 1] - means[:, 0])[compared]
    sampling = float(((total - variance) * (1 / counts[compared]).sum(axis=1)).mean())
    between = max(0.0, float(difference.var(ddof=1)) - sampling)
    return Components(float(np.sqrt(between)), float(np.sqrt(variance)), float(np.sqrt(total - variance)))


def _same(edit: Codes, person: Codes) -> float:
    pairs = np.unique(np.column_stack([edit, person]), axis=0, return_counts=True)[1]
    return float((pairs.astype(np.float64) ** 2).sum())


def minimum_detectable_effect(stderr: float, df: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The effect that a two-sided test of level `alpha` with this standard error finds with probability `power`."""
    return float((stats.t.ppf(1 - alpha / 2, df) + stats.t.ppf(power, df)) * stderr)


@dataclass(frozen=True, slots=True)
class Design:
    """Who is scored under which edits.

    Attributes:
        people_per_edit: People scored under each edit.
        edits_per_person: Edits each person is scored under.
        share: Share of the people in the group, for a contrast; None for a mean over all people.
    """

    people_per_edit: int
    edits_per_person: float = 10.0
    share: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no study can be.

        Raises:
            RecordError: A number is below 1, or the share outside 0..1.
        """
        whole("plan: people_per_edit", self.people_per_edit, 1)
        number("plan: edits_per_person", self.edits_per_person, 1, _LARGEST)
        if self.share is not None:
            number("plan: share", self.share, 0, 1, ends=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """How large a study must be.

    Attributes:
        edits, people, prompts: Numbers needed; of the people, the design's `share` are in the group.
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
    """The smallest number of edits that finds an effect `delta`.

    The variance of a mean over E edits, P people and N prompts is edit^2 / E + person^2 / P + prompt^2 / N; in a
    contrast of a share s of the people with the rest the last two are divided by s (1 - s).

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
    share = design.share
    split = 1.0 if share is None else share * (1 - share)

    def of_size(edits: int) -> Plan:
        prompts = edits * design.people_per_edit
        people = max(design.people_per_edit, round(prompts / design.edits_per_person))
        smaller = people if share is None else people * min(share, 1 - share)
        of_edit, of_person = components.edit**2 / edits, components.person**2 / (people * split)
        variance = of_edit + of_person + components.prompt**2 / (prompts * split)
        spread = of_edit**2 / max(1, edits - 1) + (variance - of_edit) ** 2 / max(1.0, smaller - 1)
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
        """The standard error with that many times as many edits and people."""
        return float(np.sqrt(self._variances(np.array(edits), np.array(people))))

    def _variances(self, edits: Floats, people: Floats) -> Floats:
        return np.asarray(self.edits / edits + self.people / people + self.both / (edits * people))

    def detectable(self, edits: Floats, people: Floats, alpha: float, power: float) -> Floats:
        """The smallest effect that is found, for each pair of factors."""
        variance = self._variances(edits, people)
        of_edits = (self.edits / edits) ** 2 / np.maximum(self.effective_edits * edits - 1, 1)
        rest = (variance - self.edits / edits) ** 2 / np.maximum(self.effective_people * people - 1, 1)
        df = variance**2 / np.maximum(of_edits + rest, 1e-300)
        return np.asarray((stats.t.isf(alpha / 2, df) + stats.t.ppf(power, df)) * np.sqrt(variance))

    def factors(self, effect: float, alpha: float, power: float) -> tuple[float, float, tuple[float, float]]:
        """How many times as many edits alone, people alone, or both (the fewest prompts) find an effect.

        Returns:
            Factors of at least 1; infinite where `_FACTORS` hold none that is enough.
        """
        one = np.ones_like(_FACTORS)
        alone = [self.detectable(*pair, alpha, power) <= abs(effect) for pair in ((_FACTORS, one), (one, _FACTORS))]
        edits, people = (float(_FACTORS[found.argmax()]) if found.any() else np.inf for found in alone)
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
        values: (n,) finite values of edits with members and others.
        edit, person: (n,) codes.
        member: (n,) whether the value is about a member.
        stderr: The standard error of the contrast; the parts add up to its square.
        effective: Edits and people.

    Raises:
        RecordError: Lengths differ.

    Source: Cameron, Gelbach and Miller (2011): what edits and people add, and what was counted twice.
    """
    check_rows("precision", ("edit", "person"), values=values, edit=edit, person=person, member=member)
    edit, person = (np.unique(code, return_inverse=True)[1] for code in (edit, person))
    n_edits, n_people = int(edit.max()) + 1, int(person.max()) + 1
    cell = edit * 2 + member
    counts = np.bincount(cell, minlength=2 * n_edits).astype(np.float64)
    means = np.bincount(cell, values, 2 * n_edits) / np.maximum(counts, 1)
    difference = means[1::2] - means[::2]
    of_edits = float(difference.var(ddof=1)) / n_edits if n_edits > 1 else 0.0
    both = counts[::2] + counts[1::2]
    middle = (np.bincount(edit, values, n_edits) / both)[edit]
    residual = (values - middle) * np.sqrt(both / np.maximum(both - 1, 1))[edit]
    weight = np.where(member, 1.0, -1.0) / counts[cell] / n_edits
    side = np.bincount(member, np.abs(weight) * residual)  # the mean of each side
    weighted = weight * (residual - side[member.astype(np.intp)])
    pair = np.unique(edit * n_people + person, return_inverse=True)[1]
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
