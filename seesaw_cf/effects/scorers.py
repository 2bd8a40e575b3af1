"""What scorers of texts add themselves: the effect of prepended texts, and what a scorer thinks of a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats as tests

from seesaw_cf.arguments import check_public
from seesaw_cf.effects.reader import check_lengths, floats, ids, labels, read_columns
from seesaw_cf.stats import clustered_mean
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.multiple import Adjusted, adjusted
from seesaw_cf.types import Estimate

NAN = float("nan")
_KINDS = {"kind": labels, "identity": labels, "attack": floats, "content": ids, "change": floats}


@dataclass(frozen=True, slots=True)
class PrefixEffect:
    """Scores with and without a prepended text, of one class.

    Attributes:
        mean_with, mean_without: Means of the scores.
        n_with, n_without: Scores on each side.
        n_unscored: Statements without a score.
        difference: With minus without, clustered by identity, Holm-adjusted over classes.
        rank: Only a p: Mann-Whitney, which takes triples for independent, Holm-adjusted over classes.
    """

    mean_with: float
    mean_without: float
    n_with: int
    n_without: int
    n_unscored: int
    difference: Adjusted
    rank: Adjusted

    def row(self) -> dict[str, object]:
        """The columns of a table."""
        names = ("mean_with", "mean_without", "n_with", "n_without", "n_unscored")
        out: dict[str, object] = {name: getattr(self, name) for name in names}
        out |= {"difference": self.difference.estimate.value} | self.difference.columns("low", "high", "p", "note")
        return out | {"p_rank": self.rank.estimate.p, "p_rank_adjusted": self.rank.p_adjusted}


def prefix_effect(
    kind: Sequence[str], identity: Sequence[str], attack: Sequence[float | None], prefixed: Sequence[bool]
) -> dict[str, PrefixEffect]:
    """What the prepended texts of Table 2 do to attack scores, per protected class.

    Args:
        kind: (n,) protected class.
        identity: (n,) identity, the cluster.
        attack: (n,) scores; None or NaN = none.
        prefixed: (n,) asked with the prepended text.

    Returns:
        Class -> means, difference and tests.

    Raises:
        RecordError: Unequal lengths, or no rows.

    Source: "I'm not racist but...", Figure 5.
    Deviates: the paper names no test; the rank test is nearest to "differences of distributions".
    """
    check_lengths({"kind": kind, "prefixed": prefixed})
    frame = read_columns(_KINDS, {"kind": kind, "identity": identity, "attack": attack})
    frame = frame.rename(columns={"attack": "value"}).assign(prefixed=np.array(prefixed, dtype=bool))
    kinds = {str(name): rows for name, rows in frame.groupby("kind", sort=True)}
    compared = {name: _compared(rows[rows["value"].notna()]) for name, rows in kinds.items()}
    differences = adjusted({name: difference for name, (difference, _) in compared.items()})
    ranks = adjusted({name: rank for name, (_, rank) in compared.items()})
    out = {}
    for name, rows in kinds.items():
        with_, without = _sides(rows[rows["value"].notna()])
        out[name] = PrefixEffect(
            mean_with=_mean(with_),
            mean_without=_mean(without),
            n_with=with_.size,
            n_without=without.size,
            n_unscored=int(rows["value"].isna().sum()),
            difference=differences[name],
            rank=ranks[name],
        )
    return out


def _sides(rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Scores with and without the prepended text."""
    with_, values = rows["prefixed"].to_numpy(bool), rows["value"].to_numpy(np.float64)
    return values[with_], values[~with_]


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else NAN


def _compared(rows: pd.DataFrame) -> tuple[Estimate, Estimate]:
    """Difference of the two sides, and the rank test of it."""
    sides = _sides(rows)
    if not all(side.size for side in sides):
        nothing = Estimate(NAN, note="one side is empty")
        return nothing, nothing
    with_ = rows["prefixed"].to_numpy(bool)
    parts = [part / part.sum() for part in (with_.astype(np.float64), (~with_).astype(np.float64))]
    difference = clustered_mean(rows["value"].to_numpy(), parts, {"identity": pd.factorize(rows["identity"])[0]})
    return difference, Estimate(NAN, p=float(tests.mannwhitneyu(*sides).pvalue), n=len(rows))


def scorer_bias(identity: Sequence[str], content: Sequence[int], change: Sequence[float]) -> dict[str, Adjusted]:
    """Score effect of a name: mean change of the score when the same sentence is about this identity.

    Args:
        identity: (n,) identity.
        content: (n,) number of the sentence, the cluster.
        change: (n,) score with the identity minus score with a neutral subject.

    Returns:
        Identity -> mean change, Holm-adjusted over identities.

    Raises:
        RecordError: Unequal lengths, or no rows.
    """
    frame = read_columns(_KINDS, {"identity": identity, "content": content, "change": change})
    estimates = {}
    for name, rows in frame.groupby("identity", sort=True):
        weights = np.full(len(rows), 1 / len(rows))
        codes = {"content": pd.factorize(rows["content"])[0]}
        estimates[str(name)] = clustered_mean(rows["change"].to_numpy(np.float64), [weights], codes)
    return adjusted(estimates)


check_public(globals())
