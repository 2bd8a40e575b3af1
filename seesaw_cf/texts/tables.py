"""The tables of long form: passages, survey ratings, annotations, failure modes and flaws. Everything after a model has
written, or a rater has rated, is a function of them."""

from __future__ import annotations

from typing import TypedDict

from seesaw_cf.base.tables import Int8, Int32, schema_of


class SampleRow(TypedDict):
    """What a row of `PASSAGES`, `RATINGS` and `ANNOTATIONS` begins with: which text of which edit."""

    editor: str  # "memit", ...; "none" for the unedited model; "human" for written baselines
    case_id: int
    relation: str  # relation_id of the edit
    phase: str  # "pre" or "post"
    sample: Int32  # which of the n samples of a prompt


class PassageRow(SampleRow):
    """A row of `PASSAGES`.

    passage: "subject" or "related" (LEME), "guided" or "free" (open-ended descriptions). status: "ok" or why there is
    no text; rows without text stay.
    """

    passage: str
    prompt_id: Int32
    entity_id: str | None
    entity: str
    prompt: str
    seed: int
    text: str | None
    finish: str
    new_tokens: Int32 | None
    status: str


class RatingRow(SampleRow):
    """A row of `RATINGS`.

    item: one of the nine of LEME's Appendix D. rating: 1-7, None when `status` is not "ok". reply: the rater's own
    words.
    """

    item: str
    rater: str
    rating: float | None
    reply: str
    status: str
    tries: Int32
    prompt_tokens: Int32 | None
    new_tokens: Int32 | None


class AnnotationRow(SampleRow):
    """A row of `ANNOTATIONS`.

    claim_kind: "new_fact", "old_fact" or "ground_truth". label: "supports", "neutral" or "contradicts", None unless
    `status` is "ok". evidence: stretches of the passage, mostly sentences, that carry the label.
    """

    passage: str
    claim_kind: str
    claim_id: str
    claim: str
    annotator: str
    label: str | None
    p_supports: float | None
    p_neutral: float | None
    p_contradicts: float | None
    evidence: list[str]
    reply: str
    status: str


class FailureRow(SampleRow):
    """A row of `FAILURES`: whether a rater finds one of LEME's failure modes in the two passages of a sample.

    mode: one of `effects.instruments.FAILURE_MODES`. present: None when `status` is not "ok".
    """

    mode: str
    rater: str
    present: bool | None
    comment: str
    status: str


class FlawRow(TypedDict):
    """A row of `FLAWS`: one judgement of one flaw on one pair of texts.

    first: which text the rater saw first, "pre" or "post". change: -1 the flaw is less after the edit, 0 the same, 1
    more; None when `status` is not "ok".
    """

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
    change: Int8 | None
    quote: str
    reply: str
    status: str


class ReflectedRow(TypedDict):
    """A row of `REFLECTED`.

    reflected: "yes", "no", "unsure" or None: whether a text states the edit. comment: in the rater's words.
    """

    pair_id: str
    editor: str
    case_id: int
    relation: str
    entity: str
    rater: str
    reflected: str | None
    comment: str


class CallRow(TypedDict):
    """What a row of `CALLS` ends with: the whole request to a judge, and its reply."""

    prompt: str
    temperature: float
    seed: int
    reply: str
    status: str
    prompt_tokens: Int32 | None
    new_tokens: Int32 | None


class _CallOf(TypedDict):
    """What a row of `CALLS` begins with: which question, and which try, from 1."""

    kind: str  # "survey", "claims" or "flaws"
    question: str
    rater: str
    attempt: Int32


class EditRow(TypedDict):
    """A row of `EDITS`: what became of an edit.

    dataset: format and kind of its record, such as "zsre factual"; "" without a related entity. delta_norm: Frobenius
    norm of the change of all weights, None without one. demonstrations: how many in-context editing showed, None for
    other editors.
    """

    editor: str
    case_id: int
    relation: str
    subject: str
    target_new: str
    target_true: str
    status: str
    delta_norm: float | None
    demonstrations: Int32 | None
    dataset: str | None


PASSAGES = schema_of(PassageRow)
RATINGS = schema_of(RatingRow)
ANNOTATIONS = schema_of(AnnotationRow)
FAILURES = schema_of(FailureRow)
FLAWS = schema_of(FlawRow)
REFLECTED = schema_of(ReflectedRow)
EDITS = schema_of(EditRow)
CALLS = schema_of(_CallOf, CallRow)
