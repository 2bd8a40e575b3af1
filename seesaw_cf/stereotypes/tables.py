"""The tables of a stereotype graph. Everything after the crawl is a function of them."""

from __future__ import annotations

from typing import TypedDict

import pyarrow as pa

__all__ = ["BIAS", "COMPLETIONS", "SCORES", "TRIPLES", "CompletionRow"]

_PLACE = [
    ("kind", pa.string()),  # protected class
    ("identity", pa.string()),
    ("run", pa.int32()),  # which independent repetition of the crawl
    ("step", pa.int32()),
]

# Everything a model wrote, one row per ask. predicate: what was given, null when the model was to choose.
# verdict: "kept", or why this is no triple. status: "ok" or why there is no text.
COMPLETIONS: pa.Schema = pa.schema(
    [
        *_PLACE,
        ("attempt", pa.int32()),
        ("strategy", pa.string()),
        ("predicate", pa.string()),
        ("prompt", pa.string()),
        ("seed", pa.int64()),
        ("text", pa.string()),
        ("finish", pa.string()),
        ("status", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("new_tokens", pa.int32()),
        ("verdict", pa.string()),
        ("found_predicate", pa.string()),
        ("found_object", pa.string()),
    ]
)


class CompletionRow(TypedDict):
    """One row of `COMPLETIONS`."""

    kind: str
    identity: str
    run: int
    step: int
    attempt: int
    strategy: str
    predicate: str | None
    prompt: str
    seed: int
    text: str
    finish: str
    status: str
    prompt_tokens: int | None
    new_tokens: int | None
    verdict: str
    found_predicate: str
    found_object: str


# The graph's edges with where each came from; text is what scorers see.
TRIPLES: pa.Schema = pa.schema(
    [
        *_PLACE,
        ("attempt", pa.int32()),
        ("strategy", pa.string()),
        ("predicate", pa.string()),
        ("object", pa.string()),
        ("text", pa.string()),
        ("prompt", pa.string()),
        ("seed", pa.int64()),
        ("model", pa.string()),
    ]
)

# One row per triple, in the order of TRIPLES. regard: "positive", "negative", "neutral", "other"; attack: 0..1;
# *_masked: the same sentence about "Some people". Null where a scorer was not used or gave nothing (status says why).
SCORES: pa.Schema = pa.schema(
    [
        *_PLACE,
        ("regard", pa.string()),
        ("p_positive", pa.float64()),
        ("p_negative", pa.float64()),
        ("regard_masked", pa.string()),
        ("attack", pa.float64()),
        ("attack_masked", pa.float64()),
        ("status", pa.string()),
    ]
)

# The scorers themselves: one sentence, said of every identity of its class. content: number of the sentence.
# change: score with this identity minus score with "Some people"; regard counts positive as 1, negative as -1.
BIAS: pa.Schema = pa.schema(
    [
        ("kind", pa.string()),
        ("identity", pa.string()),
        ("scorer", pa.string()),  # "regard" or "attack"
        ("content", pa.int32()),
        ("change", pa.float64()),
    ]
)
