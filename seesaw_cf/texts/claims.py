"""Claims: does a passage support the edit and the facts of its record, contradict them, or say nothing of them?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.texts.judge import Answer, Instrument, Prompt, few_shot
from seesaw_cf.texts.records import SIDES, LongformRecord, entity_name
from seesaw_cf.texts.tables import ANNOTATIONS, AnnotationRow, PassageRow, SampleRow

# How a recorded fact is said. "published": the words of the annotated data of LEME.
WORDINGS = {"published": "{entity} {property} {values}", "sentence": "The {property} of {entity} is {values}."}
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
_LABEL = re.compile(r"(?im)^[\s*_>-]*label[\s*_]*[:=][\s*_\"']*([A-Za-z]+)")
_EVIDENCE = re.compile(r"(?im)^[\s*_>-]*evidence[\s*_]*[:=]\s*(.+)$")
# How to answer: read by `parse_label`, so the same whatever the words.
_FORM = 'Answer in exactly this form, first the line "Label: ...", then the lines "Evidence: ...".'


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about an entity.

    Attributes:
        kind: One of `leme_annotation.CLAIM_KINDS`.
        id: "new_fact", "old_fact", or the property of a ground truth such as "P106".
        text: The statement; "" when the record cannot make it.
        status: "ok", or what is missing in the record.
    """

    kind: str
    id: str
    text: str
    status: str = "ok"


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """A passage and a claim about it; the other fields name the sample, as in `tables.ANNOTATIONS`.

    Attributes:
        premise: The passage.
        claim, claim_kind, claim_id: See `Claim`.
        passage: "subject" or "related".
        editor, case_id, relation, phase, sample: Which text of which edit.
        status: "ok", or why the pair cannot be classified.
    """

    premise: str
    claim: str
    claim_kind: str = "ground_truth"
    claim_id: str = ""
    passage: str = "subject"
    editor: str = ""
    case_id: int = 0
    relation: str = ""
    phase: str = "post"
    sample: int = 0
    status: str = "ok"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a passage says of a claim.

    Attributes:
        label: One of `LABELS`.
        probabilities: Of `LABELS`, in that order; NaN where the rater has none.
        evidence: Sentences of the premise that carry the label; none for "neutral".
    """

    label: str
    probabilities: tuple[float, float, float] = (_NAN, _NAN, _NAN)
    evidence: tuple[str, ...] = ()


def claims_of(record: LongformRecord, wording: str = "published") -> dict[str, list[Claim]]:
    """Return the claims of a Coupled Entity record for its subject passage and its related passage.

    Args:
        record: A row of a `coupled_*` config.
        wording: One of `WORDINGS`.

    Returns:
        "subject" and "related" -> claims. A record without related entity gives one claim on the related passage with a
        status that tells why.

    Raises:
        UnknownNameError: Unknown wording.
        RecordError: The edit is missing in the record.

    Source: LEME, section 3.3.
    Deviates: ground truths of the related passage name the related entity (the released code names the subject); a
        value listed twice is stated once.
    """
    one_of("claim wording", wording, WORDINGS)
    request = record.get("requested_rewrite")
    if not request or request["prompt"].count("{}") != 1:
        raise RecordError(
            f"coupled record {record.get('case_id')}: requested_rewrite is {request!r}, expected an edit whose prompt "
            "has one '{}'. Make the records with `seesaw-cf build --coupled`."
        )
    facts = [_fact("new_fact", request, request["target_new"]), _fact("old_fact", request, request["target_true"])]
    return {
        passage: [*facts, *_truths(side, wording)]
        if side and entity_name(side).strip()
        else [Claim("ground_truth", "", "", f"the record has no {passage} entity")]
        for passage, side in ((passage, record.get(field)) for passage, field in SIDES.items())
    }


def _name(entity: Mapping[str, Any] | None) -> str:
    return str((entity or {}).get("str") or "").strip()


def _fact(kind: str, request: Mapping[str, Any], target: Mapping[str, Any] | None) -> Claim:
    label = _name(target)
    if not label:
        return Claim(kind, kind, "", f"the record has no target for the {kind.replace('_', ' ')}")
    return Claim(kind, kind, f"{request['prompt'].replace('{}', request['subject'])} {label}")


def _truths(side: Mapping[str, Any], wording: str) -> Iterable[Claim]:
    entity = entity_name(side).strip()
    for truth in side.get("ground_truth") or []:
        if values := dict.fromkeys(filter(None, map(_name, truth["values"]))):
            claim = WORDINGS[wording].replace("{property}", truth["property"]).replace("{values}", ", ".join(values))
            yield Claim("ground_truth", truth["property_id"], claim.replace("{entity}", entity))


def claim_pairs(passages: pa.Table, records: Sequence[LongformRecord]) -> list[ClaimPair]:
    """Return every subject and related passage with every claim of its record.

    Args:
        passages: `tables.PASSAGES`; other kinds of passages ("guided", "free") are left out.
        records: Rows of a `coupled_*` config.

    Returns:
        The pairs in the order of the passages. Where the text is missing, or the record cannot make the claim, `status`
        gives the reason and nothing is classified.

    Raises:
        RecordError: Two records share a case id, a passage has no record, or the edit is missing in a record.
    """
    claims: dict[int, dict[str, list[Claim]]] = {}
    for record in records:
        if record["case_id"] in claims:
            raise RecordError(f"coupled records: case {record['case_id']} is there twice. Take one config at a time.")
        claims[record["case_id"]] = claims_of(record)
    rows: list[PassageRow] = [row for row in passages.to_pylist() if row["passage"] in SIDES]
    if lost := sorted({row["case_id"] for row in rows} - claims.keys()):
        raise RecordError(
            f"passages: {len(lost)} cases have no coupled record, first: {lost[:5]}; records were given for "
            f"{len(claims)} cases. Give the records that the passages were written for."
        )
    return [_pair(row, claim) for row in rows for claim in claims[row["case_id"]][row["passage"]]]


def _pair(row: PassageRow, claim: Claim) -> ClaimPair:
    text = (row["text"] or "").strip()
    whole = "ok" if row["status"] == "ok" else f"no passage: {row['status']}"
    status = whole if whole != "ok" else "the passage is empty" if not text else claim.status
    place = cast(dict[str, Any], {name: value for name, value in row.items() if name in SampleRow.__annotations__})
    return ClaimPair(text, claim.text, claim.kind, claim.id, row["passage"], status=status, **place)


def answered_claims(pairs: Sequence[ClaimPair], annotations: pa.Table) -> list[tuple[ClaimPair, Judgement]]:
    """Return pairs with people's labels and the evidence that they marked.

    Args:
        pairs: What was asked.
        annotations: `tables.ANNOTATIONS`; rows without a label are left out.
    """
    rows: list[AnnotationRow] = annotations.to_pylist()
    by_key = {_key(pair): pair for pair in pairs if pair.status == "ok"}
    answered = []
    for row in rows:
        place = (row["editor"], row["case_id"], row["phase"], row["sample"], row["passage"], row["claim"])
        if place in by_key and row["label"] in LABELS:
            answered.append((by_key[place], Judgement(str(row["label"]), evidence=tuple(row["evidence"] or ()))))
    return answered


def _key(pair: ClaimPair) -> tuple[object, ...]:
    return (pair.editor, pair.case_id, pair.phase, pair.sample, pair.passage, pair.claim)


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


def parse_label(text: str) -> tuple[str, str]:
    """Return the label in a reply, and "ok" or why there is none.; one label is expected.

    It is a line "Label: ...", or the only word.
    """
    answers = {label.lower() for label in _LABEL.findall(text)} or {text.strip(" .*\"'\n").lower()}
    if len(answers) > 1:
        return "", f"{len(answers)} labels in the reply: {', '.join(sorted(answers))}"
    (label,) = answers
    return (label, "ok") if label in LABELS else ("", "no label in the reply")


class Claims(Instrument[ClaimPair]):
    """Claims as an instrument.

    Source: LEME, section 3.3, Appendices B.4 and E.
    Deviates: labels are checked (the released code takes any word); evidence counts only when the passage has it.
    """

    name = "claims"
    schema = ANNOTATIONS

    def prompt(self, question: ClaimPair, examples: Sequence[tuple[ClaimPair, Judgement]]) -> Prompt:
        """Return the definitions, then the passage and the claim."""
        labelled = [(_question(example), f"Label: {judgement.label}") for example, judgement in examples]
        task = f"{self.words.instructions['claims_judge'].strip()}\n\n{_FORM}"
        return few_shot(task, labelled, _question(question))

    def parse(self, question: ClaimPair, reply: str) -> tuple[Judgement | None, str]:
        """Read the label, and the evidence that the passage has."""
        label, status = parse_label(reply)
        if status != "ok":
            return None, status
        quoted = [line.strip(" \"'“”") for line in _EVIDENCE.findall(reply)]
        evidence = tuple(line for line in quoted if line and line in question.premise) if label != "neutral" else ()
        return Judgement(label, evidence=evidence), "ok"

    def row(self, question: ClaimPair, rater: str, answer: Answer) -> TableRow:
        """Return a row of `ANNOTATIONS`."""
        judgement = answer.value or Judgement("")
        own = {key: getattr(question, key) for key in ANNOTATIONS.names if hasattr(question, key) and key != "status"}
        chances = {f"p_{label}": p if p == p else None for label, p in zip(LABELS, judgement.probabilities)}
        unread = answer.status != "ok" and (answer.reply or answer.status == "empty reply")
        return own | chances | {
            "annotator": rater,
            "label": judgement.label or None,
            "evidence": list(judgement.evidence),
            "reply": answer.reply,
            "status": f"{answer.status} (asked {len(answer.calls)} times)" if unread else answer.status,
        }  # fmt: skip

    def key(self, question: ClaimPair) -> tuple[object, ...]:
        """Return the text and the claim."""
        return _key(question)

    def seed(self, seed: int, question: ClaimPair, attempt: int) -> int:
        """Return 48 bits of a hash: equal passages and claims are asked once."""
        return seed_of(seed, attempt, question.premise, question.claim, joined="\n")

    def texts(self, question: ClaimPair) -> Sequence[str]:
        """Return the passage."""
        return [question.premise]

    def skip_reason(self, question: ClaimPair) -> str:
        """Return why a pair cannot be classified."""
        if question.status != "ok":
            return question.status
        why = foreign(question.premise)
        return f"the passage is not English: {why}" if why else ""

    def is_example_for(self, example: ClaimPair, question: ClaimPair) -> bool:
        """Return whether a label about another edit's passage may be shown."""
        return example.case_id != question.case_id and example.premise != question.premise


def _question(pair: ClaimPair) -> str:
    return f"Passage: {pair.premise}\n\nClaim: {pair.claim}"
