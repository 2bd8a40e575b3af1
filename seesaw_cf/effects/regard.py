"""Overgeneralisation: regard and attack scores of the triples about each group, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats as tests

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.means import plain_mean
from seesaw_cf.effects.tables import (
    Columns,
    Kind,
    floats,
    ids,
    labels,
    optional_labels,
    read_clustered,
    read_columns,
)
from seesaw_cf.stats.bootstrap import cluster_weights, interval, mean_interval
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, too_few
from seesaw_cf.stats.multiple import holm

NAN = float("nan")
Numbers = dict[str, Any]
"""What was measured: name -> plain value, or numbers of a part."""
REGARDS = ("positive", "negative", "neutral", "other")
COLUMNS: dict[str, Kind] = {"identity": labels, "regard": optional_labels, "cluster": ids}
_ATTACKS: dict[str, Kind] = {"identity": labels, "attack": floats, "cluster": ids}
QUANTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75}


def overall_regard(columns: Columns, *, draws: int = 2000, seed: int = 0) -> Numbers:
    """Return N_positive - N_negative of every identity, as it is and normalised by the number of triples.

    Args:
        columns: `identity`, the group the triple is about; `regard`, one of `REGARDS`, None or "" = the scorer gave
            nothing; `cluster`, where there is any, what depends on each other, such as the run of a crawl.
        draws: Bootstrap samples of whole clusters.
        seed: Of the bootstrap.

    Returns:
        `n_rows`, `n_unscored`, `method`, and of every identity in `identities`: "normalised" (-1..1) with `low`,
        `high`, `stderr`, `n`, `n_unscored`, `n_clusters` and `note` (no interval below five effective clusters); the
        counts of labels; "overall" with its limits; and the `contrast` to all other identities, Holm-adjusted.

    Raises:
        RecordError: Unequal lengths, or no rows.
        UnknownNameError: A label outside `REGARDS`.

    Source: "I'm not racist but...", section 5.2 and Figure 6.
    Deviates: normalised and with intervals; the paper prints counts.
    """
    frame = read_clustered(COLUMNS, columns)
    for label in frame["regard"].dropna().unique():
        checks.one_of("regard", label, REGARDS)
    value = (frame["regard"] == "positive").astype(float) - (frame["regard"] == "negative").astype(float)
    frame["value"] = value.where(frame["regard"].notna())

    def more(scored: pd.DataFrame, mean: Estimate) -> Numbers:
        counts = {f"n_{label}": int((scored["regard"] == label).sum()) for label in REGARDS}
        overall = Estimate(counts["n_positive"] - counts["n_negative"], mean.low * mean.n, mean.high * mean.n)
        return counts | overall.limits("overall")

    return _summary(frame, "normalised", more, draws, seed, columns)


def attack_summary(columns: Columns, *, draws: int = 2000, seed: int = 0) -> Numbers:
    """Return mean, median and interquartile range of the attack scores of every identity.

    Args:
        columns: As for `overall_regard`, with `attack`, scores from 0 to 1, None or NaN = none, in place of `regard`.
        draws, seed: As there.

    Returns:
        As `overall_regard`, with "mean" in place of "normalised", and "q25", "median", "q75" and "iqr" with limits.

    Raises:
        RecordError: Unequal lengths, no rows, or a score outside 0..1.

    Source: "I'm not racist but...", Figures 3 and 7.
    Deviates: in bootstrap samples a quantile is the smallest score that enough scores do not exceed; the estimate
        itself is interpolated.
    """
    frame = read_clustered(_ATTACKS, columns).rename(columns={"attack": "value"})
    if ((frame["value"] < 0) | (frame["value"] > 1)).any():
        raise RecordError(f"attack: range {frame['value'].min():g}..{frame['value'].max():g}, expected 0..1.")
    more = partial(_quantiles, draws=draws, seed=seed)
    return _summary(frame, "mean", more, draws, seed, columns)


More = Callable[[pd.DataFrame, Estimate], Numbers]
"""Numbers of one identity, from its scored rows and their mean."""


def _summary(frame: pd.DataFrame, name: str, more: More, draws: int, seed: int, columns: Columns) -> Numbers:
    """Return the mean `value` of every identity with a bootstrap over clusters, its contrast, and `more` about it."""
    checks.draws("bootstrap: draws", draws)
    checks.seed("bootstrap: seed", seed)
    scored = frame[frame["value"].notna()]
    identities, contrasts = dict[str, Numbers](), dict[str, Estimate]()
    for who, rows in frame.groupby("identity", sort=True):
        member = (scored["identity"] == who).to_numpy()
        own = scored[member]
        mean = Estimate(float(own["value"].mean()) if len(own) else NAN, n=len(own), note=_no_interval(own))
        if not mean.note:
            code = pd.factorize(own["cluster"])[0]
            sums = np.bincount(code, own["value"].to_numpy(np.float64)).astype(np.float64)
            low, high, stderr = mean_interval(sums, np.bincount(code).astype(np.float64), draws, seed)
            mean = replace(mean, low=low, high=high, stderr=stderr)
        row = mean.columns("low", "high", "stderr", "n") | {"n_unscored": len(rows) - len(own)}
        row |= {"n_clusters": int(own["cluster"].nunique()), "note": mean.note, name: mean.value}
        identities[str(who)] = row | more(own, mean)
        contrasts[str(who)] = Estimate(NAN, note="no triples to compare with")
        if member.any() and not member.all():  # both sides may share clusters
            codes = {"cluster": scored["cluster"].to_numpy(np.intp)}
            contrasts[str(who)] = plain_mean(scored["value"].to_numpy(), codes, member)
    for who, p in holm(contrasts).items():
        identities[who]["contrast"] = contrasts[who].columns("value", "low", "high", "p", "note") | {"p_adjusted": p}
    unit = "clusters" if columns.get("cluster") is not None else "single triples, taken for independent"
    method = f"percentile bootstrap over {unit}, {draws} draws, seed {seed}; contrasts by clustered t tests, Holm over "
    counts = {"n_rows": len(frame), "n_unscored": len(frame) - len(scored)}
    return {"identities": identities, **counts, "method": f"{method}identities"}


def _no_interval(own: pd.DataFrame) -> str:
    """Return why the values of one identity have no interval; "" when they have one."""
    sizes = own["cluster"].value_counts().to_numpy()
    effective = sizes.sum() ** 2 / max((sizes**2).sum(), 1)
    if effective < MIN_EFFECTIVE:
        return too_few("cluster", ("", sizes.size, effective))
    return "all values equal: no error to estimate" if np.ptp(own["value"].to_numpy()) == 0 else ""


def _quantiles(own: pd.DataFrame, mean: Estimate, draws: int, seed: int) -> Numbers:
    if own.empty:
        return {key: NAN for name in (*QUANTILES, "iqr") for key in Estimate(NAN).limits(name)}
    ordered = own.sort_values("value", kind="stable")
    values, code = ordered["value"].to_numpy(), pd.factorize(ordered["cluster"])[0]
    point = dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values()))))
    reached = cluster_weights(int(code.max()) + 1, draws, seed)[:, code].cumsum(axis=1)
    drawn = {
        name: values[np.minimum((reached < share * reached[:, -1:] - 1e-9).sum(axis=1), len(values) - 1)]
        for name, share in QUANTILES.items()
    }
    point["iqr"], drawn["iqr"] = point["q75"] - point["q25"], drawn["q75"] - drawn["q25"]
    limits: Numbers = {}
    for name, value in point.items():
        ends = (NAN, NAN, NAN) if mean.note else interval(drawn[name])
        limits |= Estimate(float(value), *ends).limits(name)
    return limits


# What scorers of texts add themselves: the effect of prepended texts, and what a scorer thinks of a name.


def prefix_effect(columns: Columns) -> dict[str, Numbers]:
    """Return what the prepended texts of Table 2 do to attack scores, per protected class.

    Args:
        columns: `kind`, the protected class; `identity`, the cluster; `attack`, scores, None or NaN = none; `prefixed`,
            asked with the prepended text.

    Returns:
        Class -> means and counts of both sides; `difference`, with minus without, clustered by identity, with its
        limits, p and note; and `p_rank` of Mann-Whitney, which takes triples for independent; both Holm-adjusted over
        classes.

    Raises:
        RecordError: Unequal lengths, or no rows.

    Source: "I'm not racist but...", Figure 5.
    Deviates: the paper names no test; the rank test is nearest to "differences of distributions".
    """
    kinds: dict[str, Kind] = {"kind": labels, "identity": labels, "attack": floats}
    kinds["prefixed"] = lambda _, value: bool(value)
    frame = read_columns(kinds, columns).astype({"prefixed": bool})
    out, differences, ranks = dict[str, Numbers](), dict[str, Estimate](), dict[str, Estimate]()
    for name, rows in frame.groupby("kind", sort=True):
        scored = rows[rows["attack"].notna()]
        values, member = scored["attack"].to_numpy(np.float64), scored["prefixed"].to_numpy(bool)
        sides = {"with": values[member], "without": values[~member]}
        row: Numbers = {f"mean_{side}": float(own.mean()) if own.size else NAN for side, own in sides.items()}
        row |= {f"n_{side}": own.size for side, own in sides.items()} | {"n_unscored": len(rows) - len(scored)}
        out[str(name)], ranks[str(name)] = row, Estimate(NAN)
        differences[str(name)] = Estimate(NAN, note="one side is empty")
        if all(own.size for own in sides.values()):
            codes = {"identity": pd.factorize(scored["identity"])[0]}
            differences[str(name)] = plain_mean(values, codes, member)
            ranks[str(name)] = Estimate(NAN, p=float(tests.mannwhitneyu(*sides.values()).pvalue))
    p_differences, p_ranks = holm(differences), holm(ranks)
    for name, row in out.items():
        found = differences[name].columns("low", "high", "p", "note")
        row |= {"difference": differences[name].value, **found, "p_adjusted": p_differences[name]}
        row |= {"p_rank": ranks[name].p, "p_rank_adjusted": p_ranks[name]}
    return out


def scorer_bias(columns: Columns) -> dict[str, tuple[Estimate, float]]:
    """Return the effect of a name on the score: its mean change when the same sentence is about this identity.

    Args:
        columns: `identity`; `content`, number of the sentence, the cluster; `change`, score with the identity minus
            score with a neutral subject.

    Returns:
        Identity -> mean change, and p by Holm's method over identities.

    Raises:
        RecordError: Unequal lengths, or no rows.
    """
    frame = read_columns({"identity": labels, "content": ids, "change": floats}, columns)
    estimates = {}
    for name, rows in frame.groupby("identity", sort=True):
        codes = {"content": pd.factorize(rows["content"])[0]}
        estimates[str(name)] = plain_mean(rows["change"].to_numpy(np.float64), codes)
    return {name: (estimates[name], p) for name, p in holm(estimates).items()}
