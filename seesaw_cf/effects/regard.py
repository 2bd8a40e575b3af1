"""Overgeneralisation: is a group spoken of well or badly, how sure is that, and what do prepended texts do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats as tests

from seesaw_cf.effects.columns import check_lengths
from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.stats import adjust, cluster_weights, clustered_mean, interval, ratio_draws
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import plain

__all__ = ["LABELS", "attack_summary", "overall_regard", "prefix_effect", "scorer_bias"]

LABELS = ("positive", "negative", "neutral", "other")
QUANTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75}


def overall_regard(
    identity: Sequence[str],
    regard: Sequence[str | None],
    cluster: Sequence[Any] | None = None,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """N_positive - N_negative of every identity, and normalised by the number of triples.

    Args:
        identity: (n,) whom the triple is about.
        regard: (n,) one of `LABELS`; None = the scorer gave nothing.
        cluster: (n,) what depends on each other, such as the run of a crawl; None = every triple alone.
        draws: Bootstrap samples of whole clusters.
        seed: Of the bootstrap.

    Returns:
        `identities[name]`: `n`, `n_unscored`, `n_clusters`, `note` (why there is no interval), `n_positive`,
        `n_negative`, `n_neutral`, `n_other`, `overall` (with `overall_low`, `overall_high`), `normalised` in -1..1
        (with `low`, `high`), `contrast`: normalised minus that of all other identities, with `low`, `high`, `p`,
        `p_adjusted` (Holm over identities), `note`; and `n_rows`, `n_unscored`, `method`. None = cannot be had.

    Raises:
        RecordError: Unequal lengths, or no rows.
        UnknownNameError: A label outside `LABELS`.

    Source: "I'm not racist but...", section 5.2 and Figure 6.
    Deviates: normalised and with intervals; the paper prints counts.
    """
    given = {"identity": identity, "regard": regard}
    frame = _frame(given, cluster)
    known = frame["regard"].notna()
    for label in frame.loc[known, "regard"].unique():
        if label not in LABELS:
            raise unknown_name("regard", str(label), LABELS)
    frame["value"] = (frame["regard"] == "positive").astype(float) - (frame["regard"] == "negative").astype(float)
    frame.loc[~known, "value"] = np.nan
    found = _by_identity(frame, draws, seed)
    for name, row in found.items():
        labels = frame.loc[frame["identity"] == name, "regard"]
        row |= {f"n_{label}": int((labels == label).sum()) for label in LABELS}
        row["normalised"] = row.pop("mean")
        row |= {"overall": row["n_positive"] - row["n_negative"]}
        row |= {f"overall_{end}": row[end] * row["n"] for end in ("low", "high")}
    return _result(frame, found, draws, seed, cluster is not None)


def attack_summary(
    identity: Sequence[str],
    attack: Sequence[float | None],
    cluster: Sequence[Any] | None = None,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """Mean, median and interquartile range of the attack scores of every identity.

    Args:
        identity, cluster, draws, seed: As for `overall_regard`.
        attack: (n,) scores from 0 to 1; None or NaN = none.

    Returns:
        As `overall_regard`, with `mean` (`low`, `high`), and `median`, `q25`, `q75`, `iqr`, each with `_low`, `_high`.

    Raises:
        RecordError: Unequal lengths, no rows, or a score outside 0..1.

    Source: "I'm not racist but...", Figures 3 and 7.
    Deviates: in bootstrap samples a quantile is the smallest score that enough scores do not exceed; the estimate
        itself is interpolated.
    """
    frame = _frame({"identity": identity, "attack": attack}, cluster)
    frame["value"] = frame["attack"].astype(np.float64)
    if ((frame["value"] < 0) | (frame["value"] > 1)).any():
        raise RecordError(f"attack: range {frame['value'].min():g}..{frame['value'].max():g}, expected 0..1.")
    found = _by_identity(frame, draws, seed)
    for name, row in found.items():
        row |= _quantiles(frame[(frame["identity"] == name) & frame["value"].notna()], draws, seed)
    return _result(frame, found, draws, seed, cluster is not None)


def _frame(columns: dict[str, Sequence[Any]], cluster: Sequence[Any] | None) -> pd.DataFrame:
    columns = columns | ({} if cluster is None else {"cluster": cluster})
    n = check_lengths(columns)
    frame = pd.DataFrame({name: list(column) for name, column in columns.items()})
    frame["cluster"] = pd.factorize(frame["cluster"])[0] if cluster is not None else np.arange(n)
    frame["identity"] = frame["identity"].astype(str)
    return frame


def _by_identity(frame: pd.DataFrame, draws: int, seed: int) -> dict[str, dict[str, Any]]:
    scored = frame[frame["value"].notna()]
    found: dict[str, dict[str, Any]] = {}
    for name in sorted(frame["identity"].unique()):
        own = scored[scored["identity"] == name]
        missing = int((frame["identity"] == name).sum()) - len(own)
        note = _no_interval(own)
        low, high, stderr = (float("nan"),) * 3 if note else interval(_mean_draws(own, draws, seed))
        found[name] = {
            "mean": float(own["value"].mean()) if len(own) else float("nan"),
            "low": low,
            "high": high,
            "stderr": stderr,
            "n": len(own),
            "n_unscored": missing,
            "n_clusters": int(own["cluster"].nunique()),
            "note": note,
            "contrast": _contrast(scored, (scored["identity"] == name).to_numpy()),
        }
    adjusted = adjust([row["contrast"]["p"] for row in found.values()])
    for row, p in zip(found.values(), adjusted):
        row["contrast"]["p_adjusted"] = float(p)
    return found


def _no_interval(own: pd.DataFrame) -> str:
    """Why the values of one identity have no interval; "" when they have one."""
    if own["cluster"].nunique() < 2:
        return f"{own['cluster'].nunique()} clusters: no error to estimate"
    return "all values equal: no error to estimate" if np.ptp(own["value"].to_numpy()) == 0 else ""


def _mean_draws(own: pd.DataFrame, draws: int, seed: int) -> Floats:
    code = pd.factorize(own["cluster"])[0]
    sums: Floats = np.bincount(code, own["value"].to_numpy(np.float64)).astype(np.float64)
    ones: Floats = np.bincount(code).astype(np.float64)
    return ratio_draws(cluster_weights(len(sums), draws, seed), sums[:, None], ones[:, None])[:, 0]


def _contrast(scored: pd.DataFrame, member: NDArray[np.bool_]) -> dict[str, Any]:
    """The identity against all others, with clusters that both may share."""
    if not member.any() or member.all():
        nan = float("nan")
        return {"value": nan, "low": nan, "high": nan, "p": nan, "note": "no triples to compare with"}
    parts = [part / part.sum() for part in (member.astype(np.float64), (~member).astype(np.float64))]
    codes = scored["cluster"].to_numpy().astype(np.intp)
    found = clustered_mean(scored["value"].to_numpy(), parts, {"cluster": codes})
    return {"value": found.value, "low": found.low, "high": found.high, "p": found.p, "note": found.note}


def _quantiles(own: pd.DataFrame, draws: int, seed: int) -> dict[str, float]:
    names = [*QUANTILES, "iqr"]
    if own.empty:
        return {name + end: float("nan") for name in names for end in ("", "_low", "_high")}
    ordered = own.sort_values("value", kind="stable")
    values, code = ordered["value"].to_numpy(), pd.factorize(ordered["cluster"])[0]
    point = dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values()))))
    reached = cluster_weights(int(code.max()) + 1, draws, seed)[:, code].cumsum(axis=1)
    drawn = {
        name: values[np.minimum((reached < share * reached[:, -1:] - 1e-9).sum(axis=1), len(values) - 1)]
        for name, share in QUANTILES.items()
    }
    point["iqr"], drawn["iqr"] = point["q75"] - point["q25"], drawn["q75"] - drawn["q25"]
    out: dict[str, float] = {}
    for name in names:
        low, high, _ = (float("nan"),) * 3 if _no_interval(own) else interval(drawn[name])
        out |= {name: float(point[name]), f"{name}_low": low, f"{name}_high": high}
    return out


def _result(
    frame: pd.DataFrame, found: dict[str, dict[str, Any]], draws: int, seed: int, clustered: bool
) -> dict[str, Any]:
    unit = "clusters" if clustered else "single triples, taken for independent"
    return dict(
        plain(
            {
                "identities": found,
                "n_rows": len(frame),
                "n_unscored": int(frame["value"].isna().sum()),
                "method": f"percentile bootstrap over {unit}, {draws} draws, seed {seed}; contrasts by clustered t "
                "tests, Holm over identities",
            }
        )
    )


def prefix_effect(
    kind: Sequence[str], identity: Sequence[str], attack: Sequence[float | None], prefixed: Sequence[bool]
) -> dict[str, Any]:
    """What the prepended texts of Table 2 do to attack scores, per protected class.

    Args:
        kind: (n,) protected class.
        identity: (n,) identity, the cluster.
        attack: (n,) scores; None or NaN = none.
        prefixed: (n,) asked with the prepended text.

    Returns:
        Class -> `mean_with`, `mean_without`, `n_with`, `n_without`, `n_unscored`, `difference` with `low`, `high`, `p`
        (clustered by identity), `p_adjusted` (Holm over classes), `p_rank`, `p_rank_adjusted` (Mann-Whitney, takes
        triples for independent), `note`.

    Raises:
        RecordError: Unequal lengths, or no rows.

    Source: "I'm not racist but...", Figure 5.
    Deviates: the paper names no test; the rank test is nearest to "differences of distributions".
    """
    frame = pd.DataFrame({"kind": list(kind), "identity": list(identity), "prefixed": list(prefixed)})
    check_lengths({"kind": kind, "identity": identity, "attack": attack, "prefixed": prefixed})
    frame["value"] = pd.Series(list(attack), dtype=np.float64)
    out: dict[str, Any] = {}
    for name, every in frame.groupby("kind", sort=True):
        rows = every[every["value"].notna()]
        with_ = rows["prefixed"].to_numpy(bool)
        groups = [rows["value"].to_numpy()[with_], rows["value"].to_numpy()[~with_]]
        means = [float(g.mean()) if g.size else float("nan") for g in groups]
        row: dict[str, Any] = {"mean_with": means[0], "mean_without": means[1], "n_with": len(groups[0])}
        row |= {"n_without": len(groups[1]), "n_unscored": len(every) - len(rows)}
        out[str(name)] = row | _compared(rows, with_, groups)
    for p, adjusted in (("p", "p_adjusted"), ("p_rank", "p_rank_adjusted")):
        for row, value in zip(out.values(), adjust([row[p] for row in out.values()])):
            row[adjusted] = float(value)
    return dict(plain(out))


def _compared(rows: pd.DataFrame, with_: NDArray[np.bool_], groups: list[Floats]) -> dict[str, Any]:
    nan = float("nan")
    if not all(group.size for group in groups):
        return {"difference": nan, "low": nan, "high": nan, "p": nan, "p_rank": nan, "note": "one side is empty"}
    parts = [part / part.sum() for part in (with_.astype(np.float64), (~with_).astype(np.float64))]
    found = clustered_mean(rows["value"].to_numpy(), parts, {"identity": pd.factorize(rows["identity"])[0]})
    rank = float(tests.mannwhitneyu(groups[0], groups[1]).pvalue)
    row = {"difference": found.value, "low": found.low, "high": found.high, "p": found.p}
    return row | {"p_rank": rank, "note": found.note}


def scorer_bias(identity: Sequence[str], content: Sequence[int], change: Sequence[float]) -> dict[str, Any]:
    """What a scorer thinks of a name: mean change of its score when the same sentence is said of this identity.

    Args:
        identity: (n,) identity.
        content: (n,) number of the sentence, the cluster.
        change: (n,) score with the identity minus score with a neutral subject.

    Returns:
        Identity -> `value`, `low`, `high`, `p`, `p_adjusted` (Holm over identities), `n`, `note`.

    Raises:
        RecordError: Unequal lengths, or no rows.
    """
    check_lengths({"identity": identity, "content": content, "change": change})
    frame = pd.DataFrame({"identity": list(identity), "content": list(content), "change": list(change)})
    out: dict[str, Any] = {}
    for name, rows in frame.groupby("identity", sort=True):
        weights = np.full(len(rows), 1 / len(rows))
        codes = {"content": pd.factorize(rows["content"])[0]}
        found = clustered_mean(rows["change"].to_numpy(np.float64), [weights], codes)
        out[str(name)] = {"value": found.value, "low": found.low, "high": found.high, "p": found.p}
        out[str(name)] |= {"n": found.n, "note": found.note}
    for row, p in zip(out.values(), adjust([row["p"] for row in out.values()])):
        row["p_adjusted"] = float(p)
    return dict(plain(out))
