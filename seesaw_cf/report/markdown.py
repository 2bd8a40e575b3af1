"""`report.md`: the layouts of the papers' Tables 10, 12, 14 and 5, with n and an interval in every cell."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from seesaw_cf.effects.dose import Curves
from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.effects.prompts import ScoreForm
from seesaw_cf.records import groups
from seesaw_cf.report import notes, text
from seesaw_cf.report.conclusion import conclusion_markdown
from seesaw_cf.report.dose import dose_section
from seesaw_cf.report.floor import Floor
from seesaw_cf.report.knowledge import knowledge_markdown, known_accuracy_markdown, scales_markdown
from seesaw_cf.report.moved import moved_markdown
from seesaw_cf.report.provenance import recorded, repeat_command
from seesaw_cf.report.results import HOLDER, Results, relation_name, sort_groups, sort_pairs, sort_relations
from seesaw_cf.report.rows import AccuracyRow, EffectRow, EfficacyRow, number_of, records, with_limits
from seesaw_cf.report.success import success_markdown
from seesaw_cf.report.verdicts import audit_sections

# Axis -> the papers' table for GPT-J and its title.
_LAYOUTS = {
    "race": "By race: property × method (layout of Table 10)",
    "region": "By geographic origin: property × method (layout of Table 12)",
    "gender": "By gender: property × method (layout of Table 14)",
}
_HEADINGS = {ALL: "all people", UNKNOWN: "no tag"}


def markdown_report(
    results: Results, pictures: Mapping[str, str], without_pictures: str = "", curves: Curves | None = None
) -> str:
    """The whole report.

    Args:
        results: What the run found.
        pictures: File name -> description, for the pictures that lie beside the report.
        without_pictures: Why there are none.
        curves: A dose run to show as well.
    """
    model = results.manifest.get("model", {})
    parts = [
        f"# Side effects of editing {text.escape(model.get('id', 'a model'))}",
        conclusion_markdown(results),
        *text.pictures(pictures, "levels"),
        notes.READING,
        moved_markdown(results.manifest),
        _gate(results),
        *success_markdown(results),
        knowledge_markdown(results),
        *_effects(results, pictures),
        *audit_sections(results, pictures),
        dose_section(curves, pictures) if curves is not None else "",
        _accuracy(results, pictures),
        _unscored(results),
        f"> {text.escape(without_pictures)}" if without_pictures else "",
        notes.ABOUT_LABELS,
        notes.COUNTERFACTUALS,
        _provenance(results),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _gate(results: Results) -> str:
    rows = []
    for row in records(results.efficacy, EfficacyRow):
        shares = [_share(row, "post"), _share(row, "pre"), _share(row, "raised", n="n_raised")]
        failures = map(str, (row["n_zero"], row["n_non_finite"], row["n_refused"]))
        names = [text.escape(row["editor"]), text.escape(relation_name(row["relation"]))]
        rows.append([*names, str(row["n_edits"]), *shares, *failures])
    heads = (
        *("Method", "Property", "Edits", "p(new) > p(true) after", "before", "p(new) raised"),
        *("Zero deltas", "Non-finite", "Refused"),
    )
    table = text.markdown_table(heads, rows, left=2) if rows else notes.NO_FACTS
    return f"## Did the edits take?\n\n{notes.GATE}\n\n{table}"


def _share(row: EfficacyRow | AccuracyRow, name: str, n: str = "n") -> str:
    found = with_limits(row, name)
    return "–" if pd.isna(found[0]) else f"{text.percent_interval(*found)} n={int(number_of(row, n))}"


def _effects(results: Results, pictures: Mapping[str, str]) -> list[str]:
    if results.effects.empty:
        return []
    head = f"## What happened to other people\n\n{notes.effect_size(*text.ABOUT_SCORE[results.score])}"
    if small := notes.small_probability(results):
        head += f"\n\n> {small}"
    chosen = results.effects[results.effects["holds"] == HOLDER]
    if chosen.empty:
        return [head + "\n\nNo prompt of this run is about people who hold the new target."]
    parts = [head, *_holders(results)]
    for axis, title in _LAYOUTS.items():
        if axis in set(chosen["axis"]):
            shown = text.pictures(pictures, f"forest_{axis}") + text.pictures(pictures, f"heatmap_{axis}")
            parts += [f"### {title}", _effect_table(chosen, axis, results), *shown]
    tested = int((chosen["p"].notna() & (chosen["axis"] != ALL)).sum())
    parts.append(notes.stars(tested, str(results.floor)).replace("*", "\\*"))
    if results.manifest.get("protocol") == "batch":
        parts.append(notes.BATCH)
    return parts + scales_markdown(results)


def _holders(results: Results) -> list[str]:
    """Everybody, by what they hold: a leak shows among the people who hold the old target."""
    frame = results.effects[results.effects["axis"] == ALL]
    if frame["holds"].nunique() < 2:
        return []
    cells = {(row["relation"], row["editor"], row["holds"]): row for row in records(frame, EffectRow)}
    columns = list(dict.fromkeys(frame["holds"]))
    rows = [
        [
            f"*{text.escape(relation_name(relation))}*",
            text.escape(editor),
            *[_effect(cells.get((relation, editor, holds)), results) for holds in columns],
        ]
        for relation in sort_relations(frame["relation"])
        for editor in results.editors
    ]
    heads = ("Property", "Method", *[f"people who hold the {text.HOLDS[holds]}" for holds in columns])
    return ["### Everybody, by what they hold", notes.HOLDERS, text.markdown_table(heads, rows, left=2)]


def _effect_table(effects: pd.DataFrame, axis: str, results: Results) -> str:
    frame = effects[effects["axis"].isin((ALL, axis))]
    cells = {(row["relation"], row["editor"], row["group"]): row for row in records(frame, EffectRow)}
    columns = sort_groups(axis, [*frame["group"], *groups.members(axis)])
    rows = [
        [
            f"*{text.escape(relation_name(relation))}*",
            text.escape(editor),
            *[_effect(cells.get((relation, editor, g)), results) for g in columns],
        ]
        for relation in sort_relations(frame["relation"])
        for editor in results.editors
        if (relation, editor, ALL) in cells
    ]
    heads = ("Property", "Method", *[_HEADINGS.get(group, text.escape(group)) for group in columns])
    return text.markdown_table(heads, rows, left=2)


def _effect(row: EffectRow | None, results: Results) -> str:
    return effect_cell(row, results.floor, results.score)


def effect_cell(row: EffectRow | None, floor: Floor, score: ScoreForm) -> str:
    """D and its change in log-odds with intervals and n, or why there is no number; "" where nobody was asked.

    Args:
        row: Of `Results.effects`.
        floor: Effects up to it print as 0.
        score: The form of D.
    """
    if row is None:
        return ""
    if row["n_cases"] == 0:
        return f"unscored ({row['n_unscored']} prompts)"
    why = text.no_interval(row)
    zero_limit, nats = floor.zero_limit(score), floor.zero_limit_log_odds
    cells = [_marked(row["D"], (row["low"], row["high"]), row["marked"], zero_limit, 3)]
    if score != "log_odds":
        limits = (row["log_odds_low"], row["log_odds_high"])
        cells.append(f"log-odds {_marked(row['log_odds'], limits, row['log_odds_marked'], nats, 2)}")
    return "<br>".join([*cells, *([why] if why else [])]) + f" n={row['n_cases']}"


def _marked(number: float, limits: tuple[float, float], marked: bool, zero_limit: float, digits: int) -> str:
    """A number, bold with a star when it is marked, and its interval when there is one."""
    value = text.minus(text.number(number, zero_limit, digits))
    value = f"**{value}**\\*" if marked else value
    return value if pd.isna(limits[0]) else f"{value} {text.minus(text.interval(*limits, zero_limit, digits))}"


def _accuracy(results: Results, pictures: Mapping[str, str]) -> str:
    if results.accuracy.empty:
        return ""
    cells = {
        ((row["edit_relation"], row["effect_relation"]), row["editor"]): row
        for row in records(results.accuracy, AccuracyRow)
    }
    editors = [name for name in results.editors if any(key[1] == name for key in cells)]
    rows = []
    for pair in sort_pairs(pair for pair, _ in cells):
        of_pair = [cells[pair, editor] for editor in editors if (pair, editor) in cells]
        before = max(of_pair, key=lambda row: int(row["n"]))
        pooled = pair == ("all", "all")
        name = "all pairs, pooled" if pooled else "/".join(map(relation_name, pair))
        guesses = "–" if pooled else f"{text.percent(before['chance'])} / {text.percent(before['majority'])}"
        after = [_after(cells.get((pair, editor))) for editor in editors]
        rows.append([f"*{text.escape(name)}*", guesses, _share(before, "pre"), *after])
    heads = ("P1/P2", "Chance / best constant", "Pre-edit", *map(text.escape, editors))
    parts = ["## What happened to the edited person's other properties", notes.ACCURACY]
    parts += [text.markdown_table(heads, rows), _left_out(results), *text.pictures(pictures, "accuracy")]
    parts.append(known_accuracy_markdown(results))
    return "\n\n".join(parts)


def _after(row: AccuracyRow | None) -> str:
    if row is None or row["n"] == 0:
        return ""
    change = text.minus(text.points(row["change"], row["low"], row["high"]))
    why = f" ({text.escape(row['note'])})" if math.isnan(row["low"]) else f", {text.p_equals(row['p'])}"
    return f"{_share(row, 'post')}<br>change {change}{why}"


def _left_out(results: Results) -> str:
    frame = results.accuracy[results.accuracy["edit_relation"] != "all"]
    no_gold, unscored = int(frame["n_no_gold"].sum()), int(frame["n_unscored"].sum())
    return (
        f"Left out, over all methods: {no_gold} cases without a gold answer, {unscored} with an unscored candidate. "
        f"Counted as wrong: {int(frame['n_no_candidate'].sum())} cases none of whose right answers is a candidate."
    )


def _unscored(results: Results) -> str:
    frame = results.unscored
    total = int(frame["n_rows"].sum())
    head = f"## What could not be scored\n\n{total:,} of {results.n_rows:,} score rows have no number."
    if not total:
        return head
    columns = ["editor", "kind", "phase", "reason", "n_rows"]
    rows = [[text.escape(str(cell)[:300]) for cell in row] for row in frame[columns].head(30).to_numpy()]
    more = f"\n\nand {len(frame) - 30} more reasons in `unscored.csv`." if len(frame) > 30 else ""
    return f"{head}\n\n{text.markdown_table(('Method', 'Prompts', 'Phase', 'Reason', 'Rows'), rows, left=4)}{more}"


def _provenance(results: Results) -> str:
    rows = [[text.escape(name), text.escape(value)] for name, value in recorded(results.manifest)]
    steps = f"{repeat_command(results.manifest)}\nseesaw-cf report RUN"
    return (
        f"## Provenance\n\n{notes.PROVENANCE}\n\n{text.fence(steps)}\n\n"
        f"{text.markdown_table(('What', 'Value'), rows, left=2)}"
    )
