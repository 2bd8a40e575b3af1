"""A steering vector: one direction, added to the output of one block at every token while the model computes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import DeltaMismatchError, RecordError
from seesaw_cf.base.files import atomic_folder, dump_json
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.text import read_json
from seesaw_cf.models.architectures import transformer_blocks
from seesaw_cf.models.change import MovedPart
from seesaw_cf.models.delta_files import json_values
from seesaw_cf.models.hooks import alone, first_tensor
from seesaw_cf.models.tensor_files import whole_tensors
from seesaw_cf.models.weights import tensor_bytes

FORMAT, VERSION = "seesaw_cf.steering", 1
STEERING_JSON = "steering.json"
"""Holds layer, strength and the hash of the numbers; it tells a folder's form."""
_TENSORS = "steering.safetensors"


@dataclass(frozen=True, slots=True)
class SteeringVector:
    """A change of a model by a vector in its hidden states.

    Attributes:
        layer: Number of the block, from 0; the vector is added to its output.
        direction: (d,) in the model's hidden space.
        strength: What the direction is multiplied by.
        meta: JSON-able facts, such as how the direction was found.
    """

    layer: int
    direction: Tensor
    strength: float = 1.0
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters that the change writes: none."""
        return ()

    @contextlib.contextmanager
    def applied(self, model: PreTrainedModel) -> Iterator[PreTrainedModel]:
        """Add the vector inside the block; other threads that score or edit with the model wait.

        Sums are made in float32 (float64 for float64 models) and rounded once to the dtype of the hidden states.

        Args:
            model: A causal language model; its weights are never written.

        Yields:
            The same model, steered.

        Raises:
            DeltaMismatchError: The model has no such block, or another width.
        """
        block, term = self._block(model, "steering vector"), self.strength * self.direction.detach()

        def add(_: nn.Module, __: object, output: Any) -> Any:
            hidden = first_tensor(output)
            wide = torch.promote_types(hidden.dtype, torch.float32)
            steered = (hidden.to(wide) + term.to(hidden.device, wide)).to(hidden.dtype)
            return (steered, *output[1:]) if isinstance(output, tuple) else steered

        with alone(model):
            handle = block.register_forward_hook(add)
            try:
                yield model
            finally:
                handle.remove()

    def check(self, model: PreTrainedModel, where: str = "steering vector") -> None:
        """Refuse a model without such a block, or of another width.

        Args:
            model: The model that is to be steered; its outline is enough.
            where: What the message begins with.

        Raises:
            DeltaMismatchError: Names both numbers.
        """
        self._block(model, where)

    def is_zero(self) -> bool:
        """Return whether nothing would be added."""
        return self.strength == 0 or not bool(self.direction.any())

    def is_finite(self) -> bool:
        """Return whether strength and direction are finite."""
        return math.isfinite(self.strength) and bool(torch.isfinite(self.direction).all())

    def norms(self) -> dict[str, float]:
        """Return the length of what is added, by the block's name."""
        return {f"output of block {self.layer}": abs(self.strength) * float(self.direction.double().norm())}

    def moved(self, model: PreTrainedModel) -> list[MovedPart]:
        """Return one row: the block, and the length of what is added to its output."""
        shape = list(self.direction.shape)
        return [
            {"name": name, "shape": shape, "rank": None, "norm": norm, "relative": None}
            for name, norm in self.norms().items()
        ]

    def sha256(self) -> str:
        """Return a SHA-256 (hex) of layer, strength and direction."""
        head = json.dumps([self.layer, self.strength, str(self.direction.dtype)])
        return hashlib.sha256(head.encode() + tensor_bytes(self.direction)).hexdigest()

    def like(self, seed: int) -> Self:
        """Return a vector of the same length at the same layer in a direction drawn with `seed`."""
        generator = torch.Generator().manual_seed(seed_of(seed, "steering", str(self.layer), bits=63))
        drawn = torch.randn(self.direction.shape, generator=generator, dtype=torch.float64)
        drawn *= float(self.direction.double().norm()) / float(drawn.norm())
        facts = {"editor": "random", "direction": "drawn", "seed": seed}
        return type(self)(self.layer, drawn.to(self.direction.dtype), self.strength, facts)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write `steering.json` and `steering.safetensors`; the folder appears whole or not at all.

        Raises:
            StorageError: The folder exists and is not empty, or cannot be written.
        """
        with atomic_folder(folder) as temporary:
            save_file({"direction": self.direction.detach().cpu().contiguous()}, temporary / _TENSORS)
            facts = {
                "format": FORMAT,
                "format_version": VERSION,
                "layer": self.layer,
                "strength": self.strength,
                "meta": json_values(self.meta),
                "sha256": self.sha256(),
            }
            dump_json(temporary / STEERING_JSON, facts, ensure_ascii=False)

    def _block(self, model: PreTrainedModel, where: str) -> nn.Module:
        blocks = transformer_blocks(model)
        there = 0 if blocks is None else len(blocks)
        if blocks is None or not 0 <= self.layer < there:
            raise DeltaMismatchError(
                f"{where}: layer is {self.layer}, {type(model).__name__} has blocks 0 to {there - 1}. Give "
                "the model it was made on."
            )
        width = int(model.config.get_text_config(decoder=True).hidden_size)
        if self.direction.shape != (width,):
            raise DeltaMismatchError(
                f"{where}: the direction has shape {tuple(self.direction.shape)}, the hidden states of "
                f"{type(model).__name__} have ({width},). Give the model it was made on."
            )
        return blocks[self.layer]


def load_steering(folder: str | os.PathLike[str]) -> SteeringVector:
    """Read a steering vector back, bit for bit.

    Args:
        folder: What `SteeringVector.save` wrote, or the same two files made by another program: `steering.json` with
            `layer` and `strength` (1 without), `steering.safetensors` with one tensor `direction`.

    Raises:
        StorageError: A file is missing.
        RecordError: A file is damaged or changed, or a value is of another kind.
    """
    where = Path(folder)
    facts = read_json(where / STEERING_JSON)
    layer, strength = facts.get("layer"), facts.get("strength", 1.0)
    if type(layer) is not int or type(strength) not in (int, float):
        raise RecordError(
            f"{where / STEERING_JSON}: layer is {shown(layer)} and strength {shown(strength)}, expected the number of "
            "a block and a number. Correct the file."
        )
    meta = facts.get("meta") or {}
    if not isinstance(meta, dict):
        raise RecordError(f"{where / STEERING_JSON}: meta is {shown(meta)}, expected an object. Correct the file.")
    with whole_tensors(where / _TENSORS, "Copy the whole folder again."):
        tensors = load_file(where / _TENSORS)
    direction = tensors.get("direction")
    if len(tensors) != 1 or direction is None or direction.dim() != 1 or not direction.is_floating_point():
        found = {name: [str(tensor.dtype), *tensor.shape] for name, tensor in tensors.items()}
        raise RecordError(
            f"{where / _TENSORS}: holds {shown(found)}, expected one vector of floating-point numbers, 'direction'. "
            "Save one direction of one layer."
        )
    vector = SteeringVector(layer, direction, float(strength), meta)
    if facts.get("sha256") not in (None, vector.sha256()):
        raise RecordError(
            f"{where}: SHA-256 is {vector.sha256()}, {STEERING_JSON} says {facts['sha256']}. A file was changed or cut "
            "off. Copy both again."
        )
    return vector
