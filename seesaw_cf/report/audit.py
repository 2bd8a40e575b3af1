"""The auditable part of a report: verdicts per group, excess over controls, editors side by side, gates; as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import pandas as pd

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.retrying import stage
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.control_names import compared, is_control
from seesaw_cf.effects.audit import CONTRAST_COLUMNS, AuditSettings, audit, audit_record, auditing, hypotheses
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
    """

    settings: AuditSettings
    floor: Floor
    verdicts: pd.DataFrame
    excess: pd.DataFrame
    pairs: pd.DataFrame
    known: pd.DataFrame

    @property
    def contrasts(self) -> pd.DataFrame:
        """Return `verdicts` that are independent tests: of an axis with two labels only the first."""
        return hypotheses(self.verdicts)

    def on(self, axes: Sequence[str]) -> AuditTables:
        """Return the rows about all people and about groups of some axes, corrected over all axes as before."""
        names = ("verdicts", "excess", "pairs", "known")
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
        except RecordError as error:
            decided = pd.DataFrame({"note": [str(error)]}).iloc[:0].copy
        excess = paired_differences(prompts, compared(editors, manifest), ("editor", "control"), settings, estimates)
        pairs = paired_differences(prompts, list(combinations(real, 2)), ("first", "second"), settings, estimates)
        columns = dict.fromkeys([*CONTRAST_COLUMNS, "D_pre", "D_post", *AXES, *clusters.values(), *FACTS.values()])
        known = among_known(
            prompts.filter(items=list(columns)), partial(decide, settings=replace(measured, permutations=0))
        )

        def finished() -> AuditTables:
            stage("permutations of labels")
            return AuditTables(settings, floor, decided(), excess, pairs, known)

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
