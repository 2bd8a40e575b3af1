"""Overgeneralisation: regard and attack scores of the triples about each group, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats as tests

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.reader import (
    Id,
    Kind,
    check_lengths,
    floats,
    ids,
    labels,
    optional_labels,
    read_clustered,
    read_columns,
)
from seesaw_cf.stats import cluster_weights, clustered_mean, interval
from seesaw_cf.stats.bootstrap import Floats, mean_interval
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, too_few
from seesaw_cf.stats.multiple import Adjusted, adjusted

NAN = float("nan")
Numbers = dict[str, Any]
"""What was measured: name -> plain value, or numbers of a part."""
REGARDS = ("positive", "negative", "neutral", "other")
_KINDS: dict[str, Kind] = {"identity": labels, "regard": optional_labels, "attack": floats}
QUANTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75}


def overall_regard(
    identity: Sequence[str],
    regard: Sequence[str | None],
    cluster: Sequence[Id] | None = None,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Numbers:
    """Return N_positive - N_negative of every identity, as it is and normalised by the number of triples.

    Args:
        identity: (n,) the group the triple is about.
        regard: (n,) one of `REGARDS`; None or "" = the scorer gave nothing.
        cluster: (n,) what depends on each other, such as the run of a crawl; None = every triple alone.
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
    frame = read_clustered(_KINDS, {"identity": identity, "regard": regard}, cluster)
    scored = frame["regard"].notna()
    for label in frame.loc[scored, "regard"].unique():
        checks.one_of("regard", label, REGARDS)
    frame["value"] = (frame["regard"] == "positive").astype(float) - (frame["regard"] == "negative").astype(float)
    frame.loc[~scored, "value"] = np.nan
    means = _means(frame, draws, seed)
    counts = {
        str(name): {f"n_{label}": int((rows["regard"] == label).sum()) for label in REGARDS}
        for name, rows in frame.groupby("identity", sort=True)
    }
    more = {}
    for name, mean in means.items():
        value = counts[name]["n_positive"] - counts[name]["n_negative"]
        more[name] = {"overall": Estimate(value, mean.low * mean.n, mean.high * mean.n)}
    return _result(frame, means, "normalised", counts, more, _method(draws, seed, cluster is not None))


