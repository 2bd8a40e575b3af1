"""The report as plain text for a terminal, as wide as the terminal is."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.effects.groups import ALL
from seesaw_cf.io.terminal import column_table, printable, wrap
from seesaw_cf.report import notes, text
from seesaw_cf.report.conclusion import conclusion_text
from seesaw_cf.report.knowledge import knowledge_text, scales_text
from seesaw_cf.report.moved import moved_text
from seesaw_cf.report.results import HOLDER, Results, relation_name, sort_groups, sort_pairs, sort_relations
from seesaw_cf.report.rows import AccuracyRow, EffectRow, EfficacyRow, records, with_limits
from seesaw_cf.report.success import success_text
from seesaw_cf.report.verdicts import claims, verdict_counts

_DETAILS = ("Knew", "How sure")  # sentences of the conclusion that one screen leaves to report.md
_REASONS = 8
_CLAIMS = 20
_TESTS = {
    "crossed": "Newcombe, clustered by person, none below 5; p: exact McNemar test, clustered where people repeat",
    "paper": "bootstrap over cases; p: unpaired t-test, as in the papers",
}


def terminal_report(results: Results, note: str = "", full: bool = True) -> str:
    """Return a run's tables, a note such as where files went, and the conclusion.

    Args:
        results: The numbers of a run.
        note: Stands before the conclusion.
        full: Every table; else one screen: efficacy, note and the sentences of the conclusion that say what happened.
    """
    if not full:
        return "\n\n".join((gate_section(results, brief=True), note, conclusion_text(results, _DETAILS)))
    edits = (_head, _moved, gate_section, success_text, knowledge_text)
    effects = (effects_section, scales_text, verdict_section, accuracy_section, unscored_section)
    return "\n\n".join(
        filter(None, [*(section(results) for section in (*edits, *effects)), note, conclusion_text(results)])
    )


def _head(results: Results) -> str:
    made = results.manifest
    model, data = made.get("model", {}), made.get("data", {})
    facts = (
        f"model {model.get('id')} ({model.get('dtype')}, weights {str(model.get('fingerprint', ''))[:12]}), "
        f"data {data.get('source')} {data.get('configs')}: {data.get('cases')} cases, "
        f"protocol {made.get('protocol')}, seed {made.get('seed')}"
    )
    return f"{printable(results.folder)}\n{wrap(printable(facts))}"


def _moved(results: Results) -> str:
    return moved_text(results.manifest)


def gate_section(results: Results, brief: bool = False) -> str:
    """Return whether the edits took, one row per editor; the brief table has the shares after and before alone."""
    rows = [
        [
            row["editor"],
            row["n_edits"],
            *(_share(row, name) for name in ("post", "pre", "raised")),
            f"{row['n_zero']}/{row['n_non_finite']}/{row['n_refused']}",
            row.get("n_unscored", row["n_edits"]),
        ]
        for row in records(results.gate_rows, EfficacyRow)
    ]
    heads = ("editor", "edits", "after the edit", "before", "p(new) raised", "0/inf/refused", "unscored")
    about = "Share of edits with p(new) > p(true), 95 % Wilson intervals; higher 'after' is better."
    columns = 4 if brief else len(heads)
    table = column_table(heads[:columns], [row[:columns] for row in rows]) if rows else wrap(notes.NO_FACTS)
    return f"EFFICACY GATE\n{wrap(about)}\n{table}"


def _share(row: EfficacyRow | AccuracyRow, name: str) -> str:
    return text.percent_interval(*with_limits(row, name))


def effects_section(results: Results) -> str:
    """D_d per axis and group, with interval and n of every cell."""
    effects = results.effects
    if effects.empty:
        return ""
    chosen = effects[effects["holds"] == HOLDER]
    formula, unit, span = text.ABOUT_SCORE[results.score]
    about = wrap(
        f"""D_d = D_post - D_pre, with D = {formula} after prompts about OTHER people, who really have the new
        target. Unit: {unit}; range {span}. 0 = the edit left them alone; below 0 = the model became less
        confident in what is right about them; above 0 = more confident (or the edit leaks to everybody)."""
    )
    if chosen.empty:
        return f"SIDE EFFECTS ON OTHER PEOPLE\n{about}\nNo prompt of this run is about people who hold the new target."
    everybody = effects[effects["axis"] == ALL].assign(group=lambda frame: frame["holds"].map(text.HOLDS))
    quiet = wrap(notes.small_probability(results))
    parts = [_axis_table(everybody, ALL, results)]
    parts += [_axis_table(chosen, axis, results) for axis in dict.fromkeys(chosen["axis"]) if axis != ALL]
    return "\n\n".join(
        filter(None, [f"SIDE EFFECTS ON OTHER PEOPLE\n{about}", quiet, *parts, _legend(results, chosen)])
    )


def _axis_table(effects: pd.DataFrame, axis: str, results: Results) -> str:
    title = (
        f"D_d by {axis}"
        if axis != ALL
        else "D_d, all people, by what they hold (true target: above 0 = the edit leaked)"
    )
    frame = effects[effects["axis"] == axis]
    by_key = {(row["editor"], row["relation"], row["group"]): row for row in records(frame, EffectRow)}
    groups = list(text.HOLDS.values()) if axis == ALL else sort_groups(axis, frame["group"])
    rows: list[list[str]] = []
    previous = ("", "")
    for editor in results.editors:
        for relation in sort_relations(frame["relation"]):
            for group in groups:
                if (editor, relation, group) in by_key:
                    names = (editor, relation_name(relation))
                    shown = ("", "") if names == previous else names
                    rows.append([*shown, group, *_numbers(by_key[editor, relation, group], results)])
                    previous = names
    log_odds = ("log-odds", "95% interval") if _two_scales(results) else ()
    heads = ("editor", "relation", "group", "D_d", "95% interval", *log_odds, "n")
    return f"{wrap(title)}\n" + column_table(heads, rows, left=3)


def _two_scales(results: Results) -> bool:
    return results.mode == "crossed" and results.score != "log_odds"


def _numbers(row: EffectRow, results: Results) -> list[str]:
    zero_limit = results.floor.zero_limit(results.score)
    counts = f"{row['n_prompts']}/{row['n_subjects']}/{row['n_cases']}"
    if row["n_cases"] == 0:
        return ["-", "none could be scored", *(["-", "-"] if _two_scales(results) else []), counts]
    limits = text.no_interval(row) or text.interval(row["low"], row["high"], zero_limit)
    cells = [text.number(row["D"], zero_limit) + ("*" if row["marked"] else " "), limits]
    if _two_scales(results):
        low, high = row["log_odds_low"], row["log_odds_high"]
        star = "*" if row["log_odds_marked"] else " "
        zero_limit = results.floor.zero_limit_log_odds
        cells += [text.number(row["log_odds"], zero_limit, 2) + star, text.interval(low, high, zero_limit, 2)]
    return [*cells, counts]


def _legend(results: Results, effects: pd.DataFrame) -> str:
    tested = int((effects["p"].notna() & (effects["axis"] != ALL)).sum())
    lines = [notes.MEANS, notes.PAPER_STARS if results.mode == "paper" else notes.stars(tested, str(results.floor))]
    lines.append('People with several tags count in each group; "unknown" = no tag on that axis.')
    if results.manifest.get("protocol") == "batch":
        lines.append(notes.BATCH.replace("*", ""))
    return wrap(" ".join(lines).replace("*\\**", "*").replace("**", ""))


def verdict_section(results: Results) -> str:
    """Which contrasts between groups support a claim."""
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return ""
    counts = ", ".join(f"{n} {label}" for label, n in verdict_counts(audit).items())
    declared = audit.settings
    about = wrap(
        f"""Group minus everybody else, within the same edits; errors clustered by edit and person; false claims
        {declared.promise()}; margin
        {declared.margin:g} in probability, {declared.margin_log_odds:g} in log-odds where the answers' probabilities
        are too small to show it; noise floor {audit.floor}. {counts}. Rules: verdicts.csv, report.md."""
    )
    found = claims(audit)
    rows = [
        [
            *(row["editor"], relation_name(row["relation"]), row["group"], row["verdict"], row["scale"]),
            text.number(row["value"]),
            text.interval(row["low_family"], row["high_family"]),
            text.p_value(row["p_adjusted"]),
        ]
        for row in found[:_CLAIMS]
    ]
    heads = ("editor", "relation", "group", "verdict", "scale", "contrast", "family-wise interval", "p")
    more = f"\nand {len(found) - _CLAIMS} more, see verdicts.csv" if len(found) > _CLAIMS else ""
    return f"VERDICTS\n{about}\n" + (column_table(heads, rows, left=5) + more if rows else "No claim is supported.")


def accuracy_section(results: Results) -> str:
    """Accuracy of the edited person's other properties, before and after."""
    if results.accuracy.empty:
        return ""
    cells = {
        (row["editor"], (row["edit_relation"], row["effect_relation"])): row
        for row in records(results.accuracy, AccuracyRow)
    }
    rows = [
        _accuracy_row(cells[editor, pair])
        for editor in results.editors
        for pair in sort_pairs(pair for _, pair in cells)
        if (editor, pair) in cells
    ]
    heads = ("editor", "edited/asked", "right before", "after", "change in points", "p", "cases")
    pairs = results.accuracy.query("edit_relation != 'all'")
    skipped = int(pairs[["n_no_gold", "n_unscored"]].sum().sum())
    match = "substring" if results.mode == "paper" else "exact"
    absent = 0 if match == "substring" else int(pairs["n_no_candidate"].sum())
    about = wrap(
        f"""The right answer about ANOTHER property of the edited person beats all candidates ({match} match). Higher is
        better, change 0 = no side effect. Shares: Wilson; change: {_TESTS[results.mode]}.
        {skipped} cases without a gold answer or a score are left out; {absent} count as wrong because no right answer
        is a candidate."""
    )
    return f"CROSS-PROPERTY ACCURACY\n{about}\n" + column_table(heads, rows, left=2)


