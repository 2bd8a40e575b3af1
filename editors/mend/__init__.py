"""MEND: a trained hyper-network turns the gradient of an edit into a low-rank change of a few MLP matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.fields import AboveZero, Count, Positive, Seed
from seesaw_cf.base.types import Cloze
from seesaw_cf.editors.locate.checks import check_requests, make_delta
from seesaw_cf.editors.locate.config import CheckedConfig
from seesaw_cf.editors.locate.fitted import parts_for
from seesaw_cf.editors.locate.presets import MAX_CHANGE, is_known
from seesaw_cf.editors.mend.factors import Batch, batch_of, capture
from seesaw_cf.editors.mend.network import (
    MENDNetwork,
    NetworkShape,
    inputs_first,
    load_network,
    load_published,
    matrices_of,
)
from seesaw_cf.editors.mend.training import MENDTraining, TrainingEdit, examples_from_texts, train
from seesaw_cf.models.architectures import Architecture, model_parts
from seesaw_cf.models.editor import Model, Requests, Tokenizer
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.weights import LowRank, WeightDelta

_OUT_FIRST = ("gpt2",)  # model types with published files where the second matrix of a block comes first


@dataclass(frozen=True, kw_only=True)
class MENDConfig(CheckedConfig):
    """Settings of MEND.

    Attributes:
        layers: Blocks with edited MLP matrices, from 0; the published choice is the last three.
        weights: File of a trained network: .safetensors of this package, or .pt as the authors' program saves it;
            None = `fit` trains one (and keeps it in the cache folder).
        matrices: Names of the edited weights, in the order in which a .pt file was trained for them; () = the MLP
            matrices of `layers`, of GPT-2 the second one of a block first, as published.
        rank: Rank of the network's layers.
        hidden: Its hidden layers.
        edit_lr: First value of its learned step sizes.
        scale: The change is multiplied by this.
        max_change: A change longer (Frobenius norm) than this share of its weight is shortened; None = no limit.
        chunk_size: Requests per backward pass; the loss is the mean over the target tokens of a chunk.
        training: How `fit` trains.
        seed: For the network's random factors and the order of examples.
        allow_identity: Accept target_new == target_true (the identity control).
        architecture: Row for a model type absent from the table.
    """

    editor: ClassVar[str] = "mend"
    layers: tuple[int, ...]
    weights: str | None = None
    matrices: tuple[str, ...] = ()
    rank: Positive = 1920
    hidden: Count = 1
    edit_lr: float = 1e-4
    scale: float = 1.0
    max_change: AboveZero | None = None
    chunk_size: Positive = 128
    training: MENDTraining = field(default_factory=MENDTraining)
    seed: Seed = 0
    allow_identity: bool = False
    architecture: Architecture | None = None

    @property
    def needs_texts(self) -> bool:
        """Whether `fit` trains a network, from a corpus or examples."""
        return self.weights is None

    @classmethod
    def for_model(cls, model: Model) -> Self:
        """Return settings: the last three blocks; the published training from 1,600 units on, faster ones below.

        On a model without a preset no change is longer than `MAX_CHANGE` of its weight.
        """
        parts = model_parts(model)
        width = int(parts.text_config.hidden_size)
        layers = tuple(range(max(0, parts.n_layers - 3), parts.n_layers))
        most = None if is_known(model) else MAX_CHANGE
        rank = 1920 if width >= 1600 else 64
        return cls(layers=layers, rank=rank, max_change=most, training=MENDTraining.for_width(width))


@dataclass(frozen=True)
class MEND:
    """Editing by a hyper-network.

    Source: Mitchell et al. 2022, arXiv 2110.11309, section 3; application as in memit/baselines/mend.

    Deviates: Every chunk of a large batch counts, where the published program keeps only the last one's change, and the
    learned statistics are used, where it normalises by the first edit. The target's tokens are those of the whole
    string. No padding token is added to the model.

    Attributes:
        config: The settings.
        corpus: Texts to train on without `examples`: edits are made up from them, and they are what must not
            change.
        examples: Edits to train on.
        network: A trained network; overrides `config.weights` and training.
    """

    config_class: ClassVar[type[MENDConfig]] = MENDConfig
    config: MENDConfig
    corpus: Sequence[str] | None = field(default=None, repr=False)
    examples: Sequence[TrainingEdit] | None = field(default=None, repr=False)
    network: MENDNetwork | None = field(default=None, repr=False)

    def fit(self, model: Model, tokenizer: Tokenizer) -> Self:
        """Take the network given, load it, or train one (minutes for a tiny model, days for a large one).

        Raises:
            EditError: The network is for another model, or there is nothing to train on.
            UnsupportedModelError: A model or layer that cannot be edited.
            StorageError, RecordError: See `load_network` and `load_published`.
        """
        model_parts(model, self.config.architecture)
        network = self.network
        with torch.inference_mode(False), torch.enable_grad():
            if network is None and self.config.weights is not None:
                network = self._loaded(model, Path(self.config.weights))
            if network is None:
                network = self._trained(model, tokenizer)
        network.check(model, str(self.config.weights or "MEND"))
        return replace(self, network=network)

    def _loaded(self, model: Model, weights: Path) -> MENDNetwork:
        if weights.suffix != ".pt":
            return load_network(weights).to(model.device)
        names = self.config.matrices or self._names(model, out_first=model.config.model_type in _OUT_FIRST)
        return load_published(weights, names, model).to(model.device)

    def _names(self, model: Model, *, out_first: bool = False) -> list[str]:
        """Return the names of the MLP matrices of `layers`."""
        row = parts_for(model, self.config).row
        paths = (row.mlp_out, *row.mlp_in) if out_first else (*row.mlp_in, row.mlp_out)
        return [f"{row.blocks}.{layer}.{path}.weight" for layer in self.config.layers for path in paths]

    def _trained(self, model: Model, tokenizer: Tokenizer) -> MENDNetwork:
        examples = self.examples
        if examples is None and self.corpus is not None:
            examples = examples_from_texts(self.corpus, seed=self.config.seed)
        if not examples:
            raise EditError(
                "MEND needs a trained network, got neither weights nor texts nor examples. Set "
                "weights='FILE.safetensors', or construct MEND(config, corpus=[...]) or MEND(config, examples=[...])."
            )
        shape = NetworkShape(matrices_of(self._names(model), model), self.config.rank, self.config.hidden)
        network = MENDNetwork(shape, self.config.edit_lr, self.config.seed).to(model.device)
        return train(network, model, tokenizer, examples, self.config.training, self.config.seed)

    def edit(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> WeightDelta:
        """Compute the change for all requests together.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests.

        Returns:
            Low-rank changes, one rank for each token that carries a gradient; dense where that is smaller.

        Raises:
            EditError: Not fitted, another model's network, contradictory requests, or a change that is not finite.
            PromptError: A prompt that cannot be encoded as asked.
            UnsupportedModelError: A model that cannot be edited.
        """
        model_parts(model, self.config.architecture)
        check_requests(requests, "mend", self.config.allow_identity)
        if self.network is None:
            raise EditError("MEND.edit was called before fit. Write: editor = editor.fit(model, tokenizer).")
        self.network.check(model, "MEND")
        clozes = [Cloze(request.text, request.target_new.label.strip()) for request in requests]
        size = self.config.chunk_size
        chunks = [batch_of(tokenizer, clozes[at : at + size], model.device) for at in range(0, len(clozes), size)]
        with frozen(model):
            parts = [self._changes(self.network, model, chunk) for chunk in chunks]
        updates = {name: _update(model, name, [part[name] for part in parts]) for name in parts[0]}
        return make_delta(model, self.config, requests, updates, [{} for _ in requests], n_chunks=len(chunks))

    def _changes(self, network: MENDNetwork, model: Model, chunk: Batch) -> dict[str, tuple[Tensor, Tensor]]:
        """Return name -> ((n tokens, in), (n tokens, out)), step and scale included."""
        factors = capture(model, [matrix.name for matrix in network.shape.matrices], chunk)
        with torch.no_grad():
            changes = network(factors)
        tokens = {name: (u != 0).any(-1) | (v != 0).any(-1) for name, (u, v) in changes.items()}
        return {name: (u[tokens[name]], self.config.scale * v[tokens[name]]) for name, (u, v) in changes.items()}


def _update(model: Model, name: str, chunks: Sequence[tuple[Tensor, Tensor]]) -> LowRank | Tensor:
    """Return the sum of outer products of all tokens, stored as the weight is, low-rank where that is smaller."""
    shape = model.get_parameter(name).shape
    u, v = (torch.cat([chunk[part] for chunk in chunks]) for part in (0, 1))
    left, right = (u.T, v) if inputs_first(model, name) else (v.T, u)
    update = LowRank(left.contiguous(), right.contiguous())
    return update.dense() if len(u) * sum(shape) >= shape.numel() else update