def attack_summary(
    identity: Sequence[str],
    attack: Sequence[float | None],
    cluster: Sequence[Id] | None = None,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Numbers:
    """Return mean, median and interquartile range of the attack scores of every identity.

    Args:
        identity, cluster, draws, seed: As for `overall_regard`.
        attack: (n,) scores from 0 to 1; None or NaN = none.

    Returns:
        As `overall_regard`, with "mean" in place of "normalised", and "q25", "median", "q75" and "iqr" with limits.

    Raises:
        RecordError: Unequal lengths, no rows, or a score outside 0..1.

    Source: "I'm not racist but...", Figures 3 and 7.
    Deviates: in bootstrap samples a quantile is the smallest score that enough scores do not exceed; the estimate
        itself is interpolated.
    """
    frame = read_clustered(_KINDS, {"identity": identity, "attack": attack}, cluster)
    frame["value"] = frame["attack"]
    if ((frame["value"] < 0) | (frame["value"] > 1)).any():
        raise RecordError(f"attack: range {frame['value'].min():g}..{frame['value'].max():g}, expected 0..1.")
    scored = frame[frame["value"].notna()]
    means = _means(frame, draws, seed)
    more = {name: _quantiles(scored[scored["identity"] == name], draws, seed) for name in means}
    return _result(frame, means, "mean", {}, more, _method(draws, seed, cluster is not None))


def _means(frame: pd.DataFrame, draws: int, seed: int) -> dict[str, Estimate]:
    """Return identity -> mean of its values, with a bootstrap over clusters."""
    checks.draws("bootstrap: draws", draws)
    checks.seed("bootstrap: seed", seed)
    scored = frame[frame["value"].notna()]
    means = {}
    for name in sorted(frame["identity"].unique()):
        own = scored[scored["identity"] == name]
        note = _no_interval(own)
        low, high, stderr = (NAN,) * 3 if note else _mean_interval(own, draws, seed)
        value = float(own["value"].mean()) if len(own) else NAN
        clusters = {"cluster": int(own["cluster"].nunique())}
        means[name] = Estimate(value, low, high, stderr, n=len(own), clusters=clusters, note=note)
    return means


def _no_interval(own: pd.DataFrame) -> str:
    """Return why the values of one identity have no interval; "" when they have one."""
    sizes = own["cluster"].value_counts().to_numpy()
    effective = sizes.sum() ** 2 / max((sizes**2).sum(), 1)
    if effective < MIN_EFFECTIVE:
        return too_few({"cluster": [("", sizes.size, effective)]})
    return "all values equal: no error to estimate" if np.ptp(own["value"].to_numpy()) == 0 else ""


def _mean_interval(own: pd.DataFrame, draws: int, seed: int) -> tuple[float, float, float]:
    code = pd.factorize(own["cluster"])[0]
    sums = np.bincount(code, own["value"].to_numpy(np.float64)).astype(np.float64)
    return mean_interval(sums, np.bincount(code).astype(np.float64), draws, seed)


def _contrast(scored: pd.DataFrame, member: NDArray[np.bool_]) -> Estimate:
    """Contrast the identity with all other identities, with clusters that both may share."""
    if not member.any() or member.all():
        return Estimate(NAN, note="no triples to compare with")
    parts = [part / part.sum() for part in (member.astype(np.float64), (~member).astype(np.float64))]
    codes = scored["cluster"].to_numpy().astype(np.intp)
    return clustered_mean(scored["value"].to_numpy(), parts, {"cluster": codes})


def _quantiles(own: pd.DataFrame, draws: int, seed: int) -> dict[str, Estimate]:
    if own.empty:
        return {name: Estimate(NAN) for name in (*QUANTILES, "iqr")}
    ordered = own.sort_values("value", kind="stable")
    values, code = ordered["value"].to_numpy(), pd.factorize(ordered["cluster"])[0]
    point = dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values()))))
    reached = cluster_weights(int(code.max()) + 1, draws, seed)[:, code].cumsum(axis=1)
    drawn = {
        name: values[np.minimum((reached < share * reached[:, -1:] - 1e-9).sum(axis=1), len(values) - 1)]
        for name, share in QUANTILES.items()
    }
    point["iqr"], drawn["iqr"] = point["q75"] - point["q25"], drawn["q75"] - drawn["q25"]
    ends = {name: (NAN, NAN, NAN) if _no_interval(own) else interval(drawn[name]) for name in point}
    return {name: Estimate(float(value), *ends[name]) for name, value in point.items()}


def _method(draws: int, seed: int, clustered: bool) -> str:
    unit = "clusters" if clustered else "single triples, taken for independent"
    return (
        f"percentile bootstrap over {unit}, {draws} draws, seed {seed}; contrasts by clustered t tests, Holm over "
        "identities"
    )


def _result(
    frame: pd.DataFrame,
    means: Mapping[str, Estimate],
    name: str,
    counts: Mapping[str, Mapping[str, int]],
    more: Mapping[str, Mapping[str, Estimate]],
    method: str,
) -> Numbers:
    scored = frame[frame["value"].notna()]
    contrasts = adjusted({own: _contrast(scored, (scored["identity"] == own).to_numpy()) for own in means})
    rows = frame["identity"].value_counts()
    identities = {}
    for own, mean in means.items():
        row: Numbers = mean.columns("low", "high", "stderr", "n")
        row |= {"n_unscored": int(rows[own]) - mean.n, "n_clusters": mean.clusters["cluster"], "note": mean.note}
        row |= {"contrast": contrasts[own].columns("value", "low", "high", "p", "note"), **counts.get(own, {})}
        row[name] = mean.value
        for key, estimate in more[own].items():
            row |= estimate.limits(key)
        identities[own] = row
    unscored = int(frame["value"].isna().sum())
    return {"identities": identities, "n_rows": len(frame), "n_unscored": unscored, "method": method}


# What scorers of texts add themselves: the effect of prepended texts, and what a scorer thinks of a name.


