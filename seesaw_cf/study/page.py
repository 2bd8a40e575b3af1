"""The tables of a comparison, each declared once, and `report.md`, which is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report import notes, text
from seesaw_cf.report.html.findings import FirstScreen
from seesaw_cf.report.results import HOLDER, relation_name, relation_names, sort_relations
from seesaw_cf.report.rows import EfficacyRow, number_of, records, rows_of, with_limits
from seesaw_cf.report.run_tables import effect_columns
from seesaw_cf.report.table import Column, EstimateColumn, Row, Table, word_column
from seesaw_cf.stats.verdicts import VERDICTS
from seesaw_cf.study.matrix import matrix_table, rows_of_line
from seesaw_cf.study.members import NAMES, ComparedEditor, disagreements, varying
from seesaw_cf.study.tables import MEASURES, Comparison

_MOST = 40  # differences between groups that people see
_GATE = """One line for each editor of each run, controls left out. Took: share of edits after which the new answer is
likelier than the old one, in brackets before the edit. Paraphrase, neighbourhood: share of prompts after which the
new, or the old, answer is likelier. Score: harmonic mean of the three. Other properties: change of the share of edited
people whose other property is answered right, in percentage points. Intervals: 95 %, Wilson over edits."""

_DIFFERENCES = """First minus second on the cases, prompts and people that both were scored on. D and log-odds: errors
clustered by edit and person. Paraphrase and neighbourhood: mean of the edits' means, clustered by edit. Efficacy and
accuracy: Newcombe's paired interval, clustered by person. No interval below five, and none of these shares where a run
has the protocol batch, whose cases are one edit. p is corrected within each measure, relation and axis of a pair."""

_BATCH = """protocol batch, the cases of a relation are one edit of the model: intervals of its shares are about these
cases under this one edit, and support no claim about other edits.""".replace("\n", " ")

_PEOPLE = """Unit: {unit}. 0 = the edit left them alone, below 0 = less confident in what is right about them. Means
over edits of the mean over prompts, 95 % intervals. Star: the interval excludes 0, and the effect the noise floor."""

_GROUPS = """What the editors, or models, did to groups of people is in papers.md, in the layout of the papers' tables.
Every number with its counts is in tables/effects_by_group.csv."""

_share = partial(EstimateColumn, scale=100, digits=1)


def comparison_head(
    comparison: Comparison, screen: FirstScreen, missing: Sequence[str] = (), notes_on: Sequence[str] = ()
) -> str:
    """Return what `report.md` says above the tables.

    Args:
        comparison: The comparison.
        screen: What was found.
        missing: What is not there and why, in sentences.
        notes_on: What was declared, in sentences.
    """
    cautions = [*missing, *disagreements(comparison.members), *run_notes(comparison)]
    parts = [
        screen.markdown(),
        notes.READING,
        "\n".join(f"- {text.escape(line)}" for line in notes_on),
        "**Read this first.**\n\n" + "\n".join(f"- {text.escape(line)}" for line in cautions) if cautions else "",
    ]
    return "\n\n".join(filter(None, parts))


def run_notes(comparison: Comparison) -> list[str]:
    """Return which runs edited in batches, what runs noted when they began, and that nothing is paired."""
    batches = [f"{member.title}: {_BATCH}" for member in comparison.members if member.protocol == "batch"]
    noted = [f"{member.title}: {note}" for member in comparison.members for note in member.manifest.get("notes", [])]
    unpaired = "No two lines that differ in one name share a case, so nothing is paired."
    return [*batches, *noted, *([unpaired] if comparison.table("differences").empty else [])]


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return every table of a comparison, in the order of a reader."""
    tables = [
        *(matrix_table(comparison), _runs(comparison), _efficacy(comparison), _people(comparison)),
        *(_verdicts(comparison), *_differences(comparison)),
    ]
    return [table for table in tables if len(table.frame)]


def file_tables(comparison: Comparison) -> list[Table]:
    """Return every table of a comparison, those without columns are files alone."""
    tables = comparison_tables(comparison)
    names = {table.name for table in tables}
    others = [(name, frame) for name, frame in comparison.tables.items() if name not in names]
    return [*tables, *(Table(name, f"{name} of all runs", "", (), frame, brief=False) for name, frame in others)]


def _runs(comparison: Comparison) -> Table:
    floor = Column("noise floor of D", lambda row: None if pd.isna(row["noise_floor"]) else f"{row['noise_floor']:.2g}")
    words = [word_column(name) for name in ("model", "records", "protocol", "editors")]
    facts = {"cases": "data_cases", "dtype": "model_dtype", "scorer": "scorer", "seed": "seed"}
    columns = [*words, *(Column(head, name) for head, name in facts.items()), floor]
    return Table("runs", "What is compared", "", columns, comparison.table("runs"))


def _efficacy(comparison: Comparison) -> Table:
    """Return how well each line's edits took, and what they did to other properties."""
    columns = [
        _share("took", unit="%", n=_before),
        *(_share(name, unit="%", note=_few(name), n=_count(name)) for name in MEASURES.values()),
        _share("other properties", sign=True, n=_count("other properties")),
    ]
    frame = pd.DataFrame([_gate(line, comparison) for line in comparison.lines])
    return Table(
        "edit_success", "Did the edits take, generalise, stay local?", _GATE, [*_names(comparison), *columns], frame
    )


