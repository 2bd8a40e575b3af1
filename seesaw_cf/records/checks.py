"""Checks of single values in a record; messages name place, value, expectation and remedy."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, UnknownNameError, unknown_name
from seesaw_cf.base.types import AttributePrompt, Case, Entity
from seesaw_cf.records.relations import RELATIONS

Record = dict[str, Any]  # a JSON object: what is in it is checked value by value


def names(keys: Iterable[object]) -> str:
    """Return the keys as a quoted list, or "none" without any."""
    return ", ".join(map(repr, keys)) or "none"


def text(value: object, where: str) -> str:
    """Return the value, which must be a string with more than white space.

    Raises:
        RecordError: It is not.
    """
    if not isinstance(value, str) or not value.strip():
        raise RecordError(f"{where} is {shown(value)}, expected text. Fill it in or drop the record.")
    return value


def texts(value: object, where: str) -> tuple[str, ...]:
    """Return the value, which must be a list of strings with more than white space.

    Raises:
        RecordError: It is not a list, or one of its entries is not such a string; its position is given, from 0.
    """
    if not isinstance(value, list):
        raise RecordError(f"{where} is {shown(value)}, expected a list of texts. Correct or drop the record.")
    return tuple(text(entry, f"{where}[{position}]") for position, entry in enumerate(value))


def entity(value: object, where: str) -> Entity:
    """Return an entity from `{"str": ..., "id": ...}`; the id may be absent or null.

    Raises:
        RecordError: It is not such an object.
    """
    if not isinstance(value, dict) or "str" not in value:
        raise RecordError(f"{where} is {shown(value)}, expected {{'str': name, 'id': QID}}. Correct or drop it.")
    id_ = value.get("id")
    return Entity(None if id_ is None else text(id_, f"{where}.id"), text(value["str"], f"{where}.str"))


def template(prompt: str, subject: str, key: str, where: str) -> str:
    """Return a prompt with "{}" in place of its subject.

    Raises:
        RecordError: The subject is not in it; a difference that cannot be seen or is one of capitals is named.
    """
    if subject in prompt:
        return prompt.replace(subject, "{}", 1)
    alike = "Correct it."
    if unicodedata.normalize("NFC", subject) in unicodedata.normalize("NFC", prompt):
        alike = "They look alike, but accents are written in two ways. Write both as NFC (unicodedata.normalize)."
    elif subject.casefold() in prompt.casefold():
        alike = "They differ in capitals. Write both alike."
    raise RecordError(f"{where}: subject {subject!r} is not in {key} {prompt!r}, so no template can be made. {alike}")


def known_relation(relation_id: str, where: str) -> None:
    """Check that a relation is one of the papers' five.

    Raises:
        UnknownNameError: It is not; near names are suggested.
    """
    if relation_id not in RELATIONS:
        raise UnknownNameError(f"{where}: {unknown_name('relation', relation_id, RELATIONS)}")


def check_unique(cases: list[Case], path: Path) -> list[Case]:
    """Return the cases when each case_id is unique.

    Raises:
        RecordError: Two share one.
    """
    seen: set[int] = set()
    for number, case in enumerate(cases):
        if case.case_id in seen:
            raise RecordError(f"{path}: record {number}: case_id {case.case_id} was used before. Renumber, or drop it.")
        seen.add(case.case_id)
    return cases


# Damage seen in data rows: flagged, counted, never silently kept or dropped.

PROMPT_FLAGS: dict[str, str] = {
    "qid_name": "the person's name is a bare Wikidata id (the item had no label)",
    "disambiguator": "the name ends with a Wikipedia disambiguator in brackets, as in 'Phew (singer)'",
    "tense_in_name": "a verb inside the name was put into the past: 'Sophistic worked of Antiphon'",
    "name_not_in_prompt": "the prompt does not contain the name, nor the name with its verbs in the past",
    "duplicate_prompt": "the same text was asked earlier in the same case",
    "label_shared": "another person in the same file, with another id, has the same name",
    "trailing_space": "the prompt ends with a space, which doubles the one before the answer",
    "double_space": "two spaces in a row inside the prompt",
}
CASE_FLAGS: dict[str, str] = {
    "repeated_generation": "the same generation prompt is listed more than once",
    "prompt_space": "a prompt of the edit, a paraphrase, a neighbour or an open end has white space at an end or twice",
    "target_space": "the old or new target, a candidate or a right answer begins or ends with white space",
    "special_token": "a prompt, name or answer holds text such as </s>, which tokenizers read as one of their signs",
    "targets_same_text": "old and new target have different ids but the same text: no model can tell them apart",
    "own_test_subject": "the edit's subject is also one of the case's test subjects",
}

# The whole of the reference code's past tense, applied to finished prompts, names included (PEER_FACTS A2).
_TENSES = ((" is", " was"), (" works", " worked"), (" specializes", " specialized"))
_QID = re.compile(r"Q\d+")
_DISAMBIGUATOR = re.compile(r" \([^()]*\)$")


# Of Llama, GPT-2, BERT, Gemma, Mistral and chat templates.
_SPECIAL = re.compile(
    r"</?s>|<(?:unk|pad|bos|eos|mask)>|<\|\w+\|>|\[(?:UNK|PAD|CLS|SEP|MASK|/?INST)\]|<(?:start|end)_of_turn>"
)


def past_everywhere(text: str) -> str:
    """Put a text into the reference code's past tense, by three replacements anywhere in it; used to recognise it."""
    for present, past in _TENSES:
        text = text.replace(present, past)
    return text


