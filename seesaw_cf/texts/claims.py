"""Claims: does a passage support the edit and the facts of its record, contradict them, or say nothing of them?"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.instruments import DEFAULT, Instruments
from seesaw_cf.effects.texts import LABELS, sentences
from seesaw_cf.texts.judge import WORD, Answer, Instrument, Parsed, Rater, TextQuestion
from seesaw_cf.texts.records import SIDES, LongformRecord
from seesaw_cf.texts.survey import Claim, claims_of
from seesaw_cf.texts.tables import ANNOTATIONS, PLACE

_LABEL = re.compile(r"(?im)^[\s*_>-]*label[\s*_]*[:=][\s*_\"']*([A-Za-z]+)")
_EVIDENCE = re.compile(r"(?im)^[\s*_>-]*evidence[\s*_]*[:=]\s*(.+)$")
# How to answer: read by `_parse`, so the same whatever the words.
_FORM = 'Answer in exactly this form, first the line "Label: ...", then the lines "Evidence: ...".'


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a passage says of a claim.

    Attributes:
        label: One of `LABELS`.
        probabilities: Of `LABELS`, in that order; none where the rater has none.
        evidence: Sentences of the premise that carry the label; none for "neutral".
    """

    label: str
    probabilities: tuple[float, ...] = ()
    evidence: tuple[str, ...] = ()


def claim_questions(
    passages: pa.Table, records: Sequence[LongformRecord], words: Instruments = DEFAULT
) -> list[TextQuestion]:
    """Return every claim of a record about each of its subject and related passages.

    Args:
        passages: `tables.PASSAGES`; other kinds of passages ("guided", "free") are left out.
        records: Rows of a `coupled_*` config.
        words: What judges read.

    Returns:
        Questions in the order of the passages; those without a text or a claim say why they cannot be asked.

    Raises:
        RecordError: Two records share a case id, a passage has no record, or the edit is missing in a record.
    """
    claims: dict[int, dict[str, list[Claim]]] = {}
    for record in records:
        if record["case_id"] in claims:
            raise RecordError(f"coupled records: case {record['case_id']} is there twice. Take one config at a time.")
        claims[record["case_id"]] = claims_of(record)
    rows = [row for row in passages.to_pylist() if row["passage"] in SIDES]
    if lost := sorted({row["case_id"] for row in rows} - claims.keys()):
        raise RecordError(
            f"passages: {len(lost)} cases have no coupled record, first: {lost[:5]}; records were given for "
            f"{len(claims)} cases. Give the records that the passages were written for."
        )
    questions = []
    for row in rows:
        text = (row["text"] or "").strip()
        missing = f"no passage: {row['status']}" if row["status"] != "ok" else "" if text else "the passage is empty"
        for claim in claims[row["case_id"]][row["passage"]]:
            about = {name: row[name] for name in (*PLACE, "passage")}
            about |= {"claim_kind": claim.kind, "claim_id": claim.id, "claim": claim.text}
            skip = missing or ("" if claim.status == "ok" else claim.status)
            questions.append(claim_question(text, claim.text, about, skip, words))
    return questions


def claim_question(
    premise: str, claim: str, about: TableRow, skip: str = "", words: Instruments = DEFAULT
) -> TextQuestion:
    """Return the question whether a passage supports a claim; `about` has the columns that name it."""
    key = tuple(about.get(name) for name in ("editor", "case_id", "phase", "sample", "passage", "claim"))
    task = f"{words.instructions['claims_judge'].strip()}\n\n{_FORM}"
    text = f"Passage: {premise}\n\nClaim: {claim}"
    return TextQuestion(key, about, (premise, claim), task, text, (premise,), frozenset([about.get("case_id")]), skip)


def answered_claims(questions: Sequence[TextQuestion], annotations: pa.Table) -> list[tuple[TextQuestion, Judgement]]:
    """Return questions with people's labels and the evidence that they marked.

    Args:
        questions: What was asked.
        annotations: `tables.ANNOTATIONS`; rows without a label are left out.
    """
    by_key = {question.key: question for question in questions if not question.skip}
    answered = []
    for row in annotations.to_pylist():
        key = tuple(row[name] for name in ("editor", "case_id", "phase", "sample", "passage", "claim"))
        if key in by_key and row["label"] in LABELS:
            answered.append((by_key[key], Judgement(row["label"], evidence=tuple(row["evidence"] or ()))))
    return answered


