"""The models of a run that were changed elsewhere (`--changed NAME=WHERE`), and what they are asked.

Each is a second model; one of them is held at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import EditError, RecordError, hide_secrets
from seesaw_cf.base.types import Case, Cloze, ClozeScore, EditRequest, JsonObject
from seesaw_cf.editors.control_names import CONTROLS, control_name, is_control
from seesaw_cf.editors.controls import ControlConfig, noise_like
from seesaw_cf.editors.locate.config import with_settings
from seesaw_cf.generation import Completion, Sampling
from seesaw_cf.generation.hf import HFGenerator, Jobs
from seesaw_cf.models.changed import ChangedModel, SecondModel, find_changed, norms_between, with_delta
from seesaw_cf.models.editor import Overrides, Settings
from seesaw_cf.models.identity import identity
from seesaw_cf.models.names import EditedModel
from seesaw_cf.records.arrow import cases_to_table, read_cases
from seesaw_cf.run.edits import Outcome, distinct
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import settings_of
from seesaw_cf.run.units import Unit, units
from seesaw_cf.scoring import Scorer, make_scorer

_PROMPTS = ("paraphrase_prompts", "neighborhood_prompts")  # what a case may take over from the record of its request


@dataclass(frozen=True, slots=True)
class ExternalModel:
    """A model changed elsewhere, or its control, in a run: one change under all questions.

    Attributes:
        config: What tells it from another: its form and SHA-256, or the settings of the control.
        norm: Frobenius norm of the difference to the base; NaN where it is not known.
        load: Loads the model.
        how: The scorer that asks it, see `seesaw_cf.scoring.make_scorer`.
    """

    config: Settings
    norm: float
    load: Callable[[], SecondModel]
    how: Callable[[SecondModel], Scorer]


@dataclass(eq=False)
class SecondModels:
    """Holds one changed model at a time, so that a device needs room for one model only.

    Attributes:
        base: Is on the CPU while a changed model is asked on a GPU.
        models: Name -> model of the run.
    """

    base: PreTrainedModel
    models: Mapping[str, ExternalModel]
    _loaded: tuple[str, SecondModel, Scorer] | None = None

    def outcomes(self, name: str, asked: Sequence[Unit]) -> list[Outcome]:
        """Score units with a changed model: one change for all of them."""
        clozes = list(distinct(*asked))
        scores = dict(zip(clozes, self.score(name, clozes), strict=True))
        return [Outcome(unit.status(), None, self.models[name].norm, scores) for unit in asked]

    def score(self, name: str, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Score with a changed model, in the base's place on the device."""
        with self._placed(name) as (_, scorer):
            return scorer.score(clozes)

    def write(self, name: str, jobs: Jobs, sampling: Sampling) -> list[list[Completion]]:
        """Write with a changed model, in the base's place on the device; see `HFGenerator.generate_each`."""
        with self._placed(name) as (second, _):
            return HFGenerator(second.model, second.tokenizer).generate_each(jobs, sampling)

    @contextlib.contextmanager
    def _placed(self, name: str) -> Iterator[tuple[SecondModel, Scorer]]:
        with _off_device(self.base) as device:
            if self._loaded is None or self._loaded[0] != name:
                self._loaded = None
                second = self.models[name].load()
                _move(second.model, device)
                self._loaded = (name, second, self.models[name].how(second))
            _, second, scorer = self._loaded
            _move(second.model, device)
            try:
                yield second, scorer
            finally:
                if device.type != "cpu":
                    _move(second.model, torch.device("cpu"))


@contextlib.contextmanager
def _off_device(base: PreTrainedModel) -> Iterator[torch.device]:
    device = base.device
    _move(base, torch.device("cpu"))
    try:
        yield device
    finally:
        _move(base, device)


def _move(model: PreTrainedModel, device: torch.device) -> None:
    """Move a model, unless it is spread over devices or quantised."""
    if model.device != device and not hasattr(model, "hf_device_map") and not getattr(model, "is_quantized", False):
        torch.nn.Module.to(model, device)


def find_external(
    job: Job, editors: Sequence[str], held: Mapping[str, ChangedModel] | None = None
) -> dict[str, ChangedModel]:
    """Find the models behind `--changed` and `--control-model`, by their names.

    Args:
        job: Its `changed` is "NAME=WHERE" each. Of a model that is there already the control can only be "random".
        editors: The run's other editors.
        held: Models in memory, by their names.

    Raises:
        EditError: Only controls that would have to be edited in.
        StorageError: There is nothing at WHERE.
    """
    held = held or {}
    found = {name: held[name] if name in held else find_changed(where) for name, where in job.changed_places.items()}
    for name, places in job.control_places.items():
        for number, where in enumerate(places, start=1):
            found[control_name("random", name, number)] = find_changed(where)
    others = [one_of("control", kind, CONTROLS) for kind in job.controls if kind not in ("random", "none")]
    if found and not editors and others:
        raise EditError(
            f"audit: control is {others[0]}, and a model that is edited already cannot be edited with another fact. "
            "Use random, a change of the same norm, or name an editor."
        )
    return found


