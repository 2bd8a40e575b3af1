"""Findings of stereotype graphs in sentences: identities that a model describes worse, before and after an edit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seesaw_cf.base.terminal import listed, quantity
from seesaw_cf.report import text
from seesaw_cf.report.html.findings import FirstScreen, TitleRules, title_by
from seesaw_cf.texts.graph.changes import ALL, ClassNumbers
from seesaw_cf.texts.graph.folder import Crawl

# Measure -> its name in a sentence, its number in `regard_and_attack`, its ends, and the sign of what is worse.
MEASURES: Mapping[str, tuple[str, str, tuple[float, float], int]] = {
    "regard": ("mean regard", "normalised", (-1.0, 1.0), -1),
    "attack": ("mean identity attack", "mean", (0.0, 1.0), 1),
}
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """What a title is made of.

    Attributes:
        triples, people: How many different triples, and identities.
        compared: There is a crawl after an edit.
        means: Of `regard_and_attack`, before the edit.
        changes: Rows of `changes`.
    """

    triples: int
    people: int
    compared: bool
    means: Mapping[str, ClassNumbers]
    changes: Sequence[Mapping[Any, Any]]

    def shifts(self, sign: int) -> str:
        """Return changes for the worse (1) or the better (-1) that stand after correction, the surest first."""
        rows = [row for row in self._own if row["p_adjusted"] < _LEVEL and row["measure"] in MEASURES]
        rows = [row for row in rows if row["change"] * MEASURES[row["measure"]][3] * sign > 0]
        return listed(f"{row['identity']} ({row['measure']} {number_said(row['change'], row)})"
                       for row in sorted(rows, key=lambda row: row["p_adjusted"]))  # fmt: skip

    @property
    def worse(self) -> str:
        """Identities that the model describes worse after the edit."""
        return self.shifts(1)

    @property
    def better(self) -> str:
        """Identities that it describes better after the edit."""
        return self.shifts(-1)

    @property
    def topics(self) -> str:
        """Identities that it describes with other topics after the edit."""
        return listed(row["identity"] for row in self._own if row["measure"] == "topics" and row["p_adjusted"] < _LEVEL)

    @property
    def _own(self) -> list[Mapping[Any, Any]]:
        return [row for row in self.changes if row["against"] == "base"]

    def apart(self, sign: int) -> str:
        """Return identities described worse (1) or better (-1) than the rest of their class, the largest first."""
        parts = []
        for measures in self.means.values():
            for measure, (words, value, _, worse) in MEASURES.items():
                for name, row in measures.get(measure, {}).get("identities", {}).items():
                    contrast = row["contrast"]
                    if (p := contrast["p_adjusted"]) is None or p >= _LEVEL or contrast["value"] * worse * sign <= 0:
                        continue
                    beside = f"{number_said(contrast['value'], contrast)} beside the others"
                    parts.append((abs(contrast["value"]), f"{name} ({words} {number_said(row[value], row)}; {beside})"))
        return listed(sentence for _, sentence in sorted(parts, key=lambda pair: -pair[0]))

    @property
    def lower(self) -> str:
        """Identities that the model describes worse than the rest of their class."""
        return self.apart(1)

    @property
    def higher(self) -> str:
        """Identities that it describes better than the rest of their class."""
        return self.apart(-1)


GRAPH_TITLE: Sequence[TitleRules[GraphSummary]] = (
    (
        (lambda graph: not graph.triples, "The model wrote nothing that could be read as a triple."),
        (lambda graph: graph.compared and graph.worse, "After the edit the model speaks worse of {0.worse}."),
        (lambda graph: graph.compared and graph.better, "After the edit the model speaks better of {0.better}."),
        (lambda graph: graph.compared and graph.topics, "After the edit the model says other things about {0.topics}."),
        (
            lambda graph: graph.compared and not graph.means,
            "Whether the model speaks worse of anybody after the edit is not known: nothing was scored.",
        ),
        (lambda graph: graph.compared, "The edit is not shown to change how the model speaks of any identity."),
        (
            lambda graph: not graph.means,
            "{0.triples:,} triples about {0.people} identities; whether they are kind or unkind was not scored.",
        ),
        (lambda graph: graph.lower, "The model speaks worse of {0.lower}."),
        (lambda graph: graph.higher, ""),
        (lambda graph: graph.people < 2, "One identity was asked about: there is none to compare it with."),
        (lambda graph: True, "No identity is shown to be spoken of better or worse than the others of its class."),
    ),
    (
        (lambda graph: graph.compared and graph.worse and graph.better, "It speaks better of {0.better}."),
        (lambda graph: not graph.compared and graph.higher, "The model speaks better of {0.higher}."),
    ),
)


def limits(row: Mapping[Any, Any], of: str = "") -> tuple[float, float]:
    """Return the ends of an interval, that of a number where the row has several; NaN where there is none."""
    low, high = (math.nan if row[name] is None else float(row[name]) for name in (f"{of}low", f"{of}high"))
    return low, high


def graph_screen(summary: GraphSummary, crawls: Sequence[Crawl], differ: Sequence[str]) -> FirstScreen:
    """Return what was found.

    Args:
        summary: What the title is made of.
        crawls: Of the unedited model, then of an edited one where there is one.
        differ: What the crawls were made differently in.
    """
    names = " and ".join(crawl.name for crawl in crawls)
    return FirstScreen(
        f"{names} · {summary.triples:,} different triples about {summary.people} identities",
        title_by(GRAPH_TITLE, summary),
        {
            "Overlap of the graphs, 1 is the same": _overlap(summary.changes),
            "Not known": _open(crawls, summary.changes, differ),
            "How sure": _sure(crawls[0]),
        },
    )


def _overlap(measured: Sequence[Mapping[Any, Any]]) -> str:
    rows = [row for row in measured if row["measure"] == "overlap" and row["identity"] == ALL]
    against = {"base": "the unedited model"}
    parts = [f"{number_said(row['change'], row)} with {against.get(row['against'], row['against'])}" for row in rows]
    return f"{', '.join(parts)}." if parts else ""


def number_said(value: float, row: Mapping[Any, Any]) -> str:
    """Return a value with the interval of its row."""
    return text.minus(text.effect(round(float(value), 9), *limits(row), digits=2))


def _open(crawls: Sequence[Crawl], measured: Sequence[Mapping[Any, Any]], differ: Sequence[str]) -> str:
    parts = [f"the crawls were made differently: {'; '.join(differ)}"] if differ else []
    for crawl in crawls:
        name = crawl.folder.name
        parts += [f"{name} has no scores of regard or attack (seesaw-cf graph score)"] if crawl.scores is None else []
        unfinished = [count["identity"] for count in crawl.counts if count["status"] != "complete"]
        parts += [f"{len(unfinished)} units of {name} did not get all their triples"] if unfinished else []
    if len(crawls) > 1 and {row["against"] for row in measured} <= {"base"}:
        parts.append("whether any other edit of that size does the same (--random-control)")
    return f"{'; '.join(parts)}." if parts else ""


def _sure(base: Crawl) -> str:
    asks = sum(count["asks"] for count in base.counts)
    runs = len({count["run"] for count in base.counts})
    few = "; fewer than five runs, so steps are taken for independent." if runs < 5 else "; intervals clustered by run."
    return f"{len(base.triples):,} triples out of {asks:,} answers in {quantity(runs, 'run')}{few}"
