"""Agreement of raters as sections: per cent, beyond chance, and for every pair of raters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats.agreement import Agreement, annotator_agreement
from seesaw_cf.types import Estimate


@dataclass(frozen=True, slots=True)
class Agreeing:
    """What an agreement is about.

    Attributes:
        by: Column that splits the ratings, such as "flaw"; also that of the sections.
        level: Level of measurement of Krippendorff's alpha.
        unit: What raters rated, for headings.
        prefix: Of the sections' names.
        title: What the headings begin with.
        percent, beyond: What the first two headings end with: the paper's table.
        draws: Bootstrap samples.
    """

    by: str
    level: str
    unit: str
    prefix: str
    title: str
    percent: str = ""
    beyond: str = ""
    draws: int = 1000


def agreement_sections(rated: pd.DataFrame, how: Agreeing) -> list[Table]:
    """Sections about one set of ratings.

    Args:
        rated: item, rater, value (NaN = none), group (items of one edit; intervals resample whole groups), and the
            column `how.by`.
        how: What they are about.

    Returns:
        PREFIX_percent, PREFIX (alpha, Fleiss) and PREFIX_pairs (Cohen); without rows where there is one rater.
    """
    agreements: dict[str, Agreement] = {}
    paired: dict[str, int] = {}
    for name, rows in rated.groupby(how.by, sort=False, observed=True):
        wide = rows.pivot(index="item", columns="rater", values="value")
        groups = rows.groupby("item")["group"].first().loc[wide.index].tolist()
        if wide.shape[1] > 1 and wide.notna().any(axis=None):
            table = wide.to_numpy(float).tolist()
            paired[str(name)] = int((wide.notna().sum(axis=1) > 1).sum())
            agreements[str(name)] = annotator_agreement(
                table, names=[str(name) for name in wide], groups=groups, draws=how.draws
            )
    percent, kappas = (_pairs(agreements, how.by, figure) for figure in ("percent", "cohen"))
    beyond = pd.DataFrame([{how.by: name, **_beyond(one, how.level, paired[name])} for name, one in agreements.items()])
    return [
        table_of(
            f"{how.prefix}_percent",
            f"{how.title}, per cent{how.percent}",
            f"Pairs of raters, and all of them (`all`), on {how.unit} that each of them rated. Where one rating is "
            "common much of it is chance: see the next table.",
            percent,
            how.by,
            1,
            how.unit,
        ),
        table_of(
            how.prefix,
            f"{how.title}, beyond chance{how.beyond}",
            f"Krippendorff's alpha ({how.level}) and Fleiss' kappa, of all raters; `constant` is how common the "
            "commonest rating is. `n`: items that two or more raters rated, which alpha is of; `fleiss_n`: items "
            "that all of them rated; `n_items`: items given.",
            beyond,
            digits=3,
        ),
        table_of(f"{how.prefix}_pairs", f"{how.title}, two by two", "Cohen's kappa.", kappas, how.by, 2, how.unit),
    ]


def _pairs(agreements: Mapping[str, Agreement], by: str, figure: str) -> pd.DataFrame:
    rows = [
        {"raters": raters, by: name, **_numbers(figure_estimate, agreement.n_items)}
        for name, agreement in agreements.items()
        for raters, figure_estimate in getattr(agreement, figure).items()
    ]
    return pd.DataFrame(rows)


def _numbers(estimate: Estimate, n_items: int) -> dict[str, object]:
    note = estimate.note if estimate.n else "nothing rated by both"
    return estimate.columns("value", "low", "high", "n") | {"n_cases": n_items, "note": note}


def _beyond(agreement: Agreement, level: str, paired: int) -> dict[str, object]:
    alpha, fleiss = agreement.krippendorff[level], agreement.fleiss
    about: dict[str, object] = {"alpha": alpha.value, "low": alpha.low, "high": alpha.high, "n": paired}
    about |= {"fleiss": fleiss.value, "fleiss_low": fleiss.low, "fleiss_high": fleiss.high, "fleiss_n": fleiss.n}
    reasons = {"alpha": _why(alpha, paired, "two raters"), "Fleiss": _why(fleiss, fleiss.n, "all raters")}
    counts = {"n_items": agreement.n_items, "n_missing": agreement.n_missing}
    note = "; ".join(f"{name}: {why}" for name, why in reasons.items() if why)
    return about | {"constant": agreement.majority_share} | counts | {"note": note}


def _why(estimate: Estimate, n: int, whose: str) -> str:
    """Why there is no number, or no interval; "" where there are both."""
    return estimate.note if n else f"nothing rated by {whose}"
