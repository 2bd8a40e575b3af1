"""What a run found, computed once: the first screen of its pages, the end of its terminal text, the head of its files.

A title that is a finding, an example in words, a strip for each level with controls on one scale, contrasts between
groups in counts, and how far all of it can be trusted.
"""

from __future__ import annotations

import re

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.editors.control_names import NULLS, control_name, first_seed, is_control
from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.effects.knowledge import KnowledgeRow
from seesaw_cf.report import text
from seesaw_cf.report.contrasts import GroupCounts, count_groups
from seesaw_cf.report.example import example_of
from seesaw_cf.report.html.findings import FirstScreen
from seesaw_cf.report.levels import level_changes
from seesaw_cf.report.moved import is_external, moved_phrase, where_moved
from seesaw_cf.report.page_forest import colours_of
from seesaw_cf.report.provenance import records_name
from seesaw_cf.report.results import HOLDER, Results
from seesaw_cf.report.rows import EfficacyRow, Manifest, records, with_limits
from seesaw_cf.report.strips import strips
from seesaw_cf.report.title import title_of
from seesaw_cf.run.edit_table import ASKED_ONLY

_REFUSED = ("refused", "non-finite delta")  # how the status of an edit begins that was not made


def find(results: Results) -> FirstScreen:
    """Return what a run found."""
    changes, groups = level_changes(results), count_groups(results)
    levels = {strip.title: strip for strip in strips(results, changes, colours_of(results.editors))}
    sentences = {
        **_changed(results.manifest),
        "Did the edits take": _took(results),
        "Not known": _not_known(results),
        "Known before": knowledge_sentence(results),
        "How sure": _how_sure(results, groups),
    }
    return FirstScreen(
        about=_about(results),
        title=results.words(title_of(results, changes, groups)),
        answers={
            **levels,
            "Groups against each other": groups,
            **{head: results.words(sentence) for head, sentence in sentences.items()},
            "The records lack something": " ".join(map(str, results.manifest.get("notes", []))),
        },
        example=example_of(results, changes),
    )


def _changed(manifest: Manifest) -> dict[str, str]:
    """Return what a reader must know of models that were changed elsewhere, and what their controls are."""
    models = manifest.get("edited", {})
    notes = [
        f"{name}: {note}."
        for name, facts in models.items()
        for note in (*facts.get("notes", ()), where_moved(facts))
        if note
    ]
    controls = {name for name in manifest.get("editors", {}) if is_control(name)}
    nulls = [
        f"{control_name('random', name)}: {NULLS[facts['null']]}."
        for name, facts in models.items()
        if control_name("random", name) in controls and facts.get("null") in NULLS
    ]
    return {"What was changed": " ".join(notes), "What the control is": " ".join(nulls)}


def _about(results: Results) -> str:
    """Return the model, edits and control edits, records and protocol in one line."""
    manifest, model = results.manifest, results.manifest.get("model", {})
    edits = results.distinct[[not is_external(name, manifest) for name in results.distinct["editor"]]]
    by_editor = edits["status"].str.startswith(_REFUSED).groupby(edits["editor"], sort=False)
    counts, refused = by_editor.size(), by_editor.sum().to_dict()
    parts = [
        f"{quantity(count, 'edit')} by {editor}" + f", {refused[editor]} refused" * bool(refused[editor])
        for editor, count in zip(map(str, counts.index), counts)
        if not is_control(editor)
    ]
    models = manifest.get("edited", {})
    parts += [moved_phrase(name, facts) for name, facts in models.items() if not is_control(name)]
    every = [*results.editors, *results.further_seeds]
    controls = sum(int(counts.get(first_seed(name), 0)) for name in every if is_control(name))
    parts += [quantity(controls, "control edit")] if controls else []
    head = f"{model.get('id')} ({model.get('dtype')}) · {'; '.join(parts) or 'no edits'}"
    return f"{head} · records: {records_name(manifest)} · protocol {manifest.get('protocol')}"


