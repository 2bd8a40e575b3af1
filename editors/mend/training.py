"""Training a MEND network on edits: the same thing asked otherwise must hold, and other texts must not change.

Killed at any point, it goes on from the last checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.fields import AboveZero, Positive
from seesaw_cf.base.files import atomic_path, cache_folder
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.base.system import file_lock
from seesaw_cf.base.types import Cloze
from seesaw_cf.editors.locate.config import CheckedConfig
from seesaw_cf.editors.mend.factors import batch_of, capture, divergence, outer_loss, text_batch
from seesaw_cf.editors.mend.network import MENDNetwork, load_network, save_network
from seesaw_cf.models.editor import Model, Tokenizer
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.identity import identity

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainingEdit:
    """One training edit.

    Attributes:
        edit: What is edited in.
        outer: What the edited model must then answer: another phrasing, or the same one after another sentence.
        unrelated: A text on which next-token distributions must not move.
    """

    edit: Cloze
    outer: Cloze
    unrelated: str


@dataclass(frozen=True, kw_only=True)
class MENDTraining(CheckedConfig):
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

    steps: Positive = 100_000
    batch: Positive = 10
    learning_rate: AboveZero = 1e-6
    step_size_rate: AboveZero = 1e-4
    edit_weight: AboveZero = 0.1
    locality_weight: float = 1.0
    clip: AboveZero = 100.0
    validate_every: Positive = 500
    patience: Positive = 2_000
    held_out: Positive = 200

    @classmethod
    def for_width(cls, width: int) -> Self:
        """Return the training for a width: the published one takes days on a large model and never ends on a CPU.

        Args:
            width: Units of the residual stream.

        Returns:
            Up to 256 units, minutes on two cores (chosen on the embedded model); up to 1,599, a quarter of an hour for
            135 million parameters (SmolLM2-135M, see docs/editors.md); the published one from 1,600 on.
        """
        if width >= 1600:
            return cls()
        small = cls(learning_rate=3e-4, step_size_rate=1e-3, validate_every=50)
        if width > 256:
            return replace(small, steps=300, batch=8, locality_weight=1.0, patience=150, held_out=32)
        return replace(small, steps=600, batch=16, locality_weight=5.0, patience=200, held_out=64)


def train(
    network: MENDNetwork,
    model: Model,
    tokenizer: Tokenizer,
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
    facts = {
        "base": identity(model, tokenizer),
        "training": asdict(settings),
        "seed": seed,
        "matrices": [matrix.name for matrix in network.shape.matrices],
        "start": [network.shape.rank, network.shape.hidden, network.edit_lrs.tolist()],
        "examples": hashlib.sha256(repr(examples).encode()).hexdigest(),
    }
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]
    file = (cache or cache_folder()) / "mend" / f"{key}.safetensors"
    with file_lock(file.with_suffix(".lock"), wait=True):  # another process may be training it
        if not file.exists():
            checkpoint = file.with_suffix(".checkpoint")
            with frozen(model), torch.enable_grad():
                best = _Trainer(network, model, tokenizer, examples, settings, seed).run(checkpoint)
            save_network(network, file, {**facts, "best": best})
            checkpoint.unlink(missing_ok=True)
    return load_network(file).to(model.device)


class _Trainer:
    """One training; what changes is in `network`, `optimiser`, `step`, `best`, `best_step` and `best_state`."""

    def __init__(
        self,
        network: MENDNetwork,
        model: Model,
        tokenizer: Tokenizer,
        examples: Sequence[TrainingEdit],
        settings: MENDTraining,
        seed: int,
    ) -> None:
        self.network, self.model, self.tokenizer, self.settings, self.seed = network, model, tokenizer, settings, seed
        self.step, self.best, self.best_step, self.best_state = 0, math.inf, 0, network.state_dict()
        shuffled = [examples[number] for number in np.random.default_rng(seed).permutation(len(examples))]
        held = min(settings.held_out, len(examples) // 5)
        self.validation, self.examples = shuffled[:held], shuffled[held:]
        others = [parameter for name, parameter in network.named_parameters() if name != "edit_lrs"]
        rates = (others, settings.learning_rate), ([network.edit_lrs], settings.step_size_rate)
        self.optimiser = torch.optim.Adam([{"params": parameters, "lr": rate} for parameters, rate in rates])

    def run(self, checkpoint: Path) -> float:
        """Train to the end, from a checkpoint where there is one, and leave the best network; return its loss."""
        if checkpoint.exists():
            parts = torch.load(checkpoint, map_location="cpu", weights_only=True)
            self.network.load_state_dict(parts.pop("network"))
            self.optimiser.load_state_dict(parts.pop("optimiser"))
            vars(self).update(parts)
        total = self.settings.steps
        with Bar[object](total=total, initial=self.step, desc="training MEND", unit="step", disable=no_bars()) as bar:
            while self.step < total and self.step - self.best_step < self.settings.patience:
                loss = self._train_step()
                self.step += 1
                bar.update()
                bar.set_postfix(loss=f"{loss:.3f}", best=f"{self.best:.3f}")
                if self.step % self.settings.validate_every == 0 or self.step == total:
                    self._validate(checkpoint)
        self.network.load_state_dict(self.best_state)
        logger.info("MEND: best validation loss %.4f at step %d of %d", self.best, self.best_step, self.step)
        return self.best

    def _batch(self) -> list[TrainingEdit]:
        """Return the examples of the next step, a function of its number alone."""
        size, first = len(self.examples), self.step * self.settings.batch
        places = range(first, first + self.settings.batch)
        orders = {n: np.random.default_rng([self.seed, n]).permutation(size) for n in {p // size for p in places}}
        return [self.examples[orders[place // size][place % size]] for place in places]

    def _loss(self, batch: Sequence[TrainingEdit], *, observe: bool) -> Tensor:
        """Return the weighted sum of what the edits must say and of what they must not change, a mean over edits."""
        model, tokenizer, device = self.model, self.tokenizer, self.model.device
        names = [matrix.name for matrix in self.network.shape.matrices]
        edits, outer = (batch_of(tokenizer, part, device) for part in zip(*((e.edit, e.outer) for e in batch)))
        changes = self.network(capture(model, names, edits, each_row=True), observe=observe)
        locality = divergence(changes, model, text_batch(tokenizer, [example.unrelated for example in batch], model))
        edit = outer_loss(changes, model, outer)
        return self.settings.edit_weight * edit + self.settings.locality_weight * locality

    def _train_step(self) -> float:
        self.optimiser.zero_grad()
        loss = self._loss(self._batch(), observe=True)
        if not loss.isfinite():
            raise EditError(
                f"MEND: the training loss is {loss.item()} at step {self.step}, expected a finite number. Lower "
                "learning_rate or step_size_rate."
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        self.optimiser.step()
        return loss.item()

    @torch.no_grad()
    def _validate(self, checkpoint: Path) -> None:
        """Keep the network when it is the best so far, and write a checkpoint."""
        size, n = self.settings.batch, len(self.validation)
        batches = [self.validation[start : start + size] for start in range(0, n, size)]
        loss = sum(self._loss(batch, observe=False).item() * len(batch) / n for batch in batches)
        state = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        if loss < self.best:
            self.best, self.best_step, self.best_state = loss, self.step, state
        numbers = {"step": self.step, "best": self.best, "best_step": self.best_step, "best_state": self.best_state}
        with atomic_path(checkpoint) as temporary:
            torch.save({"network": state, "optimiser": self.optimiser.state_dict(), **numbers}, temporary)


# Edits that are made up from texts.


def examples_from_texts(texts: Sequence[str], *, seed: int = 0) -> list[TrainingEdit]:
    """Make up edits: the end of a sentence is exchanged for the end of another one that follows the same word.

    "Ada was born in London." and "Lima lies in Peru." give "Ada was born in" -> "Peru". A sentence has two such ends at
    most. The outer prompt is the same after another sentence. What must not change is, every other time, a sentence
    that ends like the edited one (the same question about someone else, which an edit spoils most easily), else any
    sentence.

    Args:
        texts: Documents of one or more sentences.
        seed: For drawing ends and sentences.

    Raises:
        EditError: Fewer than two sentences share the word before their end.

    Deviates: Mitchell et al. sample the new ends from a language model (10 tokens); here they come from the texts.
    """
    rng = np.random.default_rng(seed)
    sentences = sorted({part.strip() for text in texts for part in re.split(r"(?<=[.!?])\s+", text) if part.strip()})
    ends = [cloze for sentence in sentences for cloze in _cut(sentence)]
    by_word: dict[str, list[str]] = {}
    for cloze in ends:
        by_word.setdefault(cloze.context.split()[-1], []).append(cloze.target)
    examples = []
    alike: dict[str, list[str]] = {}
    for cloze in ends:
        alike.setdefault(" ".join(cloze.context.split()[-2:]), []).append(f"{cloze.context} {cloze.target}.")
    for number, cloze in enumerate(ends):
        near = [text for text in alike[" ".join(cloze.context.split()[-2:])] if not text.startswith(cloze.context)]
        others = sorted({end for end in by_word[cloze.context.split()[-1]] if end != cloze.target})
        for turn, index in enumerate(rng.permutation(len(others))[:2].tolist()):
            pool = near if near and (number + turn) % 2 else sentences
            before = sentences[int(rng.integers(len(sentences)))]
            outer = Cloze(f"{before} {cloze.context}", others[index])
            examples.append(
                TrainingEdit(cloze._replace(target=others[index]), outer, pool[int(rng.integers(len(pool)))])
            )
    if not examples:
        raise EditError(
            f"{len(texts)} texts with {len(sentences)} sentences give no made-up edit: no two share the word before "
            "their end. Give more texts, or examples of your own."
        )
    return examples


def _cut(sentence: str) -> list[Cloze]:
    """Cut a sentence before its last one to three words, after a short word in lower case ("in", "of").

    Return [] where no such word is.
    """
    words = sentence.rstrip(".!?").split()
    places = range(max(3, len(words) - 3), len(words))
    cuts = [at for at in places if words[at - 1].islower() and len(words[at - 1]) <= 3]
    return [Cloze(" ".join(words[:at]), " ".join(words[at:])) for at in cuts[:1]]
