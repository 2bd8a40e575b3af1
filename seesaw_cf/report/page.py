"""`report.html`: what a run found, in the order in which a reader asks, in one file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seesaw_cf.editors.control_names import compared, split_control
from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.report import notes, text
from seesaw_cf.report.html.findings import Findings, FirstScreen, Legend, PageSection, Panels, Section, Verbatim
from seesaw_cf.report.html.look import PromptList
from seesaw_cf.report.page_answers import look_answers
from seesaw_cf.report.page_cases import cell_link, look_prompts
from seesaw_cf.report.page_forest import EFFECTS, about_controls, colours_of, contrast_panels, forests, scale_of
from seesaw_cf.report.provenance import citation, model_name, recorded, repeat_command
from seesaw_cf.report.results import HOLDER, Results, relation_name
from seesaw_cf.report.rows import number_of, of_controls
from seesaw_cf.report.run_tables import worded
from seesaw_cf.report.table import Column, Row, Table, rows_of, word_column

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
    people = effects[(effects["holds"] == HOLDER) & ~of_controls(effects) & (effects["group"] != UNKNOWN)]
    there = people[people[f"{limits}low"].notna()].sort_values(name, kind="stable")
    if there.empty:
        return None
    lost = there[there[name] < 0]
    nobody = [editor for editor in there["editor"].unique() if editor not in set(lost["editor"])]
    beside: dict[_Key, list[str]] = {}
    for row in rows_of(audit.excess):  # the table of differences calls D "value"
        effect = f"{_estimate(row, name if limits else 'value', limits)} ({split_control(row['control'])[0]})"
        beside.setdefault(_key(row), []).append(effect)
    largest = lost.groupby("editor", sort=False).head(_SHOWN)
    largest = largest.sort_values("editor", key=lambda column: column.map(results.editors.index), kind="stable")
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
        word_column("group", lambda row: "everybody" if row["group"] == ALL else row["group"], link=_link),
        word_column("editor"),
        word_column("property", lambda row: relation_name(row["relation"])),
        Column("effect, interval", lambda row: _estimate(row, name, limits)),
        Column("more than its control", lambda row: "; ".join(beside.get(_key(row), ())) or "–"),
        Column("edits", lambda row: f"{row['n_cases']:,}"),
        Column("people", lambda row: f"{row['n_subjects']:,}"),
    )
    about = f"{unit}; people who hold the new target; 95 % intervals; below 0 in the next column: lost more than that"
    return worded(Table("most", "Who lost most", about if controls else unit, columns, largest, lines=lines), results)


def _key(row: Row) -> _Key:
    return row["editor"], row["relation"], row["axis"], row["group"]


def _link(row: Row) -> str:
    return cell_link((row["editor"], row["relation"], HOLDER, row["axis"], row["group"]))


def _estimate(row: Row, name: str, limits: str) -> str:
    value, low, high = (number_of(row, key) for key in (name, f"{limits}low", f"{limits}high"))
    return text.minus(text.effect(value, low, high))


def report_page(results: Results, screen: FirstScreen, tables: Sequence[Table]) -> Findings:
    """Return the page.

    Args:
        results: The numbers of a run.
        screen: What they say.
        tables: See `run_tables`.
    """
    run, colours = results.manifest, colours_of(results.editors)
    controls: dict[str, list[str]] = {}
    for editor, control in compared(results.editors, run):
        controls.setdefault(editor, []).append(control)
    sections: list[Section] = []
    if panels := contrast_panels(results, colours):
        about = [results.words(_ABOUT_CONTRASTS)]
        sections.append(PageSection("contrasts", "Group against group", [Panels(panels)], about))
    if most := most_affected(results, controls):
        sections.append(PageSection(most.name, most.title, [most], most.lines))
    if plots := forests(results, controls):
        marks = _MARKS.format(controls=about_controls(controls))
        keys = Legend([(colour, 0, name) for name, colour in colours.items()], marks)
        about = [_ABOUT_FOREST[results.asked_only]]
        sections.append(PageSection("groups", "Effects by group", [keys, *plots], about))
    if results.prompts is not None and (prompts := look_prompts(results.prompts, results.edits, controls)):
        sections.append(_worded(prompts, results))
    for table in tables:
        sections.append(PageSection(table.name, table.title, [table], table.sentences[1:]))
        if table.name == "accuracy" and (answers := look_answers(results)):
            sections.append(_worded(answers, results))
    sections.append(PageSection("cite", "What do I cite?", [Verbatim(citation(results.editors))]))
    return Findings(
        screen=screen,
        sections=sections,
        method=notes.cautions(results),
        command=repeat_command(run),
        facts=recorded(run),
        tables=tables,
        title=results.words(f"Side effects of editing {model_name(run)}"),
    )


def _worded(prompts: PromptList, results: Results) -> PromptList:
    """Return the same list with headings that fit what was changed."""
    heads = [(results.words(head), results.words(about)) for head, about in prompts.heads]
    choices = [(name, results.words(label), values) for name, label, values in prompts.choices]
    title, about = results.words(prompts.title), results.words(prompts.about)
    return replace(prompts, title=title, about=about, heads=heads, choices=choices)


_ABOUT_CONTRASTS = (
    "Each line compares a group with the rest, within the same edits. A verdict stands only where the corrected test "
    "and the margin allow it; contrasts that cannot be tested are in tables/verdicts.csv."
)
_MARKS = (
    "Dot and line: effect and 95 % interval (open: no interval); {controls} Grey band: noise floor. Dashed: margin. ‹ "
    "and ›: the interval goes on. All groups of a column have one axis; the columns have their own. A name opens the "
    "prompts."
)
_ABOUT_FOREST = {
    False: "An edit replaces one answer, its true target, by another, its new target. Each line is a group of people "
    "who were not edited. 0 means that the edit left the model's answers about them alone; below 0 the model turned "
    "away from the new target, above 0 towards it. The new target is right about people who hold it, and wrong about "
    "those who hold the true target.",
    True: "Each fact has two answers, each right about some people. Each line is a group of people. 0 means that the "
    "change left the model's answers about them alone; below 0 the model turned away from the second answer, above 0 "
    "towards it.",
}
