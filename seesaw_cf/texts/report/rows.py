"""Numbers about texts as rows of the one frame, and tests: corrected for their number, clustered by case.

`editor` is who wrote, `about` which texts, `asked` what was asked. Beside the frame's columns a row may have `dataset`
(kept apart everywhere), `rater` (who answered) and `answer` (what was answered).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.means import ALL
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.report.frame import COLUMNS, Row, row
from seesaw_cf.stats.bootstrap import cluster_weights
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.multiple import adjust
from seesaw_cf.stats.simple import case_estimate, share_estimate
from seesaw_cf.texts.tables import BASELINE

BLOCKS = ("dataset", "rater")
_NAN = float("nan")
_ONLY_AUDITS = ("half_edits", "decides", "mirror", "margin", "reach", "effective_edits", "effective_people", "tests")


def text_row(what: str, found: Estimate, **names: Any) -> Row:
    """Return a row; `n_edits` are the edits or cases that the estimate is clustered by."""
    n_edits = found.clusters.get("case", found.clusters.get("edit", 0))
    return row(what, str(names.pop("about", "")), found, **{"n_edits": n_edits} | names)


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as a frame."""
    frame = pd.DataFrame(list(rows))
    names = (*COLUMNS, "dataset", "rater", "answer")
    return frame.reindex(columns=[*names, *(name for name in frame if name not in names)])


def table_of(frame: pd.DataFrame, whats: Collection[str]) -> pd.DataFrame:
    """Return the rows of some numbers, without columns that say nothing of them."""
    rows = frame[frame["what"].isin(whats)].drop(columns=list(_ONLY_AUDITS))
    counts = [name for name in rows if str(name).startswith("n_")]
    nothing = rows.isna() | rows.isin(["", ALL]) | (rows[counts] == 0).reindex(columns=rows.columns, fill_value=False)
    return rows.loc[:, ~nothing.all() | (rows.columns == "value")].reset_index(drop=True)


Estimator = Callable[[pd.DataFrame], Estimate]
"""Rows with `value` and `case_id` -> their estimate."""


