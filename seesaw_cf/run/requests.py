"""What is asked of models changed elsewhere: a run's questions about people, and those of their requests."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Case, EditRequest, JsonObject
from seesaw_cf.records.arrow import cases_to_table, read_cases
from seesaw_cf.run.edit_table import ASKED_ONLY
from seesaw_cf.run.questions import Question, questions

# Kinds of questions that ask whether an edit took.
_OF_THE_EDIT = ("efficacy", "paraphrase", "neighborhood")
# Prompts that a case may take over from the record of the request.
_PROMPTS = ("paraphrase_prompts", "neighborhood_prompts")


@dataclass(frozen=True, slots=True)
class Requests:
    """What is asked of models changed elsewhere: the run's cases, and requests that no case is about.

    Attributes:
        cases: Those of the run, then requests that no case is about.
        requested: Those of `cases` that are about a request, as `key` names them.
    """

    cases: tuple[Case, ...] = ()
    requested: frozenset[tuple[str, str, int]] = field(default_factory=frozenset)

    def has(self, case: Case) -> bool:
        """Return whether the models were edited for the fact of a case."""
        return key(case) in self.requested

    def questions(self, case: Case) -> list[Question]:
        """Return the questions of a case; without a request none about the edit."""
        every = questions(case)
        return list(every) if self.has(case) else [q for q in every if q.kind not in _OF_THE_EDIT]

    def status(self, case: Case) -> str:
        """Return the status of a case in the table of edits."""
        return "ok" if self.has(case) else ASKED_ONLY


def key(case: Case) -> tuple[str, str, int]:
    """Return what identifies a case in a run."""
    return case.request.relation_id, case.effect_relation_id or "", case.case_id


def match_requests(cases: Sequence[Case], requests: Sequence[Case] = ()) -> Requests:
    """Match the requests that models were edited for with the cases of a run.

    A request is matched with every case of the same subject and new target, and of the same relation where it names
    one. Such a case keeps its own prompts and gets paraphrases and neighbourhood prompts of the request's record where
    it has none. A request without a case is asked on its own, with a new number.

    Args:
        cases: Of the run.
        requests: Records of the requests; none when it is unknown what the models were edited for.
    """
    records, requested, alone = [], set(), list(requests)
    for case in cases:
        own = next((record for record in requests if _is_about(record.request, case.request)), None)
        if own is not None:
            alone = [record for record in alone if not _is_about(record.request, case.request)]
            case = replace(case, **{name: getattr(case, name) or getattr(own, name) for name in _PROMPTS})
            requested.add(key(case))
        records.append(case)
    numbers = itertools.count(max((case.case_id for case in cases), default=-1) + 1)
    records += (others := [replace(record, case_id=number) for record, number in zip(alone, numbers)])
    return Requests(tuple(records), frozenset(requested | {key(case) for case in others}))


def _is_about(request: EditRequest, case: EditRequest) -> bool:
    same = (request.subject, request.target_new.label) == (case.subject, case.target_new.label)
    return same and request.relation_id in ("", case.relation_id)


def read_requests(file: Path | None, changed: Sequence[str], cases: Sequence[Case]) -> Requests:
    """Return what is asked of the models behind `--changed`.

    Args:
        file: The requests that they were edited for, in any format that `seesaw-cf import` reads; None: unknown.
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
    if changed and not any(map(requests.questions, requests.cases)):
        raise RecordError(
            f"--changed: none of the {len(cases)} cases asks about other people, and it is unknown what the models "
            "were edited for, so there is nothing to ask. Give that with --requests, or other cases with --data, "
            "--config."
        )
    return requests


def requests_facts(file: Path | None, requests: Requests) -> JsonObject:
    """Return what the manifest records of the requests; nothing without any."""
    if file is None:
        return {}
    rows = cases_to_table(filter(requests.has, requests.cases)).to_pylist()
    digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
    return {"requests": {"file": file.name, "asked": len(requests.requested), "sha256": digest}}
