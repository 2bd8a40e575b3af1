"""Findings of stereotype graphs in sentences: identities that a model describes worse, before and after an edit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from seesaw_cf.base.terminal import listed, printable, quantity, wrap
from seesaw_cf.report import text
from seesaw_cf.texts.graph.changes import ALL, ClassNumbers, regard_and_attack
from seesaw_cf.texts.graph.folder import Crawl

Change = Mapping[Any, Any]
"""A row of `changes`."""
# Measure -> its name in a sentence, its number in `regard_and_attack`, and the sign of what is worse.
MEASURES = {"regard": ("mean regard", "normalised", -1), "attack": ("mean identity attack", "mean", 1)}
_LEVEL = 0.05


def limits(row: Mapping[Any, Any], of: str = "") -> tuple[float, float]:
    """Return the ends of an interval, that of a number where the row has several; NaN where there is none."""
    low, high = (math.nan if row[name] is None else float(row[name]) for name in (f"{of}low", f"{of}high"))
    return low, high


def findings(
    base: Crawl, edited: Crawl | None = None, changes: Sequence[Change] = (), differ: Sequence[str] = ()
) -> str:
    """Return the finding, what is not known and how sure it is, for a terminal.

    Args:
        base: A crawl; of the unedited model when there is another.
        edited: A crawl after an edit.
        changes: Rows of `seesaw_cf.texts.graph.changes.changes`.
        differ: What the crawls were made differently in.
    """
    means = regard_and_attack(base) if base.scores is not None and len(base.triples) else {}
    crawls = [base] if edited is None else [base, edited]
    about = f"{' and '.join(crawl.name for crawl in crawls)}: {len(base.triples):,} triples before the edit"
    about = about if edited else about.removesuffix(" before the edit")
    answers = {
        "Overlap of the graphs, 1 is the same": _overlap(changes),
        "Not known": _unknown(crawls, changes, differ),
        "How sure": _precision(base),
    }
    lines = [wrap(f"{head}: {printable(answer)}", "  ") for head, answer in answers.items() if answer]
    finding = title(base.triples["identity"].nunique(), means, changes if edited else None)
    return "\n".join(["FINDINGS", wrap(printable(about)), "", wrap(printable(finding)), "", *lines])


def title(identities: int, means: Mapping[str, ClassNumbers], changes: Sequence[Change] | None) -> str:
    """Return the finding in one or two sentences.

    Args:
        identities: How many have triples.
        means: Of `regard_and_attack`, before the edit.
        changes: Rows of `changes`; None without an edit.
    """
    if not identities:
        return "The model wrote nothing that could be read as a triple."
    if changes is None:
        return _title_of_one(identities, means)
    worse, better = _shifts(changes, 1), _shifts(changes, -1)
    topics = [row["identity"] for row in _significant(changes) if row["measure"] == "topics"]
    if worse:
        return f"After the edit the model speaks worse of {worse}." + (f" It speaks better of {better}." * bool(better))
    if better:
        return f"After the edit the model speaks better of {better}."
    if topics:
        return f"After the edit the model says other things about {listed(topics)}."
    if not means:
        return "Whether the model speaks worse of anybody after the edit is not known: nothing was scored."
    return "The edit is not shown to change how the model speaks of any identity."


def _title_of_one(identities: int, means: Mapping[str, ClassNumbers]) -> str:
    if not means:
        return f"{quantity(identities, 'identity', 'identities')}; whether they are kind or unkind was not scored."
    worse, better = _apart(means, 1), _apart(means, -1)
    if worse or better:
        sentences = [
            f"The model speaks {side} of {names}." for side, names in (("worse", worse), ("better", better)) if names
        ]
        return " ".join(sentences)
    if identities < 2:
        return "One identity was asked about: there is none to compare it with."
    return "No identity is shown to be spoken of better or worse than the others of its class."


def _significant(changes: Sequence[Change]) -> list[Change]:
    return [row for row in changes if row["against"] == "base" and row["p_adjusted"] < _LEVEL]


def _shifts(changes: Sequence[Change], sign: int) -> str:
    """Return changes for the worse (1) or the better (-1) that stand after correction, the surest first."""
    rows = [
        row
        for row in _significant(changes)
        if row["measure"] in MEASURES and row["change"] * MEASURES[row["measure"]][2] * sign > 0
    ]
    rows.sort(key=lambda row: float(row["p_adjusted"]))
    return listed(f"{row['identity']} ({row['measure']} {_interval(row['change'], row)})" for row in rows)


def _apart(means: Mapping[str, ClassNumbers], sign: int) -> str:
    """Return identities described worse (1) or better (-1) than the rest of their class, the largest first."""
    parts = []
    for measures in means.values():
        for measure, (words, value, worse) in MEASURES.items():
            for name, row in measures.get(measure, {}).get("identities", {}).items():
                contrast = row["contrast"]
                p = contrast["p_adjusted"]
                if p is not None and p < _LEVEL and contrast["value"] * worse * sign > 0:
                    others = f"{_interval(contrast['value'], contrast)} against the others"
                    parts.append((-abs(contrast["value"]), f"{name} ({words} {_interval(row[value], row)}; {others})"))
    return listed(sentence for _, sentence in sorted(parts))


def _interval(value: float, row: Change) -> str:
    return text.minus(text.effect(round(float(value), 9), *limits(row), digits=2))


def _overlap(changes: Sequence[Change]) -> str:
    rows = [row for row in changes if row["measure"] == "overlap" and row["identity"] == ALL]
    against = {"base": "the unedited model"}
    parts = [f"{_interval(row['change'], row)} with {against.get(row['against'], row['against'])}" for row in rows]
    return f"{', '.join(parts)}." if parts else ""


def _unknown(crawls: Sequence[Crawl], changes: Sequence[Change], differ: Sequence[str]) -> str:
    parts = [f"the crawls were made differently: {'; '.join(differ)}"] if differ else []
    for crawl in crawls:
        name = crawl.folder.name
        parts += [f"{name} has no scores of regard or attack (--regard, --attack)"] if crawl.scores is None else []
        unfinished = sum(count["status"] != "complete" for count in crawl.counts)
        parts += [f"{unfinished} units of {name} did not get all their triples"] if unfinished else []
    if len(crawls) > 1 and {row["against"] for row in changes} <= {"base"}:
        parts.append("whether any other edit of that size does the same (--random-control)")
    return f"{'; '.join(parts)}." if parts else ""


def _precision(base: Crawl) -> str:
    asks = sum(count["asks"] for count in base.counts)
    runs = len({count["run"] for count in base.counts})
    few = "; fewer than five runs, so steps are taken for independent." if runs < 5 else "; intervals clustered by run."
    return f"{len(base.triples):,} triples out of {asks:,} answers in {quantity(runs, 'run')}{few}"
