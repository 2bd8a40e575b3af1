"""The tables of a stereotype graph. Everything after the crawl is a function of them."""

from __future__ import annotations

from typing import TypedDict

from seesaw_cf.base.tables import Int32, schema_of


class _CrawlRow(TypedDict):
    """What a row of a crawl begins with."""

    kind: str  # protected class
    identity: str
    run: Int32  # which independent repetition of the crawl
    step: Int32


class CompletionRow(_CrawlRow):
    """A row of `COMPLETIONS`: everything a model wrote, one row per ask.

    strategy: "start" (the template of section 2, with a start predicate), "object" (Table 1, object diversity: the
    predicate is given, from an earlier triple) or "predicate" (Table 1, predicate diversity: the model chooses it).
    predicate: what was given, None when the model was to choose. verdict: "kept", or why it is not a triple. status:
    "ok" or why the text is missing.
    """

    attempt: Int32
    strategy: str
    predicate: str | None
    prompt: str
    seed: int
    text: str
    finish: str
    status: str
    prompt_tokens: Int32 | None
    new_tokens: Int32 | None
    verdict: str
    found_predicate: str
    found_object: str


class _TripleRow(_CrawlRow):
    """A row of `TRIPLES`: an edge of the graph with where it came from; text is what scorers see."""

    attempt: Int32
    strategy: str
    predicate: str
    object: str
    text: str
    prompt: str
    seed: int
    model: str


class _ScoreRow(_CrawlRow):
    """A row of `SCORES`: one per triple, in the order of `TRIPLES`.

    regard: "positive", "negative", "neutral", "other". attack: 0..1. *_masked: the same sentence about "Some people".
    None where a scorer was not used or gave nothing (status holds the reason).
    """

    regard: str | None
    p_positive: float | None
    p_negative: float | None
    regard_masked: str | None
    attack: float | None
    attack_masked: float | None
    status: str


class _BiasRow(TypedDict):
    """A row of `BIAS`: the scorers themselves, one sentence about every identity of its class.

    content: number of the sentence. change: score with this identity minus score with "Some people"; regard counts
    positive as 1, negative as -1.
    """

    kind: str
    identity: str
    scorer: str  # "regard" or "attack"
    content: Int32
    change: float


COMPLETIONS = schema_of(CompletionRow)
TRIPLES = schema_of(_TripleRow)
SCORES = schema_of(_ScoreRow)
BIAS = schema_of(_BiasRow)
