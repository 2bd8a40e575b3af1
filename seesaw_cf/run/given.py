"""The models of a run that were changed elsewhere (`--changed NAME=WHERE`): found before the base loads, read once."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import EditError, RecordError
from seesaw_cf.base.types import Case, Cloze, ClozeScore, EditRequest, JsonObject
from seesaw_cf.editors.control_names import CONTROLS, control_name, is_control, split_control
from seesaw_cf.editors.controls import ControlConfig
from seesaw_cf.editors.locate.checks import request_facts
from seesaw_cf.editors.locate.config import with_settings
from seesaw_cf.editors.nulls import null_kind, null_of
from seesaw_cf.models.change import Change, EditedModel
from seesaw_cf.models.difference import rounding
from seesaw_cf.models.edited import ChangedModel, Checkpoint, find_edited, with_meta
from seesaw_cf.models.editor import Overrides, Settings
from seesaw_cf.models.vocabulary import Vocabulary
from seesaw_cf.records.arrow import read_cases
from seesaw_cf.run.edit_table import ASKED_ONLY
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import settings_of
from seesaw_cf.run.questions import Question, questions
from seesaw_cf.run.served import FORM, NoWeights, ServedModel, digest_of, find_served, measure, served_facts
from seesaw_cf.scoring import HFScorer, Scorer, make_scorer

# What is asked of a model that somebody else edited: the run's questions about people, and those of its requests.

# Kinds of questions that ask whether an edit took.
_OF_THE_EDIT = ("efficacy", "paraphrase", "neighborhood")
# Prompts that a case may take over from the record of the request.
_PROMPTS = ("paraphrase_prompts", "neighborhood_prompts")


@dataclass(frozen=True, slots=True)
class Given:
    """A model changed elsewhere, or its control, in a run: one change under all questions.

    Attributes:
        change: Of the base; None of a model without weights here.
        config: What tells it from another: its form and SHA-256, or the settings of the control.
        scorer: Asks the changed model where that is not the base with the change.
    """

    change: Change | None
    config: Settings
    scorer: Scorer | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that the change writes."""
        return () if self.change is None else self.change.names

    @property
    def norm(self) -> float:
        """Frobenius norm of the change; NaN where it is not known."""
        return math.nan if self.change is None else math.sqrt(sum(x**2 for x in self.change.norms().values()))

    def score(self, model: PreTrainedModel, scorer: Scorer, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Ask the changed model.

        Args:
            model: The base; as before afterwards.
            scorer: Scores with `model`.
            clozes: The questions.
        """
        if self.scorer is not None:
            return self.scorer.score(clozes)
        assert self.change is not None
        with self.change.applied(model):
            return scorer.score(clozes)


@dataclass(frozen=True, slots=True)
class SharedTokensScorer:
    """Scorer of a model with other tokens than its base: of clozes that both tokenizers cut into the same ones.

    Attributes:
        scorer: Of the model, with its own tokenizer.
        vocabulary: What differs from the base's.
    """

    scorer: Scorer
    vocabulary: Vocabulary

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Score `clozes`; of the others the status says why they have no number."""
        alike = self.vocabulary.cuts_alike([cloze.context + cloze.target for cloze in clozes])
        scores = iter(self.scorer.score([cloze for cloze, same in zip(clozes, alike, strict=True) if same]))
        other = ClozeScore(math.nan, 0, False, "the changed model's tokenizer cuts this text into other tokens")
        return [next(scores) if same else other for same in alike]


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
        """Return whether the models were edited for the fact of a case."""
        return key(case) in self.requested

    def asked(self, case: Case) -> list[Question]:
        """Return the questions of a case; without a request none about the edit."""
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


def find_all(job: Job, editors: Sequence[str]) -> dict[str, Checkpoint | ServedModel]:
    """Find the models behind `--changed` and `--null`, by their names.

    Args:
        job: Its `changed` is "NAME=WHERE" each. Of a model that is there already the control can only be "random".
        editors: The run's other editors.

    Raises:
        EditError: Only controls that would have to be edited in.
        StorageError: There is nothing at WHERE.
    """
    checkpoints: dict[str, Checkpoint | ServedModel] = {}
    for name, where in job.changed_places.items():
        checkpoints[name] = find_served(where, f"--changed {name}", job) or find_edited(where)
    for name, places in job.null_places.items():
        for number, where in enumerate(places, start=1):
            null = find_served(where, f"--null {name}", job) or find_edited(where)
            checkpoints[control_name("random", name, number)] = null
    if checkpoints and not editors and (others := [kind for kind in job.controls if kind not in ("random", "none")]):
        for kind in others:
            one_of("control", kind, CONTROLS)
        raise EditError(
            f"--control {others[0]}: a model that is edited already cannot be edited with another fact. Use --control "
            "random, a change of the same norm and rank at the same place, or name an --editor."
        )
    return checkpoints


def read_requests(file: Path | None, edited: Sequence[str], cases: Sequence[Case]) -> Examined:
    """Return what is asked of the models behind `--changed`.

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
            f"--requests {file}: these are the facts that models of --changed were edited for, and none is given. Name "
            "one with --changed NAME=FOLDER; --data has the facts that --editor edits."
        )
    requests = examined(cases, read_cases(file) if file is not None else ()) if edited else Examined()
    if edited and not any(map(requests.asked, requests.cases)):
        raise RecordError(
            f"--changed: none of the {len(cases)} cases asks about other people, and nobody says what the models were "
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


def _apart(job: Job, form: str, found: ChangedModel, tokenizer: PreTrainedTokenizerBase) -> Scorer | None:
    """Return what asks a model in place of the base with its change; None where that is the same."""
    if found.whole is None:
        return None
    own = found.vocabulary.tokenizer if found.vocabulary else tokenizer
    # Kernels of quantised models give other numbers in other batches.
    alone = form == "quantised checkpoint"
    scorer = HFScorer(found.whole, own, max_tokens=1) if alone else _scorer(job, found.whole, own)
    return SharedTokensScorer(scorer, found.vocabulary) if found.vocabulary else scorer


def _scorer(job: Job, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Scorer:
    return make_scorer(model, tokenizer, job.scorer, job.max_tokens, job.memory)[0]


def _floor(dtype: torch.dtype | None, model: PreTrainedModel, scorer: Scorer, clozes: Sequence[Cloze]) -> list[str]:
    """Say how far scores of the base move when its weights are rounded to a dtype; nothing without one."""
    if dtype is None:
        return []
    with rounding(model, dtype).applied(model):
        after = scorer.score(clozes)
    moved = [abs(a.logprob - b.logprob) for a, b in zip(scorer.score(clozes), after, strict=True)]
    moved = [value for value in moved if math.isfinite(value)]
    floor = f"{np.percentile(moved, 99):.2g}" if moved else "an unknown number of"
    return [
        f"its dtype alone is a noise floor: the base rounded to {str(dtype).removeprefix('torch.')} moves "
        f"log-probabilities by up to {floor} nats (99 % of {len(moved)} questions)"
    ]


def read_all(
    checkpoints: Mapping[str, Checkpoint | ServedModel],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    job: Job,
    overrides: Overrides,
    requests: Examined,
    clozes: Sequence[Cloze] = (),
    earlier: Mapping[str, Any] = {},
) -> tuple[dict[str, Given], dict[str, EditedModel]]:
    """Take the difference of every model to the base, and make its random control where one is wanted.

    Args:
        checkpoints: See `find_all`.
        model: The base.
        tokenizer: The base's.
        job: What the run does: its controls, their seeds, how it scores.
        overrides: Settings of the run, for "random".
        requests: The requests that each delta then carries.
        clozes: Questions on which the noise floor of a narrower dtype or of a server is measured.
        earlier: Part `edited` of the manifest of a run that goes on.

    Returns:
        Name -> model, controls last; and for the manifest: where each came from, what it moved, what its control is.

    Raises:
        SeesawError: A model does not belong to the base or cannot be read; see `Checkpoint`.
    """
    models: dict[str, Given] = {}
    facts: dict[str, EditedModel] = {}
    own_requests = [request_facts(case.request) for case in requests.cases if requests.has(case)]
    for name, checkpoint in checkpoints.items():
        if isinstance(checkpoint, ServedModel):
            own = checkpoint.scorer(tokenizer, job)
            measured = measure(own, clozes, job.seed, earlier.get(name, {}).get("server"))
            models[name] = Given(None, {"form": FORM, "sha256": digest_of(measured)}, own)
            has_null = is_control(name) or control_name("random", name) in checkpoints
            facts[name] = served_facts(checkpoint, measured, isinstance(model, NoWeights), has_null)
            continue
        found = checkpoint.read(model, tokenizer)
        change = with_meta(found.change, {"requests": own_requests or None} | dict(found.change.meta))
        scorer = _apart(job, checkpoint.form, found, tokenizer)
        models[name] = Given(change, {"form": checkpoint.form, "sha256": change.meta["sha256"]}, scorer)
        kind = null_kind(change, rounded=found.rounding)
        facts[name] = {
            "source": checkpoint.source,
            "form": checkpoint.form,
            "moved": change.meta["moved"],
            "notes": [*found.notes, *_floor(found.rounded, model, _scorer(job, model, tokenizer), clozes)],
            "null": kind,
        }
    numbers = range(1, job.control_seeds + 1) if job.changed_controls else ()
    for name in {split_control(name)[1] for name in models if is_control(name)}:
        facts[name]["null"] = "given"
    drawn = {n: m for n, m in models.items() if not is_control(n) and facts[n]["null"] not in ("", "given")}
    for (name, changed), number in itertools.product(drawn.items(), numbers):
        assert changed.change is not None
        random = control_name("random", name, number)
        config = with_settings(ControlConfig(editor=name), settings_of(random, overrides))
        null = null_of(changed.change, facts[name]["null"], config)
        models[random] = Given(null, asdict(config) | dict(changed.config))
    return models, facts
