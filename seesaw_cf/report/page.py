"""`report.html`: what a run found, in the order in which a reader asks, in one file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seesaw_cf.editors.control_names import compared, is_control, split_control
from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.report import notes, text
from seesaw_cf.report.findings import RunFindings
from seesaw_cf.report.html.render import downloads, render
from seesaw_cf.report.page_answers import look_answers
from seesaw_cf.report.page_cases import cell_link, look_prompts
from seesaw_cf.report.page_contrasts import contrast_panels
from seesaw_cf.report.page_forest import EFFECTS, about_controls, colours_of, forests, scale_of
from seesaw_cf.report.provenance import citation, recorded, repeat_command
from seesaw_cf.report.results import HOLDER, Results, relation_name
from seesaw_cf.report.rows import number_of
from seesaw_cf.report.table import Column, Row, Table, rows_of

# The first question of a reader: which groups lost most, and was it more than a control edit made them lose?

_SHOWN = 8  # of each editor
_Key = tuple[str, str, str, str]


def most_affected(results: Results, controls: Mapping[str, Sequence[str]]) -> Table | None:
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
    name, limits, unit = EFFECTS[scale_of(audit.verdicts)]
    people = effects[(effects["holds"] == HOLDER) & ~effects["editor"].map(is_control) & (effects["group"] != UNKNOWN)]
    there = people[people[f"{limits}low"].notna()].sort_values(name, kind="stable")
    if there.empty:
        return None
    lost = there[there[name] < 0]
    nobody = [editor for editor in there["editor"].unique() if editor not in set(lost["editor"])]
    beside: dict[_Key, list[str]] = {}
    for row in rows_of(audit.excess):  # the table of differences calls D "value"
        effect = f"{_estimate(row, name if limits else 'value', limits)} ({split_control(row['control'])[0]})"
        beside.setdefault(_key(row), []).append(effect)
    order = {editor: place for place, editor in enumerate(results.editors)}
    largest = lost.groupby("editor", sort=False).head(_SHOWN)
    largest = largest.sort_values("editor", key=lambda column: column.map(order), kind="stable")
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
    columns = (
        Column("group", lambda row: "everybody" if row["group"] == ALL else row["group"], words=True, link=_link),
        Column("editor", words=True),
        Column("property", lambda row: relation_name(row["relation"]), words=True),
        Column("effect, interval", lambda row: _estimate(row, name, limits)),
        Column("more than its control", lambda row: "; ".join(beside.get(_key(row), ())) or "–"),
        Column("edits", lambda row: f"{row['n_cases']:,}"),
        Column("people", lambda row: f"{row['n_subjects']:,}"),
    )
    about = f"{unit}; people who hold the new target; 95 % intervals; below 0 in the next column: lost more than that"
    return Table("most", "Who lost most", about if controls else unit, columns, largest, lines=lines)


def _key(row: Row) -> _Key:
    return row["editor"], row["relation"], row["axis"], row["group"]


def _link(row: Row) -> str:
    return cell_link((row["editor"], row["relation"], HOLDER, row["axis"], row["group"]))


def _estimate(row: Row, name: str, limits: str) -> str:
    value, low, high = (number_of(row, key) for key in (name, f"{limits}low", f"{limits}high"))
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


def report_page(results: Results, findings: RunFindings, tables: Sequence[Table]) -> str:
    """Return the page as HTML; the same run gives the same bytes.

    Args:
        results: The numbers of a run.
        findings: What they say.
        tables: See `run_tables`.
    """
    run = results.manifest
    controls: dict[str, list[str]] = {}
    for editor, control in compared(results.editors, run):
        controls.setdefault(editor, []).append(control)
    values: dict[str, Any] = {
        "title": f"Side effects of editing {run.get('model', {}).get('id', 'a model')}",
        "findings": findings,
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
        "downloads": downloads(tables),
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
