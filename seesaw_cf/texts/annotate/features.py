"""What a premise and a claim share: words, values, and vectors of a frozen encoder, as a few dozen numbers.

Nothing here knows which kind of claim it is or which method wrote the passage.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.embed import TextVectors

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
    """Return the stems of the words other than function words, in order."""
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
    """Return the share of a text's content words that are known; 0 without any."""
    return _share(content(text), vocabulary)


# How English words a property of Wikidata: its label with words of sentences about it, and peoples with countries.


def _table(name: str) -> dict[str, str]:
    """Read first column -> second column of a file next to this one."""
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return dict(rows)


# Label of a property -> words of sentences that speak of it, beside those of the label itself.
LABELS_SAID = _table("relations.csv")

# People or tongue -> country, where the first five letters differ.
PEOPLES = _table("peoples.csv")


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
    """Return the content words as stems, in order; peoples count as their countries."""
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
    """Return how far the words for men and women agree with a claim on gender, -1 to 1; 0 for other claims."""
    value = " ".join(parts.values).lower()
    words = _WORD.findall(premise.lower())
    men, women = (sum(word in vocabulary for word in words) for vocabulary in (_MEN, _WOMEN))
    if value not in ("male", "female") or not men + women:
        return 0.0
    return (men - women) / (men + women) * (1 if value == "male" else -1)


def _sentence(sentence: str, question: _ClaimWords) -> list[float]:
    """Return the features of one sentence, given the words of a claim.

    They are the shares of the claim, of its best value, of its subject and of its relation; how many words are about
    the relation; how many names and numbers the claim does not say; whether one of these is a number; a negation.
    """
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


def vector_features(premise: str, claim: str, vectors: Mapping[str, TextVectors]) -> dict[str, float]:
    """Return what the vectors of a frozen encoder add to `word_features`.

    Args:
        premise, claim: The pair; neither empty.
        vectors: Of the premise, of each of its `sentences`, and of the claim.

    Returns:
        Name -> value, the same names in the same order for every pair.
    """
    rows, (_, question) = sentences(premise) or [premise], _claim(claim)
    cosine = np.stack([vectors[row].whole for row in rows]) @ vectors[claim].whole
    # (sentences, tokens of the claim): how near the nearest token of the sentence is to each token of the claim.
    near = np.stack([(vectors[claim].tokens @ vectors[row].tokens.T).max(axis=1) for row in rows])
    best = int(near.mean(axis=1).argmax())
    holding = np.array([max(_share(value, _stems(row)) for value in question.values) > 0.99 for row in rows])
    return {
        **{f"soft_{name}": value for name, value in _soft(near.max(axis=0)).items()},
        **{f"best_{name}": value for name, value in _soft(near[best]).items()},
        **_cosines(cosine, float(vectors[premise].whole @ vectors[claim].whole)),
        "cosine_with_value": float(cosine[holding].max(initial=0.0)),
        "cosine_without_value": float(cosine[~holding].max(initial=0.0)),
    }


def _late(values: Floats) -> float:
    """Return the mean with weights that grow along the claim: its value comes last."""
    weights = np.linspace(0.0, 1.0, values.size) if values.size > 1 else np.ones(1)
    return float(values @ weights / weights.sum())


def _soft(near: Floats) -> dict[str, float]:
    tail = near[-3:].mean()
    numbers = {"mean": near.mean(), "least": near.min(), "last": near[-1], "tail": tail, "late": _late(near)}
    return {name: float(value) for name, value in numbers.items()}


def _cosines(cosine: Floats, whole: float) -> dict[str, float]:
    first, second = np.sort(np.append(cosine, cosine.min()))[::-1][:2]
    mean = float(cosine.mean())
    return {"cosine": float(first), "cosine_second": float(second), "cosine_mean": mean, "cosine_gap": first - mean,
            "cosine_whole": whole}  # fmt: skip
