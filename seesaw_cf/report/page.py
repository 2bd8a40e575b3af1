"""`report.html`: what a run found, in the order in which a reader asks, in one file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seesaw_cf.editors.control_names import compared, is_control, split_control
from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.report import notes, text
from seesaw_cf.report.findings import RunFindings, find
from seesaw_cf.report.html.render import PageTable, TableRow, download_csv, render
from seesaw_cf.report.page_answers import look_answers
from seesaw_cf.report.page_cases import cell_link, look_prompts
from seesaw_cf.report.page_contrasts import contrast_panels
from seesaw_cf.report.page_forest import EFFECTS, about_controls, colours_of, forests, scale_of
from seesaw_cf.report.provenance import citation, recorded, repeat_command
from seesaw_cf.report.results import HOLDER, Results, relation_name
from seesaw_cf.report.rows import DifferenceRow, EffectRow, number_of, records
from seesaw_cf.report.run_tables import run_tables

# The first question of a reader: which groups lost most, and was it more than a control edit made them lose?

_SHOWN = 8  # of each editor
_Key = tuple[str, str, str, str]


def most_affected(results: Results, controls: Mapping[str, Sequence[str]]) -> PageTable | None:
    """Return each editor's groups that lost most confidence in what is right about them, with its controls.

    Args:
        results: What the run found.
        controls: Editor -> its controls.

    Returns:
        A table in the scale that decides most verdicts; None where no effect has an interval.
    """
    effects, audit = results.effects, results.audit
    if effects.empty or audit is None:
        return None
    column, limits, unit = EFFECTS[scale_of(audit.verdicts)]
    people = effects[(effects["holds"] == HOLDER) & ~effects["editor"].map(is_control) & (effects["group"] != UNKNOWN)]
    there = people[people[f"{limits}low"].notna()].sort_values(column, kind="stable")
    if there.empty:
        return None
    lost = there[there[column] < 0]
    nobody = [name for name in there["editor"].unique() if name not in set(lost["editor"])]
    value = column if limits else "value"  # how the table of differences calls it
    beside: dict[_Key, list[str]] = {}
    for row in records(audit.excess, DifferenceRow) if len(audit.excess) else []:
        effect = f"{_estimate(row, value, limits)} ({split_control(row['control'])[0]})"
        beside.setdefault((row["editor"], row["relation"], row["axis"], row["group"]), []).append(effect)
    order = {editor: place for place, editor in enumerate(results.editors)}
    largest = lost.groupby("editor", sort=False).head(_SHOWN)
    largest = largest.sort_values("editor", key=lambda column: column.map(order), kind="stable")
    rows = [_line(row, _estimate(row, column, limits), beside) for row in records(largest, EffectRow)]
    lines = [
        f"Of each editor the {_SHOWN} groups with the lowest estimate among {len(there):,} that have an interval "
        f"({len(people) - len(there):,} have none: too few edits or people, or all alike). Below 0 the model became "
        "less sure of the new target, which is right about these people. A place in this list is no verdict: some "
        "group is always first."
    ]
    lines += [f"After edits by {', '.join(nobody)} no estimate with an interval is below 0."] if nobody else []
    lines += [] if controls else [
        "This run had no control edit, so whether any other edit of that size would have done the same is not known; "
        "--control random measures it."
    ]  # fmt: skip
    heads = ("group", "editor", "property", "effect, interval", "more than its control", "edits", "people")
    about = f"{unit}; people who hold the new target; 95 % intervals; below 0 in the next column: lost more than that"
    return PageTable("most", "Who lost most", about if controls else unit, heads, 3, rows, lines)


def _line(row: EffectRow, effect: str, beside: Mapping[_Key, Sequence[str]]) -> TableRow:
    key = (row["editor"], row["relation"], row["axis"], row["group"])
    group = "everybody" if row["group"] == ALL else row["group"]
    excess = "; ".join(beside.get(key, ())) or "–"
    names = (group, row["editor"], relation_name(row["relation"]))
    link = cell_link((row["editor"], row["relation"], HOLDER, row["axis"], row["group"]))
    return TableRow((*names, effect, excess, f"{row['n_cases']:,}", f"{row['n_subjects']:,}"), {0: link})


def _estimate(row: EffectRow | DifferenceRow, column: str, limits: str) -> str:
    value, low, high = (number_of(row, name) for name in (column, f"{limits}low", f"{limits}high"))
    return text.minus(text.effect(value, low, high))


_SECTIONS = {
    "contrasts": "Group against group",
    "most": "Who lost most",
    "groups": "Effects by group",
    "look": "Look into it",
    "method": "How do I repeat it?",
    "cite": "What do I cite?",
    "downloads": "Tables",
}


def report_page(results: Results, findings: RunFindings | None = None) -> str:
    """The page.

    Args:
        results: The numbers of a run.
        findings: What they say; computed when None.

    Returns:
        HTML; the same run gives the same bytes.
    """
    run = results.manifest
    tables = run_tables(results)
    controls: dict[str, list[str]] = {}
    for editor, control in compared(results.editors, run):
        controls.setdefault(editor, []).append(control)
    values: dict[str, Any] = {
        "title": f"Side effects of editing {run.get('model', {}).get('id', 'a model')}",
        "findings": findings or find(results),
        "most": most_affected(results, controls),
        "forests": forests(results, controls),
        "about_forest": _ABOUT_FOREST,
        "editors": [(number, name) for name, number in colours_of(results.editors).items()],
        "contrasts": contrast_panels(results, colours_of(results.editors)),
        "citation": citation(results.editors),
        "about_controls": about_controls(controls),
        "look": look_prompts(results.prompts, results.edits, controls) if results.prompts is not None else None,
        "cases": look_answers(results),
        "tables": tables,
        "method": notes.CAUTION,
        "command": repeat_command(run),
        "facts": recorded(run),
        "downloads": [download_csv(table.name, table.csv(), len(table.frame)) for table in tables if len(table.frame)],
    }
    parts = {
        "contrasts": values["contrasts"],
        "most": values["most"],
        "groups": values["forests"],
        "look": values["look"],
    }
    titles = {name: _SECTIONS[name] for name, part in parts.items() if part}
    titles |= {table.name: table.title for table in tables}
    values["sections"] = [*titles.items(), *((name, _SECTIONS[name]) for name in ("method", "cite", "downloads"))]
    return render("report.html", values)


_ABOUT_FOREST = (
    "An edit replaces one answer, its true target, by another, its new target. Each line is a group of people who were "
    "not edited. 0 means that the edit left the model's answers about them alone; below 0 the model turned away from "
    "the new target, above 0 towards it. The new target is right about people who hold it, and wrong about those who "
    "hold the true target."
)
