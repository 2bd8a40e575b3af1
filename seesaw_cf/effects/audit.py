"""The audit: every group's contrast with a corrected p-value, a verdict, and the rule behind it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pandas as pd
from scipy import stats

from seesaw_cf.base.checks import items, number, one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.estimands import Method, group_contrasts
from seesaw_cf.effects.groups import AXES, CLUSTERS, UNKNOWN, check_axes, mask, members, need_columns
from seesaw_cf.effects.prompts import ScoreForm, prompt_effects
from seesaw_cf.stats import (
    Components,
    Verdict,
    adjust_families,
    contrast_components,
    equivalence_p,
    minimum_detectable_effect,
    variance_components,
    verdict,
)
from seesaw_cf.stats.multiple import Correction
from seesaw_cf.stats.plain import plain
from seesaw_cf.stats.verdicts import REACH

FAMILY = ("editor",)
# What a family may be named by: the columns of a contrast that are names.
FAMILY_COLUMNS = (*FAMILY, "relation", "axis", "group", "reference")
# Two points of probability; odds that change by a tenth. Conventions: state what matters to you.
MARGIN, MARGIN_LOG_ODDS = 0.02, 0.1
_ESTIMATE = ("value", "low", "high", "stderr", "p", "df")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """What is declared before looking.

    Attributes:
        margin: Contrasts smaller than this do not matter, in probability.
        margin_log_odds: The same in log-odds (nats), for contrasts that are decided there.
        alpha: Level.
        correction: "holm", "bh" or "by".
        family: Columns that name a family of tests.
        method: "clustered" or "mixed", see `seesaw_cf.effects.group_contrasts`.
        noise_floor, noise_floor_log_odds: Largest effect that scoring alone makes, on each scale; None takes what the
            run measured. Without either no verdict is given.
    """

    margin: float = MARGIN
    margin_log_odds: float = MARGIN_LOG_ODDS
    alpha: float = 0.05
    correction: Correction = "holm"
    family: tuple[str, ...] = FAMILY
    method: Method = "clustered"
    noise_floor: float | None = None
    noise_floor_log_odds: float | None = None

    def promise(self, family: Sequence[str] | None = None) -> str:
        """Return how often a claim may be false, such as "at most 5 % per editor (holm)"."""
        names = self.family if family is None else family
        return f"at most {100 * self.alpha:g} % per {' × '.join(names) or 'report'} ({self.correction})"

    def __post_init__(self) -> None:
        """Refuse what no audit could be made with, before anything is computed.

        Raises:
            RecordError: A number that is not finite or out of range.
            UnknownNameError: No such correction, method or column of a family.
        """
        for name in ("margin", "margin_log_odds"):
            number(f"audit: {name}", getattr(self, name), 0, ends=False)
        number("audit: alpha", self.alpha, 0, 1, ends=False)
        for name in ("noise_floor", "noise_floor_log_odds"):
            if getattr(self, name) is not None:
                number(f"audit: {name}", getattr(self, name), 0)
        one_of("correction", self.correction, get_args(Correction))
        one_of("method", self.method, get_args(Method))
        for column in items("audit: family", self.family, "names of columns"):
            one_of("family column", column, FAMILY_COLUMNS)


def audit(
    prompts: pd.DataFrame,
    settings: AuditSettings,
    *,
    score: ScoreForm = "summed",
    axes: Sequence[str] = AXES,
    reference: Mapping[str, str] | None = None,
    holds: str = "target_new",
    clusters: Mapping[str, str] = CLUSTERS,
) -> pd.DataFrame:
    """Contrasts of all groups with their verdicts.

    Each contrast is decided on one scale, chosen by `in_log_odds` from the scores before the edit alone, so that the
    choice does not depend on the effect and each contrast is one test of its family.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects` (or of `excess_over_control`, `toward_truth`).
        settings: What is declared before looking. A noise floor that is None was not measured, and then there is no
            verdict on its scale.
        score: The form of score of the column D; with "log_odds" every contrast is decided in log-odds.
        axes: Which axes.
        reference: Axis -> reference group; an axis without one compares each group with everyone else tagged on it.
        holds, clusters: See `group_contrasts`.

    Returns:
        Rows of `group_contrasts` (people without a tag have none) with `value` and its interval on the deciding `scale`
        ("probability" or "log-odds") and `probability`, `probability_low`, `probability_high`, `log_odds`;
        `margin`, `family`, `family_size`, `p_adjusted`, `low_family` and `high_family` (intervals that hold all
        contrasts of a family at once: level 1 - alpha / family size), `p_equivalence` (TOST, corrected like
        `p_adjusted`), `detectable` (smallest effect found with power 80 %), `verdict` ("worse off", "better
        off", "equivalent", "undetermined", "not testable"), `direction` and `rule`. A row marked `mirror` repeats
        the test of the row before it: no family counts it, and it has that row's corrected p.

    Raises:
        UnknownNameError: Unknown axis, reference or correction.
        RecordError: A margin is not above 0, or there is nothing to estimate.
    """
    references = reference or {}
    options: dict[str, Any] = {"holds": holds, "clusters": clusters, "method": settings.method}
    tables = [group_contrasts(prompts, axis, references.get(axis), **options) for axis in axes]
    if not any(map(len, tables)):
        raise RecordError(
            f"audit: no two groups on {list(axes)} to compare; no prompt has a tag, or all have the same."
        )
    table = pd.concat([t for t in tables if len(t)], ignore_index=True)
    return decide(_decided(table[table["group"] != UNKNOWN].reset_index(drop=True), settings, score), settings)


def decide(table: pd.DataFrame, settings: AuditSettings, family: Sequence[str] | None = None) -> pd.DataFrame:
    """Correct contrasts over their families and say what each supports.

    Args:
        table: `value`, `stderr`, `p`, `df`, `margin`, `scale` and `mirror` of each contrast, or rows of `audit` in
            their order, of several runs too: what was decided there is decided anew.
        settings: What is declared before looking.
        family: Columns that name a family, in place of those of the settings.

    Returns:
        The rows with the columns of `audit` from `family` on.

    Raises:
        RecordError: The table misses a column of the family.
    """
    names = settings.family if family is None else family
    table = _corrected(table, names, settings)
    half = stats.t.ppf(1 - settings.alpha / (2 * table["family_size"].clip(lower=1)), table["df"]) * table["stderr"]
    table = table.assign(low_family=table["value"] - half, high_family=table["value"] + half)
    errors = list(zip(table["stderr"], table["df"]))
    table["detectable"] = [minimum_detectable_effect(stderr, df, alpha=settings.alpha) for stderr, df in errors]
    same = [equivalence_p(v, se, df, m) for v, (se, df), m in zip(table["value"], errors, table["margin"])]
    table["p_equivalence"] = _corrected(table.assign(p=same), names, settings)["p_adjusted"]
    claims = [_claim(row, settings) for row in table.to_dict("records")]
    columns = {"verdict": "label", "direction": "direction", "rule": "rule"}
    return table.assign(**{name: [getattr(claim, field) for claim in claims] for name, field in columns.items()})


def _corrected(table: pd.DataFrame, family: Sequence[str], settings: AuditSettings) -> pd.DataFrame:
    """Return the table with its corrected p; a mirror takes that of the row before it."""
    adjusted = adjust_families(table.assign(p=table["p"].mask(table["mirror"])), family, settings.correction)
    corrected = adjusted["p_adjusted"]
    return adjusted.assign(p=table["p"], p_adjusted=corrected.mask(table["mirror"], corrected.shift()))


def _claim(row: Mapping[Hashable, Any], settings: AuditSettings) -> Verdict:
    adjusted = Estimate(row["value"], stderr=row["stderr"], p=row["p_adjusted"], df=row["df"], note=row["note"])
    floors = {"probability": settings.noise_floor, "log-odds": settings.noise_floor_log_odds}
    return verdict(
        adjusted,
        margin=row["margin"],
        noise_floor=floors[row["scale"]],
        alpha=settings.alpha,
        p_equivalence=row["p_equivalence"],
        scale=row["scale"],
    )


def in_log_odds(likelier_pre: pd.Series, margin: float, score: ScoreForm = "summed") -> pd.Series:
    """Whether log-odds decide: halving the likelier answer's probability would not exceed the margin in probability.

    Args:
        likelier_pre: Mean probability of the likelier of the two answers before the edit.
        margin: In probability.
        score: The form of score; "log_odds" always decides in log-odds.
    """
    return (likelier_pre < REACH * margin) | (score == "log_odds")


def _decided(table: pd.DataFrame, settings: AuditSettings, score: ScoreForm) -> pd.DataFrame:
    """Put each contrast's deciding scale into `value` and its interval; both scales keep their columns."""
    log_odds = in_log_odds(table["likelier_pre"], settings.margin, score)
    out = table.assign(scale=log_odds.map({True: "log-odds", False: "probability"}))
    out["margin"] = log_odds.map({True: settings.margin_log_odds, False: settings.margin})
    if score != "log_odds":
        out = out.assign(probability=out["value"], probability_low=out["low"], probability_high=out["high"])
    for name in _ESTIMATE:
        other = "log_odds" if name == "value" else f"log_odds_{name}"
        out[name] = out[name].mask(log_odds, out[other])
    return out


def hypotheses(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `audit` that are independent tests, without the mirrors of two-label axes."""
    return table[~table["mirror"]] if "mirror" in table else table


def audit_record(table: pd.DataFrame, **settings: Any) -> dict[str, Any]:
    """The audit as plain JSON: what was estimated how, on how much, with which claims.

    Args:
        table: The result of `audit`.
        settings: What it was called with and what else matters (margin, correction, family, noise floor, seeds, gates).

    Returns:
        `estimand`, `method`, `settings`, `counts` (verdict -> contrasts, a mirror not counted) and `rows`.

    Raises:
        RecordError: The table is another one.
    """
    need_columns("audit record", table, ("method", "verdict", "mirror"))
    counts = hypotheses(table)["verdict"].value_counts().sort_index()
    return dict(
        plain(
            {
                "estimand": "D_d of a group minus D_d of its reference, within edits scored on both",
                "method": sorted(set(table["method"]) - {""}),
                "settings": settings,
                "counts": {str(label): int(n) for label, n in counts.items()},
                "rows": table.to_dict("records"),
            }
        )
    )


# What a finished run says about the size of the next one.


def run_components(
    folder: str | os.PathLike[str],
    *,
    axis: str | None = None,
    group: str | None = None,
    holds: str = "target_new",
    score: ScoreForm = "summed",
) -> tuple[Components, float, int]:
    """Variance components of D in a finished run.

    Args:
        folder: A run folder.
        axis, group: Plan the contrast of this group with the rest; None: the mean over all people.
        holds: Which answer the people hold.
        score: The form of confidence.

    Returns:
        Components; the share of prompts about the group (NaN without one); the number of prompts. With several editors
        the components are those of the one that varies most.

    Raises:
        RecordError: The run has too few edits or people, or no prompts of this kind.
        UnknownNameError: Unknown axis or group.
    """
    check_axes([axis] if axis is not None else [])
    prompts = prompt_effects(read_table(Path(folder) / "scores.parquet", SCORES), score=score)
    usable = prompts[(prompts["holds"].fillna("") == holds) & (prompts["status"] == "ok")]
    if usable.empty:
        raise RecordError(f"{folder}: no scored prompts about people with holds={holds!r}; nothing to estimate.")
    candidates: list[tuple[Components, float, int]] = []
    for _, rows in usable.groupby("editor", sort=True):
        values = rows["D"].to_numpy()
        edit, person = (pd.factorize(rows[name])[0] for name in ("case_id", "person"))
        if axis is None:
            candidates.append((variance_components(values, edit, person), float("nan"), values.size))
            continue
        groups = members(rows[axis].tolist())
        member = mask(values.size, groups[one_of(f"{axis} group", str(group), groups)])
        candidates.append((contrast_components(values, edit, person, member), float(member.mean()), values.size))
    return max(
        candidates, key=lambda candidate: candidate[0].edit ** 2 + candidate[0].person ** 2 + candidate[0].prompt ** 2
    )
