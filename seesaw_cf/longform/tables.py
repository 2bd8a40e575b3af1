"""The tables of long form: passages, survey ratings, annotations and flaws. Everything after a model has written, or a
rater has rated, is a function of them."""

from __future__ import annotations

from typing import TypedDict

import pyarrow as pa

__all__ = ["ANNOTATIONS", "FLAWS", "PASSAGES", "RATINGS", "FlawRow", "PassageRow", "SampleRow"]

_SAMPLE = [
    ("editor", pa.string()),  # "memit", ...; "none" for the unedited model; "human" for written baselines
    ("case_id", pa.int64()),
    ("relation", pa.string()),  # relation_id of the edit
    ("phase", pa.string()),  # "pre" or "post"
    ("sample", pa.int32()),  # which of the n samples of a prompt
]

# passage: "subject" or "related" (LEME), "guided" or "free" (open-ended descriptions).
# edit_kind: "injection" (the model did not hold the old fact), "updating", "correction" or "" (not told apart).
# status: "ok" or why there is no text; rows without text stay.
PASSAGES: pa.Schema = pa.schema(
    [
        *_SAMPLE,
        ("passage", pa.string()),
        ("prompt_id", pa.int32()),
        ("entity_id", pa.string()),
        ("entity", pa.string()),
        ("prompt", pa.string()),
        ("seed", pa.int64()),
        ("text", pa.string()),
        ("finish", pa.string()),
        ("new_tokens", pa.int32()),
        ("status", pa.string()),
    ]
)

# item: one of the nine of LEME's Appendix D; rating: 1-7, null when `status` is not "ok"; reply: the rater's raw words.
RATINGS: pa.Schema = pa.schema(
    [
        *_SAMPLE,
        ("item", pa.string()),
        ("rater", pa.string()),
        ("rating", pa.float64()),
        ("reply", pa.string()),
        ("status", pa.string()),
        ("tries", pa.int32()),
        ("prompt_tokens", pa.int32()),
        ("new_tokens", pa.int32()),
    ]
)

# claim_kind: "new_fact", "old_fact" or "ground_truth"; label: "supports", "neutral" or "contradicts", null unless
# status is "ok". evidence: sentences of the passage that carry the label.
ANNOTATIONS: pa.Schema = pa.schema(
    [
        *_SAMPLE,
        ("passage", pa.string()),
        ("claim_kind", pa.string()),
        ("claim_id", pa.string()),
        ("claim", pa.string()),
        ("annotator", pa.string()),
        ("label", pa.string()),
        ("p_supports", pa.float64()),
        ("p_neutral", pa.float64()),
        ("p_contradicts", pa.float64()),
        ("evidence", pa.list_(pa.string())),
        ("reply", pa.string()),
        ("status", pa.string()),
    ]
)

# One judgement of one flaw on one pair of texts. first: which text the rater saw first, "pre" or "post".
# change: -1 the flaw is less after the edit, 0 the same, 1 more; null when status is not "ok".
FLAWS: pa.Schema = pa.schema(
    [
        ("pair_id", pa.string()),
        ("editor", pa.string()),
        ("case_id", pa.int64()),
        ("relation", pa.string()),
        ("entity_id", pa.string()),
        ("entity", pa.string()),
        ("pre", pa.string()),
        ("post", pa.string()),
        ("flaw", pa.string()),
        ("rater", pa.string()),
        ("first", pa.string()),
        ("change", pa.int8()),
        ("quote", pa.string()),
        ("reply", pa.string()),
        ("status", pa.string()),
    ]
)


class SampleRow(TypedDict):
    """What a row of `PASSAGES`, `RATINGS` and `ANNOTATIONS` begins with: which text of which edit."""

    editor: str
    case_id: int
    relation: str
    phase: str
    sample: int


class PassageRow(SampleRow):
    """A row of `PASSAGES`."""

    passage: str
    prompt_id: int
    entity_id: str | None
    entity: str
    prompt: str
    seed: int
    text: str | None
    finish: str
    new_tokens: int | None
    status: str


class FlawRow(TypedDict):
    """A row of `FLAWS`."""

    pair_id: str
    editor: str
    case_id: int
    relation: str
    entity_id: str | None
    entity: str
    pre: str
    post: str
    flaw: str
    rater: str
    first: str
    change: int | None
    quote: str
    reply: str
    status: str
