"""Texts before and after an edit side by side: words that changed, and passages that something points at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import ClassVar

from seesaw_cf.report.html.findings import Part

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_WORD = re.compile(r"\S+")
_LONGEST = 12_000  # characters of a text that are shown
_COMPARED = 2_500  # words of a text that are compared
MARKS: Mapping[str, str] = {"quote": "", "supports": "\u2713", "contradicts": "\u2717"}
"""What is said of words -> its sign, so that no colour is needed. Where two overlap the later one shows."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Found:
    """Words of a text that something points at: the words, one of `MARKS`, and what stands behind them ("2")."""

    words: str
    mark: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text: whether it is only on this side, how it is marked, and what stands behind it."""

    text: str
    changed: bool = False
    mark: str = ""
    notes: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two texts in pieces, and what a reader must know of them ("" for nothing)."""

    title: str
    before: Sequence[Piece]
    after: Sequence[Piece]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """What was written about one edit: texts, who and what, and tables."""

    title: str
    about: str
    texts: Sequence[TextPair]
    tables: Sequence[Part] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Texts:
    """Pairs below each other; each is folded when there are several."""

    kind: ClassVar[str] = "texts"
    pairs: Sequence[Pair]


def compared(
    title: str, before: str | None, after: str | None, findings: tuple[Iterable[Found], Iterable[Found]] = ((), ())
) -> TextPair:
    """Compare two texts word by word.

    Args:
        title: Above them.
        before, after: The texts; None where there is none.
        findings: What points at words of the first, and of the second; words that are not there are left out.

    Returns:
        Pieces that add up to the texts, control characters as spaces, each text cut at 12,000 characters. Texts of more
        than 2,500 words are not compared. The note tells so, and what was cut.
    """
    cleaned = [_CONTROL.sub(" ", text or "") for text in (before, after)]
    notes = [
        f"{len(text) - _LONGEST:,} characters at the end of the text {when} the edit are not shown."
        for text, when in zip(cleaned, ("before", "after"))
        if len(text) > _LONGEST
    ]
    cut = [f"{text[:_LONGEST]}\u2026" if len(text) > _LONGEST else text for text in cleaned]
    changed: tuple[list[Span], list[Span]] = ([], [])
    if before is None or after is None:
        notes.append(f"There is no text {'before' if before is None else 'after'} the edit.")
    elif max(len(_WORD.findall(text)) for text in cut) > _COMPARED:
        notes.append("The texts are too long to be compared word by word.")
    else:
        changed = _changes(*cut)
    sides = [_pieces(text, spans, marks) for text, spans, marks in zip(cut, changed, findings, strict=True)]
    return TextPair(title, sides[0], sides[1], " ".join(notes))


def _changes(before: str, after: str) -> tuple[list[Span], list[Span]]:
    """Return the stretches that only one of two texts has."""
    words = [list(_WORD.finditer(text)) for text in (before, after)]
    first_words, then_words = ([word[0] for word in text] for text in words)
    matcher = SequenceMatcher(a=first_words, b=then_words)
    spans: tuple[list[Span], list[Span]] = ([], [])
    for tag, *ends in matcher.get_opcodes():
        if tag != "equal":
            for side, (first, last) in enumerate((ends[:2], ends[2:])):
                if first < last:
                    spans[side].append((words[side][first].start(), words[side][last - 1].end()))
    return spans


def _pieces(text: str, changed: Sequence[Span], findings: Iterable[Found]) -> list[Piece]:
    """Cut the text wherever something begins or ends; where two marks overlap the stronger sign is shown."""
    marks = []
    for finding in findings:
        words = _CONTROL.sub(" ", finding.words).strip()
        start = text.find(words) if words else -1
        if start >= 0:
            marks.append(((start, start + len(words)), finding))
    ends = {0, len(text), *(end for span in changed for end in span), *(end for span, _ in marks for end in span)}
    cuts = sorted(ends)
    pieces = []
    for start, end in pairwise(cuts):
        over = [finding for (first, last), finding in marks if first <= start and end <= last]
        mark = max((finding.mark for finding in over), key=list(MARKS).index, default="")
        notes = [f"{MARKS[finding.mark]}{finding.note}" for (_, last), finding in marks if last == end and finding.note]
        inside = any(first <= start and end <= last for first, last in changed)
        pieces.append(Piece(text[start:end], inside, mark, notes))
    return pieces
