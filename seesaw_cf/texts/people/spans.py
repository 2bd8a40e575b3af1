"""Stretches of a passage by their characters: its sentences, its words, and what a rater marked.

A stretch is (start, end): Unicode characters from 0, the end not included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.texts.people.study import Answer

Span = tuple[int, int]
_WORD = re.compile(r"\S+")
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


def sentence_spans(text: str) -> list[Span]:
    """Return the sentences of a text."""
    spans, at = [], 0
    for sentence in sentences(text):
        start = text.index(sentence, at)
        at = start + len(sentence)
        spans.append((start, at))
    return spans


def word_spans(text: str, span: Span) -> list[Span]:
    """Return the words of a stretch: what stands between white space."""
    return [match.span() for match in _WORD.finditer(text, *span)]


def read_spans(text: str, fields: Iterable[str]) -> list[Span]:
    """Read stretches that a form names "START-END", in order; those that overlap become one.

    Args:
        text: The passage.
        fields: What does not begin and end with a word of it is left out.
    """
    words = word_spans(text, (0, len(text)))
    starts, ends = ({word[side] for word in words} for side in (0, 1))
    pairs = ((int(match[1]), int(match[2])) for match in map(_RANGE.fullmatch, fields) if match)
    spans: list[Span] = []
    for start, end in sorted(pair for pair in pairs if pair[0] < pair[1]):
        if start not in starts or end not in ends:
            continue
        if spans and start < spans[-1][1]:
            start, end = spans[-1][0], max(end, spans.pop()[1])
        spans.append((start, end))
    return spans


def marked(text: str, answer: Answer) -> list[Span]:
    """Return everything that an answer about a claim marks, in order: whole sentences, and words."""
    numbered = sentence_spans(text)
    return sorted({*(numbered[number - 1] for number in answer["sentences"]), *map(tuple, answer.get("spans", ()))})
