"""What is asked of a model that somebody else edited: the run's questions about people, and those of its requests."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.run.edit_table import ASKED_ONLY
from seesaw_cf.run.questions import Question, questions
from seesaw_cf.types import Case, EditRequest

# Kinds of questions that ask whether an edit took.
_OF_THE_EDIT = ("efficacy", "paraphrase", "neighborhood")
# Prompts that a case may take over from the record of the request.
_PROMPTS = ("paraphrase_prompts", "neighborhood_prompts")


@dataclass(frozen=True, slots=True)
class Given:
    """A model that somebody else edited, or its control, in a run: one change under all questions.

    Attributes:
        delta: The change of the base.
        config: What tells it from another: its form and SHA-256, or the settings of the control.
    """

    delta: WeightDelta
    config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Examined:
    """The cases of such models.

    Attributes:
        cases: Those of the run, then requests that no case is about.
        requested: Those of `cases` that are about a request, as `key` names them.
    """

    cases: tuple[Case, ...] = ()
    requested: frozenset[tuple[str, str, int]] = field(default_factory=frozenset)

    def has(self, case: Case) -> bool:
        """Whether the models were edited for the fact of a case."""
        return key(case) in self.requested

    def asked(self, case: Case) -> list[Question]:
        """The questions of a case; without a request none about the edit."""
        every = questions(case)
        return list(every) if self.has(case) else [q for q in every if q.kind not in _OF_THE_EDIT]

    def status(self, case: Case) -> str:
        """What the table of edits says of a case."""
        return "ok" if self.has(case) else ASKED_ONLY


def key(case: Case) -> tuple[str, str, int]:
    """What tells a case from the others of a run."""
    return case.request.relation_id, case.effect_relation_id or "", case.case_id


def examined(cases: Sequence[Case], requests: Sequence[Case] = ()) -> Examined:
    """Match the requests that models were edited for with the cases of a run.

    A request is matched with every case of the same subject and new target, and of the same relation where it names
    one. Such a case keeps its own prompts and gets paraphrases and neighbourhood prompts of the request's record where
    it has none. A request without a case is asked on its own, with a new number.

    Args:
        cases: Of the run.
        requests: Records of the requests; none when nobody says what the models were edited for.
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
    return Examined(tuple(records), frozenset(requested | {key(case) for case in others}))


def _is_about(request: EditRequest, case: EditRequest) -> bool:
    same = (request.subject, request.target_new.label) == (case.subject, case.target_new.label)
    return same and request.relation_id in ("", case.relation_id)
