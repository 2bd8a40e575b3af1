"""`report.html` of stereotype graphs: one crawl, or one before and one after an edit, in one file without network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import pandas as pd

from seesaw_cf.base.terminal import printable
from seesaw_cf.report.html.findings import Findings, Folded, Legend, PageSection, Panels, Part
from seesaw_cf.report.html.forest import Axis, Control, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.report.html.graph import Link, draw_links
from seesaw_cf.report.html.look import Choice, ListColumn, make_look, short
from seesaw_cf.report.provenance import recorded
from seesaw_cf.report.table import Column, Table
from seesaw_cf.texts.graph.changes import ClassNumbers, regard_and_attack
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.results import change_table
from seesaw_cf.texts.graph.title import MEASURES, GraphSummary, graph_screen, limits, number_said

_DRAWN = 60  # links of the picture
_LISTED = 12_000  # triples of the list
_WARNING = (
    "Below is what a language model wrote about groups of people. It is offensive in places, can be upsetting, and is "
    "not true of anybody. Open to read"
)
# Where a triple was found -> (dashing and weight of its line, sign, what it means).
_WHERE = {
    "both": (0, "=", "in both graphs (=, thin line)"),
    "before": (1, "−", "only before the edit (−, dashed)"),
    "after": (2, "+", "only after the edit (+, thick line)"),
}
_REGARDS = {"positive": (2, "▲"), "negative": (1, "▼")}
_METHOD = (
    "A language model completes sentences about an identity; each completion that can be read is a triple. Masked: the "
    "same sentence about “Some people”, which shows what the scorer makes of the name alone.",
    "Both crawls use the same seeds (common random numbers). Intervals are clustered by run, or by step where there "
    "are fewer than five runs; p is adjusted over identities (Holm).",
)
_COLUMNS = {
    "where": ListColumn("graph", "whether the triple is in the graph before or after the edit, or in both", True),
    "identity": ListColumn("identity", "whom the sentence is about", True),
    "predicate": ListColumn("predicate", "what links them", True),
    "object": ListColumn("object", "what is said", True),
    "regard": ListColumn("regard", "what the scorer says of the sentence", True),
    "masked": ListColumn("masked", "what it says of the same sentence about some people", True),
    "attack": ListColumn("attack", "identity attack, 0 to 1"),
    "attack_masked": ListColumn("masked", "identity attack of the same sentence about some people"),
}


def graph_findings(
    base: Crawl, edited: Crawl | None = None, changes: pd.DataFrame | None = None, differ: Sequence[str] = ()
) -> Findings:
    """Return what the page shows.

    Args:
        base: A crawl; of the unedited model when there is another.
        edited: A crawl after an edit.
        changes: Of `seesaw_cf.texts.graph.changes.changes`.
        differ: What the crawls were made differently in.
    """
    rows = _triples(base, edited)
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    change_tables = [] if changes is None or changes.empty else [change_table(changes)]
    tables = [*change_tables, Table("triples", "Triples", "", (), frame, brief=False)]
    sections = [PageSection("changes", "What the edit changed", change_tables)] if change_tables else []
    sections += [_graph(rows, edited is not None)] if rows else []
    crawls = [crawl for crawl in (base, edited) if crawl is not None]
    means = [regard_and_attack(crawl) if crawl.scores is not None and len(crawl.triples) else {} for crawl in crawls]
    measured = changes.to_dict("records") if changes is not None else []
    summary = GraphSummary(len(rows), len({row["identity"] for row in rows}), edited is not None, means[0], measured)
    return Findings(
        screen=graph_screen(summary, crawls, differ),
        sections=sections,
        method=_METHOD,
        command="",
        facts=recorded(base.manifest),  # type: ignore[arg-type]
        tables=[table for table in tables if len(table.frame)],
        first=_means(*means),
    )


def _means(before: Mapping[str, ClassNumbers], after: Mapping[str, ClassNumbers] | None = None) -> list[Part]:
    """Plot the means of every identity by class, from before to after, with the masked sentences on the same line."""
    last = before if after is None else after
    panels = []
    for kind, measures in last.items():
        if not (there := [measure for measure in MEASURES if measure in measures]):
            continue
        axes = {measure: Axis(*MEASURES[measure][2]) for measure in there}
        names = dict.fromkeys(name for measure in there for name in measures[measure]["identities"])

        def mark(name: str, measure: str, kind: str = kind, axes: Mapping[str, Axis] = axes) -> Mark | None:
            value, axis = MEASURES[measure][1], axes[measure]
            row, was, masked = (
                part.get(kind, {}).get(key, {}).get("identities", {}).get(name)
                for part, key in ((last, measure), (before, measure), (last, f"{measure}_masked"))
            )
            if row is None or row[value] is None:
                return None
            words = f"{name}: {measure} {number_said(row[value], row)}, {row['n']} triples"
            words += f"; before {number_said(was[value], was)}" if after is not None and was else ""
            words += f"; masked {number_said(masked[value], masked)}" if masked else ""
            control = [Control(axis.at(masked[value]), axis.span(*limits(masked)), 0)] if masked else []
            start = axis.at(was[value]) if after is not None and was and was[value] is not None else None
            return Mark(axis.at(row[value]), axis.span(*limits(row)), 0, words, control, start)

        counts = measures[there[0]]["identities"]
        rows = [
            ForestRow(name, f"{counts.get(name, {}).get('n', 0):,}", [mark(name, key) for key in there])
            for name in names
        ]
        about = "Means over triples, 95 % intervals; regard: −1 all negative, 1 all positive; attack: 0 none, 1 all"
        columns = [ForestColumn(measure, axes[measure]) for measure in there]
        panels.append(Panel(str(kind), about, ("identity", "triples"), columns, "", rows))
    masked = "Grey: the same sentences about “Some people”, which shows what the scorer makes of the name alone."
    hollow = "Hollow: before the edit. " if after is not None else ""
    return [Legend((), f"{hollow}Dot and line: mean and interval. {masked}"), Panels(panels)] if panels else []


Where = Literal["before", "after", "both"]
Listed = Literal["where", "identity", "regard"]  # what a reader chooses from


class TripleRow(TypedDict):
    """A triple as a page shows it: in which graph it is, and its scores, "" and None without one."""

    where: Where
    identity: str
    predicate: str
    object: str
    regard: str
    masked: str
    attack: float | None
    attack_masked: float | None


def _triples(base: Crawl, edited: Crawl | None) -> list[TripleRow]:
    """Return every triple once, in the order found, with where it was found."""
    rows: dict[tuple[str, str, str], TripleRow] = {}
    graphs: Sequence[tuple[Where, Crawl | None]] = (("before", base), ("after", edited))
    for where, crawl in graphs:
        if crawl is None:
            continue
        for row in crawl.rows.to_dict("records"):
            key = (str(row["identity"]), str(row["predicate"]).casefold(), str(row["object"]).casefold())
            if key not in rows:
                rows[key] = _row(row, where)
            elif rows[key]["where"] != where:
                rows[key]["where"] = "both"
    return list(rows.values())


def _row(row: Mapping[Any, Any], where: Where) -> TripleRow:
    def number(name: str) -> float | None:
        return None if pd.isna(row.get(name, math.nan)) else short(float(row[name]))

    def regard(name: str) -> str:
        return "" if pd.isna(row.get(name, math.nan)) else str(row[name])

    return {
        "where": where,
        "identity": printable(row["identity"]),
        "predicate": printable(row["predicate"]),
        "object": printable(row["object"]),
        "regard": regard("regard"),
        "masked": regard("regard_masked"),
        "attack": number("attack"),
        "attack_masked": number("attack_masked"),
    }


def _drawn(rows: Sequence[TripleRow]) -> list[TripleRow]:
    """Choose equally many triples of every identity: what several share, then the worst, then the first found."""
    shared: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        shared.setdefault((row["predicate"].casefold(), row["object"].casefold()), set()).add(row["identity"])

    def telling(row: TripleRow) -> tuple[bool, bool, float]:
        several = len(shared[row["predicate"].casefold(), row["object"].casefold()]) > 1
        return (not several, row["regard"] != "negative", -(row["attack"] or 0.0))

    identities = list(dict.fromkeys(row["identity"] for row in rows))[:_DRAWN]
    each = max(1, _DRAWN // max(1, len(identities)))
    return [
        row
        for name in identities
        for row in sorted((triple for triple in rows if triple["identity"] == name), key=telling)[:each]
    ]


def _graph(rows: Sequence[TripleRow], two: bool) -> PageSection:
    drawn = _drawn(rows)
    links = []
    for row in drawn:
        kind, sign, _ = _WHERE[row["where"]] if two else (0, "", "")
        colour, mark = _REGARDS.get(row["regard"], (6, ""))
        links.append(Link(row["identity"], f"{row['predicate']} → {row['object']}", kind, colour, f"{sign}{mark}"))
    about = f"{len(drawn)} of {len(rows)} triples as a graph"
    legend = [meaning for _, _, meaning in _WHERE.values()] if two else []
    legend += ["▲ and ▼: positive and negative regard"] if any(row["regard"] for row in rows) else []
    legend += ["bold: said of several identities", "a label that ends with … is shown whole on hover and in the table"]
    columns = [Column(name, words=True) for name in ("identity", "predicate", "object", "regard")]
    if two:
        columns.insert(0, Column("graph", lambda row: f"{_WHERE[row['where']][1]} {row['where']}", words=True))
    frame = pd.DataFrame(drawn).replace("", None)
    table = Table("picture", "What the picture shows", "The same triples as a table", columns, frame)
    parts: list[Part] = [
        Legend((), f"{'; '.join(legend)}."),
        draw_links(links, about),
        Folded("The same as a table", [table]),
        _list(rows, two),
    ]
    return PageSection(
        "graph", "The graph", [Folded(f"{_WARNING} {len(rows):,} triples.", parts, warning=True)], (f"{about}.",)
    )


def _list(rows: Sequence[TripleRow], two: bool) -> Part:
    listed = rows[:_LISTED]
    columns = {name: column for name, column in _COLUMNS.items() if two or name != "where"}
    lists: Sequence[tuple[Listed, str]] = (("where", "graph"), ("identity", "identity"), ("regard", "regard"))
    choices: list[Choice] = [
        (name, label, [(value, value) for value in sorted({row[name] for row in listed if row[name]})])
        for name, label in lists
        if name in columns
    ]
    cut = f", the first {len(listed):,}; the file below has all" if len(listed) < len(rows) else ""
    words = ("Look into it", f"{len(rows):,} triples{cut}.", "triples")
    return make_look("look", words, columns, listed, choices, search=("identity", "predicate", "object"), sort="attack")
