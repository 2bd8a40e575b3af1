"""The audit: every group's contrast with a corrected p-value, a verdict, and the rule behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from scipy import stats

from seesaw_cf.effects.estimands import CLUSTERS, Method, group_contrasts
from seesaw_cf.effects.groups import AXES, UNKNOWN
from seesaw_cf.errors import RecordError
from seesaw_cf.stats import adjust_families, equivalence_p, minimum_detectable_effect, verdict
from seesaw_cf.stats.multiple import Correction
from seesaw_cf.stats.plain import plain

__all__ = ["FAMILY", "audit", "audit_record"]

FAMILY = ("editor", "relation", "axis")


def audit(
    prompts: pd.DataFrame,
    *,
    margin: float,
    axes: Sequence[str] = AXES,
    reference: Mapping[str, str] | None = None,
    holds: str = "target_new",
    clusters: Mapping[str, str] = CLUSTERS,
    family: Sequence[str] = FAMILY,
    correction: Correction = "holm",
    noise_floor: float = 0.0,
    alpha: float = 0.05,
    method: Method = "clustered",
) -> pd.DataFrame:
    """Contrasts of all groups with their verdicts.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects` (or of `excess_over_control`, `toward_truth`).
        margin: Contrasts smaller than this do not matter; state it before looking, in the effect's unit.
        axes: Which axes.
        reference: Axis -> reference group; an axis without one compares each group with all others tagged on it.
        holds, clusters: See `group_contrasts`.
        family: Columns whose values name a family of tests, declared before looking.
        correction: See `seesaw_cf.stats.adjust`.
        noise_floor: See `seesaw_cf.effects.estimands.noise_floor`.
        alpha: Level of tests and of the equivalence test.
        method: See `group_contrasts`.

    Returns:
        Rows of `group_contrasts` (people without a tag have none), `family`, `family_size`, `p_adjusted`, `low_family`
        and `high_family` (intervals that hold all contrasts of a family at once: level 1 - alpha / family size),
        `p_equivalence` (TOST, corrected like `p_adjusted`), `detectable` (smallest effect found with power 80 %),
        `verdict` ("amplified", "reduced", "equivalent", "undetermined") and `rule`.

    Raises:
        UnknownNameError: Unknown axis, reference or correction.
        RecordError: `margin` is not above 0, or there is nothing to estimate.
    """
    if not margin > 0:
        raise RecordError(f"audit: margin is {margin:g}, expected above 0, in the unit of the effect. State one.")
    wanted = reference or {}
    options: dict[str, Any] = {"holds": holds, "clusters": clusters, "method": method}
    tables = [group_contrasts(prompts, axis, wanted.get(axis), **options) for axis in axes]
    if not any(map(len, tables)):
        raise RecordError(f"audit: no two groups on {list(axes)} to compare; nobody is tagged, or all alike.")
    table = pd.concat([t for t in tables if len(t)], ignore_index=True)
    table = adjust_families(table[table["group"] != UNKNOWN].reset_index(drop=True), family, correction)
    half = stats.t.ppf(1 - alpha / (2 * table["family_size"].clip(lower=1)), table["df"]) * table["stderr"]
    table = table.assign(low_family=table["value"] - half, high_family=table["value"] + half)
    table["detectable"] = [
        minimum_detectable_effect(stderr, df, alpha=alpha) for stderr, df in zip(table["stderr"], table["df"])
    ]
    same = [equivalence_p(v, se, df, margin) for v, se, df in zip(table["value"], table["stderr"], table["df"])]
    table["p_equivalence"] = adjust_families(table.assign(p=same), family, correction)["p_adjusted"]
    rules = {"margin": margin, "noise_floor": noise_floor, "alpha": alpha}
    needed = ("value", "p_adjusted", "p_equivalence", "stderr", "df", "note")
    claims = [
        verdict(value, p, p_equivalence=same, stderr=stderr, df=df, note=note, **rules)
        for value, p, same, stderr, df, note in zip(*(table[name].tolist() for name in needed))
    ]
    return table.assign(verdict=[claim.label for claim in claims], rule=[claim.rule for claim in claims])


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
