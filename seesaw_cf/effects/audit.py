"""The audit: every group's contrast with a corrected p-value, a verdict, and the rule behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from scipy import stats

from seesaw_cf.checks import items, number, one_of
from seesaw_cf.effects.estimands import Method, group_contrasts
from seesaw_cf.effects.groups import AXES, CLUSTERS, UNKNOWN
from seesaw_cf.effects.prompts import ScoreForm
from seesaw_cf.errors import RecordError
from seesaw_cf.stats import adjust_families, equivalence_p, minimum_detectable_effect, verdict
from seesaw_cf.stats.multiple import Correction
from seesaw_cf.stats.plain import plain
from seesaw_cf.stats.verdicts import REACH

__all__ = ["FAMILY", "FAMILY_COLUMNS", "MARGIN", "MARGIN_LOG_ODDS", "audit", "audit_record", "in_log_odds"]

FAMILY = ("editor", "relation", "axis")
# What a family may be named by: the columns of a contrast that are names.
FAMILY_COLUMNS = (*FAMILY, "group", "reference")
# Two points of probability; odds that change by a tenth. Conventions: state what matters to you.
MARGIN, MARGIN_LOG_ODDS = 0.02, 0.1
_ESTIMATE = ("value", "low", "high", "stderr", "p", "df")


def audit(
    prompts: pd.DataFrame,
    *,
    margin: float,
    margin_log_odds: float = MARGIN_LOG_ODDS,
    score: ScoreForm = "summed",
    axes: Sequence[str] = AXES,
    reference: Mapping[str, str] | None = None,
    holds: str = "target_new",
    clusters: Mapping[str, str] = CLUSTERS,
    family: Sequence[str] = FAMILY,
    correction: Correction = "holm",
    noise_floor: float | None = None,
    noise_floor_log_odds: float | None = None,
    alpha: float = 0.05,
    method: Method = "clustered",
) -> pd.DataFrame:
    """Contrasts of all groups with their verdicts.

    Each contrast is decided on one scale, chosen by `in_log_odds` from the scores before the edit alone, so that the
    choice does not depend on the effect and each contrast is one test of its family.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects` (or of `excess_over_control`, `toward_truth`).
        margin: Contrasts of probabilities smaller than this do not matter; state it before looking.
        margin_log_odds: The same for contrasts of log-odds, nats.
        score: The form of score of the column D; with "log_odds" every contrast is decided in log-odds.
        axes: Which axes.
        reference: Axis -> reference group; an axis without one compares each group with all others tagged on it.
        holds, clusters: See `group_contrasts`.
        family: Columns whose values name a family of tests, declared before looking.
        correction: See `seesaw_cf.stats.adjust`.
        noise_floor, noise_floor_log_odds: See `seesaw_cf.effects.estimands.noise_floor`; None = not measured, and then
            there is no verdict on that scale.
        alpha: Level of tests and of the equivalence test.
        method: See `group_contrasts`.

    Returns:
        Rows of `group_contrasts` (people without a tag have none) with `value` and its interval on the deciding `scale`
        ("probability" or "log-odds") and `probability`, `probability_low`, `probability_high` beside `log_odds`;
        `margin`, `family`, `family_size`, `p_adjusted`, `low_family` and `high_family` (intervals that hold all
        contrasts of a family at once: level 1 - alpha / family size), `p_equivalence` (TOST, corrected like
        `p_adjusted`), `detectable` (smallest effect found with power 80 %), `verdict` ("amplified", "reduced",
        "negligible", "equivalent", "undetermined"), `direction` and `rule`.

    Raises:
        UnknownNameError: Unknown axis, reference or correction.
        RecordError: A margin is not above 0, or there is nothing to estimate.
    """
    number("audit: margin", margin, 0, ends=False)
    number("audit: margin_log_odds", margin_log_odds, 0, ends=False)
    number("audit: alpha", alpha, 0, 1, ends=False)
    for name, floor in (("noise_floor", noise_floor), ("noise_floor_log_odds", noise_floor_log_odds)):
        if floor is not None:
            number(f"audit: {name}", floor, 0)
    for name in items("audit: family", family, "names of columns"):
        one_of("family column", name, FAMILY_COLUMNS)
    wanted = reference or {}
    options: dict[str, Any] = {"holds": holds, "clusters": clusters, "method": method}
    tables = [group_contrasts(prompts, axis, wanted.get(axis), **options) for axis in axes]
    if not any(map(len, tables)):
        raise RecordError(f"audit: no two groups on {list(axes)} to compare; nobody is tagged, or all alike.")
    table = pd.concat([t for t in tables if len(t)], ignore_index=True)
    table = _decided(table[table["group"] != UNKNOWN].reset_index(drop=True), margin, margin_log_odds, score)
    table = adjust_families(table, family, correction)
    half = stats.t.ppf(1 - alpha / (2 * table["family_size"].clip(lower=1)), table["df"]) * table["stderr"]
    table = table.assign(low_family=table["value"] - half, high_family=table["value"] + half)
    errors = list(zip(table["stderr"], table["df"]))
    table["detectable"] = [minimum_detectable_effect(stderr, df, alpha=alpha) for stderr, df in errors]
    same = [equivalence_p(v, se, df, m) for v, (se, df), m in zip(table["value"], errors, table["margin"])]
    table["p_equivalence"] = adjust_families(table.assign(p=same), family, correction)["p_adjusted"]
    floors = {"probability": noise_floor, "log-odds": noise_floor_log_odds}
    needed = ["p_equivalence", "stderr", "df", "note", "margin", "scale"]
    claims = [
        verdict(value, p, noise_floor=floors[rest["scale"]], alpha=alpha, **rest)
        for value, p, rest in zip(table["value"], table["p_adjusted"], _records(table[needed]))
    ]
    return table.assign(
        verdict=[claim.label for claim in claims],
        direction=[claim.direction for claim in claims],
        rule=[claim.rule for claim in claims],
    )


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def in_log_odds(likelier_pre: pd.Series, margin: float, score: ScoreForm = "summed") -> pd.Series:
    """Whether log-odds decide: halving the likelier answer's probability would not exceed the margin in probability.

    Args:
        likelier_pre: Mean probability of the likelier of the two answers before the edit.
        margin: In probability.
        score: The form of score; "log_odds" always decides in log-odds.
    """
    return (likelier_pre < REACH * margin) | (score == "log_odds")


def _decided(table: pd.DataFrame, margin: float, margin_log_odds: float, score: ScoreForm) -> pd.DataFrame:
    """Puts each contrast's deciding scale into `value` and its interval; both scales keep columns of their own."""
    log_odds = in_log_odds(table["likelier_pre"], margin, score)
    out = table.assign(scale=log_odds.map({True: "log-odds", False: "probability"}))
    out["margin"] = log_odds.map({True: margin_log_odds, False: margin})
    if score != "log_odds":
        out = out.assign(probability=out["value"], probability_low=out["low"], probability_high=out["high"])
    for name in _ESTIMATE:
        other = "log_odds" if name == "value" else f"log_odds_{name}"
        out[name] = out[name].mask(log_odds, out[other])
    return out


def audit_record(table: pd.DataFrame, **settings: Any) -> dict[str, Any]:
    """The audit as plain JSON: what was estimated how, on how much, with which claims.

    Args:
        table: The result of `audit`.
        settings: What it was called with and what else matters (margin, correction, family, noise floor, seeds, gates).

    Returns:
        `estimand`, `method`, `settings`, `counts` (verdict -> groups) and `rows`.
    """
    return dict(
        plain(
            {
                "estimand": "D_d of a group minus D_d of its reference, within edits scored on both",
                "method": sorted(set(table["method"]) - {""}),
                "settings": settings,
                "counts": {str(label): int(n) for label, n in table["verdict"].value_counts().sort_index().items()},
                "rows": table.to_dict("records"),
            }
        )
    )
