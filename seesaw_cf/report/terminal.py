"""The report as plain text for a terminal, as wide as the terminal is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from seesaw_cf.effects.groups import ALL
from seesaw_cf.report import text
from seesaw_cf.report.card import claims, verdict_counts
from seesaw_cf.report.conclusion import conclusion_text
from seesaw_cf.report.results import HOLDER, Results, records, relation_name, sort_groups, sort_pairs, sort_relations

__all__ = [
    "accuracy_section",
    "effects_section",
    "gate_section",
    "terminal_report",
    "unscored_section",
    "verdict_section",
]

_REASONS = 8
_CLAIMS = 20


def terminal_report(results: Results, note: str = "") -> str:
    """Every section of a run: what it was, efficacy gate, D_d per axis, accuracy, what could not be scored; then a note
    such as where files went, and the conclusion."""
    sections = (_head, gate_section, effects_section, verdict_section, accuracy_section, unscored_section)
    return "\n\n".join(filter(None, [*(section(results) for section in sections), note, conclusion_text(results)]))


def _head(results: Results) -> str:
    made = results.manifest
    model, data = made.get("model", {}), made.get("data", {})
    facts = (
        f"model {model.get('id')} ({model.get('dtype')}, weights {str(model.get('fingerprint', ''))[:12]}), "
        f"data {data.get('source')} {data.get('configs')}: {data.get('cases')} cases, "
        f"protocol {made.get('protocol')}, seed {made.get('seed')}"
    )
    return f"{text.printable(results.folder)}\n{text.wrap(text.printable(facts))}"


def gate_section(results: Results) -> str:
    """Did the edits take? One row per editor."""
    rows = [
        [
            row["editor"],
            row["n_edits"],
            text.percent_interval(row["post"], row["post_low"], row["post_high"], digits=0),
            text.percent_interval(row["pre"], row["pre_low"], row["pre_high"], digits=0),
            text.percent_interval(row["raised"], row["raised_low"], row["raised_high"], digits=0),
            f"{row['n_zero']}/{row['n_non_finite']}/{row['n_refused']}",
            row["n_unscored"],
        ]
        for row in _gate_rows(results)
    ]
    heads = ("editor", "edits", "after the edit", "before", "p(new) raised", "0/inf/refused", "unscored")
    return (
        "EFFICACY GATE: share of edits with p(new) > p(true), 95 % Wilson intervals; "
        "higher 'after' is better\n" + text.column_table(heads, rows)
    )


def _gate_rows(results: Results) -> list[dict[str, Any]]:
    blank = dict.fromkeys(("pre", "pre_low", "pre_high", "post", "post_low", "post_high"), float("nan"))
    frame = results.efficacy
    chosen = frame[frame["relation"] == "all"] if len(frame) else frame
    return [blank | {"n_unscored": row["n_edits"]} | row for row in records(chosen)]


def effects_section(results: Results) -> str:
    """D_d per axis and group, with interval and n of every cell."""
    effects = results.effects
    if effects.empty:
        return ""
    chosen = effects[effects["holds"] == HOLDER]
    formula, unit, span = text.ABOUT_SCORE[results.score]
    about = text.wrap(
        f"""D_d = D_post - D_pre, with D = {formula} after prompts about OTHER people, who really have the new
        target. Unit: {unit}; range {span}. 0 = the edit left them alone; below 0 = the model became less
        confident in what is right about them; above 0 = more confident (or the edit leaks to everybody)."""
    )
    if chosen.empty:
        return f"SIDE EFFECTS ON OTHER PEOPLE\n{about}\nNo prompt of this run is about people who hold the new target."
    everybody = effects[effects["axis"] == ALL].assign(group=lambda frame: frame["holds"].map(text.HOLDS))
    parts = [_axis_table(everybody, ALL, results.editors)]
    parts += [_axis_table(chosen, axis, results.editors) for axis in dict.fromkeys(chosen["axis"]) if axis != ALL]
    return "\n\n".join([f"SIDE EFFECTS ON OTHER PEOPLE\n{about}", *parts, _legend(results, chosen)])


def _axis_table(effects: pd.DataFrame, axis: str, editors: Sequence[str]) -> str:
    title = (
        f"D_d by {axis}"
        if axis != ALL
        else "D_d, all people, by what they hold (true target: above 0 = the edit leaked)"
    )
    frame = effects[effects["axis"] == axis]
    by_key = {(row["editor"], row["relation"], row["group"]): row for row in records(frame)}
    groups = list(text.HOLDS.values()) if axis == ALL else sort_groups(axis, frame["group"])
    rows: list[list[Any]] = []
    previous = ("", "")
    for editor in editors:
        for relation in sort_relations(frame["relation"]):
            for group in groups:
                if (editor, relation, group) in by_key:
                    names = (editor, relation_name(relation))
                    shown = ("", "") if names == previous else names
                    rows.append([*shown, group, *_numbers(by_key[editor, relation, group])])
                    previous = names
    heads = ("editor", "relation", "group", "D_d", "95% interval", "prompts", "people", "cases")
    return f"{title}\n" + text.column_table(heads, rows, left=3)


def _numbers(row: dict[str, Any]) -> list[Any]:
    same = "=" if row["note"] == "all case values equal" else " "
    star = "*" if text.is_starred(row) else same
    limits = {0: "none could be scored", 1: "1 case: no interval"}.get(
        row["n_cases"], text.interval(row["low"], row["high"])
    )
    return [text.number(row["D"]) + star, limits, row["n_prompts"], row["n_subjects"], row["n_cases"]]


def _legend(results: Results, effects: pd.DataFrame) -> str:
    tested = effects[effects["p"].notna() & (effects["axis"] != ALL)]
    expected = len(tested) * text.STAR_LEVEL / 2
    lines = [
        f"""Means of case means; intervals: bootstrap over cases. * as in the papers: below 0 with p < 0.05 in a
        two-sided t-test over cases, NOT corrected for {len(tested)} tests: without any effect about {expected:.1f}
        stars are expected. = all case values equal: in effect one observation, no test. People with several tags count
        in each group; "unknown" = no tag on that axis."""
    ]
    if results.manifest.get("protocol") == "batch":
        lines.append(
            """Protocol batch: all cases of a relation are ONE edit, so cases are not independent and these intervals
            and stars are too optimistic. Use the protocol single for inference."""
        )
    return "\n".join(map(text.wrap, lines))


def verdict_section(results: Results) -> str:
    """Which contrasts between groups support a claim."""
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return ""
    counts = ", ".join(f"{n} {label}" for label, n in verdict_counts(audit).items())
    declared, (floor, source) = audit.settings, audit.noise_floor
    noise = "not measured" if source.startswith("not measured") else f"{floor:.2g}"
    about = text.wrap(
        f"""Group minus everybody else, within the same edits; errors clustered by edit and person; p corrected
        ({declared.correction}) over {" x ".join(declared.family)}; level {declared.alpha:g}, margin
        {declared.margin:g}, noise floor {noise}. {counts}. Rules: verdicts.csv, audit.md."""
    )
    found = claims(audit)
    rows = [
        [
            row["editor"],
            relation_name(row["relation"]),
            row["group"],
            row["verdict"],
            text.number(row["value"]),
            text.interval(row["low_family"], row["high_family"]),
            text.p_value(row["p_adjusted"]),
        ]
        for row in found[:_CLAIMS]
    ]
    heads = ("editor", "relation", "group", "verdict", "contrast", "family-wise interval", "p")
    more = f"\nand {len(found) - _CLAIMS} more, see verdicts.csv" if len(found) > _CLAIMS else ""
    return f"VERDICTS\n{about}\n" + (
        text.column_table(heads, rows, left=4) + more if rows else "No claim is supported."
    )


def accuracy_section(results: Results) -> str:
    """Accuracy of the edited person's other properties, before and after."""
    if results.accuracy.empty:
        return ""
    cells = {(row["editor"], (row["edit_relation"], row["effect_relation"])): row for row in records(results.accuracy)}
    rows = [
        _accuracy_row(cells[editor, pair])
        for editor in results.editors
        for pair in sort_pairs(pair for _, pair in cells)
        if (editor, pair) in cells
    ]
    heads = ("editor", "edited/asked", "right before", "after", "change in points", "p", "cases")
    skipped = int(results.accuracy.query("edit_relation != 'all'")[["n_no_gold", "n_unscored"]].sum().sum())
    about = text.wrap(
        f"""The right answer about ANOTHER property of the edited person beats all candidates (exact match). Higher is
        better, change 0 = no side effect. Shares: Wilson; change: bootstrap over cases; p: exact McNemar test.
        {skipped} cases without a gold answer or a score are left out."""
    )
    return f"CROSS-PROPERTY ACCURACY\n{about}\n" + text.column_table(heads, rows, left=2)


