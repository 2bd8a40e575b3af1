"""Tests between methods and correlations of metrics, corrected for their number and for rows that share a case."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.stats import cluster_weights
from seesaw_cf.stats.case_means import case_difference, with_adjusted
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.texts.report.values import BASELINE, blocks, labelled


def wilcoxon_tests(values: pd.DataFrame) -> pd.DataFrame:
    """Test whether a method's metric is lower than the unedited model's: one-sided signed ranks over case means.

    Args:
        values: method, case_id, metric, value, and block columns (`survey_values`).

    Returns:
        Block columns, `metric`, `method`, `difference` (mean of case means, method minus unedited) with `low` and
        `high`, `p` for "lower", `p_adjusted` (Holm within a block), `p_clustered` (the interval's own, two-sided),
        `n_cases` in both, `n_equal` of them, `note`.

    Source: LEME section 5, Table 1 (one-sided Wilcoxon signed rank).
    Deviates: one value per case, so that samples of a case are not counted as independent; corrected.
    """
    tests: list[TableRow] = []
    for key, block in blocks(values[values["value"].notna()]):
        rows = [
            key | {"metric": metric, "method": method} | _signed_rank(part, method)
            for metric, part in block.groupby("metric", observed=True)
            for method in sorted(set(part["method"]) - {BASELINE})
        ]
        tests += with_adjusted(rows)
    return pd.DataFrame(tests)


def _signed_rank(part: pd.DataFrame, method: str) -> TableRow:
    cases = part.pivot_table(index="case_id", columns="method", values="value", aggfunc="mean")
    cases = cases.reindex(columns=[method, BASELINE]).dropna()
    shared = part[part["case_id"].isin(cases.index) & part["method"].isin([method, BASELINE])]
    sides = [(shared["method"] == name).to_numpy() for name in (method, BASELINE)]
    change = case_difference(shared["value"], shared["case_id"], *sides)
    differences = (cases[method] - cases[BASELINE]).to_numpy()
    moved = differences[differences != 0]
    p = float(stats.wilcoxon(moved, alternative="less").pvalue) if moved.size else float("nan")
    note = change["note"] if moved.size else "no case differs"
    counts = {"n_cases": len(cases), "n_equal": len(cases) - moved.size, "note": note, "p_clustered": change["p"]}
    return {"difference": change["value"], "low": change["low"], "high": change["high"], "p": p} | counts


def chi_square_tests(annotations: pa.Table | pd.DataFrame, *, draws: int = 1000) -> pd.DataFrame:
    """Test whether two methods' passages differ in shares of labels, for every pair of methods and kind of claim.

    Args:
        annotations: Rows of `ANNOTATIONS`.
        draws: Random exchanges of the two methods' labels within whole cases.

    Returns:
        Block columns, `claim_kind`, `first`, `second`, `chi2`, `df`, `p_paper` (every claim independent), `p` (by
        exchanging methods within cases), `p_adjusted` (Holm within a block), `n` claims, `n_cases` in both, `note`.

    Source: LEME section 5.1 (chi-square test of independence).
    Deviates: claims of one case stand and fall together, so p comes from exchanging methods case by case.
    """
    frame = labelled(annotations)
    tests: list[TableRow] = []
    for key, block in blocks(frame[frame["label"].notna()]):
        rows = [
            key | {"claim_kind": kind, "first": first, "second": second} | _chi_square(part, first, second, draws)
            for kind, part in block.groupby("claim_kind")
            for first, second in combinations(sorted(set(part["method"])), 2)
        ]
        tests += with_adjusted(rows)
    return pd.DataFrame(tests)


def _chi_square(part: pd.DataFrame, one: str, two: str, draws: int) -> TableRow:
    counts = _counts(part, (one, two))
    rows: TableRow = {"n": int(counts.sum()), "n_cases": len(counts), "df": 0}
    total = counts.sum(axis=0)
    used = total.sum(axis=0) > 0
    nan = float("nan")
    if len(counts) == 0 or used.sum() < 2 or (total.sum(axis=1) == 0).any():
        return rows | {"chi2": nan, "p_paper": nan, "p": nan, "note": "fewer than two labels, or no case in common"}
    counts = counts[:, :, used]
    chi2, p_paper, df, _ = stats.chi2_contingency(counts.sum(axis=0), correction=False)
    swap = np.random.default_rng(0).random((draws, len(counts))) < 0.5
    straight, turned = counts[:, 0], counts[:, 1]
    first = np.where(swap[:, :, None], turned, straight).sum(axis=1)
    drawn = pearson_statistics(first, counts.sum(axis=(0, 1)) - first)
    p = (1 + int((drawn >= chi2 - 1e-9).sum())) / (1 + draws)
    return rows | {"chi2": float(chi2), "df": int(df), "p_paper": float(p_paper), "p": p, "note": ""}


def _counts(part: pd.DataFrame, methods: Sequence[str]) -> NDArray[np.int64]:
    """Count claims of the cases that both methods have: (cases, methods, labels)."""
    chosen = part[part["method"].isin(methods)]
    chosen = chosen[chosen.groupby("case_id")["method"].transform("nunique") == len(methods)]
    case, cases = pd.factorize(chosen["case_id"])
    out = np.zeros((len(cases), len(methods), len(LABELS)), dtype=np.int64)
    method = [methods.index(name) for name in chosen["method"]]
    label = [LABELS.index(name) for name in chosen["label"]]
    np.add.at(out, (case, np.array(method, dtype=np.intp), np.array(label, dtype=np.intp)), 1)
    return out


def pearson_statistics(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Pearson's chi-square statistic of many tables of two rows.

    Args:
        first, second: (draws, labels) counts, one row of each table.

    Returns:
        (draws,); a label without any count adds nothing.
    """
    table = np.stack([first, second], axis=1).astype(np.float64)
    expected = (
        table.sum(axis=2, keepdims=True) * table.sum(axis=1, keepdims=True) / table.sum(axis=(1, 2), keepdims=True)
    )
    terms = np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 0)
    return np.asarray(terms.sum(axis=(1, 2)))