_SCORERS_KINDS = {"kind": labels, "identity": labels, "attack": floats, "content": ids, "change": floats}


def prefix_effect(
    kind: Sequence[str], identity: Sequence[str], attack: Sequence[float | None], prefixed: Sequence[bool]
) -> dict[str, Numbers]:
    """Return what the prepended texts of Table 2 do to attack scores, per protected class.

    Args:
        kind: (n,) protected class.
        identity: (n,) identity, the cluster.
        attack: (n,) scores; None or NaN = none.
        prefixed: (n,) asked with the prepended text.

    Returns:
        Class -> means and counts of both sides; `difference`, with minus without, clustered by identity, with its
        limits, p and note; and `p_rank` of Mann-Whitney, which takes triples for independent; both Holm-adjusted over
        classes.

    Raises:
        RecordError: Unequal lengths, or no rows.

    Source: "I'm not racist but...", Figure 5.
    Deviates: the paper names no test; the rank test is nearest to "differences of distributions".
    """
    check_lengths({"kind": kind, "prefixed": prefixed})
    frame = read_columns(_SCORERS_KINDS, {"kind": kind, "identity": identity, "attack": attack})
    frame = frame.rename(columns={"attack": "value"}).assign(prefixed=np.array(prefixed, dtype=bool))
    kinds = {str(name): rows for name, rows in frame.groupby("kind", sort=True)}
    compared = {name: _compared(rows[rows["value"].notna()]) for name, rows in kinds.items()}
    differences = adjusted({name: difference for name, (difference, _) in compared.items()})
    ranks = adjusted({name: rank for name, (_, rank) in compared.items()})
    out = {}
    for name, rows in kinds.items():
        with_, without = _sides(rows[rows["value"].notna()])
        difference, rank = differences[name], ranks[name]
        row: Numbers = {"mean_with": _mean(with_), "mean_without": _mean(without)}
        row |= {"n_with": with_.size, "n_without": without.size, "n_unscored": int(rows["value"].isna().sum())}
        row |= {"difference": difference.estimate.value, **difference.columns("low", "high", "p", "note")}
        out[name] = row | {"p_rank": rank.estimate.p, "p_rank_adjusted": rank.p_adjusted}
    return out


def _sides(rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return the scores with and without the prepended text."""
    with_, values = rows["prefixed"].to_numpy(bool), rows["value"].to_numpy(np.float64)
    return values[with_], values[~with_]


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else NAN


def _compared(rows: pd.DataFrame) -> tuple[Estimate, Estimate]:
    """Return the difference of the two sides, and its rank test."""
    sides = _sides(rows)
    if not all(side.size for side in sides):
        nothing = Estimate(NAN, note="one side is empty")
        return nothing, nothing
    with_ = rows["prefixed"].to_numpy(bool)
    parts = [part / part.sum() for part in (with_.astype(np.float64), (~with_).astype(np.float64))]
    difference = clustered_mean(rows["value"].to_numpy(), parts, {"identity": pd.factorize(rows["identity"])[0]})
    return difference, Estimate(NAN, p=float(tests.mannwhitneyu(*sides).pvalue), n=len(rows))


def scorer_bias(identity: Sequence[str], content: Sequence[int], change: Sequence[float]) -> dict[str, Adjusted]:
    """Return the effect of a name on the score: its mean change when the same sentence is about this identity.

    Args:
        identity: (n,) identity.
        content: (n,) number of the sentence, the cluster.
        change: (n,) score with the identity minus score with a neutral subject.

    Returns:
        Identity -> mean change, Holm-adjusted over identities.

    Raises:
        RecordError: Unequal lengths, or no rows.
    """
    frame = read_columns(_SCORERS_KINDS, {"identity": identity, "content": content, "change": change})
    estimates = {}
    for name, rows in frame.groupby("identity", sort=True):
        weights = np.full(len(rows), 1 / len(rows))
        codes = {"content": pd.factorize(rows["content"])[0]}
        estimates[str(name)] = clustered_mean(rows["change"].to_numpy(np.float64), [weights], codes)
    return adjusted(estimates)
