"""Cuts a run's cases into what shares an edited model, and that into what a worker takes on at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Case, EditRequest

PROTOCOLS = ("single", "batch")


@dataclass(frozen=True, slots=True)
class Unit:
    """Cases that share an edited model: those of one edit request, or all cases of a relation."""

    key: str
    cases: tuple[Case, ...]


def units(cases: Sequence[Case], protocol: str) -> list[Unit]:
    """Cut cases into units.

    Args:
        cases: In the order they were read.
        protocol: "single": edit one fact, score every case about that edit, restore. "batch": all cases with the same
            edit and effect relation are edited together, as in the authors' code (PEER_FACTS: one batch per property
            file).

    Raises:
        UnknownNameError: Another protocol.
        RecordError: As `check_numbers`.
    """
    one_of("protocol", protocol, PROTOCOLS)
    check_numbers(cases)
    groups: dict[str | EditRequest, list[Case]] = {}
    for case in cases:
        groups.setdefault(_name(case) if protocol == "batch" else case.request, []).append(case)
    return [Unit(key if isinstance(key, str) else _number(*group), tuple(group)) for key, group in groups.items()]


def check_numbers(cases: Iterable[Case]) -> None:
    """Refuse cases of one number, also of different relations: tables tell cases apart by their numbers.

    Raises:
        RecordError: Two cases share a number.
    """
    repeated = [number for number, n in Counter(case.case_id for case in cases).items() if n > 1]
    if repeated:
        raise RecordError(
            f"{len(repeated)} case numbers occur twice, first {repeated[0]}; expected that every case of a run has a "
            "case_id of its own. Renumber the cases, or run their files or configs one at a time."
        )


def _name(case: Case) -> str:
    return "-".join(filter(None, (case.request.relation_id, case.effect_relation_id)))


def _number(first: Case, *others: Case) -> str:
    """Return the key of the cases of one edit; it counts the others, so that it differs from the first case's own."""
    return f"{_name(first)}-{first.case_id:08d}" + (f"-and-{len(others)}" if others else "")


@dataclass(frozen=True, slots=True)
class Task:
    """A block of units, edited and scored together; what a worker takes on at a time.

    Attributes:
        editors: One, and the controls that take its edits: who made them has them.
        units: The block.
    """

    editors: tuple[str, ...]
    units: tuple[Unit, ...]