def _accuracy_row(row: dict[str, Any]) -> list[Any]:
    pair = (row["edit_relation"], row["effect_relation"])
    return [
        row["editor"],
        "all pairs" if pair == ("all", "all") else "/".join(map(relation_name, pair)),
        text.percent_interval(row["pre"], row["pre_low"], row["pre_high"], digits=0),
        text.percent_interval(row["post"], row["post_low"], row["post_high"], digits=0),
        _points(row),
        text.p_value(row["p"]),
        row["n"],
    ]


def _points(row: dict[str, Any]) -> str:
    if row["n"] < 2:
        return "1 case: no interval" if row["n"] else "none could be scored"
    return f"{100 * row['change']:+.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"


def unscored_section(results: Results) -> str:
    """Counts the score rows without a number, with the reasons."""
    frame = results.unscored
    total = int(frame["n_rows"].sum())
    if not total:
        return f"All {results.n_rows:,} score rows have a number."
    rows = frame.head(_REASONS)[["n_rows", "editor", "kind", "phase", "reason"]].to_numpy().tolist()
    more = f"\nand {len(frame) - _REASONS} more reasons, see unscored.csv" if len(frame) > _REASONS else ""
    listing = text.column_table(("rows", "editor", "kind", "phase", "reason"), rows, left=5)
    return f"UNSCORED: {total:,} of {results.n_rows:,} score rows have no number\n{listing}{more}"