def _parse(question: TextQuestion, reply: str) -> Parsed:
    """Read the label, a line "Label: ..." or the only word, and the evidence that the passage has."""
    answers = {label.lower() for label in _LABEL.findall(reply)} or {reply.strip(" .*\"'\n").lower()}
    if len(answers) > 1:
        return {}, f"{len(answers)} labels in the reply: {', '.join(sorted(answers))}"
    (label,) = answers
    if label not in LABELS:
        return {}, "no label in the reply"
    quoted = [line.strip(" \"'“”") for line in _EVIDENCE.findall(reply)] if label != "neutral" else []
    return {"label": label, "evidence": [line for line in quoted if line and line in question.pair[0]]}, "ok"


def _seed(seed: int, question: TextQuestion, attempt: int) -> int:
    """Return 48 bits of a hash: equal passages and claims are asked once."""
    return seed_of(seed, attempt, *question.pair, joined="\n")


CLAIMS = Instrument("claims", ANNOTATIONS, _parse, {"evidence": []}, seed=_seed, says_tries=True)
"""Claims as an instrument.

Source: LEME, section 3.3, Appendices B.4 and E.
Deviates: labels are checked (the released code takes any word); evidence counts only when the passage has it.
"""


# A classifier that reads words only: a baseline, and something to run where no model is.

_STOP = frozenset(
    WORD.findall(
        "a an the of in on at to is was are were be been by for with and or from as its his her their it he she they "
        "that this which who has have had not no"
    )
)
_STEM = 5  # words that agree in their first letters count as one


class Classifier(Rater):
    """What classifies pairs of a passage and a claim."""

    kinds = ("claims",)

    @abstractmethod
    def classify(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """Return one judgement per (passage, claim)."""

    def answer(self, instrument: Instrument, questions: Sequence[TextQuestion]) -> list[Answer]:
        """Return one answer per claim; equal pairs are read once."""
        pairs = list(dict.fromkeys(question.pair for question in questions))
        judgements = dict(zip(pairs, self.classify(pairs), strict=True))
        columns: dict[tuple[str, str], TableRow] = {
            pair: {"label": own.label, "evidence": list(own.evidence)}
            | {f"p_{label}": p for label, p in zip(LABELS, own.probabilities)}
            for pair, own in judgements.items()
        }
        return [Answer(columns[question.pair]) for question in questions]


class Lexical(Classifier):
    """Classifier of claims that anybody can follow by hand.

    A passage supports a claim when one of its sentences holds half of the content words of one of the claim's values.
    Otherwise it contradicts the claim when one of its sentences holds half of the words of the relation ("place of
    birth"), and is neutral when none does. Words are compared by their first five letters.
    """

    name = "lexical"

    def classify(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """Return one judgement per (passage, claim), without probabilities."""
        return [_judge_words(premise, claim) for premise, claim in pairs]


def _judge_words(premise: str, claim: str) -> Judgement:
    (relation, values), rows = claim_parts(claim), sentences(premise)
    carrying = [row for row in rows if any(known_share(value, _stems(row)) >= 0.5 for value in values)]
    if carrying:
        return Judgement("supports", evidence=tuple(carrying))
    near = [row for row in rows if known_share(relation, _stems(row)) >= 0.5]
    return Judgement("contradicts", evidence=tuple(near)) if near else Judgement("neutral")


def claim_parts(claim: str) -> tuple[str, tuple[str, ...]]:
    """Take a claim such as "Olu Dara place of birth Natchez" apart by its capitals.

    Returns:
        The lower-case words after the leading run of capitalised words, and what follows them, cut at commas: the last
        word when everything is lower case.
    """
    words = claim.split()
    names = [word[0].isupper() or word[0].isdigit() for word in words]
    inside = [at > 0 and word.lower() in _STOP and any(names[at + 1 : at + 2]) for at, word in enumerate(words)]
    last = len(words) - 1
    start = next((at for at in range(len(words)) if not names[at] and not inside[at]), max(1, last))
    stop = next((at for at in range(start, len(words)) if names[at]), max(start, last))
    values = tuple(part for part in " ".join(words[stop:]).split(", ") if _content(part))
    return " ".join(words[start:stop]), values


def _stems(text: str) -> set[str]:
    return {word.lower()[:_STEM] for word in WORD.findall(text)}


def known_share(text: str, vocabulary: set[str]) -> float:
    """Return the share of a text's content words that are known; 0 without any."""
    words = _content(text)
    return sum(word in vocabulary for word in words) / len(words) if words else 0.0


def _content(text: str) -> list[str]:
    return [word.lower()[:_STEM] for word in WORD.findall(text) if word.lower() not in _STOP]
