"""The models of a run that were changed elsewhere (`--changed NAME=WHERE`): each a second model, held one at a time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import EditError, RecordError, hide_secrets
from seesaw_cf.base.types import Cloze, ClozeScore
from seesaw_cf.editors.control_names import CONTROLS, control_name, is_control
from seesaw_cf.editors.controls import ControlConfig, noise_like
from seesaw_cf.editors.locate.config import with_settings
from seesaw_cf.models.changed import ChangedModel, SecondModel, find_changed, norms_between, with_delta
from seesaw_cf.models.editor import Overrides, Settings
from seesaw_cf.models.identity import identity
from seesaw_cf.models.names import EditedModel
from seesaw_cf.run.edits import Outcome
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import settings_of
from seesaw_cf.run.units import Unit
from seesaw_cf.scoring import Scorer, make_scorer


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
    how: Callable[[PreTrainedModel, PreTrainedTokenizerBase], Scorer]


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

    def outcomes(self, name: str, units: Sequence[Unit]) -> list[Outcome]:
        """Score units with a changed model: one change for all of them."""
        clozes = list(dict.fromkeys(q.cloze for unit in units for _, asked in unit.questions() for q in asked))
        scores = dict(zip(clozes, self.score(name, clozes), strict=True))
        return [Outcome(scores, unit.status(), self.models[name].norm) for unit in units]

    def score(self, name: str, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Score with a changed model, in the base's place on the device."""
        with _off_device(self.base) as device:
            if self._loaded is None or self._loaded[0] != name:
                self._loaded = None
                second = self.models[name].load()
                _move(second.model, device)
                self._loaded = (name, second, self.models[name].how(second.model, second.tokenizer))
            _, second, scorer = self._loaded
            _move(second.model, device)
            try:
                return scorer.score(clozes)
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
    if found and not editors and (others := [kind for kind in job.controls if kind not in ("random", "none")]):
        for kind in others:
            one_of("control", kind, CONTROLS)
        raise EditError(
            f"--control {others[0]}: a model that is edited already cannot be edited with another fact. Use --control "
            "random, a change of the same norm, or name an --editor."
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
    models: dict[str, ExternalModel] = {}
    facts: dict[str, EditedModel] = {}
    controls: dict[str, ExternalModel] = {}
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
            raise RecordError(changed.is_base())
        digest = hashlib.sha256(json.dumps([own["fingerprint"], own["tokenizer"]]).encode()).hexdigest()
        config = {"form": changed.form, "sha256": digest}
        models[name] = ExternalModel(config, _length(norms), load, how)
        given = not is_control(name) and control_name("random", name) in found
        drawn = bool(norms) and not given and not is_control(name)
        notes = [*second.notes]
        if not drawn and not given and not is_control(name):
            notes.append("it has no random control: its weights are not comparable. Name one with --control-model")
        facts[name] = {
            "source": hide_secrets(changed.source),
            "form": changed.form,
            "notes": notes,
            "null": "given" if given else "noise" if drawn else "",
        }
        for number in numbers if drawn else ():
            random = control_name("random", name, number)
            settings = with_settings(ControlConfig(editor=name), settings_of(random, overrides))
            noise = partial(_noisy, base, tokenizer, norms, settings.seed)
            controls[random] = ExternalModel(asdict(settings) | config, _length(norms), noise, how)
        del second
    return models | controls, facts


def _length(norms: Mapping[str, float]) -> float:
    return math.sqrt(sum(norm**2 for norm in norms.values())) if norms else math.nan


def _noisy(
    base: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, norms: Mapping[str, float], seed: int
) -> SecondModel:
    return SecondModel(with_delta(base, noise_like(base, norms, seed)), tokenizer)


def _scorer(job: Job, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Scorer:
    """Return what asks a model; kernels of quantised models give other numbers in other batches."""
    how = "single" if getattr(model, "is_quantized", False) else job.scorer
    return make_scorer(model, tokenizer, how, job.max_tokens, job.memory_bytes)[0]
