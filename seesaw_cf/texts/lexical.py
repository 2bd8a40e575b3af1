"""A classifier of claims that reads words only: a baseline, and something to run where no model is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seesaw_cf.effects.texts import sentences
from seesaw_cf.texts.claims import ClaimPair, Judgement
from seesaw_cf.texts.judge import Answer, Instrument

_WORD = re.compile(r"\w+")
_STOP = frozenset(
    _WORD.findall(
        "a an the of in on at to is was are were be been by for with and or from as its his her their it he she they "
        "that this which who has have had not no"
    )
)
_STEM = 5  # words that agree in their first letters count as one


class Lexical:
    """Classifier of claims that anybody can follow by hand.

    A passage supports a claim when one of its sentences holds half of the content words of one of the claim's values.
    Otherwise it contradicts the claim when one of its sentences holds half of the words of the relation ("place of
    birth"), and is neutral when none does. Words are compared by their first five letters.
    """

    name = "lexical"
    kinds = ("claims",)
    source = ""
    learned: frozenset[str] = frozenset()

    def classify(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """Return one judgement per (premise, claim), without probabilities."""
        return [_judge_words(premise, claim) for premise, claim in pairs]

    def answer(self, instrument: Instrument[Any], questions: Sequence[ClaimPair]) -> list[Answer]:
        """Return one answer per claim."""
        return [Answer(judgement) for judgement in self.classify([(q.premise, q.claim) for q in questions])]


def _judge_words(premise: str, claim: str) -> Judgement:
    parts, rows = claim_parts(claim), sentences(premise)
    carrying = [row for row in rows if any(known_share(value, _stems(row)) >= 0.5 for value in parts.values)]
    if carrying:
        return Judgement("supports", evidence=tuple(carrying))
    near = [row for row in rows if known_share(parts.relation, _stems(row)) >= 0.5]
    return Judgement("contradicts", evidence=tuple(near)) if near else Judgement("neutral")


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
    values = tuple(part for part in " ".join(words[stop:]).split(", ") if _content(part))
    return ClaimParts(" ".join(words[:start]), " ".join(words[start:stop]), values)


def _stems(text: str) -> set[str]:
    return {word.lower()[:_STEM] for word in _WORD.findall(text)}


def known_share(text: str, vocabulary: set[str]) -> float:
    """Return the share of a text's content words that are known; 0 without any."""
    words = _content(text)
    return sum(word in vocabulary for word in words) / len(words) if words else 0.0


def _content(text: str) -> list[str]:
    return [word.lower()[:_STEM] for word in _WORD.findall(text) if word.lower() not in _STOP]
