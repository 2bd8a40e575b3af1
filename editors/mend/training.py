"""Training a MEND network; killed at any point, it goes on from the last checkpoint.

Of processes with one cache that train the same network, one leads and the others help: the bytes are those of one
process alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import above_zero
from seesaw_cf.base.errors import EditError
from seesaw_cf.base.files import atomic_path, cache_folder, remove
from seesaw_cf.base.locks import file_lock, locks_end_with_process
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.base.versions import versions
from seesaw_cf.editors.mend.examples import TrainingEdit
from seesaw_cf.editors.mend.files import load_network, save_network
from seesaw_cf.editors.mend.network import MENDNetwork, Upper
from seesaw_cf.editors.mend.shared import POLL_SECONDS, SharedTasks, Tensors
from seesaw_cf.editors.mend.tasks import (
    OUTER,
    UNRELATED,
    ModelTasks,
    factor_tasks,
    join,
    loss_tasks,
    total_gradient,
    total_loss,
)
from seesaw_cf.models.identity import identity

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
        parts: Into how many parts a batch is cut at most; four times as many processes can take part in a step. The
            network's bytes depend on it, and not on who takes part.
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
    parts: int = 2

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
        small = cls(learning_rate=3e-4, step_size_rate=1e-3, validate_every=50, parts=1)
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
        network: Untrained; not to be used afterwards.
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
    names = [matrix.name for matrix in network.shape.matrices]
    facts = {
        "base": identity(model, tokenizer),
        "training": asdict(settings),
        "seed": seed,
        "matrices": names,
        "start": [network.shape.rank, network.shape.hidden, network.edit_lrs.tolist()],
        "examples": hashlib.sha256(repr(examples).encode()).hexdigest(),
    }
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]
    folder = (cache or cache_folder()) / "mend" / key
    weights = {OUTER: settings.edit_weight, UNRELATED: settings.locality_weight}
    trainer = _Trainer(network, ModelTasks(model, tokenizer, examples, weights, Upper(names)), settings, seed, folder)
    lock = partial(file_lock, folder.parent / f".{key}.lock", required=False)
    while not (folder / "network").exists():
        with lock(wait=not trainer.can_help) as leads:
            if leads and not (folder / "network").exists():
                with torch.enable_grad():
                    best = trainer.run()
                save_network(network, folder / "network", {**facts, "best": best})
                for name in ("state.safetensors", "best.safetensors"):
                    remove(folder / name)
        if not leads:
            trainer.help(lock)
    remove(trainer.shared.folder)
    return load_network(folder / "network").to(model.device)


class _Trainer:
    """One training; everything that changes is in `network`, `optimiser`, `step`, `best` and `best_step`.

    What a step asks of the model is done by this process and by those that help; the network runs here alone, on the
    whole batch, and its gradient follows from that of the losses with respect to the changes.
    """

    def __init__(
        self, network: MENDNetwork, tasks: ModelTasks, settings: MENDTraining, seed: int, folder: Path
    ) -> None:
        self.network, self.settings, self.seed, self.folder = network, settings, seed, folder
        n = len(tasks.examples)
        order = np.random.default_rng(seed).permutation(n).tolist()
        held = min(settings.held_out, n // 5)
        self.validation, self.examples = order[:held], order[held:]
        others = [parameter for name, parameter in network.named_parameters() if name != "edit_lrs"]
        rates = [
            {"params": others, "lr": settings.learning_rate},
            {"params": [network.edit_lrs], "lr": settings.step_size_rate},
        ]
        self.optimiser = torch.optim.Adam(rates)
        self.step, self.best, self.best_step = 0, math.inf, 0
        self.shared = SharedTasks(folder / f"tasks-{_kind_of_process(tasks.model)}", tasks.do)
        self.can_help = locks_end_with_process()
        self.next_factors: list[Tensors] = []

    def run(self) -> float:
        """Train to the end and leave the best network in place; return its validation loss."""
        for file in self.shared.folder.glob("*.task"):  # of a process that was killed
            file.unlink(missing_ok=True)
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

    def help(self, lock: Callable[[], AbstractContextManager[bool]]) -> None:
        """Do tasks for the process that trains, until its lock is free: it has the network, or was killed."""
        logger.info("MEND: another process trains this network, this one helps")
        with Bar[object](desc="helping to train MEND", unit="task", disable=no_bars()) as bar:
            while self.can_help:
                try:
                    done = self.shared.help()
                except Exception as error:  # such as memory: the other process does what is not done here
                    logger.warning("MEND: this process cannot help and waits (%s: %s)", type(error).__name__, error)
                    self.can_help = False
                    return
                bar.update(done)
                if not done:
                    time.sleep(POLL_SECONDS)
                    with lock() as free:
                        if free:
                            return

    def _batch(self, step: int) -> list[int]:
        """Return the numbers of the examples of a step, a function of the step alone."""
        places = range(step * self.settings.batch, (step + 1) * self.settings.batch)
        size = len(self.examples)
        epochs = {place // size for place in places}
        orders = {epoch: np.random.default_rng([self.seed, epoch]).permutation(size) for epoch in epochs}
        return [self.examples[int(orders[place // size][place % size])] for place in places]

    def _train_step(self) -> float:
        self.optimiser.zero_grad()
        device, parts, batch = self.network.edit_lrs.device, self.settings.parts, self._batch(self.step)
        factors = self.next_factors or self.shared.do_all(factor_tasks(batch, parts))
        changes = self.network(join(factors, device), observe=True)
        tasks = loss_tasks(batch, parts, changes, of=len(batch), gradient=True)
        more = factor_tasks(self._batch(self.step + 1), parts) if self.step + 1 < self.settings.steps else []
        results = self.shared.do_all([*tasks, *more])
        losses, self.next_factors = results[: len(tasks)], results[len(tasks) :]
        value = total_loss(losses)
        if not math.isfinite(value):
            raise EditError(
                f"MEND: the training loss is {value} at step {self.step}, expected a finite number. Lower "
                f"learning_rate or step_size_rate, and delete {self.folder} to start anew."
            )
        gradient = total_gradient(losses, device)
        torch.autograd.backward(
            [tensor for pair in changes.values() for tensor in pair],
            [tensor for name in changes for tensor in gradient[name]],
        )
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        self.optimiser.step()
        return value

    @torch.no_grad()
    def _validate(self) -> None:
        """Keep the network when it is the best so far, and write a checkpoint."""
        loss, device = 0.0, self.network.edit_lrs.device
        for start in range(0, len(self.validation), self.settings.batch):
            batch = self.validation[start : start + self.settings.batch]
            changes = self.network(join(self.shared.do_all(factor_tasks(batch, self.settings.parts)), device))
            tasks = loss_tasks(batch, self.settings.parts, changes, of=len(self.validation), gradient=False)
            loss += total_loss(self.shared.do_all(tasks))
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


def _kind_of_process(model: PreTrainedModel) -> str:
    """Name what the last bits of a result depend on: processes that differ in it do no tasks for each other."""
    device = torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else str(model.device.type)
    facts = [versions(), device, platform.machine(), torch.backends.cpu.get_cpu_capability(), torch.get_num_threads()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]


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