def case_mean(rows: pd.DataFrame, within: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
    """Return the mean of case means, its interval cut at the ends of the scale; nothing is tested."""
    return replace(case_estimate(rows["value"], rows["case_id"], within=within), p=_NAN)


def case_share(rows: pd.DataFrame, against: float = 0.0) -> Estimate:
    """Return the mean of case means of values 0 and 1, tested against a share if one is given."""
    return share_estimate(rows["value"], rows["case_id"], against=against)


def row_share(rows: pd.DataFrame) -> Estimate:
    """Return the share of rows, each of which counts once, clustered by case."""
    return share_estimate(rows["value"], rows["case_id"], np.full(len(rows), 1 / max(len(rows), 1)))


def blocks(frame: pd.DataFrame, *more: str) -> list[str]:
    """Return the columns by which numbers are kept apart, as far as there are such, and more."""
    return [*(name for name in BLOCKS if name in frame), *more]


def cells(
    what: str,
    frame: pd.DataFrame,
    by: Sequence[str],
    estimate: Estimator,
    more: Callable[[pd.DataFrame], Row] = lambda rows: {},
    **names: Any,
) -> Iterator[Row]:
    """Yield an estimate for each value of the columns `by`, of the rows with a `value`; the others are counted.

    Args:
        what: Of which number.
        frame: The rows.
        by: Columns, which are columns of the result.
        estimate: What is estimated.
        more: Further columns, of the rows that the estimate is of.
        **names: Further columns, the same in all rows.
    """
    for key, rows in frame.groupby(list(by), sort=True, observed=True):
        there = rows.dropna(subset="value")
        counts = {"n_missing": len(rows) - len(there), **more(there)}
        yield text_row(what, estimate(there), **dict(zip(by, key, strict=True)), **counts, **names)


def share_rows(
    what: str, frame: pd.DataFrame, by: Sequence[str], hit: pd.Series, estimate: Estimator = case_share, **names: Any
) -> Iterator[Row]:
    """Yield the shares of answers that are a `hit`, as `cells` does."""
    flags = frame.assign(value=hit.astype(float).where(frame["value"].notna()))
    yield from cells(what, flags, by, estimate, scale="share", **names)


def mean_rows(what: str, values: pd.DataFrame, within: tuple[float, float] = (-np.inf, np.inf)) -> Iterator[Row]:
    """Yield means of case means by editor and question, with the standard deviation over rows (the papers' ±)."""
    by = blocks(values, "editor", "asked")
    return cells(what, values, by, partial(case_mean, within=within), lambda rows: {"sd": rows["value"].std(ddof=1)})


# Tests.


def adjusted(rows: Iterable[Row], *by: str) -> Iterator[Row]:
    """Yield rows with `p_adjusted` by Holm; those that are alike in the columns `by` are one family of tests."""
    families: dict[tuple[Any, ...], list[Row]] = {}
    for own in rows:
        families.setdefault(tuple(own.get(name) for name in by), []).append(own)
    for family in families.values():
        corrected = adjust([own["p"] for own in family]).tolist()
        yield from (own | {"p_adjusted": p} for own, p in zip(family, corrected, strict=True))


def beside_baseline(frame: pd.DataFrame, by: str) -> Iterator[tuple[Row, pd.DataFrame]]:
    """Yield the names and the rows of each editor in each block, with those of the unedited model."""
    names = blocks(frame, by)
    for key, rows in frame.groupby(names, observed=True):
        for editor in sorted(set(rows["editor"]) - {BASELINE}):
            own = rows[rows["editor"].isin([editor, BASELINE])]
            yield dict(zip(names, key, strict=True)) | {"editor": editor, "control": BASELINE}, own


def paired(
    values: pd.DataFrame, editor: str, within: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Estimate, pd.DataFrame]:
    """Return the mean of case means after minus before an edit, and the rows of the cases that have both."""
    both = values.dropna(subset="value")
    both = both[both.groupby("case_id")["editor"].transform("nunique") == 2]
    after = (both["editor"] == editor).to_numpy()
    return case_estimate(both["value"], both["case_id"], after, ~after, within=within), both


def lower_tests(what: str, values: pd.DataFrame) -> Iterator[Row]:
    """Yield whether ratings are lower than the unedited model's: one-sided signed ranks over case means.

    `value` is the difference of means of case means with its interval, `p` that of "lower", corrected within a block;
    `p_clustered` is the interval's own, two-sided; `n_equal` of the cases in both are equal.

    Source: LEME section 5, Table 1 (one-sided Wilcoxon signed rank).
    Deviates: one value per case, so that samples of a case are not counted as independent; corrected.
    """
    return adjusted((_signed_rank(what, own, names) for names, own in beside_baseline(values, "asked")), *BLOCKS)


def _signed_rank(what: str, rows: pd.DataFrame, names: Row) -> Row:
    change, both = paired(rows, names["editor"])
    cases = both.pivot_table(index="case_id", columns="editor", values="value")
    differences = cases.reindex(columns=[BASELINE, names["editor"]]).diff(axis=1).iloc[:, 1].to_numpy()
    moved = differences[differences != 0]
    p = float(stats.wilcoxon(moved, alternative="less").pvalue) if moved.size else _NAN
    more = {"p": p, "p_clustered": change.p, "n_edits": len(cases), "n_equal": len(cases) - moved.size}
    return text_row(what, change, **names, **more, note=change.note if moved.size else "no case differs")


def label_tests(marked: pd.DataFrame, *, draws: int = 1000) -> Iterator[Row]:
    """Yield whether two editors' texts differ in shares of labels: chi-square, for every pair and kind of claim.

    `p` is that of exchanging editors within cases, corrected within a block; `p_paper` takes every claim for
    independent.

    Args:
        marked: See `coded`.
        draws: Random exchanges of the two editors' labels within whole cases.

    Source: LEME section 5.1 (chi-square test of independence).
    Deviates: claims of one case stand and fall together, so p comes from exchanging editors case by case.
    """
    by = blocks(marked, "asked")
    return adjusted(
        (
            _chi_square(part, pair, draws, dict(zip(by, key, strict=True)))
            for key, part in marked.dropna(subset="value").groupby(by, observed=True)
            for pair in combinations(sorted(set(part["editor"])), 2)
        ),
        *BLOCKS,
    )


def _chi_square(part: pd.DataFrame, pair: Sequence[str], draws: int, names: Row) -> Row:
    chosen = part[part["editor"].isin(pair)]
    chosen = chosen[chosen.groupby("case_id")["editor"].transform("nunique") == 2]
    places = [pd.factorize(chosen["case_id"], sort=True)[0], chosen["editor"] == pair[1], chosen["value"].astype(int)]
    counts = np.zeros((chosen["case_id"].nunique(), 2, len(LABELS)), np.int64)
    np.add.at(counts, tuple(np.asarray(place, np.intp) for place in places), 1)
    names |= {"editor": pair[0], "control": pair[1], "n": len(chosen), "n_edits": len(counts), "scale": "chi-square"}
    counts = counts[:, :, counts.any(axis=(0, 1))]
    if counts.shape[2] < 2:
        note = "fewer than two labels, or no case in common"
        return text_row("labels_differ", Estimate(_NAN, note=note), **names)
    chi2, names["p_paper"], names["df"], _ = stats.chi2_contingency(counts.sum(axis=0), correction=False)
    swap = np.random.default_rng(0).random((draws, len(counts))) < 0.5
    first = np.where(swap[:, :, None], counts[:, 1], counts[:, 0]).sum(axis=1)
    drawn = pearson_statistics(first, counts.sum(axis=(0, 1)) - first)
    p = (1 + int((drawn >= chi2 - 1e-9).sum())) / (1 + draws)
    return text_row("labels_differ", Estimate(float(chi2), p=p), **names)


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
    at, by, rows = ["editor", "case_id"], blocks(long, "asked"), []
    wide = short.dropna(subset="value").groupby([*at, "asked"])["value"].mean().unstack()
    for key, part in long[long["editor"] != BASELINE].groupby(by, observed=True):
        tall = part.groupby(at)["value"].mean()
        names = dict(zip(by, key, strict=True))
        rows += [_spearman(tall, wide[other], draws, names | {"reference": other}) for other in wide]
    return adjusted(rows, *BLOCKS)


def _spearman(long: pd.Series, short: pd.Series, draws: int, names: Row) -> Row:
    pairs = pd.concat([long, short], axis=1, join="inner").dropna()
    x, y = pairs.to_numpy(np.float64).T
    case = pd.factorize(pairs.index.get_level_values("case_id"))[0]
    n_cases = int(case.max(initial=-1)) + 1
    names |= {"n": len(pairs), "n_edits": n_cases, "scale": "rho"}
    if len(pairs) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        note = "fewer than three pairs" if len(pairs) < 3 else "a measure has one value only"
        return text_row("correlation", Estimate(_NAN, note=note), **names)
    found, names["p_paper"] = map(float, stats.spearmanr(x, y))
    drawn = weighted_spearman(x, y, cluster_weights(n_cases, draws, 0)[:, case])
    centre, *drawn = np.arctanh(np.clip([found, *drawn], -1 + 1e-9, 1 - 1e-9)).tolist()
    spread = float(np.nanstd(drawn, ddof=1))
    if n_cases < MIN_EFFECTIVE or spread <= 1e-9:
        few = n_cases < MIN_EFFECTIVE
        note = f"too few cases for an interval ({n_cases})" if few else "no spread between bootstrap samples"
        return text_row("correlation", Estimate(found, note=note), **names)
    half = stats.t.ppf(0.975, n_cases - 1) * spread
    low, high = np.tanh([centre - half, centre + half]).tolist()
    p = float(2 * stats.t.sf(abs(centre) / spread, n_cases - 1))
    return text_row("correlation", Estimate(found, low, high, p=p), **names)


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
