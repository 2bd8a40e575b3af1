"""Every table of a comparison, as data frames: what each run found side by side, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.accuracy import cross_property
from seesaw_cf.effects.audit import AuditSettings, decide
from seesaw_cf.effects.groups import ALL, UNKNOWN, BiasMode, clusters_of, group_effects
from seesaw_cf.records import groups
from seesaw_cf.report.results import HOLDER, STAR_LEVEL, Results, relation_names
from seesaw_cf.study.members import NAMES, ComparedEditor, Member, joined, lines_of
from seesaw_cf.study.pairs import differences, label_of, pairs_of, prompts_of

TABLES = (
    *("runs", "efficacy", "success", "effects_by_group", "citizenship", "accuracy", "verdicts", "excess"),
    "differences",
)
"""Names of the tables of a comparison."""

CITIZENSHIP = "P27"
_EFFECT = ["editor", "relation", "axis", "group"]
MEASURES = {"PS": "paraphrase", "NS": "neighbourhood", "S": "score"}
"""Number of `seesaw_cf.effects.edit_success` -> what it is called."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Finished runs side by side.

    Attributes:
        members: The runs, in their order.
        settings: What is declared.
        tables: Name of the CSV file -> table, each with the columns of `seesaw_cf.study.members.NAMES` in front:
            "runs", "efficacy", "success" (paraphrases, neighbours, and the score of all three),
            "effects_by_group", "citizenship" (D by continent and race), "accuracy", "verdicts", "excess",
            "differences". Empty ones are left out.
        family: Columns of families of verdicts; None: each run's.
        mode: "paper": "accuracy" and the layouts of the papers' tables by the published arithmetic.
    """

    members: Sequence[Member]
    settings: AuditSettings
    tables: Mapping[str, pd.DataFrame]
    family: Sequence[str] | None = None
    mode: BiasMode = "crossed"

    def table(self, name: str) -> pd.DataFrame:
        """Return a table; empty when there is none."""
        return self.tables.get(name, pd.DataFrame())

    @property
    def lines(self) -> list[ComparedEditor]:
        """What is compared, without controls."""
        return lines_of(self.members)

    @property
    def labels(self) -> dict[tuple[str, ...], str]:
        """Key of each line -> its label."""
        lines = self.lines
        return {line.key: label_of(line, lines) for line in lines}


def compare(
    members: Sequence[Member],
    settings: AuditSettings,
    family: Sequence[str] | None = None,
    *,
    every: bool = False,
    mode: BiasMode = "crossed",
) -> Comparison:
    """Put finished runs side by side.

    Args:
        members: The runs.
        settings: What is declared for verdicts and differences.
        family: Columns that name a family of verdicts, also model, records and protocol; None: each run has its own.
        every: Compare also runs that differ in more than one name, where none differs in one only.
        mode: "paper" for the published arithmetic of accuracy and of the papers' tables.
    """
    lines = lines_of(members)
    tables = {
        "runs": pd.DataFrame([_run(member) for member in members]),
        "efficacy": joined(members, lambda member: member.results.efficacy),
        "success": joined(members, _success),
        "effects_by_group": joined(members, _effects),
        "citizenship": joined(members, _by_continent),
        "accuracy": joined(members, partial(_accuracy, mode=mode)),
        "verdicts": _verdicts(members, settings, family),
        "excess": joined(members, lambda member: _audit_table(member, "excess")),
        "differences": differences(pairs_of(lines, every=every), lines, settings),
    }
    there = {name: _with_names(tables[name]) for name in TABLES if len(tables[name])}
    return Comparison(members, settings, there, family, mode)


def _accuracy(member: Member, mode: BiasMode) -> pd.DataFrame:
    return _published_accuracy(member.results) if mode == "paper" else member.results.accuracy


def _published_accuracy(results: Results) -> pd.DataFrame:
    """Return accuracy by the published rule; the row "all" is the mean of the rows of pairs, as the papers print it.

    Source: SEESAW-CF Tables 4 and 5 (last row).
    """
    if results.accuracy.empty:
        return pd.DataFrame()
    scores = read_table(results.folder / "scores.parquet", SCORES)
    pairs = cross_property(scores, mode="paper")
    means = pairs.groupby("editor", sort=False)[["pre", "post", "change"]].mean().reset_index()
    means = means.assign(edit_relation=ALL, effect_relation=ALL, n=pairs.groupby("editor", sort=False).size().array)
    return pd.concat([pairs, means], ignore_index=True)


def _run(member: Member) -> TableRow:
    """Return what a run was made of, without the machine's clock and paths."""
    manifest: Mapping[str, Any] = member.manifest
    floor = member.results.floor
    return {
        "run": member.title,
        "model": member.model,
        "records": member.records,
        "protocol": member.protocol,
        "editors": ", ".join(member.editors.values()),
        "edits": len(member.results.distinct),
        "score_rows": member.results.n_rows,
        "noise_floor": floor.probability,
        "noise_floor_log_odds": floor.log_odds,
        "seed": manifest.get("seed"),
        **{f"model_{key}": manifest.get("model", {}).get(key) for key in ("id", "dtype", "fingerprint")},
        **{f"data_{key}": manifest.get("data", {}).get(key) for key in ("source", "cases", "sha256")},
        "scorer": manifest.get("scoring", {}).get("scorer"),
        "notes": " ".join(manifest.get("notes", [])),
    }


