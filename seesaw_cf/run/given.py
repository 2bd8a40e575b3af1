"""The models of a run that were edited elsewhere (`--edited NAME=WHERE`): found before the base loads, read once."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import EditError, RecordError, UnknownNameError
from seesaw_cf.base.types import Case, EditRequest, JsonObject
from seesaw_cf.editors import EDITORS
from seesaw_cf.editors.control_names import CONTROLS, control_name
from seesaw_cf.editors.controls import ControlConfig, RandomControl
from seesaw_cf.editors.locate.checks import request_facts
from seesaw_cf.editors.locate.config import with_settings
from seesaw_cf.models.edited import Checkpoint, find_edited
from seesaw_cf.models.editor import Overrides, Settings
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.records.arrow import read_cases
from seesaw_cf.run.edit_table import ASKED_ONLY
from seesaw_cf.run.make_editors import settings_of
from seesaw_cf.run.questions import Question, questions

# What is asked of a model that somebody else edited: the run's questions about people, and those of its requests.

# Kinds of questions that ask whether an edit took.
_OF_THE_EDIT = ("efficacy", "paraphrase", "neighborhood")
# Prompts that a case may take over from the record of the request.
_PROMPTS = ("paraphrase_prompts", "neighborhood_prompts")


@dataclass(frozen=True, slots=True)
class Given:
    """A model edited elsewhere, or its control, in a run: one change under all questions.

    Attributes:
        delta: The change of the base.
        config: What tells it from another: its form and SHA-256, or the settings of the control.
    """

    delta: WeightDelta
    config: Settings


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
        """Return the status of a case in the table of edits."""
        return "ok" if self.has(case) else ASKED_ONLY


def key(case: Case) -> tuple[str, str, int]:
    """Return what identifies a case in a run."""
    return case.request.relation_id, case.effect_relation_id or "", case.case_id


def examined(cases: Sequence[Case], requests: Sequence[Case] = ()) -> Examined:
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
    return Examined(tuple(records), frozenset(requested | {key(case) for case in others}))


def _is_about(request: EditRequest, case: EditRequest) -> bool:
    same = (request.subject, request.target_new.label) == (case.subject, case.target_new.label)
    return same and request.relation_id in ("", case.relation_id)


_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?")


def find_all(edited: Sequence[str], controls: Sequence[str], editors: Sequence[str]) -> dict[str, Checkpoint]:
    """The models behind `--edited`, by their names.

    Args:
        edited: "NAME=WHERE" each.
        controls: Kinds of controls of the run; of a model that is there already there can only be "random".
        editors: The run's other editors.

    Raises:
        RecordError: Not NAME=WHERE, or a name that cannot be a column of tables.
        UnknownNameError: A name is used twice, or is that of an editor.
        EditError: Only controls that would have to be edited in.
        StorageError: There is nothing at WHERE.
    """
    checkpoints: dict[str, Checkpoint] = {}
    for word in edited:
        name, is_, where = word.partition("=")
        if not is_ or not where or not _NAME.fullmatch(name):
            raise RecordError(
                f"--edited: got {shown(word)}, expected NAME=FOLDER or NAME=ORG/NAME, the name of 1 to 64 ASCII "
                "letters, digits, '.', '_' and '-', a letter or digit first and last: it names rows and a folder."
            )
        owner = "the unedited model's" if name == "unedited" else "an editor's or a control's"
        reserved = name in EDITORS or name in editors or name == "unedited" or name.split("-")[0] in CONTROLS
        if reserved or name in checkpoints:
            why = "used twice" if name in checkpoints else owner
            raise UnknownNameError(f"--edited: the name {name!r} is {why}; expected a new one. Choose another.")
        checkpoints[name] = find_edited(where)
    if checkpoints and not editors and (others := [kind for kind in controls if kind != "random"]):
        for kind in others:
            one_of("control", kind, CONTROLS)
        raise EditError(
            f"--control {others[0]}: a model that is edited already cannot be edited with another fact. Use --control "
            "random, a change of the same norm and rank at the same place, or name an --editor."
        )
    return checkpoints


def read_requests(file: Path | None, edited: Sequence[str], cases: Sequence[Case]) -> Examined:
    """What is asked of the models behind `--edited`.

    Args:
        file: The requests that they were edited for, in any format that `seesaw-cf import` reads; None: unknown.
        edited: As it was given.
        cases: Of the run.

    Raises:
        RecordError: Requests without a model that was edited, or a damaged file.
        StorageError: The file cannot be read.
    """
    if file is not None and not edited:
        raise RecordError(
            f"--requests {file}: these are the facts that models of --edited were edited for, and none is given. Name "
            "one with --edited NAME=FOLDER; --data has the facts that --editor edits."
        )
    requests = examined(cases, read_cases(file) if file is not None else ()) if edited else Examined()
    if edited and not any(map(requests.asked, requests.cases)):
        raise RecordError(
            f"--edited: none of the {len(cases)} cases asks about other people, and nobody says what the models were "
            "edited for, so there is nothing to ask. Give that with --requests, or other cases with --data, --config."
        )
    return requests


def requests_facts(file: Path | None, requests: Examined) -> JsonObject:
    """Return what the manifest records of the requests; nothing without any."""
    if file is None:
        return {}
    rows = sorted(json.dumps([case.request.text, case.request.target_new.label]) for case in requests.cases)
    digest = hashlib.sha256(json.dumps([rows, sorted(requests.requested)]).encode()).hexdigest()
    return {"requests": {"file": file.name, "asked": len(requests.requested), "sha256": digest}}


def read_all(
    checkpoints: Mapping[str, Checkpoint],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    controls: Sequence[str],
    overrides: Overrides,
    requests: Examined,
    seeds: int = 1,
) -> tuple[dict[str, Given], list[str]]:
    """Take the difference of every model to the base, and make its random control where one is wanted.

    Args:
        checkpoints: See `find_all`.
        model: The base.
        tokenizer: The base's.
        controls: Kinds of controls of the run.
        overrides: Settings of the run, for "random".
        requests: The requests that each delta then carries.
        seeds: How many random controls each model has.

    Returns:
        Name -> model, controls last; and what the user should know.

    Raises:
        SeesawError: A model does not belong to the base or cannot be read; see `Checkpoint`.
    """
    models, notes = {}, []
    own_requests = [request_facts(case.request) for case in requests.cases if requests.has(case)]
    for name, checkpoint in checkpoints.items():
        if checkpoint.form == "checkpoint" and not checkpoint.check_tokenizer(tokenizer):
            notes.append(f"{name}: {checkpoint.source} has no tokenizer; the base's is used.")
        delta = checkpoint.delta(model)
        delta = replace(delta, meta={"requests": own_requests or None} | dict(delta.meta))
        models[name] = Given(delta, {"form": checkpoint.form, "sha256": delta.meta["sha256"]})
    numbers = range(1, seeds + 1) if "random" in controls else ()
    for name, number in itertools.product(list(models), numbers):
        random = control_name("random", name, number)
        config = with_settings(ControlConfig(editor=name), settings_of(random, overrides))
        models[random] = Given(
            RandomControl(config).like(models[name].delta), asdict(config) | dict(models[name].config)
        )
    return models, notes


def moved_by(models: Mapping[str, Given], checkpoints: Mapping[str, Checkpoint]) -> dict[str, JsonObject]:
    """What each model moved, for the manifest: where it came from and one row for each parameter."""
    return {
        name: {"source": checkpoint.source, "form": checkpoint.form, "moved": models[name].delta.meta["moved"]}
        for name, checkpoint in checkpoints.items()
    }
