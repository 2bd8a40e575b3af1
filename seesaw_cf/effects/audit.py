"""The audit: every group's contrast with a corrected p-value, a verdict, and the rule behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy import stats

from seesaw_cf.base.checks import MOST_DRAWS, Range, items, one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import AboveZero, AtLeastZero, Draws, Inside, Seed, field_types
from seesaw_cf.base.system import release_memory
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.estimands import group_contrasts, toward_truth
from seesaw_cf.effects.means import AXES, CLUSTERS, SCALES, Names, sort_prompts
from seesaw_cf.effects.permutations import LabelledContrasts
from seesaw_cf.stats.bootstrap import LEVEL, Floats
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.multiple import adjust_families, permutation_level, permutation_p, step_down
from seesaw_cf.stats.verdicts import REACH, Verdict, equivalence_p, minimum_detectable_effect, verdict

FAMILY = ("editor",)
RUN_FAMILY = ("model", "records", "protocol", *FAMILY)
"""Columns that identify an editor of a run; families by them are decided in the run."""
# What a family may be named by: the columns of a contrast that are names.
FAMILY_COLUMNS = (*FAMILY, "relation", "holds", "axis", "group", "reference")
HOLDERS = ("target_new", "target_true")
"""People whose groups are compared: those who hold the new answer, and those who hold the old one."""
# Two points of probability; odds that change by a tenth. Conventions: state what matters to you.
MARGIN, MARGIN_LOG_ODDS = 0.02, 0.1
LEAST = 1999
"""Permutations of labels where none are given."""
# What a raw contrast is made of, besides the columns of its axis and clusters.
_COLUMNS = ("editor", "edit_relation", "holds", "status", "case_id", "person", "prompt_id", "D", *SCALES)
_ESTIMATE = ("value", "low", "high", "stderr", "p", "df")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """What is declared before looking.

    Attributes:
        margin: Smaller differences of probability do not matter; below 0.25.
        margin_log_odds: The same in log-odds (nats), for contrasts that are decided there.
        alpha: Level of tests.
        family: Columns that name a family of tests; none: the whole report is one.
        permutations: Of people's labels. 0: p of t alone (default: 1999, or what it takes to call a contrast equal).
        seed: Of the permutations.
        noise_floor: Largest effect of probability that scoring alone makes (default: what the run measured). Without
            it no verdict is given.
        noise_floor_log_odds: The same in log-odds, nats.
    """

    # with a larger margin more and more answers would be decided in log-odds, by the other margin
    margin: Annotated[float, Range(0, 1 / (2 * REACH), ends=False)] = MARGIN
    margin_log_odds: AboveZero = MARGIN_LOG_ODDS
    alpha: Inside = 0.05
    permutations: Draws | None = None
    seed: Seed = 0
    family: Sequence[str] = FAMILY
    noise_floor: AtLeastZero | None = None
    noise_floor_log_odds: AtLeastZero | None = None

    def promise(self) -> str:
        """Return how often a claim may be false and how p is corrected, such as "at most 5 % per editor (holm)"."""
        count = f"{self.permutations:,}" if self.permutations is not None else f"{LEAST:,} or more"
        how = f"step-down min-p, {count} permutations" if self.permutations != 0 else "holm"
        return f"at most {100 * self.alpha:g} % per {' × '.join(self.family) or 'report'} ({how})"

    def __post_init__(self) -> None:
        """Refuse what no audit could be made with, before anything is computed.

        Raises:
            RecordError: A number that is not finite or out of range.
            UnknownNameError: No such column of a family.
        """
        field_types(self)
        for column in items("audit: family", self.family, "names of columns"):
            one_of("family column", column, FAMILY_COLUMNS)


def audit(
    prompts: pd.DataFrame, settings: AuditSettings, *, axes: Sequence[str] = AXES, clusters: Names = CLUSTERS
) -> pd.DataFrame:
    """Return the contrasts of all groups with their verdicts.

    Each contrast is decided on one scale, chosen by `_choose_scale` from the scores before the edit alone, so that the
    choice does not depend on the effect and each contrast is one test of its family. Effects on holders of the old
    answer are turned by `toward_truth`: below 0 always means that the group came out worse.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects` (or of `excess_over_control`).
        settings: What is declared before looking. A noise floor that is None was not measured; its scale then has no
            verdict.
        axes: Which axes.
        clusters: See `group_contrasts`. Labels are permuted with the default alone; others take Holm's method.

    Returns:
        Rows of `group_contrasts` (people without a tag have none) of each of `HOLDERS`. `value` is on the deciding
        `scale` ("probability" or "log-odds"), `probability` and `log_odds` the same contrast on both; `margin`; `p_t`
        (of t with plain Satterthwaite df), `p` (of this test alone, by permutation), `low` and `high` (95 %, of this
        contrast alone: the outer of the permuted interval and that of `group_contrasts`), `family`, `family_size`,
        `p_adjusted`, `p_equivalence` (two one-sided tests, corrected), `detectable` (smallest effect found with power
        80 % by the first step of the correction), `verdict` (one of `seesaw_cf.stats.verdicts.VERDICTS`), `direction`
        and `rule`. A row marked `mirror` repeats the test of the row before it: no family counts it, and it has that
        row's corrected p.

    Raises:
        UnknownNameError: Unknown axis.
        RecordError: A margin is not above 0, or there is nothing to estimate.

    Source: Westfall and Young (1993), pages 66-67; Janssen (1997) and Chung and Romano (2013), why the statistic that
        is permuted is studentised; Hall (1992).
    """
    with auditing(prompts, settings, axes=axes, clusters=clusters) as decided:
        return decided()


@contextmanager
def auditing(
    prompts: pd.DataFrame, settings: AuditSettings, *, axes: Sequence[str] = AXES, clusters: Names = CLUSTERS
) -> Iterator[Callable[[], pd.DataFrame]]:
    """Permute labels on other threads while the block goes on; the call returns what `audit` does."""
    # no more columns: the rows are copied several times
    usable = toward_truth(prompts[list(dict.fromkeys([*_COLUMNS, "likelier_pre", *axes, *clusters.values()]))])
    there = (usable["status"] == "ok") & usable["holds"].isin(HOLDERS)
    usable = sort_prompts(usable if there.all() else usable[there])  # once for all contrasts
    held = [holds for holds in HOLDERS if (usable["holds"] == holds).any()]
    tables = [group_contrasts(usable, axes, holds=holds, clusters=clusters).assign(holds=holds) for holds in held]
    release_memory()
    if not any(map(len, tables)):
        raise RecordError(f"audit: no two groups on {list(axes)}: no prompt has a tag, or all have the same.")
    table = pd.concat([own for own in tables if len(own)], ignore_index=True)
    table = _choose_scale(table.sort_values("editor", kind="stable", ignore_index=True), settings)
    if settings.permutations == 0 or dict(clusters) != dict(CLUSTERS):
        yield partial(decide, table, settings)
        return
    every, equal = permutations_for(table, settings)
    contrasts = LabelledContrasts(usable, table)
    calm = contrasts
    if equal > every:
        calm = LabelledContrasts(usable, table.assign(p=table["p"].where(_equal_by_t(table, settings))))
    del usable, prompts  # for want of memory, too: the block may go on for long
    release_memory()
    with contrasts.drawing(every, settings.seed) as drawn, calm.drawing(equal, settings.seed, every) as more:
        yield lambda: decide(table, settings, drawn(), more())


def permutations_for(table: pd.DataFrame, settings: AuditSettings) -> tuple[int, int]:
    """Return how often labels are permuted for every contrast, and for those that t shows to be equal.

    The smallest p of a difference is 1 / (permutations + 1), that of two one-sided tests half of it, and Holm
    multiplies this by the tests: permutations must be able to agree with t.

    Args:
        table: `value`, `stderr`, `p`, `df`, `margin`, `mirror` and the columns of the family.
        settings: With permutations that are given, or None.
    """
    if settings.permutations is not None:
        return settings.permutations, settings.permutations
    every = min(max(LEAST, math.ceil(1 / settings.alpha)), MOST_DRAWS)
    tests = adjust_families(table[_is_test(table)], settings.family)["family_size"]
    most = tests[_equal_by_t(table, settings)[tests.index]].max()
    return every, every if math.isnan(most) else min(max(every, math.ceil(most / 2 / settings.alpha)), MOST_DRAWS)


def _is_test(table: pd.DataFrame) -> pd.Series:
    return table["p"].notna() & ~table["mirror"].astype(bool)


def _equal_by_t(table: pd.DataFrame, settings: AuditSettings) -> pd.Series:
    """Return which contrasts t shows to be equal, of as many edits as that takes."""
    tests = table[_is_test(table)]
    same = adjust_families(tests.assign(p=_equivalence(tests)), settings.family)["p_adjusted"]
    enough = tests["clusters"].map(lambda counts: counts.get("edit", FEW_EDITS) >= FEW_EDITS).astype(bool)
    return ((same < settings.alpha) & enough).reindex(table.index, fill_value=False)


def _equivalence(table: pd.DataFrame) -> Floats:
    """Return p of two one-sided tests of each contrast, by t."""
    columns = (table[name] for name in ("value", "stderr", "df", "margin"))
    return np.array([equivalence_p(*row) for row in zip(*columns)], dtype=np.float64)


def decide(
    table: pd.DataFrame, settings: AuditSettings, drawn: Floats | None = None, more: Floats | None = None
) -> pd.DataFrame:
    """Correct contrasts over their families and say what each supports.

    Args:
        table: `value`, `stderr`, `p`, `df`, `margin`, `scale`, `clusters` and `mirror` of each contrast.
        settings: What is declared before looking.
        drawn: (permutations, rows) p of t, see `LabelledContrasts`. None: Holm over `p_t`.
        more: The same after further permutations, of some rows, for equivalence; NaN elsewhere.

    Returns:
        The rows with the columns of `audit` from `family` on.

    Raises:
        RecordError: The table misses a column of the family.
    """
    mirror = table["mirror"].to_numpy(bool)
    tests, of = table[~mirror], np.cumsum(~mirror) - 1  # a mirror is decided as the row before it
    same = _equivalence(tests)
    p = tests["p_t" if "p_t" in tests else "p"].to_numpy(np.float64)
    found = adjust_families(tests.assign(p=p), settings.family)
    if drawn is not None:
        drawn, families = drawn[:, ~mirror], found["family"].to_numpy()
        for name in set(families):
            own = families == name
            found.loc[own, "p_adjusted"] = step_down(p[own], drawn[:, own])
        # how often chance puts an estimate this far from a true effect as large as the margin, on either side
        further = drawn[:0] if more is None else more[:, ~mirror]
        same = permutation_p(2 * same, np.concatenate([drawn, further])) / 2
        # an interval ends where permutations say, or further out
        half = (stats.t.isf(permutation_level(drawn, 1 - LEVEL) / 2, tests["df"]) * tests["stderr"]).to_numpy()[of]
        low, high = np.fmin(table["low"], table["value"] - half), np.fmax(table["high"], table["value"] + half)
        table = table.assign(p=permutation_p(p, drawn)[of], low=low, high=high)
    found["p_equivalence"] = adjust_families(tests.assign(p=same), settings.family)["p_adjusted"]
    counts = found["family"].map({name: independent_tests(rows) for name, rows in found.groupby("family")})
    levels = settings.alpha / np.fmax(1, counts.to_numpy(np.float64))
    errors = zip(tests["stderr"], tests["df"], levels)
    found["detectable"] = [minimum_detectable_effect(stderr, df, alpha=level) for stderr, df, level in errors]
    corrected = ("family", "family_size", "p_adjusted", "p_equivalence", "detectable")
    table = table.assign(**{name: found[name].to_numpy()[of] for name in corrected})
    claims = [_judge(row, settings) for row in table.to_dict("records")]
    columns = {"verdict": "label", "direction": "direction", "rule": "rule"}
    return table.assign(**{name: [getattr(claim, field) for claim in claims] for name, field in columns.items()})


def _judge(row: Mapping[Hashable, Any], settings: AuditSettings) -> Verdict:
    adjusted = Estimate(row["value"], stderr=row["stderr"], p=row["p_adjusted"], df=row["df"], note=row["note"])
    floors = {"probability": settings.noise_floor, "log-odds": settings.noise_floor_log_odds}
    limits: dict[str, Any] = {"margin": row["margin"], "noise_floor": floors[row["scale"]], "alpha": settings.alpha}
    claim = verdict(adjusted, **limits, p_equivalence=row["p_equivalence"], edits=row["clusters"].get("edit"))
    away, decided = row["low"] > 0 or row["high"] < 0, row["p_adjusted"] < settings.alpha
    if claim.label == "too_few" or away == decided:
        return claim
    note = "alone its interval excludes 0, and p over the family decides"
    if decided:
        note = "its interval, wider for harm that comes in bursts, reaches 0, and p decides"
    return claim._replace(rule="; ".join(filter(None, (claim.rule, note))))


def independent_tests(family: pd.DataFrame) -> float:
    """Return how many independent tests a family counts as in its first step: what the least p was corrected by.

    Permutations give no p below 1 / (1 + permutations): where they end, the size of the family is all that is known.

    Args:
        family: `p_t` (or `p`), `p_adjusted` and `family_size` of its contrasts.
    """
    size = float(family["family_size"].max())
    p = family["p_t" if "p_t" in family else "p"].to_numpy(np.float64)
    if np.isnan(p).all():
        return size
    least, adjusted = (float(column[np.nanargmin(p)]) for column in (p, family["p_adjusted"].to_numpy(np.float64)))
    return min(size, float(np.log1p(-adjusted) / np.log1p(-least))) if 0 < least < adjusted < 1 else size


def _choose_scale(table: pd.DataFrame, settings: AuditSettings) -> pd.DataFrame:
    """Put each contrast's deciding scale into `value` and its interval; keep the value of other contrasts.

    Log-odds decide where halving the likelier answer's probability before the edit stays inside the margin.
    """
    log_odds = table["likelier_pre"] < REACH * settings.margin
    out = table.assign(scale=log_odds.map({True: "log-odds", False: "probability"}), probability=table["value"])
    out["margin"] = log_odds.map({True: settings.margin_log_odds, False: settings.margin})
    for name in _ESTIMATE:
        out[name] = out[name].mask(log_odds, out["log_odds" if name == "value" else f"log_odds_{name}"])
    out["p_t"] = 2 * stats.t.sf(np.abs(out["value"]) / out["stderr"], out["df"])
    return out.drop(columns=[f"{scale}_{name}" for scale in SCALES for name in _ESTIMATE[1:]])