def correlations(long: pd.DataFrame, short: pd.DataFrame, *, draws: int = 1000) -> pd.DataFrame:
    """Return Spearman's correlation of every long-form with every short-form metric over (method, case) (Table 15).

    Args:
        long, short: method, case_id, metric, value; `long` with block columns. Cases, not samples, are correlated.
        draws: Bootstrap samples of cases.

    Returns:
        Block columns, `long`, `short`, `rho`, `low`, `high`, `p` (a case's methods as one cluster) and `p_adjusted`
        (Holm within a block), `p_paper` (every pair independent), `n` pairs, `n_cases`, `note`.

    Source: LEME section 5.4, Table 15.
    Deviates: all correlations are reported, not the positive significant ones; corrected for their number.
    """
    at = ["method", "case_id"]
    wide = short[short["value"].notna()].pivot_table(index=at, columns="metric", values="value", aggfunc="mean")
    tests: list[TableRow] = []
    for key, block in blocks(long[long["value"].notna()]):
        block = block[block["method"] != BASELINE]
        tall = block.pivot_table(index=at, columns="metric", values="value", aggfunc="mean", observed=True)
        rows = [
            key | {"long": long, "short": short} | _spearman(tall[long], wide[short], draws)
            for long in tall.columns
            for short in wide.columns
        ]
        tests += with_adjusted(rows)
    return pd.DataFrame(tests)


def _spearman(long: pd.Series, short: pd.Series, draws: int) -> TableRow:
    pairs = pd.concat([long, short], axis=1, join="inner").dropna()
    x, y = pairs.to_numpy(np.float64).T
    case = pd.factorize(pairs.index.get_level_values("case_id"))[0]
    n_cases = int(case.max(initial=-1)) + 1
    nan = float("nan")
    out: TableRow = dict.fromkeys(("rho", "low", "high", "p", "p_paper"), nan)
    out |= {"n": len(pairs), "n_cases": n_cases, "note": ""}
    if len(pairs) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return out | {"note": "fewer than three pairs" if len(pairs) < 3 else "a metric has one value only"}
    correlation = stats.spearmanr(x, y)
    rho = float(correlation.statistic)
    out |= {"rho": rho, "p_paper": float(correlation.pvalue)}
    if n_cases < MIN_EFFECTIVE:
        return out | {"note": f"too few cases for an interval ({n_cases})"}
    drawn = weighted_spearman(x, y, cluster_weights(n_cases, draws, 0)[:, case])
    spread = float(np.nanstd(np.arctanh(np.clip(drawn, -1 + 1e-9, 1 - 1e-9)), ddof=1))
    centre, half = float(np.arctanh(np.clip(rho, -1 + 1e-9, 1 - 1e-9))), stats.t.ppf(0.975, n_cases - 1) * spread
    if spread <= 1e-9:
        return out | {"note": "no spread between bootstrap samples"}
    p = float(2 * stats.t.sf(abs(centre) / spread, n_cases - 1))
    return out | {"low": float(np.tanh(centre - half)), "high": float(np.tanh(centre + half)), "p": p}


def weighted_spearman(
    x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Spearman's rank correlation of pairs that count several times, such as those of a bootstrap sample.

    Args:
        x, y: (n,) values.
        weights: (draws, n), how often each pair counts.

    Returns:
        (draws,), NaN where x or y has one value only.
    """
    ranks = [_ranks(values, weights) for values in (x, y)]
    total = weights.sum(axis=1, keepdims=True)
    one, two = (rank - (weights * rank).sum(axis=1, keepdims=True) / total for rank in ranks)
    spread = (weights * one**2).sum(axis=1) * (weights * two**2).sum(axis=1)
    covariance = (weights * one * two).sum(axis=1)
    enough = spread > 1e-9
    return np.asarray(np.divide(covariance, np.sqrt(spread), out=np.full(len(weights), np.nan), where=enough))


def _ranks(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean rank of every row among rows that count several times; (draws, rows)."""
    group = np.unique(values, return_inverse=True)[1]
    mass = weights @ np.eye(int(group.max()) + 1)[group]
    return np.asarray((mass.cumsum(axis=1) - mass / 2 + 0.5)[:, group])
