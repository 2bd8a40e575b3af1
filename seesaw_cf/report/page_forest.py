"""Forest plots of a page: effects of each group next to those of the control, and contrasts between groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.editors.control_names import CONTROLS, is_control, split_control
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.groups import ALL, AXES, UNKNOWN
from seesaw_cf.report import text
from seesaw_cf.report.floor import Floor
from seesaw_cf.report.html.forest import Axis, Control, Forest, ForestColumn, ForestRow, Mark, Panel, key_colours
from seesaw_cf.report.page_cases import Cell, cell_link
from seesaw_cf.report.results import HOLDER, Results, relation_name, sort_groups, sort_relations
from seesaw_cf.report.rows import EffectRow, VerdictRow, number_of, of_controls, records

Scale = Literal["probability", "log-odds"]
EFFECTS: Mapping[Scale, tuple[str, str, str]] = {
    "probability": ("D", "", "change of p(new) − p(true)"),
    "log-odds": ("log_odds", "log_odds_", "change of log-odds, nats"),
}
"""Scale -> column of the effect, what the names of its limits begin with, what it is."""
_SIDES = (HOLDER, "target_true")


def scale_of(verdicts: pd.DataFrame) -> Scale:
    """Return the scale that decided most verdicts: log-odds at a tie, probability without any."""
    return "log-odds" if len(verdicts) and (verdicts["scale"] == "log-odds").mean() >= 0.5 else "probability"


def lines_of(scale: Scale, floors: Iterable[Floor], settings: AuditSettings) -> tuple[float, float]:
    """Return the largest noise floor (0 where none is known) and the declared margin, on a scale."""
    logs = scale == "log-odds"
    floor = max((limit.log_odds if logs else limit.probability) or 0.0 for limit in floors)
    return floor, settings.margin_log_odds if logs else settings.margin


def colours_of(editors: Iterable[str]) -> dict[str, int]:
    """Return editor -> number of its colour, controls left out."""
    return key_colours(name for name in editors if not is_control(name))


_DASHES = ("solid", "dashed", "dotted")  # of the kinds of `CONTROLS`, in their order


def about_controls(controls: Mapping[str, Sequence[str]]) -> str:
    """Return what the thin lines of a forest are: one for each kind of control that a run has."""
    kinds = {split_control(name)[0] for names in controls.values() for name in names}
    keys = [f"{kind} ({dash})" for kind, dash in zip(CONTROLS, _DASHES, strict=True) if kind in kinds]
    return f"thin grey lines below: the same of its controls: {', '.join(keys)}." if keys else "the run had no control."


def forests(results: Results, controls: Mapping[str, Sequence[str]]) -> list[Forest]:
    """Return the forest plots of a run, in the scale that decides its verdicts.

    Args:
        results: What the run found.
        controls: Editor -> its controls.
    """
    effects, audit = results.effects, results.audit
    if audit is None or effects.loc[~of_controls(effects), "D"].isna().all():  # nobody was asked about
        return []
    scale = scale_of(audit.verdicts)
    lines = lines_of(scale, [results.floor], audit.settings)
    return forests_of(effects, colours_of(results.editors), controls, scale, lines, words=results.words)


def forests_of(
    effects: pd.DataFrame,
    colours: Mapping[str, int],
    controls: Mapping[str, Sequence[str]],
    scale: Scale,
    lines: tuple[float, float],
    link: Callable[[Cell], str] = cell_link,
    words: Callable[[str], str] = str,
) -> list[Forest]:
    """Return the forest plots of any table of effects.

    Args:
        effects: Rows of `Results.effects`.
        colours: Of the editors, in the order of the lines; see `colours_of`.
        controls: Editor -> its controls; all among the rows.
        scale: "probability" or "log-odds".
        lines: Noise floor and margin on that scale; see `lines_of`.
        link: Where the name of a row leads; "" for nowhere.
        words: Makes sentences fit what was changed, see `Results.words`.
    """
    column, limits, unit = EFFECTS[scale]
    effects = effects[effects["group"] != UNKNOWN]
    real = effects[~of_controls(effects)]
    relations = sort_relations(real["relation"])
    cells = {
        (row["editor"], row["relation"], row["axis"], row["group"], row["holds"]): row
        for row in records(effects, EffectRow)
    }
    sides = [holds for holds in _SIDES if holds in set(real["holds"])] or [""]
    axes = {
        (name, holds): _axis(real[(real["relation"] == name) & (real["holds"] == holds)], column, limits)
        for name in relations
        for holds in sides
    }

    def mark(editor: str, key: tuple[str, str, str], holds: str) -> Mark | None:
        axis = axes[key[0], holds]
        row = cells.get((editor, *key, holds))
        if row is None or not math.isfinite(number_of(row, column)):
            return None
        counts = f"{quantity(row['n_cases'], 'edit')}, {quantity(row['n_subjects'], 'person', 'people')}"
        about = f"{editor}: {_effect_text(row, column, limits)}; {counts}"
        beside = []
        for name in controls.get(editor, ()):
            control = cells.get((name, *key, holds))
            if control is not None and math.isfinite(number_of(control, column)):
                about += f"; control {name}: {_effect_text(control, column, limits)}"
                span = axis.span(*_limits(control, limits))
                dash = CONTROLS.index(split_control(name)[0])
                beside.append(Control(axis.at(number_of(control, column)), span, dash))
        span = axis.span(*_limits(row, limits))
        return Mark(axis.at(number_of(row, column)), span, colours[editor], text.minus(words(about)), beside)

    def row(editor: str, key: tuple[str, str, str]) -> ForestRow:
        first = next((cells[editor, *key, holds] for holds in sides if (editor, *key, holds) in cells), None)
        count = f"{first['n_cases']:,}, {first['n_subjects']:,}" if first is not None else "–"
        group = "everybody" if key[2] == ALL else key[2]
        name = f"{group} · {editor}" if len(colours) > 1 else group
        marks = [mark(editor, key, side) for side in sides]
        return ForestRow(name, count, marks, link((editor, key[0], sides[0], key[1], key[2])))

    def panel(relation: str, by: str, opened: bool) -> Panel:
        there = real[(real["relation"] == relation) & real["axis"].isin((by, ALL))]
        groups = sort_groups(by, there["group"])
        keys = [(relation, ALL if group == ALL else by, group) for group in groups]
        rows = [row(editor, key) for key in keys for editor in colours]
        columns = [
            ForestColumn.with_lines(words(f"hold the {text.HOLDS[holds]}"), axes[relation, holds], *lines)
            for holds in sides
        ]
        about = words(f"{unit}, 95 % intervals clustered by edit and by person")
        title = words(f"edited: {relation_name(relation)}")
        heads = ("group", words("edits, people"))
        return Panel(title, about, heads, columns, unit, rows, opened)

    largest = max(relations, key=lambda name: real.loc[real["relation"] == name, "n_cases"].max())
    forests = []
    for by in (name for name in AXES if name in set(real["axis"])):
        panels = [panel(relation, by, relation == largest) for relation in relations]
        forests.append(Forest(by, panels))
    return forests


def _axis(effects: pd.DataFrame, column: str, limits: str) -> Axis:
    """Return one axis for all groups and editors of an edited relation."""
    return Axis.around(effects[column], [*effects[f"{limits}low"], *effects[f"{limits}high"]])


def _limits(row: EffectRow, limits: str) -> tuple[float, float]:
    return number_of(row, f"{limits}low"), number_of(row, f"{limits}high")


def _effect_text(row: EffectRow, column: str, limits: str) -> str:
    low, high = _limits(row, limits)
    effect = text.effect(number_of(row, column), low, high)
    return effect if math.isfinite(low) else f"{effect} (no interval: {row['note']})"


_ABOUT = (
    "change of confidence in the new answer, group minus reference within the same edits; 95 % intervals, each alone; "
    "dashed: margin"
)


def contrast_panels(results: Results, colours: Mapping[str, int]) -> list[Panel]:
    """Return a panel for each axis and scale with the contrasts of edits that were tested, pooled relations first.

    Args:
        results: What the run found.
        colours: Of the editors that are shown.
    """
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return []
    own = audit.contrasts[audit.contrasts["editor"].isin(colours) & audit.contrasts["p"].notna()]
    order = [ALL, *(name for name in sort_relations(own["relation"]) if name != ALL)]
    panels: list[Panel] = []
    for (by, scale), rows in own.groupby(["axis", "scale"], sort=False):
        groups = sort_groups(str(by), rows["group"])
        rows = rows.assign(at=rows["relation"].map(order.index), place=rows["group"].map(groups.index))
        rows = rows.sort_values(["at", "place"], kind="stable")
        axis = Axis.around(rows["value"], [*rows["low"], *rows["high"]])
        limits = lines_of(scale, [results.floor], audit.settings)  # type: ignore[arg-type]
        column = ForestColumn.with_lines("difference between groups", axis, *limits)
        lines = [_row(row, axis, colours, results.words) for row in records(rows, VerdictRow)]
        heads = ("contrast: verdict", "difference")
        title, about = f"By {by}, {scale}", results.words(_ABOUT)
        panels.append(Panel(title, about, heads, [column], str(scale), lines, not panels))
    return panels


def _row(row: VerdictRow, axis: Axis, colours: Mapping[str, int], words: Callable[[str], str]) -> ForestRow:
    about = "all properties" if row["relation"] == ALL else relation_name(row["relation"])
    names = [f"{row['group']} − {row['reference']}", about, *([row["editor"]] if len(colours) > 1 else [])]
    holds = str(row.get("holds", HOLDER))
    names += [words(f"hold the {text.HOLDS[holds]}")] if holds != HOLDER else []
    size = text.minus(text.effect(row["value"], row["low"], row["high"]))
    edits, people = (row["clusters"].get(name, 0) for name in ("edit", "person"))
    counts = words(quantity(edits, "edit")) + f", {quantity(people, 'person', 'people')}"
    mark = Mark(axis.at(row["value"]), axis.span(row["low"], row["high"]), colours[row["editor"]], f"{size}; {counts}")
    cell = (row["editor"], row["relation"], holds, row["axis"], row["group"])
    return ForestRow(f"{' · '.join(names)}: {row['verdict']}", size, [mark], cell_link(cell))
