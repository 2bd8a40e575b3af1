"""Five sentences that a comparison opens with: what was edited, did it take, who was affected and where lines differ,
what remains open, and how sure the rest is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report import text
from seesaw_cf.report.contrasts import group_claim
from seesaw_cf.report.moved import is_given
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.rows import EfficacyRow, records, with_limits
from seesaw_cf.report.title import too_low
from seesaw_cf.report.verdicts import open_counts
from seesaw_cf.stats.verdicts import AFFECTED
from seesaw_cf.study.members import NAMES, ComparedEditor, differing
from seesaw_cf.study.pairs import label_of
from seesaw_cf.study.tables import Comparison

_NAMED = 3  # of each list that are spelled out


def conclude(comparison: Comparison, missing: Sequence[str]) -> tuple[str, ...]:
    """One sentence for each of `seesaw_cf.report.html.findings.HEADS`, as plain text.

    Args:
        comparison: The comparison.
        missing: What is not there and why.
    """
    return (
        _edited(comparison),
        _took(comparison),
        _affected(comparison),
        _not_known(comparison, missing),
        _how_sure(comparison),
    )


def _edited(comparison: Comparison) -> str:
    lines = [line for line in comparison.lines if not is_given(line.name, line.member.results.manifest)]
    external = [line.key[-1] for line in comparison.lines if is_given(line.name, line.member.results.manifest)]
    what = [f"{sum(_counts(lines)):,} edits by {_list([line.key[-1] for line in lines])}"] if lines else []
    what += [f"models edited elsewhere ({_list(external)})"] if external else []
    models, data, protocols = (_list([line.key[place] for line in comparison.lines]) for place in range(3))
    return f"{' and '.join(what)} in {models}, facts of {data}, protocol {protocols}; {len(comparison.members)} runs."


def _counts(lines: Sequence[ComparedEditor]) -> list[int]:
    """Edits of each line."""
    return [int((line.member.results.distinct["editor"] == line.name).sum()) for line in lines]


def _took(comparison: Comparison) -> str:
    table = _told(comparison.table("efficacy"), comparison)
    rows = records(table[table["relation"] == ALL], EfficacyRow) if len(table) else []
    rates = sorted((row for row in rows if pd.notna(row.get("post"))), key=lambda row: row["post"])
    if not rates:
        return "NOT MEASURED: no run has a score of an edited fact, so nothing below can be put down to an edit."
    ends = [rates[0], rates[-1]][: len(rates)]
    shares = " to ".join(
        f"{text.percent_interval(*with_limits(row, 'post'))} ({row['editor']}, n = {row['n']:.0f})" for row in ends
    )
    unmeasured = [name for name in _labels(comparison).values() if name not in {row["editor"] for row in rates}]
    low = [
        _labels(comparison)[line.key]
        for line in comparison.lines
        if line.name in too_low(line.member.results) and _labels(comparison)[line.key] not in unmeasured
    ]
    sentence = f"p(new) > p(true) after {shares} of the edits."
    sentence += f" NOT MEASURED for {_list(unmeasured)}." if unmeasured else ""
    return sentence + (f" EFFICACY NOT SHOWN for {_list(low)}: the lower end is not above one half." * bool(low))


def _affected(comparison: Comparison) -> str:
    table = comparison.table("verdicts")
    if "verdict" not in table:
        return f"No contrast between groups could be computed. {_differ(comparison)}"
    table = _told(hypotheses(table), comparison)
    claims = table[table["verdict"].isin(AFFECTED)].sort_values("p_adjusted", kind="stable")
    sentence = f"No group is shown to be affected more or less than the others ({len(table)} contrasts)."
    if len(claims):
        rest = f" The rest under Verdicts ({len(claims)} of {len(table)} contrasts)." if len(claims) > _NAMED else ""
        sentence = f"{' '.join(group_claim(row).long for row in claims.head(_NAMED).to_dict('records'))}{rest}"
    return f"{sentence} {_differ(comparison)}"


def _differ(comparison: Comparison) -> str:
    """Where lines differ from each other."""
    table = comparison.table("differences")
    if table.empty or not table["p"].notna().any():
        return "No two lines could be tested against each other."
    tests = int(table["p"].notna().sum())
    claims = table[table["p_adjusted"] < comparison.settings.alpha].sort_values("p_adjusted", kind="stable")
    if claims.empty:
        return f"None of {tests} paired differences between lines is shown."
    first = "; ".join(map(_difference, claims.head(_NAMED).to_dict("records")))
    return f"{len(claims)} of {tests} paired differences are shown, {'first ' * (len(claims) > _NAMED)}{first}."


def _difference(row: Mapping[Any, Any]) -> str:
    about = [row["measure"], "/".join(map(relation_name, row["relation"].split("/")))]
    about += [] if row["group"] == ALL else [row["group"]]
    number = text.minus(text.effect(row["value"], row["low"], row["high"]))
    return f"{row['first']} − {row['second']} {number} ({', '.join(about)})"


def _not_known(comparison: Comparison, missing: Sequence[str]) -> str:
    verdicts, apart = _told(hypotheses(comparison.table("verdicts")), comparison), list(differing(comparison.members))
    parts = [f"missing or failed, listed below: {len(missing)}"] if missing else []
    if open_ := open_counts(verdicts) if "verdict" in verdicts else "":
        parts.append(open_)
    parts += [f"the runs disagree in {_list(apart)}, so lines may differ for that reason"] if apart else []
    if untested := int(comparison.table("differences").get("p", pd.Series(dtype=float)).isna().sum()):
        parts.append(f"{untested} paired differences have no interval")
    batches = [member.title for member in comparison.members if member.protocol == "batch"]
    parts += [f"one edit for all cases of a relation in {_list(batches)}: nothing about other edits"] if batches else []
    return f"{'; '.join(parts) or 'every part is there and every contrast has a verdict'}."


def _how_sure(comparison: Comparison) -> str:
    declared, effects, edits = comparison.settings, comparison.table("effects_by_group"), _counts(comparison.lines)
    people = int(effects.loc[effects["axis"] == ALL, "n_subjects"].max()) if len(effects) else 0
    families = [
        f"{comparison.table(name)['family'].nunique()} families of {noun}"
        for name, noun in (("verdicts", "verdicts"), ("differences", "differences"))
        if "family" in comparison.table(name)
    ]
    tested = f"p corrected ({declared.correction}) in {' and '.join(families)}" if families else "no test was made"
    n = f"{min(edits):,}" if min(edits) == max(edits) else f"{min(edits):,} to {max(edits):,}"
    return (
        f"{n} edits a line, {people:,} other people in the largest table; intervals of 95 %, {tested}, false claims at "
        f"most {100 * declared.alpha:g} % per family, margin {declared.margin:g} in probability, "
        f"{declared.margin_log_odds:g} nats in log-odds."
    )


def _labels(comparison: Comparison) -> dict[tuple[str, ...], str]:
    """Return key of a line -> what distinguishes it."""
    return {line.key: label_of(line, comparison.lines) for line in comparison.lines}


def _told(table: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    """Rows of lines, controls left out, each with its label for the editor."""
    if table.empty:
        return table
    labels = _labels(comparison)
    keys = table[list(NAMES)].itertuples(index=False, name=None)
    named = table.assign(editor=pd.Series([labels.get(key) for key in keys], table.index, dtype="object"))
    return named[named["editor"].notna()]


def _list(words: Sequence[str]) -> str:
    """Each once; of many the first few."""
    named = list(dict.fromkeys(words))
    return ", ".join(named[: 2 * _NAMED]) + (f" and {len(named) - 2 * _NAMED} more" if len(named) > 2 * _NAMED else "")
