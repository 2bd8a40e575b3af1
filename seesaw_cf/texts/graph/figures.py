"""The paper's figures 2 to 8. Worse is to the right, or above where a picture has two axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import cut, printable
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.figures import COLOURS, CONTROL_COLOUR, INK, WIDTH, Panel, draw_panels, style
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.scores import Topics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TRIPLES = 40  # of figure 2
_EDGES = {"positive": "#0f766e", "negative": "#c2410c"}
Mark = tuple[float, float, float, float, str]
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
        titles = {str(number): ", ".join(words[:3]) for number, words in topics.words.items()}
        titles |= {str(number): f"{titles[str(number)]} ({label})" for number, label in topics.labels.items() if label}
        by_topic = {topic: [row for row in shares if str(row["asked"]) == topic] for topic in titles}
        panels = [_panel(cut(printable(titles[topic]), 44), rows, "share") for topic, rows in by_topic.items() if rows]
        yield "figure4_topics", "Shares of topics (figure 4)", draw_panels(panels, one_axis=True)
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
    """Draw identities on the left, objects on the right, a line per triple, so that no label lies on another.

    An object that several identities share is one node, in bold, with a line from each of them.
    """
    shuffled = crawl.triples.sample(frac=1, random_state=crawl.seed).groupby("identity", sort=True)
    rows = shuffled.head(max(1, _TRIPLES // shuffled.ngroups)).head(_TRIPLES).sort_values("identity", kind="stable")
    things = rows["object"].str.casefold()
    shared = rows.groupby(things)["identity"].transform("nunique") > 1
    nodes = pd.factorize(np.where(shared, things, np.arange(len(rows)).astype(str)))[0]
    number, identities = int(nodes.max()) + 1, list(dict.fromkeys(rows["identity"]))
    figure, (axes,) = _axes(0.2 * max(number, len(identities)) + 0.3)
    for node in range(number):
        group = rows[nodes == node]
        words = f"{' / '.join(dict.fromkeys(group['predicate']))} {group['object'].iloc[0]}"
        weight = "bold" if shared[group.index[0]] else "normal"
        axes.text(1.03, -node, cut(printable(words), 30), va="center", weight=weight)
    middles = {name: -(at + 0.5) * number / len(identities) + 0.5 for at, name in enumerate(identities)}
    for identity, middle in middles.items():
        axes.text(-0.05, middle, cut(printable(identity), 16), ha="right", va="center")
    for at, row in zip(nodes.tolist(), rows_of(rows)):
        colour = _EDGES.get(str(row.get("regard")), CONTROL_COLOUR)
        axes.plot([0.0, 1.0], [middles[row["identity"]], -at], color=colour, linewidth=0.8)
    axes.set_xlim(-1.3, 3.3)
    axes.set_ylim(0.6 - number, 0.6)
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
    every = every[every["kind"].isin(crawl.triples["kind"])].assign(begins=every["strategy"] == "start")
    by_title = [("start", every[every["begins"]]), ("expansion", every[~every["begins"]])]
    return _boxes(
        [
            (title, {f"{kind}, {side}": rows["attack"] for (kind, side), rows in own.groupby(["kind", "side"])})
            for title, own in by_title
        ],
        "attack score",
    )