def _success(member: Member) -> pd.DataFrame:
    """Return paraphrases, neighbours and the score with their intervals, of the unedited model first."""
    rows = [
        {"editor": editor, "measure": MEASURES[short]}
        | number.columns("value", "low", "high", "n")
        | {"n_cases": number.clusters["case"]}
        for editor in ("unedited", *member.editors)
        if editor in member.results.success
        for short, number in member.results.success[editor].numbers["counterfact"].items()
        if short in MEASURES
    ]
    return pd.DataFrame(rows)


def _effects(member: Member) -> pd.DataFrame:
    """Return effects by group, with the papers' test on people who hold the new target: `paper_p`, `paper_star`."""
    effects = member.results.effects
    if effects.empty:
        return effects
    tested = _published_tests(member)
    if tested.empty:
        return effects.assign(paper_p=float("nan"), paper_star=False)
    tested = tested.rename(columns={"p": "paper_p"}).assign(holds=HOLDER)
    tested["paper_star"] = (tested["D"] < 0) & (tested["paper_p"] < STAR_LEVEL)
    merged = effects.merge(tested.drop(columns="D"), how="left", on=[*_EFFECT, "holds"])
    return merged.assign(paper_star=merged["paper_star"].eq(True))


def _published_tests(member: Member) -> pd.DataFrame:
    """Return the papers' test of each effect on people who hold the new target."""
    frames = [prompts_of(line) for line in lines_of([member], controls=True)]
    held = [frame for frame in frames if (frame["holds"] == HOLDER).any()]
    tests = [group_effects(frame, mode="paper", draws=0)[[*_EFFECT, "D", "p"]] for frame in held]
    return pd.concat(tests) if tests else pd.DataFrame()


def _by_continent(member: Member) -> pd.DataFrame:
    """Return D by race after edits of citizenship, by the continent of the country edited to (Figure 3)."""
    continents = {row["label"]: row["continent"] for row in groups.table("countries").values()}
    tables = []
    for line in lines_of([member]):
        prompts = prompts_of(line)
        rows = prompts[prompts["edit_relation"] == CITIZENSHIP] if len(prompts) else prompts
        if not len(rows) or not (rows["holds"] == HOLDER).any():
            continue
        by_continent = rows.assign(edit_relation=[continents.get(name) or UNKNOWN for name in rows["target_new"]])
        tables.append(group_effects(by_continent, axes=["race"], clusters=clusters_of(member.protocol)))
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return table.drop(columns="effective").rename(columns={"relation": "continent"}) if tables else table


def _audit_table(member: Member, name: str) -> pd.DataFrame:
    return pd.DataFrame() if member.results.audit is None else getattr(member.results.audit, name)


def _verdicts(members: Sequence[Member], settings: AuditSettings, family: Sequence[str] | None) -> pd.DataFrame:
    """Return the verdicts of all runs; families that span runs are decided together (no permutation spans runs)."""
    table = joined(members, lambda member: _audit_table(member, "verdicts"))
    if "value" not in table:
        return table
    if family is None or set(family) == set(NAMES):
        runs = table[list(NAMES[:3])].agg("/".join, axis=1)
        return table.assign(family=runs + "/" + table["family"])
    floors = [member.results.floor for member in members]
    nats = _largest([member.log_odds for member in floors])
    measured = replace(
        settings, noise_floor=_largest([member.probability for member in floors]), noise_floor_log_odds=nats
    )
    return decide(table, measured, family)


def _largest(values: Sequence[float | None]) -> float | None:
    """Return the largest noise floor; None where a run has measured none."""
    there = [value for value in values if value is not None]
    return max(there) if there and len(there) == len(values) else None


def _with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the papers' names to relation ids."""
    columns = [name for name in ("relation", "edit_relation", "effect_relation") if name in frame]
    return frame.assign(
        **{f"{name}_name": [relation_names(str(relation)) for relation in frame[name]] for name in columns}
    )
