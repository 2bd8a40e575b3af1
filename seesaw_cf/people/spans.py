"""Stretches of a passage by their characters: its sentences, its words, and what a rater marked.

A stretch is (start, end): Unicode characters from 0, the end not included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from seesaw_cf.effects.leme_annotation import sentences

Span = tuple[int, int]
_WORD = re.compile(r"\S+")
_SAID = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


def sentence_spans(text: str) -> list[Span]:
    """The sentences of a text."""
    found, at = [], 0
    for one in sentences(text):
        start = text.index(one, at)
        at = start + len(one)
        found.append((start, at))
    return found


def word_spans(text: str, span: Span) -> list[Span]:
    """The words of a stretch: what stands between white space."""
    return [found.span() for found in _WORD.finditer(text, *span)]


def read_spans(text: str, said: Iterable[str]) -> list[Span]:
    """Stretches that a form names "START-END", in order; those that overlap become one.

    Args:
        text: The passage.
        said: What does not begin and end with a word of it is left out.
    """
    words = word_spans(text, (0, len(text)))
    starts, ends = ({word[side] for word in words} for side in (0, 1))
    pairs = ((int(one[1]), int(one[2])) for one in map(_SAID.fullmatch, said) if one)
    found: list[Span] = []
    for start, end in sorted(pair for pair in pairs if pair[0] < pair[1]):
        if start not in starts or end not in ends:
            continue
        if found and start < found[-1][1]:
            start, end = found[-1][0], max(end, found.pop()[1])
        found.append((start, end))
    return found


def marked(text: str, said: Mapping[str, Any]) -> list[Span]:
    """Everything that an answer about a claim marks, in order: whole sentences, and words."""
    known = sentence_spans(text)
    return sorted({*(known[number - 1] for number in said["sentences"]), *map(tuple, said.get("spans", ()))})
