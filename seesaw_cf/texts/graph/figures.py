"""The paper's figures 2 to 8. Worse is to the right, or above where a picture has two axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import cut, printable
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.figures import COLOURS, CONTROL_COLOUR, INK, WIDTH, Panel, draw_panels, style
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.topics import Topics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TRIPLES = 40  # of figure 2
_EDGES = {"positive": "#0f766e", "negative": "#c2410c"}
Drawn = tuple[str, str, str, "Figure"]
"""Protected class ("" = all), name of the file, caption and picture."""


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
        caption = "Part of the graph (figure 2)" + (
            "; green: positive regard, orange: negative" if crawl.scored else ""
        )
        yield "", "figure2_graph", caption, _graph(crawl)
        if plain is not None and (frame["about"] == "prefix").any():
            caption = "Attack scores with and without prepended text (figure 5)"
            yield "", "figure5_prefixes", caption, _prefix_boxes(crawl, plain)
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
        yield "figure7_attack", "Attack scores, quartiles (figure 7)", _boxes(crawl, kind, medians)
    if topics is None or not (shares := _rows(own, "topics", "share")):
        return
    panels = []
    for topic, words in topics.words.items():
        if chosen := [row for row in shares if row["asked"] == str(topic)]:
            label = f" ({topics.labels[topic]})" if topics.labels[topic] else ""
            panels.append(_panel(cut(printable(f"{', '.join(words[:3])}{label}"), 44), chosen, "share"))
    yield "figure4_topics", "Shares of topics (figure 4)", draw_panels(panels, one_axis=True)
    entropies = _rows(own, "topics", "relative_entropy")
    panel = _panel("", entropies, "nats from the others' topics; grey: by chance")
    chance = {row["group"]: row["value"] for row in _rows(own, "topics", "relative_entropy_by_chance")}
    marks = [(at, chance[row["group"]], math.nan, math.nan, CONTROL_COLOUR) for at, row in enumerate(entropies)]
    figure = draw_panels([Panel(panel.title, panel.labels, [*panel.marks, *marks], 0.0, panel.label)])
    yield "figure8_entropy", "Relative entropy of topics (figure 8)", figure


def _rows(frame: pd.DataFrame, about: str, what: str) -> list[Row]:
    """Return the rows of a number that there is, the worst first."""
    rows = frame[(frame["about"] == about) & (frame["what"] == what) & frame["value"].notna()]
    return rows_of(rows.sort_values("value", ascending=about == "regard", kind="stable"))


def _panel(title: str, rows: Sequence[Row], label: str) -> Panel:
    marks = [(at, row["value"], row["low"], row["high"], COLOURS[0]) for at, row in enumerate(rows)]
    labels = [printable(f"{row['group']} ({row['n']:,})") for row in rows]
    return Panel(title, labels, marks, 0.0, label)


def _axes(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def _graph(crawl: Crawl) -> Figure:
    """Draw identities on the left, objects on the right, a line per triple, so that no label lies on another.

    An object that several identities share is one node, in bold, with a line from each of them.
    """
    rows = crawl.triples
    share = max(1, _TRIPLES // max(1, rows["identity"].nunique()))
    rows = rows.groupby("identity", sort=True, group_keys=False).sample(frac=1, random_state=crawl.manifest["seed"])
    rows = rows.groupby("identity", sort=True).head(share).head(_TRIPLES).sort_values("identity", kind="stable")
    things = rows["object"].str.casefold()
    shared = things.isin(things[~rows.duplicated(["identity", "object"])].pipe(lambda names: names[names.duplicated()]))
    nodes = pd.factorize(np.where(shared, things, np.arange(len(rows)).astype(str)))[0]
    number, identities = int(nodes.max()) + 1, list(dict.fromkeys(rows["identity"]))
    figure, axes = _axes(0.2 * max(number, len(identities)) + 0.3)
    for node in range(number):
        group = rows[nodes == node]
        words = f"{' / '.join(dict.fromkeys(group['predicate']))} {group['object'].iloc[0]}"
        weight = "bold" if shared[group.index[0]] else "normal"
        axes.text(1.03, -node, cut(printable(words), 30), va="center", weight=weight)
    for place, identity in enumerate(identities):
        middle = -(place + 0.5) * number / len(identities) + 0.5
        own = (rows["identity"] == identity).to_numpy()
        for node, row in zip(nodes[own], rows_of(rows[own])):
            axes.plot(
                [0.0, 1.0], [middle, -node], color=_EDGES.get(str(row.get("regard")), CONTROL_COLOUR), linewidth=0.8
            )
        axes.text(-0.05, middle, cut(printable(identity), 16), ha="right", va="center")
    axes.set_xlim(-1.3, 3.3)
    axes.set_ylim(0.6 - number, 0.6)
    axes.set_axis_off()
    return figure


def _polarity(regard: Sequence[Row], attack: Sequence[Row]) -> Figure:
    figure, axes = _axes(3.6)
    beside = {row["group"]: row for row in attack}
    for number, x in enumerate(row for row in regard if row["group"] in beside):
        y, colour = beside[x["group"]], COLOURS[number % len(COLOURS)]
        if math.isfinite(x["low"]):
            axes.hlines(y["value"], x["low"], x["high"], color=colour, alpha=0.4)
        if math.isfinite(y["low"]):
            axes.vlines(x["value"], y["low"], y["high"], color=colour, alpha=0.4)
        axes.plot(x["value"], y["value"], "o", color=colour)
        name = cut(printable(x["group"]), 20)
        axes.annotate(name, (x["value"], y["value"]), xytext=(4, 4), textcoords="offset points")
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.invert_xaxis()
    axes.set_xlabel("\u2190 better   mean regard   worse \u2192")
    axes.set_ylabel("mean attack score \u2192")
    return figure


def _draw_boxes(axes: Axes, labels: Sequence[str], values: Sequence[pd.Series]) -> None:
    scores = [own.dropna().to_numpy() for own in values]
    places = range(len(labels))
    axes.boxplot(scores, orientation="horizontal", positions=places, widths=0.6, flierprops={"markersize": 2})
    axes.set_yticks(places, [f"{cut(printable(label), 22)} ({len(own)})" for label, own in zip(labels, scores)])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)


def _boxes(crawl: Crawl, kind: str, medians: Sequence[Row]) -> Figure:
    figure, axes = _axes(0.28 * len(medians) + 0.7)
    rows, names = crawl.triples[crawl.triples["kind"] == kind], [row["group"] for row in medians]
    _draw_boxes(axes, names, [rows.loc[rows["identity"] == name, "attack"] for name in names])
    for y, row in enumerate(medians):
        if math.isfinite(row["low"]):
            axes.hlines(y, row["low"], row["high"], color=COLOURS[1], linewidth=4, alpha=0.6)
    axes.set_xlabel("attack score; blue: interval of the median")
    return figure


def _prefix_boxes(crawl: Crawl, plain: Crawl) -> Figure:
    """Draw a panel for the model's first words, one for what followed from it (the paper's two augmentations)."""
    from matplotlib.figure import Figure

    kinds = sorted(crawl.triples["kind"].unique())
    sides = [(f"{kind}, {name}", own, kind) for kind in kinds for name, own in (("with", crawl), ("without", plain))]
    figure = Figure(figsize=(WIDTH, 0.6 * len(sides) + 1.6), layout="constrained")
    for axes, (title, begins) in zip(figure.subplots(2, 1), (("start", True), ("expansion", False))):
        values = []
        for _, own, kind in sides:
            rows = own.triples[(own.triples["kind"] == kind) & ((own.triples["strategy"] == "start") == begins)]
            values.append(rows["attack"])
        _draw_boxes(axes, [label for label, *_ in sides], values)
        axes.set_title(title)
        axes.set_xlabel("attack score")
    return figure
