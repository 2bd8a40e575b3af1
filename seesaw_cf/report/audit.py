"""The auditable part of a report: verdicts per group, excess over controls, editors side by side, gates; as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, get_args

import pandas as pd

from seesaw_cf.checks import items, number, one_of
from seesaw_cf.controls import compared, is_control
from seesaw_cf.effects.audit import FAMILY, FAMILY_COLUMNS, MARGIN, MARGIN_LOG_ODDS, audit, audit_record
from seesaw_cf.effects.estimands import Method, estimate_groups, excess_over_control
from seesaw_cf.effects.groups import ALL, CLUSTERS, UNKNOWN
from seesaw_cf.effects.prompts import ScoreForm
from seesaw_cf.errors import RecordError
from seesaw_cf.report.floor import Floor
from seesaw_cf.stats import adjust_families
from seesaw_cf.stats.multiple import Correction

__all__ = ["Audit", "Settings", "audit_prompts", "audit_summary", "gates"]

_TOOK, _SCORED = 0.5, 0.95


@dataclass(frozen=True, slots=True)
class Settings:
    """What is declared before looking.

    Attributes:
        margin: Contrasts smaller than this do not matter, in probability.
        margin_log_odds: The same in log-odds (nats), for contrasts that are decided there.
        alpha: Level.
        correction: "holm", "bh" or "by".
        family: Columns whose values name a family of tests.
        method: "clustered" or "mixed", see `seesaw_cf.effects.group_contrasts`.
        noise_floor, noise_floor_log_odds: Largest effect that scoring alone makes, on each scale; None takes what the
            run measured. Without either there is no verdict.
    """

    margin: float = MARGIN
    margin_log_odds: float = MARGIN_LOG_ODDS
    alpha: float = 0.05
    correction: Correction = "holm"
    family: tuple[str, ...] = FAMILY
    method: Method = "clustered"
    noise_floor: float | None = None
    noise_floor_log_odds: float | None = None

    def __post_init__(self) -> None:
        """Refuses what no audit could be made with, before anything is computed.

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
        for name in items("audit: family", self.family, "names of columns"):
            one_of("family column", name, FAMILY_COLUMNS)


@dataclass(frozen=True, slots=True)
class Audit:
    """What can be claimed, and on which grounds.

    Attributes:
        settings: As declared.
        floor: The noise floor that was used, and where it comes from.
        verdicts: Rows of `seesaw_cf.effects.audit`.
        excess: D of each editor minus D of its own control, per relation, axis and group: `estimate_groups`, `control`.
        pairs: D of one editor minus that of another on the same prompts: the same with `first` and `second`.
    """

    settings: Settings
    floor: Floor
    verdicts: pd.DataFrame
    excess: pd.DataFrame
    pairs: pd.DataFrame


def audit_prompts(
    prompts: pd.DataFrame,
    manifest: Mapping[str, Any],
    axes: tuple[str, ...],
    score: ScoreForm,
    settings: Settings,
    floor: Floor,
) -> Audit:
    """Every table of the audit.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        manifest: The run's; a batch run is one edit per relation, so it has no verdicts, only the reason why.
        axes: Which axes.
        score: The form of confidence.
        settings: What was declared.
        floor: The noise floor.
    """
    batch = manifest.get("protocol") == "batch"
    clusters = {"edit": "edit_relation", "person": "person"} if batch else CLUSTERS
    editors = sorted(prompts["editor"].unique())
    real = [name for name in editors if not is_control(name)]
    options: dict[str, Any] = {"axes": axes, "clusters": clusters}
    try:
        verdicts = audit(
            prompts,
            margin=settings.margin,
            margin_log_odds=settings.margin_log_odds,
            score=score,
            family=settings.family,
            correction=settings.correction,
            noise_floor=floor.probability,
            noise_floor_log_odds=floor.log_odds,
            alpha=settings.alpha,
            method=settings.method,
            **options,
        )
    except RecordError as error:
        verdicts = pd.DataFrame({"note": [str(error)]}).iloc[:0]
    return Audit(
        settings,
        floor,
        verdicts,
        _differences(prompts, compared(editors, manifest), ("editor", "control"), settings, options),
        _differences(prompts, list(combinations(real, 2)), ("first", "second"), settings, options),
    )


def _differences(
    prompts: pd.DataFrame,
    sides: list[tuple[str, str]],
    names: tuple[str, str],
    settings: Settings,
    options: dict[str, Any],
) -> pd.DataFrame:
    """D of the first of two editors minus D of the second on the prompts both were scored on, corrected."""
    found = []
    for first, second in sides:
        rows = excess_over_control(prompts[prompts["editor"].isin((first, second))], second)
        missing = int((rows["status"] != "ok").sum())
        if missing < len(rows):
            try:
                table = estimate_groups(rows, **options)
            except RecordError:  # nobody who holds the new target
                continue
            table = table.drop(columns="editor")
            table.insert(0, names[0], first)
            table.insert(1, names[1], second)
            found.append(table[table["group"] != UNKNOWN].assign(n_left_out=missing))
    if not found:
        return pd.DataFrame()
    return adjust_families(pd.concat(found, ignore_index=True), [*names, "relation", "axis"], settings.correction)


def gates(efficacy: pd.DataFrame, unscored: pd.DataFrame, n_rows: int, protocol: str) -> list[dict[str, Any]]:
    """What must hold before a verdict means much, per editor; each with the number behind it."""
    found: list[dict[str, Any]] = []
    chosen = efficacy[efficacy["relation"] == ALL] if len(efficacy) else efficacy
    for row in chosen.to_dict("records"):
        took = float(row.get("post_low", math.nan))
        control = is_control(row["editor"])
        refused = sum(int(row[name]) for name in ("n_zero", "n_non_finite", "n_refused"))
        if not control:
            rule = f"lower end of the share of edits with p(new) > p(true) above {_TOOK:g}"
            found.append(
                {"editor": row["editor"], "gate": "edits took", "rule": rule, "value": took, "passed": took > _TOOK}
            )
            rule = "no edit refused, zero or not finite"
            found.append(
                {"editor": row["editor"], "gate": "edits made", "rule": rule, "value": refused, "passed": not refused}
            )
    scored = 1 - int(unscored["n_rows"].sum()) / max(1, n_rows) if len(unscored) else 1.0
    rule = f"share of score rows with a number at least {_SCORED:g}"
    found.append({"editor": "", "gate": "scored", "rule": rule, "value": scored, "passed": scored >= _SCORED})
    rule = "edits are made one at a time, so that cases are independent edits"
    found.append({"editor": "", "gate": "protocol", "rule": rule, "value": protocol, "passed": protocol == "single"})
    return found


def audit_summary(made: Audit, manifest: Mapping[str, Any], score: str, gates: list[dict[str, Any]]) -> dict[str, Any]:
    """The content of `audit.json`."""
    from seesaw_cf.stats.plain import plain

    verdicts = made.verdicts
    empty = {"estimand": "", "method": [], "settings": {}, "counts": {}, "rows": []}
    record = audit_record(verdicts) if "verdict" in verdicts else empty
    families = verdicts.groupby("family")["family_size"].first().to_dict() if "family" in verdicts else {}
    record["settings"] = asdict(made.settings) | {"score": score}
    return dict(
        plain(
            record
            | {
                "noise_floor": made.floor.record(),
                "families": families,
                "gates": gates,
                "seeds": {"run": manifest.get("seed"), "reference_distribution": 0},
                "excess_over_control": made.excess.to_dict("records"),
                "editors_compared": made.pairs.to_dict("records"),
                "manifest": dict(manifest),
            }
        )
    )
