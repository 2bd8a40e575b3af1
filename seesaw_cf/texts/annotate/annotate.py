"""Does a passage support a claim, contradict it, or say nothing about it? One interface, several annotators."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.leme_annotation import LABELS, sentences
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.learned import LEFT_OUT, digest, learned_of
from seesaw_cf.texts.tables import ANNOTATIONS
from seesaw_cf.texts.write.claims import ClaimPair

Pair = tuple[str, str]
"""A premise and a claim."""
_NAN = float("nan")

_WORD = re.compile(r"\w+")
# Function words of English, and of other languages in Latin letters. A broken model's "Boston Boston" has neither and
# is no foreign language.
_ENGLISH = frozenset(
    _WORD.findall("the and of to for with by his her that from which as it he she they this were has was is are")
)
_OTHER = frozenset(
    _WORD.findall(
        "le les des du et est une dans pour qui que el los las y en un una por con del es der die das und ist nicht "
        "mit von den ein eine het een van niet met il di che per non gli och att som det ett er og til om os na uma "
        "para com w z nie jest je se ve bir bu ile dan yang di adalah"
    )
)
_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class Judgement:
    """An annotator's answer about one pair.

    Attributes:
        label: One of `LABELS`; "" unless `status` is "ok".
        probabilities: Of `LABELS`, in that order; NaN where the annotator has none.
        evidence: Sentences of the premise that carry the label; none for "neutral".
        reply: The raw words of an annotator that writes.
        status: "ok", or the reason for no label.
    """

    label: str
    probabilities: tuple[float, float, float] = (_NAN, _NAN, _NAN)
    evidence: tuple[str, ...] = ()
    reply: str = ""
    status: str = "ok"


class Annotator(Protocol):
    """What classifies pairs of premise and claim."""

    @property
    def name(self) -> str:
        """Name the annotator and everything that changes its labels."""

    def classify(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return one judgement per (premise, claim), in order."""


def foreign(text: str) -> str:
    """Return why a text reads like a language other than English; "" when it does not."""
    letters = [char for char in text if char.isalpha()]
    if letters and sum(char.isascii() for char in letters) < len(letters) / 2:
        return "most of its letters are not Latin"
    words = [word.lower() for word in _WORD.findall(text)]
    english, other = (sum(word in vocabulary for word in words) for vocabulary in (_ENGLISH, _OTHER))
    if other > english and other >= _SHARE * len(words):
        return f"{other} of {len(words)} words are common in other languages, {english} in English"
    return ""


def with_evidence(pairs: Sequence[Pair], chances: Floats, alone: Callable[[Sequence[Pair]], Floats]) -> list[Judgement]:
    """Return the likeliest label of each pair, with the sentences that carry it when read alone.

    Args:
        pairs: (premise, claim).
        chances: (n, 3) probabilities of `LABELS`.
        alone: (sentence, claim) pairs -> their probabilities.
    """
    labels = [LABELS[place] for place in chances.argmax(axis=1)]
    parts = [sentences(premise) if label != "neutral" else [] for (premise, _), label in zip(pairs, labels)]
    questions = list(dict.fromkeys((row, claim) for rows, (_, claim) in zip(parts, pairs) for row in rows))
    by_question = dict(zip(questions, alone(questions) if questions else ()))
    judgements = []
    for (_, claim), label, row, rows in zip(pairs, labels, chances.tolist(), parts, strict=True):
        carried = [float(by_question[part, claim][LABELS.index(label)]) for part in rows]
        least = min(0.5, max(carried, default=0.5))
        evidence = tuple(part for part, p in zip(rows, carried) if p >= least)
        judgements.append(Judgement(label, (row[0], row[1], row[2]), evidence))
    return judgements


def annotate(pairs: Sequence[ClaimPair], annotator: Annotator) -> pa.Table:
    """Annotate pairs.

    Args:
        pairs: From `claim_pairs`.
        annotator: Who classifies; equal (premise, claim) are asked once.

    Returns:
        `tables.ANNOTATIONS`, one row per pair in order. Rows without status "ok" have no label; passages in
        another language, and those that the annotator was trained on, are such rows.

    Source: LEME, section 3.3.
    """
    learned, premises = learned_of(annotator), {pair.premise for pair in pairs}
    reasons = {text: _left_out(text, learned) for text in premises}
    statuses = [reasons[pair.premise] if pair.status == "ok" else pair.status for pair in pairs]
    questions = list(dict.fromkeys((p.premise, p.claim) for p, status in zip(pairs, statuses) if status == "ok"))
    judgements = dict(zip(questions, annotator.classify(questions), strict=True))
    rows = [
        _row(
            pair,
            annotator.name,
            judgements[pair.premise, pair.claim] if status == "ok" else Judgement("", status=status),
        )
        for pair, status in zip(pairs, statuses)
    ]
    return pa.Table.from_pylist(rows, schema=ANNOTATIONS)


def _left_out(premise: str, learned: frozenset[str]) -> str:
    """Return why a passage is not annotated; "ok" when it is."""
    if digest(premise) in learned:
        return LEFT_OUT
    why = foreign(premise)
    return f"the passage is not English: {why}" if why else "ok"


def _row(pair: ClaimPair, name: str, judgement: Judgement) -> TableRow:
    own = {key: getattr(pair, key) for key in ANNOTATIONS.names if hasattr(pair, key) and key != "status"}
    chances = {f"p_{label}": p if p == p else None for label, p in zip(LABELS, judgement.probabilities)}
    return own | chances | {
        "annotator": name,
        "label": judgement.label if judgement.status == "ok" else None,
        "evidence": list(judgement.evidence),
        "reply": judgement.reply,
        "status": judgement.status,
    }  # fmt: skip
