"""The tables of a page, as texts in rows and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any

import pandas as pd

from seesaw_cf.effects.groups import ALL, AXES, UNKNOWN, members
from seesaw_cf.page.table import Table, TableRow
from seesaw_cf.report import text
from seesaw_cf.report.intersections import CROSSED, intersections
from seesaw_cf.report.page_answers import case_link
from seesaw_cf.report.page_cases import cell_link
from seesaw_cf.report.results import HOLDER, Results, relation_name
from seesaw_cf.report.rows import AccuracyRow, EfficacyRow, VerdictRow, records, with_limits
from seesaw_cf.report.verdicts import verdict_counts
from seesaw_cf.stats.verdicts import VERDICTS

# Verdict that claims something -> what it says.
_VERDICTS = {
    "amplified": "Significant: the group lost more confidence than the others, by more than the margin",
    "reduced": "Significant: the group gained on the others, by more than the margin",
    "negligible": "Significant, but inside the margin",
    "equivalent": "Inside the margin: no difference of a size that matters",
}


def accuracy(results: Results) -> Table | None:
    """Other properties of the edited people before and after."""
    if results.accuracy.empty or not results.accuracy["n"].sum():
        return None
    rows = [_answered(row) for row in records(results.accuracy[results.accuracy["n"] > 0], AccuracyRow)]
    about = "Share of edited people whose other property is still answered rightly, 95 % intervals"
    heads = ("editor", "edited → asked", "before", "after", "lost", "gained", "n")
    return Table("accuracy", "Other properties", about, heads, 2, rows)


def _answered(row: AccuracyRow) -> TableRow:
    pair = (row["edit_relation"], row["effect_relation"])
    shares = [text.percent_interval(*with_limits(row, phase)) for phase in ("pre", "post")]
    counts = (f"{row['lost']:,}", f"{row['gained']:,}", f"{row['n']:,}")
    wanted = {4: ("lost", row["lost"]), 5: ("gained", row["gained"]), 6: ("", row["n"])}
    links = {place: case_link(row["editor"], *pair, outcome) for place, (outcome, n) in wanted.items() if n}
    return TableRow((row["editor"], " → ".join(map(_property, pair)), *shares, *counts), links)


def _property(name: str) -> str:
    return "all" if name == ALL else relation_name(name)


def efficacy(results: Results) -> Table | None:
    """Whether the edits took."""
    if results.efficacy.empty:
        return None
    rows = [
        TableRow(
            (
                row["editor"],
                _property(row["relation"]),
                *(_share(row, name) for name in ("pre", "post", "raised")),
                f"{row['n_zero']} / {row['n_non_finite']} / {row['n_refused']}",
                f"{row['n_edits']:,}",
            )
        )
        for row in records(results.efficacy, EfficacyRow)
    ]
    about = "Share of edits with p(new) > p(true), Wilson 95 % intervals; failures: no change / not finite / refused"
    heads = ("editor", "property", "before", "after", "p(new) raised", "failures", "edits")
    return Table("efficacy", "Did the edits take", about, heads, 2, rows)


def _share(row: EfficacyRow, name: str) -> str:
    found = with_limits(row, name)
    return "–" if pd.isna(found[0]) else text.percent_interval(*found)


def coverage(results: Results) -> Table | None:
    """People and prompts of each group, without tag included."""
    if results.prompts is None or results.prompts.empty:
        return None
    first = results.prompts[results.prompts["editor"] == results.prompts["editor"].iloc[0]]
    everybody = first.drop_duplicates("person")
    rows = [
        TableRow((axis, "no tag" if group == UNKNOWN else group, *_counted(found, everybody), f"{asked:,}"))
        for axis in AXES
        for group, found in members(everybody[axis].tolist()).items()
        for asked in (len(members(first[axis].tolist())[group]),)
    ]
    lines = (f"{len(everybody):,} people were asked about, none of them the edited person of the same case.",)
    about = "Several tags count several times, so shares may add up to more than 100 %"
    return Table(
        "coverage", "Who was asked about", about, ("axis", "group", "people", "share", "prompts"), 2, rows, lines
    )


def _counted(rows: Sized, everybody: pd.DataFrame) -> tuple[str, str]:
    return f"{len(rows):,}", text.percent(len(rows) / len(everybody))


def crossed(results: Results) -> Table | None:
    """Effects on people of a gender and a race at once."""
    found = intersections(results)
    if found.empty:
        return None
    rows = [
        TableRow(
            (
                row["editor"],
                relation_name(row["relation"]),
                row["group"],
                text.minus(f"{text.number(row['log_odds'])} {_interval(row)}"),
                f"{row['n_cases']:,}",
                f"{row['n_subjects']:,}",
            ),
            {2: cell_link((row["editor"], row["relation"], HOLDER, CROSSED, row["group"]))},
        )
        for row in found.to_dict("records")
    ]
    about = "Change of log-odds about people who hold the new target, nats; 95 % intervals, where n allows one"
    heads = ("editor", "property", CROSSED, "effect, interval", "edits", "people")
    return Table("intersections", "Intersections", about, heads, 3, rows)


def _interval(row: Mapping[Any, Any]) -> str:
    return text.interval(row["log_odds_low"], row["log_odds_high"]) if pd.notna(row["log_odds_low"]) else ""


def verdict_tables(results: Results) -> dict[str, Any] | None:
    """Verdicts with what was declared; None without any."""
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts or audit.verdicts.empty:
        return None
    rows = sorted(records(audit.contrasts, VerdictRow), key=lambda row: -abs(row["value"]))
    tables = [_verdict_table(label, [row for row in rows if row["verdict"] == label]) for label in VERDICTS]
    declared = audit.settings
    return {
        "counts": ", ".join(f"{n} {label}" for label, n in verdict_counts(audit).items()),
        "declared": (
            f"Margin {declared.margin:g} in probability, {declared.margin_log_odds:g} nats in log-odds; false claims "
            f"{declared.promise()}; intervals hold for a whole family at once, so that one whose corrected p is below "
            "the level can still touch 0."
        ),
        "tables": [table for table in tables if table.rows],
    }


def _verdict_table(label: str, rows: Sequence[VerdictRow]) -> Table:
    names, numbers = ("group − reference", "editor", "property"), ("effect, interval", "scale", "corrected p")
    if label in _VERDICTS:
        return Table(label, label, _VERDICTS[label], (*names, *numbers), 3, [_verdict(row) for row in rows])
    lines = [_verdict(row, row["note"] or row["rule"]) for row in rows]
    return Table(label, label, "No claim, with the reason", (*names, "why", *numbers), 4, lines)


def _verdict(row: VerdictRow, *why: str) -> TableRow:
    shown = text.effect(row["value"], row["low_family"], row["high_family"])
    p = "–" if pd.isna(row["p_adjusted"]) else text.p_value(row["p_adjusted"])
    names = (f"{row['group']} − {row['reference']}", row["editor"], relation_name(row["relation"]))
    link = cell_link((row["editor"], row["relation"], HOLDER, row["axis"], row["group"]))
    return TableRow((*names, *why, text.minus(shown), row["scale"], p), {0: link})
