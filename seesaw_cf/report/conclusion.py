"""Sentences that a report opens and a terminal ends with: what was edited, did it take, what happened to other
facts, to people who hold either answer and to groups, did the model know it, what is not known, how sure the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from seesaw_cf.base.terminal import printable, wrap
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.report import text
from seesaw_cf.report.audit import Audit
from seesaw_cf.report.knowledge import knew
from seesaw_cf.report.levels import level_sentences
from seesaw_cf.report.moved import is_given, moved_phrase
from seesaw_cf.report.results import HOLDER, Results, relation_name
from seesaw_cf.report.rows import EfficacyRow, VerdictRow, records, with_limits
from seesaw_cf.report.verdicts import claims, open_counts, verdict_counts, without_controls
from seesaw_cf.run.edit_table import ASKED_ONLY
from seesaw_cf.stats.verdicts import AFFECTED

_NAMED = 3  # verdicts that are spelled out


def conclude(results: Results) -> dict[str, str]:
    """Return the sentences as plain text, by their heads, in the order of a reader."""
    return {
        "Edited": _edited(results),
        "Took": _took(results),
        **level_sentences(results),
        "Groups": _affected(results),
        "Knew": knew(results),
        "Not known": _not_known(results),
        "How sure": _how_sure(results),
    }


def conclusion_text(results: Results, without: Sequence[str] = ()) -> str:
    """Return the conclusion for a terminal, without the sentences that have these heads."""
    sentences = {head: sentence for head, sentence in conclude(results).items() if head not in without}
    lines = [wrap(f"{head}: {printable(sentence)}", "  ") for head, sentence in sentences.items()]
    missing = [wrap(f"The records lack something: {printable(note)}", "  ") for note in lacking(results)]
    return "\n".join(["CONCLUSION", *lines, *missing])


def conclusion_markdown(results: Results) -> str:
    """The conclusion as the first section of `report.md`."""
    lines = [f"- **{head}:** {text.escape(sentence)}" for head, sentence in conclude(results).items()]
    missing = [f"- **The records lack something:** {text.escape(note)}" for note in lacking(results)]
    return "\n".join(["## Conclusion", "", *lines, *missing])


def lacking(results: Results) -> list[str]:
    """Return what the records do not have, as the run noted at its start."""
    return list(map(str, results.manifest.get("notes", [])))


def _edited(results: Results) -> str:
    manifest = results.manifest
    model, data = manifest.get("model", {}), manifest.get("data", {})
    edits = results.distinct[[not is_given(name, manifest) for name in results.distinct["editor"]]]
    counts = edits.groupby("editor", sort=False).size()
    editors = ", ".join(f"{count} by {editor}" for editor, count in counts.items())
    phrases = [moved_phrase(name, facts) for name, facts in manifest.get("edited", {}).items()]
    what = [f"{len(edits)} edits ({editors or 'none'})"] if len(edits) or not phrases else []
    return (
        f"{_list([*what, *phrases])} in {model.get('id')} ({model.get('dtype')}), facts of "
        f"{data.get('source')} {'/'.join(map(str, data.get('configs', ())))}, protocol {manifest.get('protocol')}."
    )


def _took(results: Results) -> str:
    every = records(results.gate_rows, EfficacyRow)
    rows = [row for row in every if not is_control(row["editor"]) and not pd.isna(row.get("post"))]
    silent = [name for name in results.manifest.get("edited", {}) if name not in {row["editor"] for row in every}]
    unsaid = f"NOT CLAIMED for {_list(silent)}: nobody says for which facts (--requests)." if silent else ""
    if not rows and unsaid:
        return f"{unsaid} What follows is what changed for people, whatever it was for."
    if not rows:
        return "NOT MEASURED: this run has no score of an edited fact, so nothing below can be put down to an edit."
    shares = _list(f"{row['editor']} {text.percent_interval(*with_limits(row, 'post'))}" for row in rows)
    low = too_low(results)
    warning = (
        f" EFFICACY NOT SHOWN for {_list(low)}: the lower end of the share is not above one half, so the "
        "numbers of side effects say little about editing."
    )
    spoilt = "; ".join(
        f"{name}: {one}" for name, one in results.local.items() if one.collapsed and not is_control(name)
    )
    harm = f" EDITS ARE NOT LOCAL, so the numbers of side effects are those of a broken model: {spoilt}."
    sentence = f"p(new) > p(true) after {shares} of the edits.{warning if low else ''}{harm if spoilt else ''}"
    return f"{sentence} {unsaid}" if unsaid else sentence


def too_low(results: Results) -> list[str]:
    """Return the editors that do not pass the audit's efficacy gate."""
    return [str(gate["editor"]) for gate in results.gates if gate["gate"] == "edits took" and not gate["passed"]]


