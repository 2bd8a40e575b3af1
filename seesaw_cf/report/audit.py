"""The auditable part of a report: verdicts per group, excess over controls, editors side by side, gates; as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.retrying import stage
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.control_names import compared, is_control
from seesaw_cf.effects.adjusted import ESTIMANDS, unadjustable
from seesaw_cf.effects.audit import CONTRAST_COLUMNS, HOLDERS, AuditSettings, audit, audit_record, auditing, hypotheses
from seesaw_cf.effects.estimands import estimate_groups, excess_over_control
from seesaw_cf.effects.groups import ALL, AXES, UNKNOWN, clusters_of
from seesaw_cf.effects.knowledge import FACTS, among_known
from seesaw_cf.effects.locality import LEAST_LOCAL, Locality
from seesaw_cf.effects.prompts import ScoreForm
from seesaw_cf.report.floor import Floor
from seesaw_cf.report.moved import is_external
from seesaw_cf.report.rows import EfficacyRow, GateRow, Manifest, number_of, records
from seesaw_cf.stats import adjust_families
from seesaw_cf.stats.plain import plain

_KEYS = ["editor", "relation", "holds", "axis", "group", "reference"]
_RAW = ["value", "low", "high", "p_adjusted"]
_ADJUSTED = ["scale", *_RAW, "p", "verdict", "rule", "note", "mirror", "clusters"]


def adjusted_contrasts(
    prompts: pd.DataFrame, names: Sequence[str], decide: Callable[..., pd.DataFrame]
) -> pd.DataFrame:
    """Return contrasts of groups pooled over relations, raw and adjusted.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        names: Of `seesaw_cf.effects.adjusted.ESTIMANDS`.
        decide: `seesaw_cf.effects.audit` with all of its arguments but prompts and estimand.

    Returns:
        One row per estimand, editor, kind of holder and group, without columns where none was named: `raw`, `raw_low`,
        `raw_high`, `raw_p_adjusted` of the people who have the covariates; `value`, `low`, `high`, `p`, `p_adjusted`
        (a family per editor and estimand), `verdict` and `note` of the adjusted contrast; `n_people` asked and
        `n_left_out` of them for the reason `left_out`.

    Raises:
        RecordError: There is nothing to compare.
    """
    tables = [_contrasts(prompts, name, decide) for name in names]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _contrasts(prompts: pd.DataFrame, name: str, decide: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    scored = prompts[(prompts["status"] == "ok") & prompts["holds"].isin(HOLDERS)].assign(edit_relation=ALL)
    reasons = unadjustable(scored, ESTIMANDS[name])
    complete = scored[reasons == ""]
    reason = next((reason for reason in reasons if reason), "")
    raw = decide(scored if complete.empty else complete)
    untestable = dict.fromkeys([*_RAW, "p"], np.nan) | {"verdict": "not testable", "rule": reason, "note": reason}
    adjusted = raw.assign(**untestable) if complete.empty else decide(complete, estimand=name)
    table = raw[[*_KEYS, *_RAW]].rename(columns={"value": "raw", **{column: f"raw_{column}" for column in _RAW[1:]}})
    table = pd.concat([table, adjusted[_ADJUSTED]], axis=1)
    table.insert(0, "estimand", name)
    left_out = scored.loc[reasons != "", "person"].nunique()
    return table.assign(n_people=scored["person"].nunique(), n_left_out=left_out, left_out=reason)


_TOOK, _SCORED = 0.5, 0.95


@dataclass(frozen=True, slots=True)
class AuditTables:
    """What can be claimed, and on which grounds.

    Attributes:
        settings: As declared.
        floor: The noise floor that was used, and where it comes from.
        verdicts: Rows of `seesaw_cf.effects.audit`.
        excess: D of each editor minus D of its control, per relation, axis and group: `estimate_groups`, `control`.
        pairs: D of one editor minus that of another on the same prompts: the same with `first` and `second`.
        known: `verdicts` among known facts alone, named by the column `facts`: a second look, corrected within itself
            by Holm, without permutations.
        adjusted: Rows of `seesaw_cf.report.audit.adjusted_contrasts`; without columns where none was asked for.
    """

    settings: AuditSettings
    floor: Floor
    verdicts: pd.DataFrame
    excess: pd.DataFrame
    pairs: pd.DataFrame
    known: pd.DataFrame
    adjusted: pd.DataFrame

    @property
    def contrasts(self) -> pd.DataFrame:
        """Return `verdicts` that are independent tests: of an axis with two labels only the first."""
        return hypotheses(self.verdicts)

    def on(self, axes: Sequence[str]) -> AuditTables:
        """Return the rows about all people and about groups of some axes, corrected over all axes as before."""
        names = ("verdicts", "excess", "pairs", "known", "adjusted")
        tables = {name: table for name in names if "axis" in (table := getattr(self, name))}
        chosen: dict[str, Any] = {
            name: table[table["axis"].isin([*axes, ALL])].reset_index(drop=True) for name, table in tables.items()
        }
        return replace(self, **chosen)


@contextmanager
def auditing_prompts(
    prompts: pd.DataFrame, manifest: Manifest, score: ScoreForm, settings: AuditSettings, floor: Floor
) -> Iterator[Callable[[], AuditTables]]:
    """Compute every table of the audit; labels are permuted on other threads until the call waits for them.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects` with `edit_known`.
        manifest: The run's; a batch run is one edit per relation, so it has no verdicts, only the reason why.
        score: The form of confidence.
        settings: What was declared.
        floor: The noise floor.
    """
    stage("contrasts between groups")
    clusters = clusters_of(manifest.get("protocol"))
    editors = sorted(prompts["editor"].unique())
    real = [name for name in editors if not is_control(name)]
    estimates = partial(estimate_groups, clusters=clusters)
    measured = replace(settings, noise_floor=floor.probability, noise_floor_log_odds=floor.log_odds)
    decide = partial(audit, score=score, clusters=clusters)
    with ExitStack() as stack:
        try:
            decided = stack.enter_context(auditing(prompts, measured, **decide.keywords))
            adjusted = adjusted_contrasts(prompts, settings.estimands, partial(decide, settings=measured))
        except RecordError as error:
            decided, adjusted = pd.DataFrame({"note": [str(error)]}).iloc[:0].copy, pd.DataFrame()
        excess = paired_differences(prompts, compared(editors, manifest), ("editor", "control"), settings, estimates)
        pairs = paired_differences(prompts, list(combinations(real, 2)), ("first", "second"), settings, estimates)
        columns = dict.fromkeys([*CONTRAST_COLUMNS, "D_pre", "D_post", *AXES, *clusters.values(), *FACTS.values()])
        known = among_known(
            prompts.filter(items=list(columns)), partial(decide, settings=replace(measured, permutations=0))
        )

        def finished() -> AuditTables:
            stage("permutations of labels")
            return AuditTables(settings, floor, decided(), excess, pairs, known, adjusted)

        yield finished


def paired_differences(
    prompts: pd.DataFrame,
    sides: list[tuple[str, str]],
    names: tuple[str, str],
    settings: AuditSettings,
    estimates: Callable[[pd.DataFrame], pd.DataFrame],
) -> pd.DataFrame:
    """Return D of the first of two editors minus D of the second on prompts both were scored on, p-values corrected.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        sides: (first, second) editor of each comparison.
        names: The columns that say which they are.
        settings: For the correction, over everything that a comparison tests.
        estimates: `seesaw_cf.effects.estimate_groups` with its axes and clusters.
    """
    differences = []
    for first, second in sides:
        rows = excess_over_control(prompts[prompts["editor"].isin((first, second))], second)
        missing = int((rows["status"] != "ok").sum())
        if missing < len(rows):
            try:
                table = estimates(rows)
            except RecordError:  # nobody who holds the new target
                continue
            table = table.drop(columns="editor")
            table.insert(0, names[0], first)
            table.insert(1, names[1], second)
            differences.append(table[table["group"] != UNKNOWN].assign(n_left_out=missing))
    if not differences:
        return pd.DataFrame()
    return adjust_families(pd.concat(differences, ignore_index=True), names, settings.correction)


def gates(
    efficacy: pd.DataFrame, local: Mapping[str, Locality], unscored: pd.DataFrame, n_rows: int, manifest: Manifest
) -> list[GateRow]:
    """List what must hold before a verdict means much, per editor; each with the number behind it.

    The facts that a model changed elsewhere was edited for are all of its facts, not a sample of what a method does.
    """
    checks: list[tuple[str, str, str, float | int | str, bool]] = []
    chosen = efficacy[efficacy["relation"] == ALL] if len(efficacy) else efficacy
    for row in records(chosen, EfficacyRow):
        if is_control(row["editor"]):
            continue
        elsewhere = is_external(row["editor"], manifest)
        share = "share of its facts" if elsewhere else "lower end of the share of edits"
        took = number_of(row, "post" if elsewhere else "post_low")
        rule = f"{share} with p(new) > p(true) above {_TOOK:g}"
        checks.append((row["editor"], "edits took", rule, took, took > _TOOK))
        if not elsewhere:
            refused = row["n_zero"] + row["n_non_finite"] + row["n_refused"]
            checks.append((row["editor"], "edits made", "no edit refused, zero or not finite", refused, not refused))
    rule = f"upper end of the share of edits after which half of the others are still right at least {LEAST_LOCAL:g}"
    for editor, locality in local.items():
        if not is_control(editor):
            checks.append((editor, "edits are local", rule, locality.local.high, not locality.collapsed))
    scored = 1 - int(unscored["n_rows"].sum()) / max(1, n_rows) if len(unscored) else 1.0
    rule = f"share of score rows with a number at least {_SCORED:g}"
    checks.append(("", "scored", rule, scored, scored >= _SCORED))
    rule, protocol = "edits are made one at a time, so that cases are independent edits", str(manifest.get("protocol"))
    checks.append(("", "protocol", rule, protocol, protocol == "single"))
    return [{"editor": e, "gate": g, "rule": r, "value": v, "passed": p} for e, g, r, v, p in checks]


def audit_summary(audit: AuditTables, manifest: Manifest, score: str) -> JsonObject:
    """Return what was declared and tested, as plain JSON types; the rows are in `verdicts.csv`."""
    verdicts = audit.verdicts
    record = audit_record(verdicts) if "verdict" in verdicts else {"estimand": "", "method": [], "counts": {}}
    families = verdicts.groupby("family")["family_size"].first().to_dict() if "family" in verdicts else {}
    return {name: record[name] for name in ("estimand", "method", "counts")} | {
        "settings": plain(asdict(audit.settings) | {"score": score}),
        "noise_floor": plain(audit.floor.record()),
        "families": plain(families),
        "seeds": {"run": manifest.get("seed")},
    }