def _gate(line: ComparedEditor, comparison: Comparison) -> TableRow:
    took, success, accuracy = (
        rows_of_line(comparison.table(name), line.key) for name in ("efficacy", "success", "accuracy")
    )
    row: TableRow = {**line.names}
    for edits in records(took[took["relation"] == ALL], EfficacyRow) if len(took) else []:
        row |= _numbers("took", *with_limits(edits, "post"), edits.get("n", 0)) | {"pre": number_of(edits, "pre")}
    for part in rows_of(success):
        row |= _numbers(part["measure"], part["value"], part["low"], part["high"], part["n_cases"])
    for part in rows_of(accuracy[accuracy["edit_relation"] == ALL]) if len(accuracy) else []:
        row |= _numbers("other properties", part["change"], part["low"], part["high"], part["n"])
    return row


def _numbers(name: str, value: float, low: float, high: float, n: float) -> TableRow:
    return {name: value, f"{name}_low": low, f"{name}_high": high, f"{name}_n": n}


def _before(row: Row) -> str:
    return f"({text.percent(row['pre'])}) {_count('took')(row)}" if pd.notna(row.get("took")) else ""


def _count(name: str) -> Callable[[Row], str]:
    return lambda row: f"n={row[f'{name}_n']:.0f}" if pd.notna(row.get(name)) else ""


def _few(name: str) -> Callable[[Row], str]:
    return lambda row: "too few cases" if pd.notna(row.get(name)) else ""


def _names(comparison: Comparison) -> list[Column]:
    """Return columns of the names that tell the lines apart."""
    return [word_column(name) for name in varying(comparison.lines) or ["editor"]]


def _people(comparison: Comparison) -> Table:
    """Return effects on all people who hold the new target, by line and property."""
    effects, lines = comparison.table("effects_by_group"), {line.key: line for line in comparison.lines}
    if len(effects):
        order = sort_relations(effects["relation"])
        effects = effects[(effects["axis"] == ALL) & (effects["holds"] == HOLDER)]
        effects = effects.sort_values("relation", key=lambda own: own.map(order.index), kind="stable")
    frames = [rows_of_line(effects, line.key) for line in comparison.lines]

    def cell(number: int) -> Callable[[Row], str]:
        return lambda row: effect_texts(row, lines[tuple(row[name] for name in NAMES)])[number]

    columns = [
        *_names(comparison),
        word_column("property", lambda row: relation_name(row["relation"])),
        *(Column("D_d", cell(0)), Column("log-odds", cell(1))),
        *(Column("edits", "n_cases"), Column("people", "n_subjects")),
    ]
    formula, unit, _ = text.ABOUT_SCORE[comparison.members[0].results.score]
    about = f"D_d = D_post − D_pre, D = {formula}, of people who hold the new target. {_PEOPLE.format(unit=unit)}"
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return Table("people", "What happened to other people", about, columns, frame, lines=(_GROUPS,))


def effect_texts(row: Row, line: ComparedEditor) -> tuple[str, str]:
    """Return D and its change in log-odds as texts, with star, interval and why there is none.

    Args:
        row: Of `Results.effects`.
        line: The line it belongs to. Effects up to its run's noise floor print as 0.
    """
    results = line.member.results
    if not row["n_cases"]:
        return f"unscored ({row['n_unscored']} prompts)", "-"
    cells = {column.head: column.text(row) for column in effect_columns(results)}
    return cells["D_d"], cells.get("log-odds", "-")


def _verdicts(comparison: Comparison) -> Table:
    """Return how many contrasts of each line have which verdict."""
    table, declared, rows = comparison.table("verdicts"), comparison.settings, []
    claims = hypotheses(table)
    for line in comparison.lines if "verdict" in claims else []:
        counts = rows_of_line(claims, line.key)["verdict"].value_counts()
        rows.append(line.names | {label: int(counts.get(label, 0)) for label in VERDICTS})
    families = table["family"].nunique() if rows else 0
    how = declared.corrected_by(comparison.family)
    about = (
        f"Contrasts between a group and everybody else, per verdict. p corrected ({how}) in {families} "
        f"families, false claims at most {100 * declared.alpha:g} % per family, margin {declared.margin:g} in "
        f"probability and {declared.margin_log_odds:g} in log-odds. Each with its rule: tables/verdicts.csv."
    )
    return Table("verdict_counts", "Verdicts", about, [*_names(comparison), *map(Column, VERDICTS)], pd.DataFrame(rows))


def _differences(comparison: Comparison) -> list[Table]:
    """Return paired differences over all people, then those of groups that are shown."""
    table, alpha = comparison.table("differences"), comparison.settings.alpha
    if table.empty:
        return []
    overall = (table["relation"] == ALL) | table["measure"].isin(("D", "log-odds"))
    tests, claims = table[table["p"].notna()], table[table["p_adjusted"] < alpha]
    groups = claims[claims["axis"] != ALL].sort_values(["measure", "value"], kind="stable")
    about = (
        f"Of {len(tests)} tests {len(claims)} have a corrected p below {alpha:g}. About "
        f"{alpha * tests['family'].nunique():.1f} of the {tests['family'].nunique()} families would have one by chance."
    )
    columns = [
        *(word_column(name) for name in ("first", "second", "measure")),
        word_column("property", lambda row: relation_names(row["relation"])),
        word_column("group", lambda row: "all people" if row["group"] == ALL else row["group"]),
        EstimateColumn("first − second", "value", low="low", zero=0.0),
        Column("corrected p", lambda row: text.p_value(row["p_adjusted"])),
        Column("n", "n_cases"),
    ]
    few = f"Groups of people whose corrected p is below {alpha:g}, the first {_MOST} of {len(groups)}."
    return [
        Table(
            "differences",
            "Paired differences",
            _DIFFERENCES,
            columns,
            table,
            view=table[(table["axis"] == ALL) & overall],
            lines=(about,),
        ),
        Table("differences_groups", "Differences between lines in groups of people", few, columns, groups.head(_MOST)),
    ]