def _affected(results: Results) -> str:
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return "Nobody was compared: no contrast between groups of other people could be computed in this run."
    edits, controls = (replace(audit, verdicts=part) for part in without_controls(audit.contrasts))
    affected_rows = [row for row in claims(edits) if row["verdict"] in AFFECTED]
    others = ", ".join(f"{n} {name}" for name, n in verdict_counts(edits).items() if n and name not in AFFECTED)
    beside = f" Other contrasts: {others}." if others else ""
    if len(controls.verdicts):
        moved = sum(verdict_counts(controls)[name] for name in AFFECTED)
        beside += f" After control edits {moved} of {len(controls.verdicts)} contrasts are worse off or better off."
    if not affected_rows:
        return f"No group is shown to be affected more or less than the others.{beside}"
    more = f", and {len(affected_rows) - _NAMED} more" if len(affected_rows) > _NAMED else ""
    return f"{'; '.join(map(claim, affected_rows[:_NAMED]))}{more}.{beside}"


def claim(row: VerdictRow) -> str:
    """Which group was affected more or less than which other, in a clause."""
    return (
        f"{row['group']} came out {row['verdict']} than {row['reference']} ({row['editor']}, "
        f"{relation_name(row['relation'])}, {row['scale']}: {text.number(row['value'])} "
        f"{text.interval(row['low_family'], row['high_family'])})"
    )


def _not_known(results: Results) -> str:
    parts = []
    audit = results.audit
    if audit is not None and "verdict" in audit.verdicts and len(audit.verdicts):
        open_ = open_counts(without_controls(audit.contrasts)[0])
        parts += [f"{open_} (controls left out)"] if open_ else []
    if untagged := _untagged(results):
        parts.append(f"no group is recorded for {untagged} of the questions about others")
    if missing := int(results.unscored["n_rows"].sum()):
        parts.append(f"{missing:,} of {results.n_rows:,} score rows have no number")
    if results.manifest.get("protocol") == "batch":
        parts.append("protocol batch: the cases of a relation are one edit, so no interval holds")
    sentence = "; ".join(parts) or "every contrast has a verdict, every person a group and every question a score"
    return f"{sentence}."


def _untagged(results: Results) -> str:
    """Share of questions about people without a tag, per axis."""
    if results.effects.empty:
        return ""
    frame = results.effects[results.effects["holds"] == HOLDER]
    everybody = int(frame.loc[frame["axis"] == ALL, "n_prompts"].sum())
    unknown = frame[frame["group"] == UNKNOWN].groupby("axis", sort=False)["n_prompts"].sum()
    return _list(f"{100 * n / everybody:.0f} % ({axis})" for axis, n in unknown.items() if n and everybody)


def _how_sure(results: Results) -> str:
    audit = results.audit
    people = results.effects.loc[results.effects["axis"] == ALL, "n_subjects"].max() if len(results.effects) else 0
    edited, asked = _facts(results)
    facts = f"{edited} facts edited" + (f", {asked} only asked about" if asked else "")
    n = f"{facts}, {int(people)} other people in the largest table"
    if audit is None or "verdict" not in audit.verdicts:
        return f"{n}; no test was made."
    declared = audit.settings
    return (
        f"{n}; false claims about groups: {declared.promise()}; margin {declared.margin:g} in probability, "
        f"{declared.margin_log_odds:g} nats in log-odds, noise floor {_floor(audit)}."
    )


def _facts(results: Results) -> tuple[int, int]:
    """Facts that were edited, and those that were only asked about."""
    made = results.distinct["status"] != ASKED_ONLY
    edited, asked = (set(results.distinct.loc[rows, "case_id"]) for rows in (made, ~made))
    return len(edited), len(asked - edited)


def _floor(audit: Audit) -> str:
    return str(audit.floor).replace("not measured", "NOT MEASURED")


def _list(words: Iterable[str]) -> str:
    return ", ".join(words)
