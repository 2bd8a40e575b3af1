"""What a run edits and asks: units, each one state of the model, and blocks of units that are done together."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Case, EditRequest, JsonObject, TableRow
from seesaw_cf.records.arrow import cases_to_table, read_cases
from seesaw_cf.run.edit_table import ASKED_ONLY
from seesaw_cf.run.jobs import PROTOCOLS
from seesaw_cf.run.questions import CaseQuestions, Question, questions

PROBES = -1
"""Case number of questions that belong to no edit."""

_OF_THE_EDIT = ("efficacy", "paraphrase", "neighborhood")
_PROMPTS = ("paraphrase_prompts", "neighborhood_prompts")  # what a case may take over from the record of its request


@dataclass(frozen=True, slots=True)
class Unit:
    """A state of the model: the cases that are edited together, and what is asked before and after.

    Attributes:
        key: Names its shard.
        cases: The cases.
        asked_only: Numbers of cases that the changed models were not edited for, as far as is known.
        ask: Returns the questions of a case.
        probes: Questions that belong to no edit.
        labels: Column -> value: what tells its rows from those of other units with the same cases.
    """

    key: str
    cases: tuple[Case, ...]
    asked_only: frozenset[int] = frozenset()
    ask: Callable[[Case], Iterable[Question]] = questions
    probes: tuple[Question, ...] = ()
    labels: TableRow = field(default_factory=dict)

    def questions(self) -> CaseQuestions:
        """Return the cases with their questions, made anew each time: those of all units would fill the memory."""
        rows = [(case, [q for q in self.ask(case) if self._is_asked(case, q)]) for case in self.cases]
        return [*rows, (replace(self.cases[0], case_id=PROBES), self.probes)] if self.probes else rows

    def _is_asked(self, case: Case, question: Question) -> bool:
        return case.case_id not in self.asked_only or question.kind not in _OF_THE_EDIT

    def status(self) -> dict[int, str]:
        """Return the status of each case for a model that was changed elsewhere."""
        return {case.case_id: ASKED_ONLY if case.case_id in self.asked_only else "ok" for case in self.cases}


class Block(NamedTuple):
    """Units that are edited and scored together: what a worker takes on at a time.

    Attributes:
        names: An editor, and the controls that take its edits; or a model changed elsewhere.
        units: The units.
    """

    names: tuple[str, ...]
    units: tuple[Unit, ...]


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


# What is asked of models that were changed elsewhere: a run's questions about people, and those of their requests.


@dataclass(frozen=True, slots=True)
class Requests:
    """The cases that changed models are asked about.

    Attributes:
        cases: Those of the run, then requests that no case is about.
        requested: Numbers of those that the models were edited for.
    """

    cases: tuple[Case, ...] = ()
    requested: frozenset[int] = frozenset()

    def units(self, protocol: str) -> list[Unit]:
        """Cut the cases into units."""
        others = frozenset(case.case_id for case in self.cases) - self.requested
        return [replace(unit, asked_only=others) for unit in units(self.cases, protocol)]

    def facts(self, file: Path | None) -> JsonObject:
        """Return what the manifest records of the requests; {} without a file of them."""
        if file is None:
            return {}
        rows = cases_to_table(case for case in self.cases if case.case_id in self.requested).to_pylist()
        digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
        return {"requests": {"file": file.name, "asked": len(self.requested), "sha256": digest}}


def match_requests(cases: Sequence[Case], requests: Sequence[Case] = ()) -> Requests:
    """Match the requests that models were edited for with the cases of a run.

    A request is matched with every case of the same subject and new target, and of the same relation where it names
    one. Such a case keeps its own prompts and gets paraphrases and neighborhood prompts of the request's record where
    it has none. A request without a case is asked on its own, with a new number.

    Args:
        cases: Of the run.
        requests: Records of the requests; none when it is unknown what the models were edited for.
    """
    records, requested, unmatched = [], set(), list(requests)
    for case in cases:
        own = next((record for record in requests if _is_about(record.request, case.request)), None)
        if own is not None:
            unmatched = [record for record in unmatched if not _is_about(record.request, case.request)]
            case = replace(case, **{name: getattr(case, name) or getattr(own, name) for name in _PROMPTS})
            requested.add(case.case_id)
        records.append(case)
    numbers = itertools.count(max((case.case_id for case in cases), default=-1) + 1)
    records += (added := [replace(record, case_id=number) for record, number in zip(unmatched, numbers)])
    return Requests(tuple(records), frozenset(requested | {case.case_id for case in added}))


def _is_about(request: EditRequest, case: EditRequest) -> bool:
    same = (request.subject, request.target_new.label) == (case.subject, case.target_new.label)
    return same and request.relation_id in ("", case.relation_id)


def read_requests(file: Path | None, changed: Sequence[str], cases: Sequence[Case]) -> Requests:
    """Return what is asked of the models behind `--changed`.

    Args:
        file: The requests that they were edited for, in any format that `build --records` reads; None: unknown.
        changed: The values of `--changed`.
        cases: Of the run.

    Raises:
        RecordError: Requests without a model that was edited, or a damaged file.
        StorageError: The file cannot be read.
    """
    if file is not None and not changed:
        raise RecordError(
            f"--requests {file}: these are the facts that models of --changed were edited for, and none is given. Name "
            "one with --changed NAME=FOLDER; --data has the facts that --editor edits."
        )
    requests = match_requests(cases, read_cases(file) if file is not None else ()) if changed else Requests()
    if changed and not any(qs for unit in requests.units("single") for _, qs in unit.questions()):
        raise RecordError(
            f"--changed: none of the {len(cases)} cases asks about other people, and it is unknown what the models "
            "were edited for, so there is nothing to ask. Give that with --requests, or other cases with --data, "
            "--config."
        )
    return requests
