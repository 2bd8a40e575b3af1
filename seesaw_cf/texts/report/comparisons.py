"""Tests between editors, correlations of measures, kinds of edits: corrected for their number, clustered by case."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.report.frame import Row
from seesaw_cf.stats.bootstrap import cluster_weights
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.simple import case_estimate, proportion
from seesaw_cf.texts.report.rows import BASELINE, BLOCKS, adjusted, blocks, text_row

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
    change, shared = paired(part, names["editor"])
    cases = shared.pivot_table(index="case_id", columns="editor", values="value")
    differences = cases.reindex(columns=[BASELINE, names["editor"]]).diff(axis=1).iloc[:, 1].to_numpy()
    moved = differences[differences != 0]
    p = float(stats.wilcoxon(moved, alternative="less").pvalue) if moved.size else _NAN
    more = {"p": p, "p_clustered": change.p, "n_edits": len(cases), "n_equal": len(cases) - moved.size}
    note = change.note if moved.size else "no case differs"
    return text_row(what, change, control=BASELINE, **names, **more, note=note)


def paired(values: pd.DataFrame, editor: str) -> tuple[Estimate, pd.DataFrame]:
    """Return the mean of case means after minus before an edit, and the rows of the cases that have both."""
    both = values[values["editor"].isin([editor, BASELINE])].dropna(subset="value")
    both = both[both.groupby("case_id")["editor"].transform("nunique") == 2]
    after = (both["editor"] == editor).to_numpy()
    return case_estimate(both["value"], both["case_id"], after, ~after), both


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
    counts = chosen.groupby(["case_id", "editor", "label"]).size().unstack(["editor", "label"], fill_value=0)
    columns = pd.MultiIndex.from_product([pair, LABELS])
    return counts.reindex(columns=columns, fill_value=0).to_numpy(np.int64).reshape(-1, len(pair), len(LABELS))


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
    found, names["p_paper"] = Estimate(float(correlation.statistic)), float(correlation.pvalue)
    drawn = weighted_spearman(x, y, cluster_weights(n_cases, draws, 0)[:, case])
    centre, *drawn = np.arctanh(np.clip([found.value, *drawn], -1 + 1e-9, 1 - 1e-9)).tolist()
    spread = float(np.nanstd(drawn, ddof=1))
    if n_cases < MIN_EFFECTIVE or spread <= 1e-9:
        few = n_cases < MIN_EFFECTIVE
        note = f"too few cases for an interval ({n_cases})" if few else "no spread between bootstrap samples"
        return text_row("correlation", replace(found, note=note), **names)
    half = stats.t.ppf(0.975, n_cases - 1) * spread
    low, high = np.tanh([centre - half, centre + half]).tolist()
    p = float(2 * stats.t.sf(abs(centre) / spread, n_cases - 1))
    return text_row("correlation", replace(found, low=low, high=high, p=p), **names)


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


# Kinds of edits: Table 14, Figures 6 and 7.


def edit_kinds(scores: pa.Table, factual: Collection[int] = ()) -> pd.DataFrame:
    """Return what each edit is to the unedited model, by its first choice after the edit's own prompt.

    The old target: it held the old fact; the new one: the edit was already true.

    Args:
        scores: A score table; rows of kind "efficacy" and phase "pre" are used.
        factual: case_ids of edits with a true new fact; the rest are counterfactual.

    Returns:
        One row per case: case_id, `knew_old`, `already_true` (True, False, or None when unknown), `factual`,
        `kind` ("injection", "updating", "correction", or "" when unknown).

    Source: LEME section 5.5 and appendix H (the pre-edit statement under the short evaluation).
    """
    frame: pd.DataFrame = scores.to_pandas()
    before = (frame["kind"] == "efficacy") & (frame["phase"] == "pre") & (frame["status"] == "ok")
    rows = frame[before].astype({"greedy": float})
    held = rows.pivot_table(index="case_id", columns="role", values="greedy", aggfunc="max")
    held = held.reindex(columns=["target_true", "target_new"]).set_axis(["knew_old", "already_true"], axis=1)
    out = (held == 1).astype(object).where(held.notna(), None).reset_index().astype({"case_id": np.int64})
    out["factual"] = out["case_id"].isin(list(factual))
    update = np.where(out["factual"], "correction", "updating")
    unknown, old = out["knew_old"].isna(), out["knew_old"].eq(True)
    return out.assign(kind=np.where(unknown, "", np.where(old, update, "injection")))


def kind_shares(kinds: pd.DataFrame) -> Iterator[Row]:
    """Yield how many edits update a fact that the model held, and how many were already true: Table 14."""
    for key, rows in blocks(kinds, "factual"):
        setting = "factual" if key.pop("factual") else "counterfactual"
        for asked, column in (("fact update", "knew_old"), ("already true", "already_true")):
            known = rows[column].dropna()
            share = proportion(int(known.astype(bool).sum()), len(known))
            more = {"n_missing": len(rows) - len(known), "n_edits": len(known)}
            yield text_row("edit_kind", share, asked=asked, answer=setting, scale="share", **key, **more)


def kind_differences(what: str, values: pd.DataFrame, kinds: pd.DataFrame) -> Iterator[Row]:
    """Yield how much a measure differs with the kind of edit (Figure 6: long form, Figure 7: short form).

    `reference` is the contrast: "already_true" against not; "updating" against injection among counterfactual edits;
    "correction" against injection among factual ones. Corrected within block and contrast; what has no case on one side
    has no row.

    Args:
        what: Of which number.
        values: editor, case_id, asked, value, and columns of blocks.
        kinds: Rows of `edit_kinds`.
    """
    on = ["case_id", *(name for name in BLOCKS if name in values and name in kinds)]
    joined = values[values["value"].notna()].merge(kinds, on=on, how="inner")
    for key, block in blocks(joined):
        for contrast in ("already_true", "updating", "correction"):
            rows = [
                _difference(what, part, contrast, {**key, "asked": asked, "editor": editor})
                for (asked, editor), part in block.groupby(["asked", "editor"], observed=True)
            ]
            yield from adjusted(one for one in rows if one["n_first"] and one["n_second"])


def _difference(what: str, part: pd.DataFrame, contrast: str, names: Row) -> Row:
    if contrast == "already_true":
        cases = part[part["already_true"].notna()]
        first = cases["already_true"].astype(bool).to_numpy()
    else:
        cases = part[(part["factual"] == (contrast == "correction")) & (part["kind"] != "")]
        first = (cases["kind"] == contrast).to_numpy()
    sides = {"n_first": cases["case_id"][first].nunique(), "n_second": cases["case_id"][~first].nunique()}
    found = case_estimate(cases["value"], cases["case_id"], first, ~first)
    return text_row(what, found, reference=contrast, **names, **sides)
