"""Tests between editors and correlations of measures, corrected for their number and for rows that share a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.report.frame import Row
from seesaw_cf.stats import cluster_weights
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.simple import case_estimate
from seesaw_cf.texts.report.rows import BASELINE, adjusted, blocks, text_row

_NAN = float("nan")


def lower_tests(what: str, values: pd.DataFrame) -> Iterator[Row]:
    """Yield whether ratings are lower than the unedited model's: one-sided signed ranks over case means.

    `value` is the difference of means of case means with its interval, `p` that of "lower", corrected within a block;
    `p_clustered` is the interval's own, two-sided; `n_equal` of the cases in both are equal.

    Args:
        what: Of which number.
        values: editor, case_id, asked, value, and columns of blocks.

    Source: LEME section 5, Table 1 (one-sided Wilcoxon signed rank).
    Deviates: one value per case, so that samples of a case are not counted as independent; corrected.
    """
    for key, block in blocks(values[values["value"].notna()]):
        yield from adjusted(
            _signed_rank(what, part, {**key, "asked": asked, "editor": editor})
            for asked, part in block.groupby("asked", observed=True)
            for editor in sorted(set(part["editor"]) - {BASELINE})
        )


def _signed_rank(what: str, part: pd.DataFrame, names: Row) -> Row:
    pair = [names["editor"], BASELINE]
    cases = part.pivot_table(index="case_id", columns="editor", values="value", aggfunc="mean")
    cases = cases.reindex(columns=pair).dropna()
    shared = part[part["case_id"].isin(cases.index) & part["editor"].isin(pair)]
    change = case_estimate(
        shared["value"], shared["case_id"], *((shared["editor"] == name).to_numpy() for name in pair)
    )
    differences = (cases[pair[0]] - cases[BASELINE]).to_numpy()
    moved = differences[differences != 0]
    p = float(stats.wilcoxon(moved, alternative="less").pvalue) if moved.size else _NAN
    more = {"p": p, "p_clustered": change.p, "n_edits": len(cases), "n_equal": len(cases) - moved.size}
    note = change.note if moved.size else "no case differs"
    return text_row(what, change, control=BASELINE, **names, **more, note=note)


def label_tests(marked: pd.DataFrame, *, draws: int = 1000) -> Iterator[Row]:
    """Yield whether two editors' texts differ in shares of labels: chi-square, for every pair and kind of claim.

    `p` is that of exchanging editors within cases, corrected within a block; `p_paper` takes every claim for
    independent.

    Args:
        marked: See `seesaw_cf.texts.report.leme.labelled`.
        draws: Random exchanges of the two editors' labels within whole cases.

    Source: LEME section 5.1 (chi-square test of independence).
    Deviates: claims of one case stand and fall together, so p comes from exchanging editors case by case.
    """
    for key, block in blocks(marked[marked["label"].notna()]):
        yield from adjusted(
            _chi_square(part, (one, two), draws, {**key, "asked": kind, "editor": one, "control": two})
            for kind, part in block.groupby("asked")
            for one, two in combinations(sorted(set(part["editor"])), 2)
        )


def _chi_square(part: pd.DataFrame, pair: Sequence[str], draws: int, names: Row) -> Row:
    counts = _counts(part, pair)
    names |= {"n": int(counts.sum()), "n_edits": len(counts), "df": 0, "scale": "chi-square", "p_paper": _NAN}
    total = counts.sum(axis=0)
    used = total.sum(axis=0) > 0
    if len(counts) == 0 or used.sum() < 2 or (total.sum(axis=1) == 0).any():
        note = "fewer than two labels, or no case in common"
        return text_row("labels_differ", Estimate(_NAN, note=note), **names)
    counts = counts[:, :, used]
    chi2, p_paper, df, _ = stats.chi2_contingency(counts.sum(axis=0), correction=False)
    swap = np.random.default_rng(0).random((draws, len(counts))) < 0.5
    first = np.where(swap[:, :, None], counts[:, 1], counts[:, 0]).sum(axis=1)
    drawn = pearson_statistics(first, counts.sum(axis=(0, 1)) - first)
    p = (1 + int((drawn >= chi2 - 1e-9).sum())) / (1 + draws)
    found = Estimate(float(chi2), p=p)
    return text_row("labels_differ", found, **names | {"df": int(df), "p_paper": float(p_paper)})


def _counts(part: pd.DataFrame, pair: Sequence[str]) -> NDArray[np.int64]:
    """Count claims of the cases that both editors have: (cases, editors, labels)."""
    chosen = part[part["editor"].isin(pair)]
    chosen = chosen[chosen.groupby("case_id")["editor"].transform("nunique") == len(pair)]
    case, cases = pd.factorize(chosen["case_id"])
    out = np.zeros((len(cases), len(pair), len(LABELS)), dtype=np.int64)
    editor, label = ([names.index(name) for name in chosen[column]]
                     for names, column in ((list(pair), "editor"), (list(LABELS), "label")))  # fmt: skip
    np.add.at(out, (case, np.array(editor, np.intp), np.array(label, np.intp)), 1)
    return out


def pearson_statistics(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Pearson's chi-square statistic of many tables of two rows: N (sum of O^2 / (row x column) - 1).

    Args:
        first, second: (draws, labels) counts, one row of each table; no row or column without a count.
    """
    table = np.stack([first, second], axis=1).astype(np.float64)
    shares = table**2 / (table.sum(axis=2, keepdims=True) * table.sum(axis=1, keepdims=True))
    return np.asarray(table.sum(axis=(1, 2)) * (shares.sum(axis=(1, 2)) - 1))


