"""The models of a run that were changed elsewhere (`--changed NAME=WHERE`): found before the base loads, read once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import EditError
from seesaw_cf.base.types import Cloze, ClozeScore
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
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import settings_of
from seesaw_cf.run.requests import Requests
from seesaw_cf.run.served import FORM, NoWeights, ServedModel, digest_of, find_served, measure, served_facts
from seesaw_cf.scoring import HFScorer, Scorer, make_scorer
from seesaw_cf.scoring.encode import is_sound, joined


@dataclass(frozen=True, slots=True)
class ExternalModel:
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
        alike = self.vocabulary.cuts_alike([joined(cloze) if is_sound(cloze) else "" for cloze in clozes])
        scores = iter(self.scorer.score([cloze for cloze, same in zip(clozes, alike, strict=True) if same]))
        other = ClozeScore(math.nan, 0, False, "the changed model's tokenizer cuts this text into other tokens")
        return [next(scores) if same else other for same in alike]


def find_external(job: Job, editors: Sequence[str]) -> dict[str, Checkpoint | ServedModel]:
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


def read_external(
    checkpoints: Mapping[str, Checkpoint | ServedModel],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    job: Job,
    overrides: Overrides,
    requests: Requests,
    clozes: Sequence[Cloze] = (),
    earlier: Mapping[str, Any] = {},
) -> tuple[dict[str, ExternalModel], dict[str, EditedModel]]:
    """Take the difference of every model to the base, and make its random control where one is wanted.

    Args:
        checkpoints: See `find_external`.
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
    models: dict[str, ExternalModel] = {}
    facts: dict[str, EditedModel] = {}
    own_requests = [request_facts(case.request) for case in requests.cases if requests.has(case)]
    for name, checkpoint in checkpoints.items():
        if isinstance(checkpoint, ServedModel):
            own = checkpoint.scorer(tokenizer, job)
            measured = measure(own, clozes, job.seed, earlier.get(name, {}).get("server"))
            models[name] = ExternalModel(None, {"form": FORM, "sha256": digest_of(measured)}, own)
            has_null = is_control(name) or control_name("random", name) in checkpoints
            facts[name] = served_facts(checkpoint, measured, isinstance(model, NoWeights), has_null)
            continue
        found = checkpoint.read(model, tokenizer)
        change = with_meta(found.change, {"requests": own_requests or None} | dict(found.change.meta))
        scorer = _apart(job, checkpoint.form, found, tokenizer)
        models[name] = ExternalModel(change, {"form": checkpoint.form, "sha256": change.meta["sha256"]}, scorer)
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
        models[random] = ExternalModel(null, asdict(config) | dict(changed.config))
    return models, facts