def _took(results: Results) -> str:
    every = records(results.gate_rows, EfficacyRow)
    rows = [row for row in every if not is_control(row["editor"]) and not pd.isna(row.get("post"))]
    silent = [name for name in results.manifest.get("edited", {}) if name not in {row["editor"] for row in every}]
    silent = [] if results.asked_only else silent
    shares = ", ".join(
        f"{row['editor']} {text.percent_interval(*with_limits(row, 'post'))} of {row['n']:,.0f} "
        f"({text.percent(row['pre'])} before)"
        for row in rows
    )
    parts = [f"The new answer is ahead of the old one after {shares}."] if rows else []
    parts += [f"Not claimed for {', '.join(silent)}: it is not said for which facts (--requests)."] if silent else []
    only = all(map(is_control, results.editors))
    nothing = (
        "No edit was made but those of controls." if only else "Not measured: this run has no score of an edited fact."
    )
    parts += [nothing] if not rows and not silent and not results.asked_only else []
    for gate in results.gates:
        if not gate["passed"]:
            here = text.significant(gate["value"])
            parts.append(f"Gate not held: {gate['editor'] or 'run'}, {gate['gate']} ({gate['rule']}; here {here}).")
    return " ".join(parts)


def _not_known(results: Results) -> str:
    parts = (
        [f"no group is recorded for {untagged} of the questions about others"]
        if (untagged := _untagged(results))
        else []
    )
    if missing := int(results.unscored["n_rows"].sum()):
        parts.append(f"{missing:,} of {results.n_rows:,} score rows have no number")
    if results.manifest.get("protocol") == "batch":
        parts.append("protocol batch: the cases of a relation are one edit, so no interval holds")
    return f"{'; '.join(parts) or 'every question has a score, and every person a group'}."


def _untagged(results: Results) -> str:
    """Return the share of untagged people, per axis, in the questions about people who hold the new target."""
    if results.effects.empty:
        return ""
    frame = results.effects[results.effects["holds"] == HOLDER]
    everybody = int(frame.loc[frame["axis"] == ALL, "n_prompts"].sum())
    unknown = frame[frame["group"] == UNKNOWN].groupby("axis", sort=False)["n_prompts"].sum()
    return ", ".join(f"{100 * n / everybody:.0f} % ({axis})" for axis, n in unknown.items() if n and everybody)


_LIMIT = "First among candidates is less than knowledge in general."


def knowledge_sentence(results: Results) -> str:
    """Return in a sentence how much of what was edited and asked the model knew."""
    sentences = []
    for row in records(results.known.facts, KnowledgeRow):
        if row["relation"] == ALL and row["n"]:
            share = text.percent_interval(*with_limits(row, "known"))
            facts = row["facts"] if row["n"] > 1 else re.sub(r"(fact|question)s", r"\1", row["facts"])
            median = f"median {row['median_candidates']:g} candidates, share {row['median_share']:.2g}"
            sentences.append(f"{share} of {row['n']:,} {facts} ({median})")
    first = f"the right answer was first of its candidates for {'; '.join(sentences)}. {_LIMIT}" if sentences else ""
    return " ".join(filter(None, [results.known.note, first]))


def _how_sure(results: Results, groups: GroupCounts) -> str:
    people = (
        0 if results.prompts is None else results.prompts.loc[results.prompts["status"] == "ok", "person"].nunique()
    )
    status = results.distinct["status"]
    only = status == ASKED_ONLY
    made = ~only & ~status.str.startswith(_REFUSED)
    edited, asked = (set(results.distinct.loc[rows, "case_id"]) for rows in (made, only))
    if results.asked_only:
        n = f"{quantity(len(asked), 'fact')} and {quantity(people, 'person', 'people')} asked about"
    else:
        others = f", {len(asked - edited)} only asked about" * bool(asked - edited)
        n = f"{quantity(len(edited), 'fact')} edited{others}, "
        n += f"{quantity(people, 'other person', 'other people')} asked about"
    if not groups.promise:
        return f"{n}; no contrast was tested."
    return f"{n}; false claims about groups: {groups.promise}; margin {groups.margin}; noise floor {results.floor}."