def _past_name_in(prompt: AttributePrompt) -> bool:
    label = prompt.subject.label
    if label in prompt.text:
        return False
    return past_everywhere(label) in prompt.text or past_everywhere(f" {label}")[1:] in prompt.text


# The checks that need nothing but the row; `duplicate_prompt` and `label_shared` need its case and its file.
_ROW_CHECKS: dict[str, Callable[[AttributePrompt], bool]] = {
    "qid_name": lambda row: _QID.fullmatch(row.subject.label) is not None,
    "disambiguator": lambda row: row.subject.label.endswith(")") and bool(_DISAMBIGUATOR.search(row.subject.label)),
    "tense_in_name": _past_name_in,
    "name_not_in_prompt": lambda row: row.subject.label not in row.text and not _past_name_in(row),
    "trailing_space": lambda row: row.text.endswith(" "),
    "double_space": lambda row: "  " in row.text,
}


def _shared_labels(cases: Iterable[Case]) -> set[str]:
    """Return the names that stand for more than one id."""
    people = {row.subject for case in cases for row in case.attribute_prompts if row.subject.id is not None}
    return {label for label, count in Counter(person.label for person in people).items() if count > 1}


def _ordered(table: dict[str, str], names: set[str], before: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags found, in the order of the table, after those that other programs set."""
    return tuple(name for name in before if name not in table) + tuple(name for name in table if name in names)


def _flag_rows(rows: Sequence[AttributePrompt], shared: set[str]) -> tuple[AttributePrompt, ...]:
    seen: set[str] = set()
    flagged = []
    for row in rows:
        names = {name for name, check in _ROW_CHECKS.items() if check(row)}
        names |= {"duplicate_prompt"} if row.text in seen else set()
        names |= {"label_shared"} if row.subject.label in shared else set()
        seen.add(row.text)
        flags = _ordered(PROMPT_FLAGS, names, row.flags) if names or row.flags else ()
        flagged.append(row if flags == row.flags else replace(row, flags=flags))
    return tuple(flagged)


def spaced(text: str) -> bool:
    """Return whether a text has white space at an end, or two spaces in a row: scores after it are of another text."""
    return text != text.strip() or "  " in text


def _texts_of(case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the prompts of a case but those about people, and its answers."""
    request = case.request
    prompts = (request.text, *case.paraphrase_prompts, *case.neighborhood_prompts, *case.generation_prompts)
    return prompts, (request.target_new.label, request.target_true.label, *case.candidates, *case.gold)


def has_special_token(case: Case) -> bool:
    """Return whether a prompt or answer of a case holds text that tokenizers read as one of their signs."""
    prompts, answers = _texts_of(case)
    others = (row.text for row in (*case.attribute_prompts, *case.effect_prompts))
    return any(map(_SPECIAL.search, (*prompts, *answers, *others)))


def _case_flags(case: Case) -> tuple[str, ...]:
    prompts, answers = _texts_of(case)
    checks = {
        "special_token": has_special_token(case),
        "prompt_space": any(map(spaced, prompts)),
        "repeated_generation": len(set(case.generation_prompts)) < len(case.generation_prompts),
        "target_space": any(answer != answer.strip() for answer in answers),
        "targets_same_text": answers[0].strip() == answers[1].strip(),
        "own_test_subject": any(row.subject.label == case.request.subject for row in case.attribute_prompts),
    }
    return _ordered(CASE_FLAGS, {name for name, hit in checks.items() if hit}, case.flags)


def flag_cases(cases: Sequence[Case]) -> list[Case]:
    """Set the flags of `PROMPT_FLAGS` on every attribute prompt and those of `CASE_FLAGS` on every case.

    Flags with other names stay as they are; flags of these tables that no longer hold are taken off. Whether a
    generation prompt should be in the past cannot be seen from a record (it does not say if its subject has died), so
    it has no flag.

    Args:
        cases: All cases of one file: `label_shared` compares them with each other.

    Returns:
        The same cases in the same order, flagged.
    """
    shared = _shared_labels(cases)
    return [
        replace(case, attribute_prompts=_flag_rows(case.attribute_prompts, shared), flags=_case_flags(case))
        for case in cases
    ]


def count_flags(cases: Iterable[Case]) -> tuple[dict[str, int], dict[str, int]]:
    """Count flags.

    Returns:
        Two dicts, flag → number of attribute prompts and flag → number of cases; only flags that occur, most frequent
        first, ties by name.
    """
    cases = list(cases)
    prompts = Counter(flag for case in cases for row in case.attribute_prompts for flag in row.flags)
    counted = (prompts, Counter(flag for case in cases for flag in case.flags))
    by_prompt, by_case = (dict(sorted(flags.items(), key=lambda item: (-item[1], item[0]))) for flags in counted)
    return by_prompt, by_case
