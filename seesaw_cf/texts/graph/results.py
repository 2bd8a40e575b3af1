"""Tables of a graph: what was crawled, scores of identities, topics, and what an edit changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from seesaw_cf.report import text
from seesaw_cf.report.table import Column, EstimateColumn, Table
from seesaw_cf.texts.graph.changes import ClassNumbers
from seesaw_cf.texts.graph.folder import CrawlCounts
from seesaw_cf.texts.graph.topics import Topics

_DUST = 5e-10  # changes up to it are of sums of floats, and print as 0
# Measure -> (its name in the results, the number that stands for it).
_MEASURES = {
    "regard": ("regard", "normalised"),
    "regard masked": ("regard_masked", "normalised"),
    "attack": ("attack", "mean"),
    "attack masked": ("attack_masked", "mean"),
    "regard scorer": ("regard_scorer", "value"),
    "attack scorer": ("attack_scorer", "value"),
}


def crawl_tables(counts: Sequence[CrawlCounts]) -> list[Table]:
    """Return what was asked of every identity, and why completions were dropped."""
    dropped = Counter[str]()
    for row in counts:
        dropped.update(row["dropped"])
    columns = [Column("identity", words=True), Column("status", words=True), Column("run"), Column("triples", "kept")]
    reasons = pd.DataFrame(dropped.most_common(), columns=["reason", "n"])
    about = "Completions that are no triples, by reason." if dropped else "No completion was dropped."
    return [
        Table(
            "crawl",
            "Crawled",
            "Triples of every identity and run; abandoned: steps that were given up.",
            [*columns, Column("asks"), Column("abandoned")],
            pd.DataFrame(counts),
        ),
        Table("dropped", "Dropped completions", about, [Column("reason", words=True), Column("n")], reasons),
    ]


def score_table(results: Mapping[str, ClassNumbers]) -> Table:
    """Return the scores of every identity; see `seesaw_cf.texts.graph.changes.regard_and_attack`."""
    rows = [
        {"measure": measure, "identity": name, "value": row[value]} | {key: row[key] for key in ("low", "high", "n")}
        for measures in results.values()
        for measure, (key_of, value) in _MEASURES.items()
        for name, row in measures.get(key_of, {}).get("identities", measures.get(key_of, {})).items()
    ]
    columns = [Column("measure", words=True), Column("identity", words=True)]
    columns += [EstimateColumn("value", low="low", zero=0.0), Column("n")]
    about = "95 % intervals. Rows of a scorer: what it makes of the name alone, same sentences."
    return Table("scores", "Scores", about, columns, pd.DataFrame(rows))


def topic_tables(topics: Topics, results: Mapping[str, ClassNumbers]) -> list[Table]:
    """Return words of every topic, and how far identities are from the rest; see `topic_results`."""
    words = [
        {"topic": str(number), "dimension": topics.labels[number] or None, "words": "; ".join(words[:5])}
        for number, words in topics.words.items()
    ]
    rows = [
        {"identity": name, "n": row["n"], "note": row["note"]} | (row["relative_entropy"] or {})
        for kind in results.values()
        for name, row in kind["identities"].items()
    ]
    columns = [
        Column("identity", words=True),
        EstimateColumn("rel. entropy (nats)", "corrected", low="low", zero=0.0, note="note"),
        Column("p (Holm)", lambda row: text.p_value(row.get("p_adjusted"))),
        Column("n"),
    ]
    heads = [Column(name, words=True) for name in ("topic", "dimension", "words")]
    about = "Of each identity's topics from those of the others; 95 % intervals."
    return [
        Table("topics", "Topics", topics.method, heads, pd.DataFrame(words)),
        Table("entropy", "Relative entropy", about, columns, pd.DataFrame(rows)),
    ]


def change_table(changes: pd.DataFrame) -> Table:
    """Return what an edit changed; see `seesaw_cf.texts.graph.changes.changes`."""
    columns = [
        *(Column(name, words=True) for name in ("against", "measure", "identity")),
        Column("note", lambda row: row["note"] or None, words=True),
        EstimateColumn("before", "base", zero=_DUST),
        EstimateColumn("after", "edited", zero=_DUST),
        EstimateColumn("change", low="low", zero=_DUST),
        Column("p (Holm)", lambda row: text.p_value(row["p_adjusted"])),
        Column("n"),
    ]
    about = "Of every identity, against the base and against each control; 95 % intervals."
    return Table("changes", "What the edit changed", about, columns, changes)