def correlations(long: pd.DataFrame, short: pd.DataFrame, *, draws: int = 1000) -> Iterator[Row]:
    """Yield Spearman's correlation of every long-form with every short-form measure over (editor, case): Table 15.

    `p` takes a case's editors as one cluster and is corrected within a block; `p_paper` takes every pair for
    independent.

    Args:
        long, short: editor, case_id, asked, value; `long` with columns of blocks. Cases, not samples, are correlated.
        draws: Bootstrap samples of cases.

    Source: LEME section 5.4, Table 15.
    Deviates: all correlations are reported, not the positive significant ones; corrected for their number.
    """
    at = ["editor", "case_id"]
    wide = short[short["value"].notna()].pivot_table(index=at, columns="asked", values="value", aggfunc="mean")
    for key, block in blocks(long[long["value"].notna()]):
        own = block[block["editor"] != BASELINE]
        tall = own.pivot_table(index=at, columns="asked", values="value", aggfunc="mean", observed=True)
        yield from adjusted(
            _spearman(tall[asked], wide[other], draws, {**key, "asked": asked, "reference": other})
            for asked in tall
            for other in wide
        )


def _spearman(long: pd.Series, short: pd.Series, draws: int, names: Row) -> Row:
    pairs = pd.concat([long, short], axis=1, join="inner").dropna()
    x, y = pairs.to_numpy(np.float64).T
    case = pd.factorize(pairs.index.get_level_values("case_id"))[0]
    n_cases = int(case.max(initial=-1)) + 1
    names |= {"n": len(pairs), "n_edits": n_cases, "scale": "rho", "p_paper": _NAN}
    if len(pairs) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        note = "fewer than three pairs" if len(pairs) < 3 else "a measure has one value only"
        return text_row("correlation", Estimate(_NAN, note=note), **names)
    correlation = stats.spearmanr(x, y)
    rho, names["p_paper"] = float(correlation.statistic), float(correlation.pvalue)
    if n_cases < MIN_EFFECTIVE:
        note = f"too few cases for an interval ({n_cases})"
        return text_row("correlation", Estimate(rho, note=note), **names)
    drawn = weighted_spearman(x, y, cluster_weights(n_cases, draws, 0)[:, case])
    spread = float(np.nanstd(np.arctanh(np.clip(drawn, -1 + 1e-9, 1 - 1e-9)), ddof=1))
    centre, half = float(np.arctanh(np.clip(rho, -1 + 1e-9, 1 - 1e-9))), stats.t.ppf(0.975, n_cases - 1) * spread
    if spread <= 1e-9:
        return text_row("correlation", Estimate(rho, note="no spread between bootstrap samples"), **names)
    p = float(2 * stats.t.sf(abs(centre) / spread, n_cases - 1))
    found = Estimate(rho, float(np.tanh(centre - half)), float(np.tanh(centre + half)), p=p)
    return text_row("correlation", found, **names)


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
