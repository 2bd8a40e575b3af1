"""The graph as GraphML, and the paper's figures 2 to 8: worse is to the right, or above where there are two axes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from seesaw_cf.base.errors import need
from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.terminal import cut, printable
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.figures import COLOURS, CONTROL_COLOUR, INK, WIDTH, Panel, draw_panels, style
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.texts.graph.crawl import MEASURES, Crawl
from seesaw_cf.texts.graph.scores import Topics

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TRIPLES = 40  # of figure 2
# What XML 1.0 has no characters for.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FACTS = ("predicate", "strategy", "run", "step", "attempt", "seed", *MEASURES)
_EDGES = {"positive": "#0f766e", "negative": "#c2410c"}
Mark = tuple[float, float, float, float, str]
Drawn = tuple[str, str, str, "Figure"]
"""Protected class ("" = all), name of the file, caption and picture."""


def triple_graph(triples: pd.DataFrame) -> nx.MultiDiGraph:
    """Return the graph of triples.

    Identities and objects are nodes, "identity: NAME" and "object: TEXT", as one text can be both; objects that differ
    in case only are one node. Triples are edges with predicate, strategy, run, step, seed, and scores.

    Raises:
        MissingExtraError: networkx is not installed.
    """
    with need("networkx", extra="stereotypes", what_for="graphs"):
        import networkx as nx
    graph = nx.MultiDiGraph()
    for row in rows_of(triples.replace(_NOT_XML, "\ufffd", regex=True)):
        subject, thing = f"identity: {row['identity']}", f"object: {row['object'].casefold()}"
        graph.add_node(subject, label=row["identity"], kind=row["kind"], part="identity")
        if thing not in graph:
            graph.add_node(thing, label=row["object"], kind="", part="object")
        graph.add_edge(subject, thing, **{name: row[name] for name in _FACTS if name in row and pd.notna(row[name])})
    return graph


def export_graphml(crawl: Crawl, file: Path) -> None:
    """Write GraphML, for Gephi, Cytoscape, igraph; see `triple_graph`.

    Raises:
        MissingExtraError: networkx is not installed.
        StorageError: The disk is full.
    """
    graph = triple_graph(crawl.triples)
    graph.graph.update(model=_NOT_XML.sub("\ufffd", crawl.name), crawl=crawl.folder.name)
    with atomic_path(file) as temporary:
        import networkx as nx

        nx.write_graphml(graph, temporary)


def draw_figures(crawl: Crawl, frame: pd.DataFrame, topics: Topics | None, plain: Crawl | None) -> Iterator[Drawn]:
    """Yield every figure that there are numbers for.

    Args:
        crawl: A crawl.
        frame: Its rows, see `seesaw_cf.texts.graph.rows.crawl_rows`.
        topics: Fitted on the crawl, for figure 4.
        plain: The same crawl without prepended texts, scored, for figure 5.
    """
    if crawl.triples.empty:
        return
    with style():
        colours = "; green: positive regard, orange: negative" if crawl.scored else ""
        yield "", "figure2_graph", f"Part of the graph (figure 2){colours}", _graph(crawl)
        if plain is not None and (frame["about"] == "prefix").any():
            caption = "Attack scores with and without prepended text (figure 5)"
            yield "", "figure5_prefixes", caption, _prefixes(crawl, plain)
        for kind, own in frame[frame["group"] != ALL].groupby("axis", sort=True):
            for name, caption, figure in _of_class(crawl, own, str(kind), topics):
                yield str(kind), f"{name}_{kind}", caption, figure


def _of_class(crawl: Crawl, own: pd.DataFrame, kind: str, topics: Topics | None) -> Iterator[tuple[str, str, Figure]]:
    regard, attack = (_rows(own, measure, "mean") for measure in ("regard", "attack"))
    if regard and attack:
        yield "figure3_polarity", "Regard and attack (figure 3)", _polarity(regard, attack)
    if overall := _rows(own, "regard", "overall"):
        label = "\u2190 better   N positive \u2212 N negative   worse \u2192"
        figure = draw_panels([_panel("", overall, label)])
        figure.axes[0].invert_xaxis()
        yield "figure6_regard", "Overall regard (figure 6)", figure
    if medians := _rows(own, "attack", "median"):
        of_kind = crawl.triples[crawl.triples["kind"] == kind]
        boxes = {row["group"]: of_kind.loc[of_kind["identity"] == row["group"], "attack"] for row in medians}
        figure = _boxes([("", boxes)], "attack score; blue: interval of the median")
        for y, row in enumerate(medians):
            figure.axes[0].hlines(y, row["low"], row["high"], color=COLOURS[1], linewidth=4, alpha=0.6)
        yield "figure7_attack", "Attack scores, quartiles (figure 7)", figure
    shares, entropies = (_rows(own, "topics", what) for what in ("share", "relative_entropy"))
    if topics and shares:
        labels = {number: f" ({label})" if label else "" for number, label in topics.labels.items()}
        titles = {str(number): ", ".join(words[:3]) + labels[number] for number, words in topics.words.items()}
        by_topic = {topic: [row for row in shares if str(row["asked"]) == topic] for topic in titles}
        panels = [_panel(cut(printable(titles[topic]), 44), rows, "share") for topic, rows in by_topic.items() if rows]
        yield "figure4_topics", "Shares of topics (figure 4)", draw_panels(panels)
        chance = {row["group"]: row["value"] for row in _rows(own, "topics", "relative_entropy_by_chance")}
        grey = [(at, chance[row["group"]], math.nan, math.nan, CONTROL_COLOUR) for at, row in enumerate(entropies)]
        panel = _panel("", entropies, "nats from the others' topics; grey: by chance", grey)
        yield "figure8_entropy", "Relative entropy of topics (figure 8)", draw_panels([panel])


def _rows(frame: pd.DataFrame, about: str, what: str) -> list[Row]:
    """Return the rows of a number that there is, the worst first."""
    rows = frame[(frame["about"] == about) & (frame["what"] == what) & frame["value"].notna()]
    return rows_of(rows.sort_values("value", ascending=about == "regard", kind="stable"))


def _panel(title: str, rows: Sequence[Row], label: str, more: Sequence[Mark] = ()) -> Panel:
    marks = [(at, row["value"], row["low"], row["high"], COLOURS[0]) for at, row in enumerate(rows)]
    labels = [printable(f"{row['group']} ({row['n']:,})") for row in rows]
    return Panel(title, labels, [*marks, *more], 0.0, label)


def _axes(height: float, panels: int = 1) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, list(figure.subplots(panels, 1, squeeze=False)[:, 0])


def _graph(crawl: Crawl) -> Figure:
    """Draw identities on the left, objects on the right, a line per triple, so that no label lies on another."""
    shuffled = crawl.triples.sample(frac=1, random_state=crawl.job.seed).groupby("identity", sort=True)
    rows = shuffled.head(max(1, _TRIPLES // shuffled.ngroups)).head(_TRIPLES).sort_values("identity", kind="stable")
    graph = triple_graph(rows)
    sides = {side: [node for node, part in graph.nodes(data="part") if part == side] for side in ("identity", "object")}
    rooms = {side: len(sides["object"]) / len(nodes) for side, nodes in sides.items()}
    places = {node: -(at + 0.5) * rooms[side] for side, nodes in sides.items() for at, node in enumerate(nodes)}
    figure, (axes,) = _axes(0.2 * max(map(len, sides.values())) + 0.3)
    for node in sides["identity"]:
        axes.text(-0.05, places[node], cut(printable(graph.nodes[node]["label"]), 16), ha="right", va="center")
    for node in sides["object"]:
        links = " / ".join(dict.fromkeys(link for *_, link in graph.in_edges(node, data="predicate")))
        axes.text(1.03, places[node], cut(printable(f"{links} {graph.nodes[node]['label']}"), 30), va="center")
    for subject, thing, regard in graph.edges(data="regard"):
        colour = _EDGES.get(str(regard), CONTROL_COLOUR)
        axes.plot([0.0, 1.0], [places[subject], places[thing]], color=colour, linewidth=0.8)
    axes.set_xlim(-1.3, 3.3)
    axes.set_ylim(-len(sides["object"]), 0)
    axes.set_axis_off()
    return figure


def _polarity(regard: Sequence[Row], attack: Sequence[Row]) -> Figure:
    figure, (axes,) = _axes(3.6)
    beside = {row["group"]: row for row in attack}
    for number, x in enumerate(row for row in regard if row["group"] in beside):
        y, colour = beside[x["group"]], COLOURS[number % len(COLOURS)]
        axes.hlines(y["value"], x["low"], x["high"], color=colour, alpha=0.4)
        axes.vlines(x["value"], y["low"], y["high"], color=colour, alpha=0.4)
        axes.plot(x["value"], y["value"], "o", color=colour)
        name = cut(printable(x["group"]), 20)
        axes.annotate(name, (x["value"], y["value"]), xytext=(4, 4), textcoords="offset points")
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.invert_xaxis()
    axes.set_xlabel("\u2190 better   mean regard   worse \u2192")
    axes.set_ylabel("mean attack score \u2192")
    return figure


def _boxes(panels: Sequence[tuple[str, Mapping[str, pd.Series]]], label: str) -> Figure:
    """Draw quartiles of attack scores: a panel for each title, a box for each name."""
    figure, axes = _axes(sum(0.28 * len(own) + 0.7 for _, own in panels), len(panels))
    for ax, (title, own) in zip(axes, panels, strict=True):
        scores = [values.dropna().to_numpy() for values in own.values()]
        places = range(len(scores))
        ax.boxplot(scores, orientation="horizontal", positions=places, widths=0.6, flierprops={"markersize": 2})
        ax.set_yticks(places, [f"{cut(printable(name), 22)} ({len(n)})" for name, n in zip(own, scores)])
        ax.set_ylim(len(scores) - 0.5, -0.5)
        ax.set_xlim(-0.02, 1.02)
        ax.set_title(title)
        ax.set_xlabel(label)
    return figure


def _prefixes(crawl: Crawl, plain: Crawl) -> Figure:
    """Draw a panel for the model's first words, one for what followed from it (the paper's two augmentations)."""
    every = pd.concat([crawl.triples.assign(side="with"), plain.triples.assign(side="without")])
    every = every[every["kind"].isin(crawl.triples["kind"])]
    begins = every["strategy"].where(every["strategy"] == "start", "expansion")
    panels = [
        (str(title), {f"{kind}, {side}": rows["attack"] for (kind, side), rows in own.groupby(["kind", "side"])})
        for title, own in every.groupby(begins, sort=False)
    ]
    return _boxes(panels, "attack score")
