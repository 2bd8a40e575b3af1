"""One sentence on what the model knew before."""

from __future__ import annotations

import re

from seesaw_cf.effects.groups import ALL
from seesaw_cf.effects.knowledge import KnowledgeRow
from seesaw_cf.report import text
from seesaw_cf.report.results import Results
from seesaw_cf.report.rows import records

_LIMIT = "First among candidates is less than knowledge in general."


def knew(results: Results) -> str:
    """One sentence for the conclusion: how much of what was edited and asked the model knew."""
    sentences = []
    for row in records(results.known.facts, KnowledgeRow):
        if row["relation"] == ALL and row["n"]:
            median = f"median {row['median_candidates']:g} candidates, share {row['median_share']:.2g}"
            facts = row["facts"] if row["n"] > 1 else re.sub(r"(fact|question)s", r"\1", row["facts"])
            sentences.append(f"{_share(row)} of {row['n']:,} {facts} ({median})")
    first = f"the right answer was first of its candidates for {'; '.join(sentences)}. {_LIMIT}" if sentences else ""
    return " ".join(filter(None, [results.known.note, first]))


def _share(row: KnowledgeRow) -> str:
    return text.percent_interval(row["known"], row["known_low"], row["known_high"])
