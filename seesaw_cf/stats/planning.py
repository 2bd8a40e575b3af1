"""Smallest effects that are found, and what would make them smaller: more edits or more people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from seesaw_cf.stats.bootstrap import Floats, check_rows
from seesaw_cf.stats.crossing import Codes


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
