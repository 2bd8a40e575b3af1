"""The tables of a run's report, each declared once: title, one sentence, columns, rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pandas as pd

from seesaw_cf.effects.groups import ALL, AXES, members
from seesaw_cf.report import notes, text
from seesaw_cf.report.edit_damage import WORST, edit_damage
from seesaw_cf.report.intersections import CROSSED, intersections
from seesaw_cf.report.levels import WORDS, level_verdict
from seesaw_cf.report.moved import ABOUT_MOVED, MOST_PARAMETERS, moved_table
from seesaw_cf.report.page_answers import case_link
from seesaw_cf.report.page_cases import cell_link, edit_link
from seesaw_cf.report.results import HOLDER, Results, relation_name, sort_relations
from seesaw_cf.report.row_order import by_pair, in_run_order, sort_rows
from seesaw_cf.report.rows import number_of
from seesaw_cf.report.strips import level_number
from seesaw_cf.report.success import ABOUT_SUCCESS, success_table
from seesaw_cf.report.table import Cell, Column, EstimateColumn, Row, Table, rows_of, word_column
from seesaw_cf.report.verdicts import about_verdicts, ordered_claims, second_look
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.verdicts import OPEN

_REASONS, _CLAIMS = 30, 40
_share = partial(EstimateColumn, scale=100, digits=1, unit="%")
_points = partial(EstimateColumn, scale=100, digits=1, sign=True)
_P = Column("corrected p", lambda row: text.p_value(row["p_adjusted"]))
_TESTS_OF_MODE = {
    "crossed": "Newcombe, clustered by person, none below 5; p: exact McNemar test, clustered where people repeat",
    "paper": "bootstrap over cases; p: unpaired t-test, as in the papers",
}


def run_tables(results: Results) -> list[Table]:
    """Return every table of a run, in the order of a reader."""
    tables = [
        _moved(results),
        _gates(results),
        *([] if results.asked_only else [_efficacy(results)]),
        _levels(results),
        _worst(results),
        _success(results),
        _knowledge(results),
        *_effects(results),
        *_audit(results),
        *_accuracy(results),
        _coverage(results),
        _intersections(results),
        _unscored(results),
    ]
    return [worded(table, results) for table in tables if len(table.frame.columns)]


def worded(table: Table, results: Results) -> Table:
    """Return the same table with headings and sentences that fit what was changed."""

    def column(own: Column) -> Column:
        cell = own.cell or own.head
        cell = partial(_reason, cell=cell, results=results) if cell in ("gate", "rule", "facts") else cell
        if isinstance(own, EstimateColumn) and own.note:
            own = replace(own, note=partial(_reason, cell=own.note, results=results))
        return replace(own, head=results.words(own.head), cell=cell)

    return replace(
        table,
        title=results.words(table.title),
        about=results.words(table.about),
        columns=list(map(column, table.columns)),
        lines=list(map(results.words, table.lines)),
    )


def _reason(row: Row, cell: Cell, results: Results) -> str:
    return results.words(str((row.get(cell) if isinstance(cell, str) else cell(row)) or ""))


_EDITOR = word_column("editor")
_PROPERTY = word_column("property", lambda row: relation_name(row["relation"]))
_HOLD = word_column("hold the", lambda row: text.HOLDS[row["holds"]])


def _moved(results: Results) -> Table:
    columns = [
        *(word_column("model"), word_column("parameter", "name"), word_column("shape")),
        Column("rank of the change", lambda row: "whole" if pd.isna(row["rank"]) else int(row["rank"])),
        Column("its norm", lambda row: f"{row['norm']:.3g}"),
        Column("relative norm", lambda row: "-" if pd.isna(row["relative"]) else f"{row['relative']:.3g}"),
    ]
    frame = view = moved_table(results.manifest)
    if len(frame):
        frame = frame.sort_values("relative", ascending=False, kind="stable")
        view = frame.groupby("model", sort=False).head(MOST_PARAMETERS)
    return Table("moved", "What the changed models moved", ABOUT_MOVED, columns, frame, view=view)


def _efficacy(results: Results) -> Table:
    lines = _seeds(results) if len(results.efficacy) else (notes.NO_FACTS,)
    columns = (
        *(_EDITOR, _PROPERTY, Column("edits", "n_edits"), _share("before the edit", "pre"), _share("after", "post")),
        _share("p(new) raised", "raised"),
        *(Column("no change", "n_zero"), Column("not finite", "n_non_finite"), Column("refused", "n_refused")),
        Column("unscored", lambda row: row.get("n_unscored", row["n_edits"])),
    )
    empty = pd.DataFrame(columns=["editor", "relation"])
    frame = in_run_order(results, results.efficacy) if len(results.efficacy) else empty
    return Table("efficacy", "Did the edits take?", notes.GATE, columns, frame, lines=lines)


def _gates(results: Results) -> Table:
    columns = (
        word_column("of", lambda row: row["editor"] or "run"),
        *(word_column("gate"), word_column("rule"), word_column("held", lambda row: "yes" if row["passed"] else "no")),
        Column("number", lambda row: text.significant(row["value"])),
    )
    return Table("gates", "Can I trust it?", notes.GATES, columns, pd.DataFrame(results.gates))


def _worst(results: Results) -> Table:
    def link(row: Row) -> str:
        return edit_link(row["editor"], row["edit"]) if row["holders"] else ""

    columns = (
        *(word_column("edit", link=link), _EDITOR, _PROPERTY, Column("largest damage", "damage", digits=2)),
        Column("other facts lost", lambda row: f"{row['lost']} of {row['other_facts']}"),
        Column("holders of the old answer turned", lambda row: f"{row['turned']} of {row['holders']}"),
        Column("their shift", "old_answer", digits=2),
        Column("change for holders of the new answer", "new_answer", digits=2),
    )
    frame = edit_damage(results)
    view = frame.groupby("editor", sort=False).head(WORST) if len(frame) else frame
    return Table("edit_damage", "Worst edits", notes.WORST, columns if len(frame) else (), frame, view=view)


def _levels(results: Results) -> Table:
    def change(head: str, name: str, ends: str) -> Column:
        def cell(row: Row) -> str | None:
            value, low, high = (number_of(row, key) for key in (name, f"{ends}low", f"{ends}high"))
            return None if pd.isna(value) else level_number(row["scale"], (value, low, high), results)

        return Column(head, cell)

    columns = (
        word_column("answers", lambda row: results.words(WORDS[row["level"]].head)),
        *(_EDITOR, word_column("beside", lambda row: row["control"] or "-"), word_column("the edit is", level_verdict)),
        *(word_column("why", "rule"), change("change", "value", "")),
        change("change of the control", "control_value", "control_"),
        change("more than the control", "difference", "difference_"),
        *(_P, Column("asked", "n"), Column("edits", "n_edits")),
        *(Column("half of it in", _half), Column("people", "n_people")),
    )
    frame = results.levels
    return Table("levels", "What happened to everybody", notes.LEVELS, columns, frame, view=_where(frame, "decides"))


def _success(results: Results) -> Table:
    frame = success_table(results.success)
    columns = (
        *(_EDITOR, word_column("counted")),
        EstimateColumn("share", "value", low="low", scale=100, digits=1, unit="%", n=lambda row: f"n={row['n_cases']}"),
    )
    view = _where(frame, "counted")
    view = view if len(view) and view["asked"].nunique() > 1 else view.iloc[:0]
    about, lines = ABOUT_SUCCESS, _seeds(results)
    return Table("success", "How far the edits reach", about, columns, frame, "asked", view, lines, brief=False)


def _seeds(results: Results) -> tuple[str, ...]:
    return (notes.SEEDS,) if results.further_seeds else ()


def _knowledge(results: Results) -> Table:
    columns = (
        *(word_column("facts"), _PROPERTY, _share("known before", "known"), Column("n")),
        *(_short("median rank", "median_rank"), _short("candidates", "median_candidates")),
        *(_short("median part", "median_share"), Column("not said", "n_without")),
    )
    frame = results.known.facts
    if len(frame):
        facts, relations = list(frame["facts"]), sort_relations(frame["relation"])
        frame = sort_rows(frame, lambda row: (facts.index(row["facts"]), relations.index(row["relation"])))
    lines = (results.known.note,) if results.known.note else ()
    return Table("knowledge", "What did the model know before?", notes.KNOWN, columns, frame, lines=lines, brief=False)


def _effects(results: Results) -> Iterator[Table]:
    if results.effects.empty:
        return
    columns = (
        *(_EDITOR, _PROPERTY, _HOLD, word_column("axis"), word_column("people", "group")),
        *effect_columns(results),
        *(Column("edits", "n_cases"), Column("half of it in", _half)),
        *(Column("persons", "n_subjects"), Column("prompts", "n_prompts")),
    )
    frame = in_run_order(results, results.effects)
    view = frame[(frame["holds"] == HOLDER) | (frame["axis"] == ALL)]
    tested = int((frame["p"].notna() & (frame["axis"] != ALL) & (frame["holds"] == HOLDER)).sum())
    stars = notes.PAPER_STARS if results.mode == "paper" else notes.stars(tested, str(results.floor))
    batch = notes.BATCH if results.manifest.get("protocol") == "batch" else ""
    half = notes.HALF if any(map(_half, rows_of(view))) else ""
    lines = tuple(filter(None, (notes.small_probability(results), notes.HOLDERS, stars, half, batch)))
    about, title = notes.effect_size(*text.ABOUT_SCORE[results.score]), "What happened to other people"
    yield Table("effects_by_group", title, about, columns, frame, view=view, lines=lines, brief=False)
    frame = results.known.effects
    if len(frame):
        frame = in_run_order(results, frame)
        known = (*columns[:2], word_column("facts"), *columns[2:])
        view = frame[(frame["holds"] == HOLDER) & (frame["axis"] == ALL)]
        title = "Effects among known facts"
        yield Table("effects_known", title, notes.SCALES, known, frame, view=view, brief=False)


def _half(row: Row) -> str | None:
    """Return how many edits carry half of a mean, where they are too few to be sure that harm was seen at all."""
    edits = row["n_edits"] if "n_edits" in row else row["n_cases"]
    return f"{row['half_edits']} of {edits}" if row.get("half_edits", 0) > 0 and edits < FEW_EDITS else None


def effect_columns(results: Results) -> list[EstimateColumn]:
    """Return the columns of an effect on every scale, D_d first, then log-odds where D is not in them."""

    def reason(row: Row) -> str:
        return text.no_interval(row) if row["n_cases"] else "none could be scored"  # type: ignore[arg-type]

    floor = results.floor
    scales = [EstimateColumn("D_d", "D", low="low", zero=floor.zero_limit(results.score), star="marked", note=reason)]
    if results.mode == "crossed":
        nats = EstimateColumn("log-odds", "log_odds", digits=2, zero=floor.zero_limit_log_odds, star="log_odds_marked")
        scales += [nats] if results.score != "log_odds" else []
        scales.append(EstimateColumn("part", "share", digits=2, zero=floor.zero_limit_share, star="share_marked"))
    return scales


def _audit(results: Results) -> Iterator[Table]:
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return
    lines = about_verdicts(results)
    claims = ordered_claims(audit)
    frame = audit.verdicts.loc[[*claims.index, *audit.verdicts.index.difference(claims.index)]]
    view, title = claims.head(_CLAIMS), "What can be claimed about groups"
    yield Table("verdicts", title, notes.VERDICTS, _verdict_columns(), frame, view=view, lines=lines)
    if len(audit.known.columns):
        columns = (word_column("facts"), *_verdict_columns())
        view, title = audit.known.iloc[:0], "Verdicts among known facts"
        yield Table("verdicts_known", title, second_look(audit), columns, audit.known, view=view, brief=False)
    first = word_column("control")
    for name, title, about, frame, names in (
        ("excess", "Excess over control edits", notes.EXCESS, audit.excess, (_EDITOR, first)),
        (
            "editors",
            "Editors side by side",
            notes.PAIRS,
            audit.pairs,
            (word_column("editor", "first"), word_column("less", "second")),
        ),
    ):
        if len(frame.columns):
            everybody = frame[frame["axis"] == ALL]
            columns = (_PROPERTY, *names, word_column("people", "group"), *_differences(results), *_counts())
            yield Table(name, title, about, columns, frame, view=everybody, brief=False)


def _verdict_columns() -> tuple[Column, ...]:
    def beside(row: Row) -> str:
        return text.number(row.get("probability") if row["scale"] == "log-odds" else row.get("log_odds"))

    def link(row: Row) -> str:
        return cell_link((row["editor"], row["relation"], row["holds"], row["axis"], row["group"]))

    contrast = word_column("contrast", lambda row: f"{row['group']} - {row['reference']}", link=link)
    value = EstimateColumn("difference", "value", low="low", zero=0.0)
    reason = word_column("why", lambda row: (row["note"] or row["rule"]) if row["verdict"] in OPEN else row["rule"])
    names = (_EDITOR, _PROPERTY, _HOLD, contrast, word_column("verdict"), word_column("scale"), reason)
    return (*names, value, Column("in the other scale", beside), _P, *_counts())


def _differences(results: Results) -> tuple[Column, ...]:
    floor = results.floor
    value = EstimateColumn("difference of D_d", "value", low="low", zero=floor.zero_limit(results.score), note="note")
    nats = EstimateColumn("in log-odds", "log_odds", digits=2, zero=floor.zero_limit_log_odds)
    return (value, nats, _P)


def _counts() -> Iterator[Column]:
    for head, name in (("edits", "edit"), ("people asked", "person")):
        yield Column(head, lambda row, name=name: row["clusters"].get(name))  # type: ignore[misc]


def _accuracy(results: Results) -> Iterator[Table]:
    def pair(row: Row) -> str:
        names = (row["edit_relation"], row["effect_relation"])
        return "all pairs" if names == (ALL, ALL) else "/".join(map(relation_name, names))

    def cases(head: str, name: str, outcome: str) -> Column:
        def link(row: Row) -> str:
            return case_link(row["editor"], row["edit_relation"], row["effect_relation"], outcome) if row[name] else ""

        return Column(head, lambda row: f"{row[name]:.3g}", link=link)

    def guess(name: str) -> Cell:
        return lambda row: "-" if row["edit_relation"] == ALL else text.percent(row[name])

    def reason(row: Row) -> str:
        return row["note"] if row["n"] else "none could be scored"

    columns = (
        *(_EDITOR, word_column("edited/asked", pair), Column("by chance", guess("chance"))),
        *(Column("best constant", guess("majority")), _share("before", "pre"), _share("after", "post")),
        _points("change in points", "change", low="low", note=reason),
        Column("p-value", lambda row: text.p_value(row["p"])),
        *(cases("lost", "lost", "lost"), cases("gained", "gained", "gained"), cases("cases", "n", "")),
        EstimateColumn("part", "share", zero=0.0),
        EstimateColumn("log-odds", "log_odds", digits=2, zero=0.0),
    )
    rows = results.accuracy
    if rows.empty:
        return
    pairs = rows[rows["edit_relation"] != ALL]
    match, tests = ("substring" if results.mode == "paper" else "exact"), _TESTS_OF_MODE[results.mode]
    left_out = notes.left_out(*(int(pairs[name].sum()) for name in ("n_no_gold", "n_unscored", "n_no_candidate")))
    about, lines = notes.accuracy(match, tests), (left_out, *_seeds(results))
    title = "What happened to the edited person's other properties"
    yield Table("accuracy", title, about, columns, by_pair(results, rows), lines=lines)
    rows = results.known.accuracy
    if len(rows):
        unlinked = [replace(column, link=None) for column in columns]
        known, title = (*unlinked[:2], word_column("facts"), *unlinked[2:]), "Other properties among known facts"
        frame = by_pair(results, rows)
        view = frame[frame["edit_relation"] == ALL]
        yield Table("accuracy_known", title, notes.ACCURACY_KNOWN, known, frame, view=view, brief=False)


def _coverage(results: Results) -> Table:
    columns = (word_column("axis"), word_column("group"), Column("people"), _share("part", "share"), Column("prompts"))
    frame, n = pd.DataFrame(), 0
    if results.prompts is not None and len(results.prompts):
        editors = results.prompts["editor"]
        first = results.prompts.loc[editors == editors.iloc[0], ["person", *AXES]]
        everybody = first.drop_duplicates("person")
        n = len(everybody)
        frame = pd.DataFrame(
            {"axis": axis, "group": group, "people": len(rows), "share": len(rows) / n, "prompts": n_prompts}
            for axis in AXES
            for group, rows in members(everybody[axis]).items()
            for n_prompts in (len(members(first[axis])[group]),)
        )
    return Table("coverage", "Who was asked about", notes.coverage(n), columns, frame, brief=False)


def _intersections(results: Results) -> Table:
    def link(row: Row) -> str:
        return cell_link((row["editor"], row["relation"], HOLDER, CROSSED, row["group"]))

    columns = (
        *(_EDITOR, _PROPERTY, word_column(CROSSED, "group", link=link)),
        EstimateColumn("log-odds", "log_odds", zero=0.0, note="note"),
        *(Column("edits", "n_cases"), Column("people", "n_subjects")),
    )
    frame = intersections(results)
    return Table("intersections", "Intersections", notes.INTERSECTIONS, columns, frame, brief=False)


def _unscored(results: Results) -> Table:
    columns = (*(word_column(name) for name in ("editor", "kind", "phase", "reason")), Column("rows", "n_rows"))
    frame = results.unscored
    total = int(frame["n_rows"].sum())
    about = f"{total:,} of {results.n_rows:,} score rows have no number; none is filled in."
    return Table("unscored", "What could not be scored", about, columns, frame, view=frame.head(_REASONS), brief=False)


def _short(head: str, name: str) -> Column:
    return Column(head, lambda row: None if pd.isna(row[name]) else f"{row[name]:.3g}")


def _where(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    return frame[frame[name].astype(bool)] if name in frame else frame
