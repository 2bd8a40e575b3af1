"""What a premise and a claim share: words, values, and vectors of a frozen encoder, as a few dozen numbers.

Nothing here knows which kind of claim it is or which method wrote the passage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.longform.annotate.embed import TextVectors
from seesaw_cf.stats.bootstrap import Floats

_WORD = re.compile(r"\w+")
_STOP = frozenset(
    _WORD.findall(
        "a an the of in on at to is was are were be been by for with and or from as its his her their it he she they "
        "that this which who has have had not no"
    )
)
NEGATION = frozenset(
    _WORD.findall("not never no none neither nor without however instead rather although despite contrary")
)
FRESH = re.compile(r"(?<!^)\b[A-Z]\w+|\d+")  # names (capitals inside a sentence) and numbers
STEM = 5  # words that agree in their first letters count as one


@dataclass(frozen=True, slots=True)
class ClaimParts:
    """A claim such as "Olu Dara place of birth Natchez" taken apart by its capitals.

    Attributes:
        subject: The leading run of capitalised words.
        relation: The lower-case words after it.
        values: What follows, cut at commas; the last word when everything is lower case.
    """

    subject: str
    relation: str
    values: tuple[str, ...]


def stems(text: str) -> set[str]:
    """Return the first five letters of each word, lower case."""
    return {word.lower()[:STEM] for word in _WORD.findall(text)}


def content(text: str) -> list[str]:
    """Stems of the words other than function words, in order."""
    return [word.lower()[:STEM] for word in _WORD.findall(text) if word.lower() not in _STOP]


def claim_parts(claim: str) -> ClaimParts:
    """Take a claim apart."""
    words = claim.split()

    def capital(i: int) -> bool:
        return i < len(words) and (words[i][0].isupper() or words[i][0].isdigit())

    start = 0
    while capital(start) or (start and start < len(words) and words[start].lower() in _STOP and capital(start + 1)):
        start += 1
    if start == len(words):
        start = max(1, start - 1)
    stop = start
    while stop < len(words) and not capital(stop):
        stop += 1
    if stop >= len(words):
        stop = max(start, len(words) - 1)
    values = tuple(part for part in " ".join(words[stop:]).split(", ") if content(part))
    return ClaimParts(" ".join(words[:start]), " ".join(words[start:stop]), values)


def known_share(text: str, vocabulary: set[str]) -> float:
    """Share of a text's content words that are known; 0 without any."""
    words = content(text)
    return sum(word in vocabulary for word in words) / len(words) if words else 0.0


def features(premise: str, claim: str, vectors: Mapping[str, TextVectors]) -> dict[str, float]:
    """Return the numbers.

    Args:
        premise, claim: The pair; neither empty.
        vectors: Of the premise, of each of its `sentences`, and of the claim.

    Returns:
        Name -> value, the same names in the same order for every pair.
    """
    parts, rows = claim_parts(claim), sentences(premise) or [premise]
    vocabulary = stems(premise)
    cosine = np.stack([vectors[row].whole for row in rows]) @ vectors[claim].whole
    # (sentences, tokens of the claim): how near the nearest token of the sentence is to each token of the claim.
    near = np.stack([(vectors[claim].tokens @ vectors[row].tokens.T).max(axis=1) for row in rows])
    best = int(near.mean(axis=1).argmax())
    holding = np.array([_held(parts, stems(row)) > 0.99 for row in rows])
    return {
        **_lexical(parts, claim, vocabulary),
        **{f"soft_{name}": value for name, value in _soft(near.max(axis=0)).items()},
        **{f"best_{name}": value for name, value in _soft(near[best]).items()},
        **_best_sentence(parts, claim, rows[best]),
        **_cosines(cosine, float(vectors[premise].whole @ vectors[claim].whole)),
        "cosine_with_value": float(cosine[holding].max(initial=0.0)),
        "cosine_without_value": float(cosine[~holding].max(initial=0.0)),
        "sentences": float(np.log(len(rows))),
        "claim_words": float(np.log1p(len(content(claim)))),
    }


def _held(parts: ClaimParts, vocabulary: set[str]) -> float:
    return max((known_share(value, vocabulary) for value in parts.values), default=0.0)


def _lexical(parts: ClaimParts, claim: str, vocabulary: set[str]) -> dict[str, float]:
    words = content(claim) or [""]
    hits = np.array([word in vocabulary for word in words], dtype=np.float64)
    subject = stems(parts.subject)
    rest = [word in vocabulary for word in words if word not in subject]
    each = [known_share(value, vocabulary) for value in parts.values] or [0.0]
    return {
        "words": float(hits.mean()),
        "words_late": _late(hits),
        "words_missing": float(np.log1p((1 - hits).sum())),
        "last_word": float(hits[-1]),
        "words_beside_subject": float(np.mean(rest)) if rest else 1.0,
        "subject": known_share(parts.subject, vocabulary),
        "relation": known_share(parts.relation, vocabulary),
        "value_first": each[0],
        "value_best": max(each),
        "value_mean": float(np.mean(each)),
        "values": float(np.log(len(each))),
        "value_in_subject": known_share(" ".join(parts.values), subject),
    }


def _late(values: Floats) -> float:
    """Mean with weights that grow along the claim: its value comes last."""
    weights = np.linspace(0.0, 1.0, values.size) if values.size > 1 else np.ones(1)
    return float(values @ weights / weights.sum())


def _soft(near: Floats) -> dict[str, float]:
    tail = near[-3:].mean()
    numbers = {"mean": near.mean(), "least": near.min(), "last": near[-1], "tail": tail, "late": _late(near)}
    return {name: float(value) for name, value in numbers.items()}


def _best_sentence(parts: ClaimParts, claim: str, sentence: str) -> dict[str, float]:
    vocabulary, claim_words = stems(sentence), set(content(claim))
    fresh = [word for word in FRESH.findall(sentence) if word.lower()[:STEM] not in claim_words]
    return {
        "best_words": known_share(claim, vocabulary),
        "best_value": _held(parts, vocabulary),
        "best_relation": known_share(parts.relation, vocabulary),
        "best_other_names": float(np.log1p(len(fresh))),
        "best_other_numbers": float(any(word.isdigit() for word in fresh)),
        "best_negation": float(any(word.lower() in NEGATION for word in _WORD.findall(sentence))),
    }


def _cosines(cosine: Floats, whole: float) -> dict[str, float]:
    first, second = np.sort(np.append(cosine, cosine.min()))[::-1][:2]
    mean = float(cosine.mean())
    return {"cosine": float(first), "cosine_second": float(second), "cosine_mean": mean, "cosine_gap": first - mean,
            "cosine_whole": whole}  # fmt: skip
