"""Score a graph, and the scorers: every triple as it is and with the identity masked; the same sentences about
every identity, which separates the scorer's view of a name from what the model writes of it."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.checks import whole
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.public import checked
from seesaw_cf.base.types import TableRow
from seesaw_cf.texts.graph.folder import Crawl, read_crawl, write_scores
from seesaw_cf.texts.graph.scorers import SentenceScore, SentenceScorer
from seesaw_cf.texts.graph.tables import BIAS, SCORES

MASK = "Some people"
VALUE = {"positive": 1.0, "negative": -1.0, "neutral": 0.0, "other": 0.0}


@checked
def score_crawl(
    crawl: Crawl,
    regard: SentenceScorer | None = None,
    attack: SentenceScorer | None = None,
    *,
    contents: int = 40,
    seed: int = 0,
) -> Crawl:
    """Score every triple, masked too, and measure the scorers' own bias; write both into the crawl folder.

    Args:
        crawl: A finished crawl.
        regard: Gives "positive", "negative", "neutral" and "other".
        attack: Gives "attack".
        contents: Sentences per protected class about every identity of the class, drawn from all of its
            triples; 0 = all of them.
        seed: Of that draw.

    Returns:
        The crawl with scores.

    Raises:
        RecordError: No scorer or a negative number of contents was given, or there is nothing to score.
    """
    whole("scoring: contents", contents)
    if regard is None and attack is None:
        raise RecordError("scoring: neither a regard nor an attack scorer was given; expected at least one.")
    if crawl.triples.empty:
        raise RecordError(f"{crawl.folder}: the graph has no triples to score; counts.json says why.")
    masked = [f"{MASK} {p} {o}" for p, o in zip(crawl.triples["predicate"], crawl.triples["object"])]
    drawn = _contents(crawl.triples, contents, seed)
    sentences = [*crawl.triples["text"], *masked, *(text for *_, text in drawn)]
    scores = {name: _all(scorer, sentences) for name, scorer in (("regard", regard), ("attack", attack)) if scorer}
    rows = [_row(triple, mask, scores) for triple, mask in zip(crawl.triples.to_dict("records"), masked)]
    names = {"regard": regard.name if regard else None, "attack": attack.name if attack else None}
    write_scores(
        crawl.folder,
        pa.Table.from_pylist(rows, SCORES),
        pa.Table.from_pylist(_bias(drawn, scores), BIAS),
        {**names, "mask": MASK, "contents": contents, "seed": seed},
    )
    return read_crawl(crawl.folder)


def _all(scorer: SentenceScorer, texts: Sequence[str]) -> dict[str, SentenceScore]:
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, scorer.score(distinct), strict=True))


def _label(scored: SentenceScore) -> str | None:
    return max(scored.values, key=lambda label: scored.values[label]) if scored.status == "ok" else None


def _row(triple: Mapping[Hashable, object], masked: str, scores: Mapping[str, Mapping[str, SentenceScore]]) -> TableRow:
    text = str(triple["text"])
    row: TableRow = {name: triple[name] for name in ("kind", "identity", "run", "step")}
    faults = {
        f"{name}: {answers[sentence].status}"
        for name, answers in scores.items()
        for sentence in (text, masked)
        if answers[sentence].status != "ok"
    }
    if "regard" in scores:
        own = scores["regard"][text]
        row |= {"regard": _label(own), "regard_masked": _label(scores["regard"][masked])}
        row |= {f"p_{name}": own.values.get(name) for name in ("positive", "negative")}
    if "attack" in scores:
        row |= {"attack": scores["attack"][text].values.get("attack")}
        row |= {"attack_masked": scores["attack"][masked].values.get("attack")}
    return {**row, "status": "; ".join(sorted(faults)) or "ok"}


def _contents(triples: pd.DataFrame, n: int, seed: int) -> list[tuple[str, str, int, str]]:
    """Draw contents of each class; return (class, identity or `MASK`, content, sentence) for each of its identities."""
    drawn = []
    for kind, rows in triples.groupby("kind", sort=True):
        contents = sorted(set(zip(rows["predicate"], rows["object"])))
        names = [MASK, *sorted(rows["identity"].unique())]
        for number, (predicate, thing) in enumerate(
            random.Random(seed).sample(contents, min(n, len(contents)) if n else len(contents))
        ):
            drawn += [(str(kind), name, number, f"{name} {predicate} {thing}") for name in names]
    return drawn


def _bias(
    drawn: Sequence[tuple[str, str, int, str]], scores: Mapping[str, Mapping[str, SentenceScore]]
) -> list[TableRow]:
    rows = []
    for scorer, answers in scores.items():
        values = {(k, name, c): _value(scorer, answers[text]) for k, name, c, text in drawn}
        for (kind, name, content), value in values.items():
            base = values[kind, MASK, content]
            if name != MASK and value is not None and base is not None:
                change = value - base
                rows.append({"kind": kind, "identity": name, "scorer": scorer, "content": content, "change": change})
    return rows


def _value(scorer: str, scored: SentenceScore) -> float | None:
    if scored.status != "ok":
        return None
    return VALUE[_label(scored) or "other"] if scorer == "regard" else scored.values["attack"]
