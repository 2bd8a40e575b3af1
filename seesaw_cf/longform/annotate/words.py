"""The trained annotator that needs no encoder: what premise and claim share in words, as numbers, for a forest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.longform.annotate.features import FRESH, NEGATION, STEM, ClaimParts, claim_parts, content
from seesaw_cf.longform.annotate.relations import LABELS_SAID, PEOPLES
from seesaw_cf.stats.bootstrap import Floats

_WORD = re.compile(r"\w+")
_MEN = frozenset(_WORD.findall("he him his himself man men boy son father brother husband king actor"))
_WOMEN = frozenset(_WORD.findall("she her hers herself woman women girl daughter mother sister wife queen actress"))
_COUNTRY = {people[:STEM]: country[:STEM] for people, country in PEOPLES.items()}
_LABEL_WORDS = {label: frozenset(content(f"{label} {words}")) for label, words in LABELS_SAID.items()}
_BY_LENGTH = sorted(LABELS_SAID, key=len, reverse=True)


def _stem(word: str) -> str:
    stem = word.lower()[:STEM]
    return _COUNTRY.get(stem, stem)


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text)}


def _words(text: str) -> list[str]:
    """Content words as stems, in order; peoples count as their countries."""
    return [_COUNTRY.get(word, word) for word in content(text)]


def _share(words: Sequence[str], vocabulary: set[str]) -> float:
    return sum(word in vocabulary for word in words) / len(words) if words else 0.0


def labelled_parts(claim: str) -> ClaimParts:
    """Take a claim apart: "Ann Lee manner of death natural causes" by the label of a known property after its subject,
    any other claim by its capitals."""
    parts = claim_parts(claim)
    tail = claim[len(parts.subject) :].strip()
    label = next((name for name in _BY_LENGTH if tail.startswith(f"{name} ")), None)
    if label is None or not content(parts.subject):
        return parts
    values = tuple(part for part in tail[len(label) :].strip().split(", ") if content(part))
    return ClaimParts(parts.subject, label, values or parts.values)


@dataclass(frozen=True, slots=True)
class _ClaimWords:
    """A claim, ready to be looked for: its words, those of its values, of its subject, and of its relation."""

    words: list[str]
    values: list[list[str]]
    subject: set[str]
    relation: set[str]
    about: set[str]


def _claim(claim: str) -> tuple[ClaimParts, _ClaimWords]:
    parts = labelled_parts(claim)
    relation = set(_words(parts.relation))
    about = relation.union(*(words for label, words in _LABEL_WORDS.items() if set(_words(label)) <= relation))
    return parts, _ClaimWords(
        _words(claim) or [""], [_words(v) for v in parts.values] or [[""]], _stems(parts.subject), relation, about
    )


def word_features(premise: str, claim: str) -> dict[str, float]:
    """Return the numbers.

    Args:
        premise, claim: The pair; neither empty.

    Returns:
        Name -> value, the same names in the same order for every pair.
    """
    rows = sentences(premise) or [premise]
    parts, question = _claim(claim)
    vocabulary = _stems(premise)
    each = np.array([_sentence(row, question) for row in rows])
    values = [_share(value, vocabulary) for value in question.values]
    new_values = [_share(value, vocabulary - question.subject) for value in question.values]
    hits = np.array([word in vocabulary for word in question.words], dtype=np.float64)
    rest = [word for word in question.words if word not in question.subject]
    return {
        "words": float(hits.mean()),
        "words_late": float(hits @ np.arange(1, hits.size + 1)) / (hits.size * (hits.size + 1) / 2),
        "words_missing": float(np.log1p((1 - hits).sum())),
        "last_word": float(hits[-1]),
        "words_beside_subject": _share(rest, vocabulary) if rest else 1.0,
        "subject": _share(_words(parts.subject), vocabulary),
        "relation": _share(sorted(question.relation), vocabulary),
        "value_first": values[0],
        "value_best": max(values),
        "value_mean": float(np.mean(values)),
        "found_best": max(new_values),
        "found_mean": float(np.mean(new_values)),
        "values": float(np.log(len(values))),
        "value_in_subject": _share([word for value in question.values for word in value], question.subject),
        "value_capital": float(np.mean([value[:1].isupper() for value in parts.values])) if parts.values else 0.0,
        "gender": _gender(premise, parts),
        "sentences": float(np.log(len(rows))),
        "claim_words": float(np.log1p(len(question.words))),
        "premise_words": float(np.log1p(len(_WORD.findall(premise)))),
        **_over_sentences(each),
    }


def _gender(premise: str, parts: ClaimParts) -> float:
    """Of a claim on gender, how far the words for men and women agree with it, -1 to 1; else 0."""
    value = " ".join(parts.values).lower()
    words = _WORD.findall(premise.lower())
    men, women = (sum(word in vocabulary for word in words) for vocabulary in (_MEN, _WOMEN))
    if value not in ("male", "female") or not men + women:
        return 0.0
    return (men - women) / (men + women) * (1 if value == "male" else -1)


def _sentence(sentence: str, question: _ClaimWords) -> list[float]:
    """Of one sentence: share of the claim, of its best value, of its subject, of its relation; words about the
    relation; names and numbers that the claim does not say; a negation."""
    vocabulary, fresh = _stems(sentence), FRESH.findall(sentence)
    claim_words = set(question.words)
    new = {_stem(word) for word in fresh} - claim_words
    return [
        _share(question.words, vocabulary),
        max(_share(value, vocabulary) for value in question.values),
        _share(sorted(question.subject), vocabulary),
        _share(sorted(question.relation), vocabulary),
        float(len(question.about & vocabulary)),
        float(len(new)),
        float(any(word.isdigit() for word in new)),
        float(any(word in NEGATION for word in _WORD.findall(sentence.lower()))),
    ]


def _over_sentences(each: Floats) -> dict[str, float]:
    claim, value, subject, relation, about, names, numbers, negated = each.T
    best = int(claim.argmax())
    holding, near = value > 0.5, about > 0
    return {
        "best_words": float(claim[best]),
        "mean_words": float(claim.mean()),
        "best_value": float(value[best]),
        "best_subject": float(subject[best]),
        "best_relation": float(relation[best]),
        "best_other_names": float(np.log1p(names[best])),
        "value_beside_subject": float((value * subject).max()),
        "about": float(np.log1p(near.sum())),
        "about_words": float(np.log1p(about.max())),
        "about_with_value": float((near & holding).any()),
        "about_without_value": float(near.any() and not (near & holding).any()),
        "value_where_about": float(value[near].max(initial=0.0)),
        "value_elsewhere": float(value[~near].max(initial=0.0)),
        "other_names_where_about": float(np.log1p(names[near].max(initial=0.0))),
        "other_numbers_where_about": float(numbers[near].max(initial=0.0)),
        "negated": float(negated.max()),
    }


class WordFeaturizer:
    """Features of pairs; nothing is loaded."""

    encoder = "words"

    def save(self, folder: Path) -> None:
        """Nothing but the forest is needed."""

    def rows(self, pairs: Sequence[tuple[str, str]], *, split: bool = False) -> Floats:
        """The features of (premise, claim) pairs, (n, features); `split` is for featurizers that prepare sentences."""
        return np.array([list(word_features(*pair).values()) for pair in pairs], dtype=np.float64)

    def forget(self) -> None:
        """Nothing is kept."""