def read_external(
    found: Mapping[str, ChangedModel],
    base: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    job: Job,
    overrides: Overrides,
) -> tuple[dict[str, ExternalModel], dict[str, EditedModel]]:
    """Load every changed model once: name what it is, and draw its random controls where they are wanted.

    Args:
        found: See `find_external`.
        base: The base.
        tokenizer: The base's.
        job: What the run does: its controls, their seeds, how it scores.
        overrides: Settings of the run, for "random".

    Returns:
        Name -> model, controls last; and for the manifest: where each came from and what its control is.

    Raises:
        SeesawError: A model cannot be loaded, or is the base; see `ChangedModel.load`.
    """
    models, controls, facts = dict[str, ExternalModel](), dict[str, ExternalModel](), dict[str, EditedModel]()
    how = partial(_scorer, job)
    known = identity(base, tokenizer) if found else {}
    numbers = range(1, job.control_seeds + 1) if job.changed_controls else ()
    for name, changed in found.items():
        load = partial(changed.load, base, tokenizer, trust_remote_code=job.trust_remote_code)
        with _off_device(base):
            second = load()
            norms = norms_between(base, second.model)
            own = identity(second.model, second.tokenizer)
        if all(own[part] == known[part] for part in ("fingerprint", "tokenizer")):
            raise RecordError(
                f"{changed.source}: this {changed.form} is the base, weight for weight, so there is no difference to "
                "audit. Was it saved before it was trained?"
            )
        norm = math.sqrt(sum(norm**2 for norm in norms.values())) if norms else math.nan
        digest = hashlib.sha256(json.dumps([own["fingerprint"], own["tokenizer"]]).encode()).hexdigest()
        config, notes = {"form": changed.form, "sha256": digest}, [*second.notes]
        models[name] = ExternalModel(config, norm, load, how)
        if is_control(name):
            null = ""
        elif not (null := "given" if control_name("random", name) in found else "noise" if norms else ""):
            what = "those of the base" if own["fingerprint"] == known["fingerprint"] else "not comparable"
            notes.append(f"it has no random control: its weights are {what}. Name one with --control-model")
        facts[name] = {"source": hide_secrets(changed.source), "form": changed.form, "notes": notes, "null": null}
        for number in numbers if null == "noise" else ():
            random = control_name("random", name, number)
            settings = with_settings(ControlConfig(editor=name), settings_of(random, overrides))
            noise = partial(_noisy, base, tokenizer, norms, settings.seed)
            controls[random] = ExternalModel(asdict(settings) | config, norm, noise, how)
        del second
    return models | controls, facts


def _noisy(
    base: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, norms: Mapping[str, float], seed: int
) -> SecondModel:
    return SecondModel(with_delta(base, noise_like(base, norms, seed)), tokenizer)


def _scorer(job: Job, second: SecondModel) -> Scorer:
    """Return what asks a model; kernels of quantised models give other numbers in other batches."""
    how = "single" if getattr(second.model, "is_quantized", False) else job.scorer
    return make_scorer(second.model, second.tokenizer, how, job.max_tokens, job.memory_bytes)[0]


# What changed models are asked: a run's questions about people, and those of the facts that they were edited for.


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
    """Return what is asked of the changed models.

    Args:
        file: The requests that they were edited for, in any format that `build --records` reads; None: unknown.
        changed: Names and places of these models.
        cases: Of the run.

    Raises:
        RecordError: Requests without a model that was edited, or a damaged file.
        StorageError: The file cannot be read.
    """
    if not changed and file is None:
        return Requests()
    if not changed:
        raise RecordError(
            f"audit: requests is {file}, the facts that changed models were edited for, and none is given. Name one as "
            "`changed`; `data` has the facts that an editor edits."
        )
    requests = match_requests(cases, () if file is None else read_cases(file))
    if not any(qs for unit in requests.units("single") for _, qs in unit.questions()):
        raise RecordError(
            f"audit: changed: none of the {len(cases)} cases asks about other people, and what the models were "
            "edited for is unknown, so there is nothing to ask. Give that as `requests`, or other `data` or `config`."
        )
    return requests
