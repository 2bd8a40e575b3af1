"""Training a MEND network; killed at any point, it goes on from the last checkpoint."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import above_zero
from seesaw_cf.base.errors import EditError
from seesaw_cf.base.files import atomic_path, cache_folder
from seesaw_cf.base.locks import file_lock
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.editors.mend.examples import TrainingEdit
from seesaw_cf.editors.mend.factors import batch_of, capture, outer_losses, text_batch
from seesaw_cf.editors.mend.files import load_network, save_network
from seesaw_cf.editors.mend.network import MENDNetwork, Upper
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.identity import identity
from seesaw_cf.models.tf32 import exact_products

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MENDTraining:
    """How a network is trained; the defaults are the published ones.

    Attributes:
        steps: Most steps of the optimiser.
        batch: Edits per step.
        learning_rate: Of Adam, for the network.
        step_size_rate: Of Adam, for the learned step sizes.
        edit_weight: Of the edit's loss.
        locality_weight: Of the KL divergence on unrelated text.
        clip: Largest norm of the gradient.
        validate_every: Steps between looks at the held-out examples.
        patience: Steps without a better validation loss after which training ends.
        held_out: Examples kept for validation, at most a fifth of all.
    """

    steps: int = 100_000
    batch: int = 10
    learning_rate: float = 1e-6
    step_size_rate: float = 1e-4
    edit_weight: float = 0.1
    locality_weight: float = 1.0
    clip: float = 100.0
    validate_every: int = 500
    patience: int = 2_000
    held_out: int = 200

    def __post_init__(self) -> None:
        """Refuse numbers that cannot work."""
        above_zero(self, (entry.name for entry in fields(self) if entry.name != "locality_weight"), error=EditError)

    @classmethod
    def for_width(cls, width: int) -> Self:
        """Return the training for a width: the published one takes days on a large model and never ends on a CPU.

        Args:
            width: Units of the residual stream.

        Returns:
            Up to 256 units, minutes on two cores (chosen on the embedded model); up to 1,599, a quarter of an hour for
            135 million parameters (SmolLM2-135M, see docs/editors_measured.md); the published one from 1,600 on.
        """
        if width >= 1600:
            return cls()
        small = cls(learning_rate=3e-4, step_size_rate=1e-3, validate_every=50)
        if width > 256:
            return replace(small, steps=300, batch=8, locality_weight=1.0, patience=150, held_out=32)
        return replace(small, steps=600, batch=16, locality_weight=5.0, patience=200, held_out=64)


def train(
    network: MENDNetwork,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[TrainingEdit],
    settings: MENDTraining,
    seed: int = 0,
    cache: Path | None = None,
) -> MENDNetwork:
    """Train a network, or take it from the cache when the very same training was done before.

    Args:
        network: Untrained; changed in place.
        model: The model that it learns to edit; left as it is.
        tokenizer: Its tokenizer.
        examples: What to train on.
        settings: How.
        seed: Order of the examples.
        cache: Folder for the result and for checkpoints; None = the package's cache folder.

    Returns:
        The network with the best validation loss, in eval mode.

    Raises:
        EditError: Fewer than ten examples, or a loss that is not finite.
    """
    if len(examples) < 10:
        raise EditError(f"MEND: {len(examples)} training examples, expected at least 10. Give more texts or examples.")
    facts = {
        "base": identity(model, tokenizer),
        "training": asdict(settings),
        "seed": seed,
        "matrices": [matrix.name for matrix in network.shape.matrices],
        "start": [network.shape.rank, network.shape.hidden, network.edit_lrs.tolist()],
        "examples": hashlib.sha256(repr(examples).encode()).hexdigest(),
    }
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]
    folder = (cache or cache_folder()) / "mend" / key
    with file_lock(folder.parent / f".{key}.lock", wait=True, required=False):
        if (folder / "network").exists():
            return load_network(folder / "network").to(model.device)
        trainer = _Trainer(network, model, tokenizer, list(examples), settings, seed, folder)
        with exact_products(model), frozen(model), torch.enable_grad():
            best = trainer.run()
        save_network(network, folder / "network", {**facts, "best": best})
    for name in ("state.safetensors", "best.safetensors"):
        (folder / name).unlink(missing_ok=True)
    return network.eval()


class _Trainer:
    """One training; everything that changes is in `network`, `optimiser`, `step`, `best` and `best_step`."""

    def __init__(
        self,
        network: MENDNetwork,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        examples: list[TrainingEdit],
        settings: MENDTraining,
        seed: int,
        folder: Path,
    ) -> None:
        self.network, self.model, self.tokenizer, self.settings = network, model, tokenizer, settings
        order = np.random.default_rng(seed).permutation(len(examples)).tolist()
        held = min(settings.held_out, len(examples) // 5)
        self.validation = [examples[index] for index in order[:held]]
        self.examples = [examples[index] for index in order[held:]]
        self.seed, self.folder = seed, folder
        others = [parameter for name, parameter in network.named_parameters() if name != "edit_lrs"]
        rates = [
            {"params": others, "lr": settings.learning_rate},
            {"params": [network.edit_lrs], "lr": settings.step_size_rate},
        ]
        self.optimiser = torch.optim.Adam(rates)
        self.step, self.best, self.best_step = 0, math.inf, 0
        size = sum(parameter.nbytes for parameter in model.parameters())
        self.upper = Upper([matrix.name for matrix in network.shape.matrices], limit=size // 2)

    def run(self) -> float:
        """Train to the end and leave the best network in place; return its validation loss."""
        self._resume()
        total = self.settings.steps
        with Bar[object](total=total, initial=self.step, desc="training MEND", unit="step", disable=no_bars()) as bar:
            while self.step < total and self.step - self.best_step < self.settings.patience:
                loss = self._train_step()
                self.step += 1
                bar.update()
                bar.set_postfix(loss=f"{loss:.3f}", best=f"{self.best:.3f}")
                if self.step % self.settings.validate_every == 0 or self.step == total:
                    self._validate()
        self.network.load_state_dict(load_file(self.folder / "best.safetensors"))
        logger.info("MEND: best validation loss %.4f at step %d of %d", self.best, self.best_step, self.step)
        return self.best

    def _batch(self, step: int) -> list[TrainingEdit]:
        """Return the examples of a step, a function of the step alone."""
        places = range(step * self.settings.batch, (step + 1) * self.settings.batch)
        size = len(self.examples)
        epochs = {place // size for place in places}
        orders = {epoch: np.random.default_rng([self.seed, epoch]).permutation(size) for epoch in epochs}
        return [self.examples[int(orders[place // size][place % size])] for place in places]

    def _loss(self, examples: Sequence[TrainingEdit], observe: bool) -> Tensor:
        device = self.model.device
        names = [matrix.name for matrix in self.network.shape.matrices]
        edits = batch_of(self.tokenizer, [example.edit for example in examples], device)
        factors = capture(self.model, names, edits, each_row=True, logits_of=self.upper)
        changes = self.network(factors, observe=observe)
        outer = batch_of(self.tokenizer, [example.outer for example in examples], device)
        unrelated = text_batch(self.tokenizer, [example.unrelated for example in examples], self.model)
        edit, locality = outer_losses(changes, self.model, outer, unrelated, logits_of=self.upper)
        return self.settings.edit_weight * edit + self.settings.locality_weight * locality

    def _train_step(self) -> float:
        self.optimiser.zero_grad()
        loss = self._loss(self._batch(self.step), observe=True)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise EditError(
                f"MEND: the training loss is {value} at step {self.step}, expected a finite number. Lower "
                f"learning_rate or step_size_rate, and delete {self.folder} to start anew."
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        self.optimiser.step()
        return value

    @torch.no_grad()
    def _validate(self) -> None:
        """Keep the network when it is the best so far, and write a checkpoint."""
        size = self.settings.batch
        losses = [
            float(self._loss(chunk, observe=False)) * len(chunk)
            for start in range(0, len(self.validation), size)
            if (chunk := self.validation[start : start + size])
        ]
        loss = sum(losses) / len(self.validation)
        if loss < self.best:
            self.best, self.best_step = loss, self.step
            _save(self.folder / "best.safetensors", _state(self.network))
        numbers = torch.tensor([self.step, self.best, self.best_step], dtype=torch.float64)
        _save(
            self.folder / "state.safetensors", {**_state(self.network), **_moments(self.optimiser), "#numbers": numbers}
        )

    def _resume(self) -> None:
        """Go on from a checkpoint when there is one."""
        file = self.folder / "state.safetensors"
        if not file.exists():
            return
        state = load_file(file)
        self.step, self.best, self.best_step = (
            kind(value) for kind, value in zip((int, float, int), state.pop("#numbers").tolist(), strict=True)
        )
        moments = {name: state.pop(name) for name in list(state) if name.startswith("#")}
        self.network.load_state_dict(state)
        saved = self.optimiser.state_dict()
        saved["state"] = {
            int(index): {key: moments[f"#{index}#{key}"] for key in ("step", "exp_avg", "exp_avg_sq")}
            for index in sorted({name.split("#")[1] for name in moments}, key=int)
        }
        self.optimiser.load_state_dict(saved)


def _state(network: MENDNetwork) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}


def _moments(optimiser: torch.optim.Adam) -> dict[str, Tensor]:
    state: dict[int, dict[str, object]] = optimiser.state_dict()["state"]
    return {
        f"#{index}#{key}": torch.as_tensor(value).detach().cpu().clone()
        for index, entry in state.items()
        for key, value in entry.items()
    }


def _save(file: Path, tensors: dict[str, Tensor]) -> None:
    with atomic_path(file) as temporary:
        save_file(tensors, temporary)