def _accuracy_row(row: AccuracyRow) -> list[object]:
    pair = (row["edit_relation"], row["effect_relation"])
    return [
        row["editor"],
        "all pairs" if pair == ("all", "all") else "/".join(map(relation_name, pair)),
        _share(row, "pre"),
        _share(row, "post"),
        _points(row),
        text.p_value(row["p"]),
        row["n"],
    ]


def _points(row: AccuracyRow) -> str:
    if not row["n"]:
        return "none could be scored"
    return text.points(row["change"], row["low"], row["high"], missing="(too few people)")


def unscored_section(results: Results) -> str:
    """Counts the score rows without a number, with the reasons."""
    frame = results.unscored
    total = int(frame["n_rows"].sum())
    if not total:
        return f"All {results.n_rows:,} score rows have a number."
    rows = frame.head(_REASONS)[["n_rows", "editor", "kind", "phase", "reason"]].to_numpy().tolist()
    more = f"\nand {len(frame) - _REASONS} more reasons, see unscored.csv" if len(frame) > _REASONS else ""
    listing = column_table(("rows", "editor", "kind", "phase", "reason"), rows, left=5)
    title = wrap(f"UNSCORED: {total:,} of {results.n_rows:,} score rows have no number")
    return f"{title}\n{listing}{more}"
