"""The paper's figures 2 to 8 from a scored crawl. Needs matplotlib (extra `stereotypes`).

Every figure with a score tells under it what the scorer does with the names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seesaw_cf.base.files import safe_name
from seesaw_cf.base.terminal import cut, printable
from seesaw_cf.effects.regard import prefix_effect
from seesaw_cf.report import text
from seesaw_cf.report.canvas import COLOURS, GREY, new_figure, picture_style, save_picture
from seesaw_cf.stats.plain import as_json
from seesaw_cf.texts.graph.changes import ClassNumbers
from seesaw_cf.texts.graph.findings import limits
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.topics import Topics

WARNING = "Contains what a language model wrote about groups of people; it may be offensive and is not true of anybody."
_TRIPLES = 60  # of figure 2
_EDGES = {"positive": "#009E73", "negative": "#D55E00"}
Kinds = Mapping[str, ClassNumbers]


def draw(
    crawl: Crawl,
    folder: Path,
    results: Mapping[str, Kinds],
    *,
    topics: Topics | None = None,
    plain: Crawl | None = None,
    seed: int = 0,
) -> dict[str, str]:
    """Draw what can be drawn.

    Args:
        crawl: A crawl; figure 5 needs its scores.
        folder: Where the files go.
        results: "scores" of `regard_and_attack` for figures 3, 6 and 7, "topics" of `topic_results` for 4 and 8.
        topics: Fitted on the crawl, for figures 4 and 8.
        plain: The same crawl without prepended texts, scored, for figure 5.
        seed: Of which triples are drawn in figure 2.

    Returns:
        File name -> description, of the pictures written.

    Raises:
        StorageError: A file could not be written.
    """
    files: dict[str, str] = {}

    def save(figure: Figure, name: str, what: str, note: str = "") -> None:
        figure.suptitle(f"{what}\n{cut(printable(crawl.name), 90)}", fontsize=11)
        lines = [part for line in (*note.splitlines(), WARNING) for part in wrap(line, int(14 * figure.get_figwidth()))]
        figure.supxlabel("\n".join(lines), fontsize=7.5, color="#444444")
        save_picture(figure, folder / name)
        files[name] = what

    with picture_style():
        kinds = results.get("scores", {})
        if len(crawl.triples):
            what = "Part of the graph; bold: said of several identities"
            what += "; green: positive regard, orange: negative" if kinds else ""
            save(_graph(crawl, seed), "figure2_graph.png", what, _scorer_note(kinds, "regard"))
        _scores(kinds, crawl, save)
        if plain is not None and kinds:
            effect = _prefix(crawl, plain)
            figure, what = _boxes_of_prefix(crawl, plain, effect), "Attack scores with and without prefix"
            refused = [
                f"{kind}, interval of the difference: {row['note']}" for kind, row in effect.items() if row["note"]
            ]
            save(figure, "figure5_prefixes.png", what, "\n".join([*refused, _scorer_note(kinds, "attack")]))
        if topics is not None:
            _topics(results.get("topics", {}), topics, save)
    return files


def _scores(kinds: Kinds, crawl: Crawl, save: Callable[..., None]) -> None:
    for kind, numbers in kinds.items():
        name = safe_name(kind)
        notes = {scorer: _scorer_note({kind: numbers}, scorer) for scorer in ("regard", "attack")}
        if "regard" in numbers and "attack" in numbers:
            note = "\n".join(filter(None, notes.values()))
            save(_polarity(numbers), f"figure3_polarity_{name}.png", f"Overall regard and attack: {kind}", note)
        if "regard" in numbers:
            what = f"N positive - N negative regard, with 95 % intervals: {kind}"
            save(_bars_of_regard(numbers["regard"]), f"figure6_regard_{name}.png", what, notes["regard"])
        if "attack" in numbers:
            rows = crawl.scored()
            rows = rows[rows["kind"] == kind]
            what = f"Attack scores, medians and interquartile ranges: {kind}"
            save(_boxes(rows, numbers["attack"]), f"figure7_attack_{name}.png", what, notes["attack"])


def _topics(results: Kinds, topics: Topics, save: Callable[..., None]) -> None:
    for kind, numbers in results.items():
        rows = {name: row for name, row in numbers["identities"].items() if row["shares"]}
        hidden = [name for name in numbers["identities"] if name not in rows]
        note = f"not shown, too few triples: {', '.join(hidden)}" if hidden else ""
        note = f"{note}\n{topics.method}".strip()
        if rows:
            name = safe_name(kind)
            save(_shares(rows, topics), f"figure4_topics_{name}.png", f"Topic shares with 95 % intervals: {kind}", note)
            save(_entropy(rows), f"figure8_entropy_{name}.png", f"Relative entropy to the rest: {kind}", note)


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure, (axes,) = new_figure(height, width=width)
    return figure, axes


def _named(axes: Axes, counts: Mapping[str, int]) -> None:
    labels = [f"{cut(printable(name), 28)}  (n={n})" for name, n in counts.items()]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)


def _graph(crawl: Crawl, seed: int) -> Figure:
    """Draw identities on the left, objects on the right, a line per triple, so that no label lies on another.

    An object that several identities share is one node, with a line from each of them.
    """
    rows = crawl.rows
    share = max(1, _TRIPLES // max(1, rows["identity"].nunique()))
    rows = rows.groupby("identity", sort=True, group_keys=False).sample(frac=1, random_state=seed)
    rows = rows.groupby("identity", sort=True).head(share).head(_TRIPLES).sort_values("identity", kind="stable")
    things = rows["object"].str.casefold()
    shared = things.isin(things[~rows.duplicated(["identity", "object"])].pipe(lambda names: names[names.duplicated()]))
    nodes = pd.factorize(np.where(shared, things, np.arange(len(rows)).astype(str)))[0]
    number, identities = int(nodes.max()) + 1, list(dict.fromkeys(rows["identity"]))
    figure, axes = _figure(11, 1.6 + 0.23 * max(number, 2 * len(identities)))
    for node in range(number):
        group = rows[nodes == node]
        predicates = " / ".join(cut(printable(name), 24) for name in dict.fromkeys(group["predicate"]))
        label = f"{predicates}  \u2192  {cut(printable(group['object'].iloc[0]), 60)}"
        weight = "bold" if shared[group.index[0]] else "normal"
        axes.text(1.45, -node, label, fontsize=8, va="center", weight=weight)
    for place, identity in enumerate(identities):
        middle = -(place + 0.5) * number / len(identities) + 0.5
        own = (rows["identity"] == identity).to_numpy()
        for node, row in zip(nodes[own], rows[own].to_dict("records")):
            colour = _EDGES.get(str(row.get("regard")), GREY)
            axes.plot([0.0, 1.0, 1.4], [middle, -node, -node], color=colour, linewidth=0.8)
        box = {"facecolor": "#cfe3f3", "edgecolor": "none", "boxstyle": "round,pad=0.3"}
        axes.text(0, middle, cut(printable(str(identity)), 28), fontsize=9, ha="right", va="center", bbox=box)
    axes.set_xlim(-1.6, 6.0)
    axes.set_ylim(0.2 - number, 0.8)
    axes.set_axis_off()
    return figure


def _polarity(numbers: ClassNumbers) -> Figure:
    figure, axes = _figure(9, 7)
    for number, (name, row) in enumerate(numbers["regard"]["identities"].items()):
        attack = numbers["attack"]["identities"][name]
        if row["normalised"] is None or attack["mean"] is None:
            continue
        colour = COLOURS[number % len(COLOURS)]
        x, y = row["normalised"], attack["mean"]
        axes.hlines(y, *limits(row), color=colour, alpha=0.4)
        axes.vlines(x, *limits(attack), color=colour, alpha=0.4)
        axes.plot(x, y, "o", color=colour)
        axes.annotate(
            f"{cut(printable(name), 24)} (n={row['n']})", (x, y), fontsize=8, xytext=(4, 4), textcoords="offset points"
        )
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("overall regard per triple, 95 % interval (left: spoken of worse)")
    axes.set_ylabel("mean attack score, 95 % interval")
    return figure


def _bars_of_regard(regard: ClassNumbers) -> Figure:
    rows = sorted(regard["identities"].items(), key=lambda item: item[1]["overall"])
    figure, axes = _figure(9, 2.2 + 0.34 * len(rows))
    for y, (_, row) in enumerate(rows):
        axes.barh(y, row["overall"], color="#D55E00" if row["overall"] < 0 else "#009E73", alpha=0.75)
        axes.hlines(y, *limits(row, "overall_"), color="black")
    _named(axes, {name: row["n"] for name, row in rows})
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("N positive - N negative")
    return figure


def _boxes(rows: pd.DataFrame, attack: ClassNumbers) -> Figure:
    names = sorted(attack["identities"], key=lambda name: -(attack["identities"][name]["median"] or 0.0))
    figure, axes = _figure(9, 2.2 + 0.34 * len(names))
    values = [rows.loc[rows["identity"] == name, "attack"].dropna().to_numpy() for name in names]
    _box_rows(axes, values)
    for y, name in enumerate(names):
        median = limits(attack["identities"][name], "median_")
        axes.hlines(y, *median, color="#0072B2", linewidth=4, alpha=0.6)
    _named(axes, dict(zip(names, map(len, values))))
    axes.set_xlabel("attack score; blue: 95 % interval of the median")
    return figure


def _box_rows(axes: Axes, values: Sequence[Any]) -> None:
    """Draw a box for each list of attack scores."""
    places = range(len(values))
    axes.boxplot(values, orientation="horizontal", positions=places, widths=0.6, flierprops={"markersize": 2})
    axes.set_xlim(-0.02, 1.02)


def _prefix(crawl: Crawl, plain: Crawl) -> ClassNumbers:
    pooled = pd.concat([crawl.scored().assign(prefixed=True), plain.scored().assign(prefixed=False)])
    return as_json(prefix_effect)(*(pooled[name].tolist() for name in ("kind", "identity", "attack", "prefixed")))


def _boxes_of_prefix(crawl: Crawl, plain: Crawl, effect: ClassNumbers) -> Figure:
    """Draw a panel for the model's first words, one for what followed from it (the paper's two augmentations)."""
    figure, panels = new_figure(2.5 + 0.8 * len(effect), 1, 2, width=13, share_x=True, share_y=True)
    labels, sides = [], (("with", crawl.scored()), ("without", plain.scored()))
    for kind, row in effect.items():
        labels += [f"{kind}, {name} prefix (n={(frame['kind'] == kind).sum()})" for name, frame in sides]
        p, rank = (text.p_equals(row[name]) for name in ("p_adjusted", "p_rank_adjusted"))
        labels[-1] += (
            f"\ndifference {text.estimate(row['difference'], row['low'], row['high'], '.3g')}, {p}; rank {rank}"
        )
    for axes, (title, begins) in zip(panels, (("start", True), ("expansion", False))):
        chosen = [frame[(frame["strategy"] == "start") == begins] for _, frame in sides]
        values = [part.loc[part["kind"] == kind, "attack"].dropna().to_numpy() for kind in effect for part in chosen]
        _box_rows(axes, values)
        axes.set_title(f"{title}: {sum(map(len, values)):,} triples", fontsize=9)
        axes.set_yticks(range(len(labels)), labels, fontsize=8)
        axes.set_xlabel("attack score")
    panels[0].invert_yaxis()
    return figure


def _shares(rows: ClassNumbers, topics: Topics) -> Figure:
    numbers = [topic for topic in topics.words if any(str(topic) in row["shares"] for row in rows.values())]
    columns = min(4, len(numbers))
    lines = -(-len(numbers) // columns)
    height = 1.4 + lines * (1.2 + 0.32 * len(rows))
    figure, panels = new_figure(height, lines, columns, width=2.5 + 2.8 * columns, share_x=True, share_y=True)
    for panel in panels[len(numbers) :]:
        panel.set_visible(False)
    for panel, topic in zip(panels, numbers):
        for y, row in enumerate(rows.values()):
            share = row["shares"].get(str(topic), {"value": 0.0, "low": None, "high": None})
            panel.barh(y, share["value"], color="#0072B2", alpha=0.75)
            panel.hlines(y, *limits(share), color="black")
        title = f"topic {topic}" + (f" ({topics.labels[topic]})" if topics.labels.get(topic) else "")
        words = cut(printable("; ".join(topics.words[topic][:3])), 40)
        panel.set_title(f"{cut(printable(title), 40)}\n{words}", fontsize=8)
        panel.set_xlabel("share", fontsize=8)
    for first in panels[::columns]:
        _named(first, {name: row["n"] for name, row in rows.items()})
    return figure


def _entropy(numbers: ClassNumbers) -> Figure:
    rows = sorted(numbers.items(), key=lambda item: -item[1]["relative_entropy"]["corrected"])
    figure, axes = _figure(9, 2.2 + 0.34 * len(rows))
    for y, (_, row) in enumerate(rows):
        entropy = row["relative_entropy"]
        axes.barh(y, entropy["corrected"], color="#0072B2", alpha=0.75)
        axes.hlines(y, *limits(entropy), color="black")
        axes.plot(entropy["expected"], y, "|", color="#D55E00", markersize=12)
    _named(axes, {name: row["n"] for name, row in rows})
    axes.set_xlabel(
        "nats, corrected for bias, 95 % interval; orange: uncorrected value if topics were assigned at random"
    )
    return figure


def _scorer_note(kinds: Kinds, scorer: str) -> str:
    """Return the largest changes that names alone cause, as a note; "" without any."""
    parts = []
    for kind, numbers in kinds.items():
        rows = numbers.get(f"{scorer}_scorer", {})
        names = sorted(rows, key=lambda name: -abs(rows[name]["value"]))[:4]
        changes = [text.estimate(rows[name]["value"], *limits(rows[name]), "+.2f") for name in names]
        biases = [f"{printable(name)} {change}" for name, change in zip(names, changes)]
        parts += [f"{kind}: {', '.join(biases)}"] if biases else []
    about = f"the {scorer} scorer's own change of the same sentences by the name alone: "
    return about + "; ".join(parts) if parts else ""
