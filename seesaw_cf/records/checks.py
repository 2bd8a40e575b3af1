"""Checks of single values in a record; messages name place, value, expectation and remedy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seesaw_cf.errors import RecordError, UnknownNameError, unknown_name
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import Case, EditRequest, Entity

Record = dict[str, Any]  # a JSON object: what is in it is checked value by value


def short(value: object) -> str:
    """Return the value as it is shown in messages, cut to 120 characters."""
    text = f"{value!r}"
    return text if len(text) <= 120 else f"{text[:100]}... ({type(value).__name__}, {len(text)} characters)"


def names(keys: Iterable[object]) -> str:
    """Keys as a quoted list."""
    return ", ".join(map(repr, keys)) or "none"


def text(value: object, where: str) -> str:
    """Return the value, which must be a string with more than white space.

    Raises:
        RecordError: It is not.
    """
    if not isinstance(value, str) or not value.strip():
        raise RecordError(f"{where} is {short(value)}, expected text. Fill it in or drop the record.")
    return value


def texts(value: object, where: str) -> tuple[str, ...]:
    """Return the value, which must be a list of strings with more than white space.

    Raises:
        RecordError: It is not a list, or one of its entries is not such a string; its position is given, from 0.
    """
    return tuple(text(entry, f"{where}[{position}]") for position, entry in enumerate(_list(value, where)))


def texts_or_nulls(value: object, where: str) -> tuple[str | None, ...]:
    """As `texts`, for lists in which entries may be null."""
    return tuple(
        None if entry is None else text(entry, f"{where}[{position}]")
        for position, entry in enumerate(_list(value, where))
    )


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise RecordError(f"{where} is {short(value)}, expected a list of texts. Correct or drop the record.")
    return value


def entity(value: object, where: str) -> Entity:
    """Return an entity from `{"str": ..., "id": ...}`; the id may be absent or null.

    Raises:
        RecordError: It is not such an object.
    """
    if not isinstance(value, dict) or "str" not in value:
        raise RecordError(
            f"{where} is {short(value)}, expected {{'str': name, 'id': QID}}. Correct or drop the record."
        )
    id_ = value.get("id")
    return Entity(None if id_ is None else text(id_, f"{where}.id"), text(value["str"], f"{where}.str"))


def edit_request(prompt: str, subject: str, relation_id: str, new: Entity, true: Entity, where: str) -> EditRequest:
    """Return an edit request. Its errors name the place of the record.

    Raises:
        RecordError: See `EditRequest`.
    """
    try:
        return EditRequest(prompt, subject, relation_id, new, true)
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from error


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
            raise RecordError(
                f"{path}: record {number}: case_id {case.case_id} was used before, expected every case to have its "
                "own. Renumber, or drop the copy."
            )
        seen.add(case.case_id)
    return cases
