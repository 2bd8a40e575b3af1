"""How large a run must be for its own contrasts: a table, what its values are made of, and one sentence."""

from __future__ import annotations

import math

import pandas as pd

from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.groups import ALL
from seesaw_cf.effects.needed import SPREAD, Aim, components, needs
from seesaw_cf.report import text
from seesaw_cf.report.results import Results, relation_name, sort_relations
from seesaw_cf.report.rows import of_controls
from seesaw_cf.report.table import Column, Row, Table, rows_of, word_column
from seesaw_cf.stats.clustered import FEW_EDITS

_DEVIATIONS = ("edit", "person", "pair", "template", "rest")


def needed(results: Results) -> str:
    """Return one sentence on what would decide the undetermined contrasts of a run; "" where there are none.

    Args:
        results: What the run found.
    """
    return needed_of(run_needs(results, open_only=True)) if compared(results) else ""


def needed_of(frame: pd.DataFrame) -> str:
    """Return the sentence for rows of `run_needs`: on the median undetermined contrast, of pooled ones if any."""
    rows = hypotheses(frame) if len(frame) else frame.reindex(columns=["verdict", "times", "relation"])
    rows = rows[(rows["verdict"] == "undetermined") & rows["times"].notna()]
    pooled = rows[rows["relation"] == ALL]
    rows = (pooled if len(pooled) else rows).sort_values("times", kind="stable")
    if rows.empty:
        return ""
    row = rows_of(rows)[(len(rows) - 1) // 2]
    kind = "undetermined pooled contrast" if len(pooled) else "undetermined contrast"
    which = f"the {kind}" if len(rows) == 1 else f"half of the {len(rows)} {kind}s"
    unit = "" if row["scale"] == "probability" else " nats"
    if row["times"] <= 1:
        few = f"; to call them equal takes {FEW_EDITS} edits, {row['edits']} are there" * (row["edits"] < FEW_EDITS)
        return f"{which[:1].upper()}{which[1:]} would have shown {row['effect']:.3g}{unit}{few}."
    return f"To decide {row['effect']:.3g}{unit} in {which} this run needs {_more(row)}."


def compared(results: Results) -> bool:
    """Return whether groups of people were compared after edits that are no control's."""
    audit = results.audit
    return audit is not None and "verdict" in audit.verdicts and not of_controls(audit.verdicts).all()


def missing(results: Results) -> str:
    """Return why a run has no contrasts to plan for, and what would give it some."""
    if all(map(is_control, results.editors)):
        return "This run has control edits only: run an editor too (--editor)."
    if results.prompts is None:
        return (
            "This run asked nothing about other people: records with such prompts are made by `seesaw-cf build`, and "
            "are asked with --config cross_subject."
        )
    return (
        "No two groups of people were asked about under the same edit: `seesaw-cf tag RECORDS --from wikidata --out "
        "DIR` adds what a source records about people."
    )


def run_needs(
    results: Results, effect: float | None = None, power: float = 0.8, open_only: bool = False
) -> pd.DataFrame:
    """Return `seesaw_cf.effects.needed.needs` of a run's contrasts by editors, with their verdicts.

    Args:
        results: What the run found; `compared` holds.
        effect: To find, in probability; None: the declared margin.
        power: Chance to find it.
        open_only: Only what `needed_of` reads: what is pooled over relations where some of that is undetermined.
    """
    audit = results.audit
    if audit is None or results.prompts is None:
        return pd.DataFrame()
    everything, margin = audit.verdicts[~of_controls(audit.verdicts)], audit.settings.margin
    pooled = everything[everything["relation"] == ALL]
    rows = pooled if open_only and (pooled["verdict"] == "undetermined").any() else everything
    aim = Aim(margin if effect is None else effect, audit.settings.alpha, power)
    return needs(results.prompts, rows, aim, margin, everything)


def needs_table(frame: pd.DataFrame, power: float = 0.8, group: str | None = None) -> Table:
    """Return what each contrast of a run takes.

    Args:
        frame: Rows of `run_needs`.
        power: Chance to find the effect.
        group: Show this group alone, with what its contrasts lack; None: the pooled contrasts that have a test, or
            all that have one, or all.
    """
    tests = hypotheses(frame)
    testable = tests[tests["stderr"].notna()]
    pooled = testable[testable["relation"] == ALL]
    by_default = next((rows for rows in (pooled, testable) if len(rows)), tests)
    shown = by_default if group is None else frame[frame["group"] == group]
    lines = [needed_of(frame)]
    if 0 < len(testable) < len(tests):
        lines.append(f"{len(tests) - len(testable):,} contrasts have no test; --group says what each lacks.")
    about = (
        f"Edits with the same people, or people with the same edits, that find the effect with power {power:.0%}, and "
        "the fewest prompts in all; each contrast at its part of its family's level. - : no number is enough. In "
        f"brackets: 8 of 10 predictions from half of a run, with errors {SPREAD[0]} to {SPREAD[1]} times as predicted."
    )
    columns = (
        *_where_several(shown, word_column("editor")),
        word_column("property", _property),
        *_where_several(shown, word_column("holds", lambda row: text.HOLDS[row["holds"]])),
        word_column("contrast", lambda row: f"{row['group']} - {row['reference']}"),
        *([word_column("lacks", "note")] if shown["note"].any() else []),
        *(Column("to find", "effect"), Column("finds now", "detectable")),
        *(Column("edits"), Column("needed", lambda row: _range(row, "edits"))),
        *(Column("people"), Column("needed ", lambda row: _range(row, "people"))),
        Column("fewest", _fewest),
    )
    return Table("needs", "What would decide", about, columns, shown, lines=tuple(filter(None, lines)))


def _where_several(frame: pd.DataFrame, column: Column) -> list[Column]:
    return [column] if frame[column.head].nunique() > 1 else []


def components_table(results: Results) -> Table:
    """Return the standard deviations of what D is made of, for each editor and property."""
    frame = pd.DataFrame() if results.prompts is None else components(results.prompts)
    if len(frame):
        order = sort_relations(frame["relation"])
        frame = frame.sort_values("relation", key=lambda own: own.map(order.index)).sort_values("editor", kind="stable")
    about = (
        "Standard deviations of D: between edits, between people under every edit, of a person under one edit, of a "
        "template under one edit, and of one prompt."
    )
    columns = (
        *(word_column("editor"), word_column("property", _property)),
        *map(Column, _DEVIATIONS),
        *(Column("edits"), Column("people"), Column("prompts")),
    )
    return Table("components", "What effects are made of", about, columns, frame)


def _property(row: Row) -> str:
    return "all" if row["relation"] == ALL else relation_name(row["relation"])


def _fewest(row: Row) -> str:
    if math.isnan(row["cheapest_edits"]):
        return "-"
    return f"{row['cheapest_edits']:,.0f} x {row['cheapest_people']:,.0f}"


def _range(row: Row, name: str) -> str:
    """Return how many are needed, and the ends of what its error allows."""
    needed, least, most = (row[f"{name}_{which}"] for which in ("needed", "least", "most"))
    if math.isnan(needed):
        return "-"
    return f"{needed:,.0f} ({least:,.0f} {'or more' if math.isnan(most) else f'to {most:,.0f}'})"


def _more(row: Row) -> str:
    def times(name: str, there: str) -> str:
        return f"{float(format(row[name] / row[there], '.2g')):,g} times the {there}"

    edits, people = (not math.isnan(row[f"{name}_needed"]) for name in ("edits", "people"))
    if edits and people:
        return f"{times('edits_needed', 'edits')} or {times('people_needed', 'people')}"
    if people:
        return f"{times('people_needed', 'people')}; more edits alone do not do it"
    if edits:
        return f"{times('edits_needed', 'edits')}; more people alone do not do it"
    if not math.isnan(row["cheapest_edits"]):
        return f"{times('cheapest_edits', 'edits')} and {times('cheapest_people', 'people')}"
    return "more than a thousand times as many edits or people"
