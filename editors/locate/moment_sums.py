"""Running sums of a pass over texts: products of keys, what the sampling error is known from, how far the pass is.

C is symmetric, so only the blocks on and below the diagonal are summed; the rest is mirrored at the end. Keys of at
most `MomentOptions.batch_tokens` tokens are multiplied and added up in the model's precision (float32 at least) before
they go into the float64 sums. An entry is so off by at most n u times the mean of |k_i k_j|, with n those tokens and u
the rounding unit of that precision: the bound of one matrix product over them, whatever the number of all tokens.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from seesaw_cf.editors.locate.moment_files import SecondMoment, read, write
from seesaw_cf.editors.locate.solve import all_finite
from seesaw_cf.errors import EditError
from seesaw_cf.models.architectures import ModelParts

PARTS = 8
"""Random parts of the sample that are compared."""
_PROBES = 32
"""Random directions along which they are compared (the sampling error)."""
_BLOCKS = 6
"""Blocks of columns of a large matrix: 42 % of the products are above the diagonal; more blocks are narrow and slow."""
_LEAST = 256
"""Columns of a block at least."""


@dataclass
class Sums:
    """Running sums of an unfinished pass; how far it is does not depend on the size of its batches."""

    layers: list[int]
    checkpoint: Path
    owner: str
    products: dict[int, Tensor]
    probed: dict[int, Tensor]  # (parts, d_ff, probes): sums of k k^T times random directions, for each part
    tokens: list[int]  # of each part
    n_texts: int = 0
    n_chunks: int = 0  # finished
    n_rows: int = 0  # done of the next chunk, longest first
    directions: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def start(cls, parts: ModelParts, layers: list[int], folder: Path, key: str) -> Sums:
        """Zero sums, or those of a checkpoint of the same texts in the same order."""
        owner = f"{key}, layers {'-'.join(map(str, layers))}"
        name = hashlib.sha256(owner.encode()).hexdigest()[:12]
        sums = cls(list(layers), folder / f"partial-{name}.safetensors", owner, {}, {}, [0] * PARTS)
        for layer in layers:
            size, device = parts.key_size(layer), parts.weight(layer).device
            sums.products[layer] = torch.zeros(size, size, dtype=torch.float64, device=device)
            sums.probed[layer] = torch.zeros(PARTS, size, _PROBES, dtype=torch.float64, device=device)
            wide = torch.promote_types(parts.stream_dtype, torch.float32)
            drawn = torch.randn(size, _PROBES, generator=torch.Generator().manual_seed(size))
            sums.directions[layer] = drawn.to(device, wide)
        if sums.checkpoint.exists():
            names = [f"{kind}{layer}" for kind in ("product", "probed") for layer in layers]
            tensors, facts = read(sums.checkpoint, owner, names, ["tokens", "n_texts", "n_chunks", "n_rows"])
            for layer in layers:
                sums.products[layer].copy_(tensors[f"product{layer}"])
                sums.probed[layer].copy_(tensors[f"probed{layer}"])
            for name, value in facts.items():
                setattr(sums, name, value)
        return sums

    def add(self, layer: int, keys: Sequence[Tensor], counts: Sequence[Sequence[int]]) -> None:
        """Add tokens of a layer.

        Args:
            layer: Which one.
            keys: (tokens, d_ff) of each forward pass, those of part 0 first.
            counts: Tokens of each part, for each forward pass.
        """
        total = self.products[layer]
        for columns in _blocks(len(total)):
            rows = slice(columns.start, None)
            panel = keys[0][:, rows].T @ keys[0][:, columns]
            for more in keys[1:]:
                panel.addmm_(more[:, rows].T, more[:, columns])
            total[rows, columns] += panel
        for passed, sizes in zip(keys, counts, strict=True):
            along = passed @ self.directions[layer]
            for number, (part, probes) in enumerate(zip(passed.split(list(sizes)), along.split(list(sizes)))):
                self.probed[layer][number] += part.T @ probes

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        tensors = {f"product{layer}": product.cpu() for layer, product in self.products.items()}
        tensors |= {f"probed{layer}": probed.cpu() for layer, probed in self.probed.items()}
        facts = {name: getattr(self, name) for name in ("tokens", "n_texts", "n_chunks", "n_rows")}
        write(self.checkpoint, tensors, self.owner, facts)

    def error(self, layer: int) -> float:
        """Standard error of the mean over tokens, relative: each part's residual, as of a ratio of two sums."""
        probed, used = self.probed[layer], sum(count > 0 for count in self.tokens)
        if used < 2:
            return math.nan
        total, counts = probed.sum(0), torch.tensor(self.tokens).to(probed)[:, None, None]
        residual = probed - total * (counts / sum(self.tokens))
        return float((used / (used - 1)) ** 0.5 * residual.norm() / total.norm())

    def worst(self) -> float:
        """The largest error of any layer; NaN when one is."""
        return max(map(self.error, self.layers), key=lambda error: (math.isnan(error), error))

    def moment(self, layer: int, parts: ModelParts) -> SecondMoment:
        """The moment of the texts so far."""
        total = sum(self.tokens)
        matrix = self.products[layer] / total
        if not all_finite(matrix):
            raise EditError(
                f"second moment of layer {layer} is not finite after {total} tokens: activations overflow in "
                f"{parts.stream_dtype}. Load the model in bfloat16 or float32."
            )
        wide = torch.promote_types(parts.stream_dtype, torch.float32)
        return SecondMoment(_mirrored(matrix.to(wide)).cpu(), total, self.n_texts, self.error(layer))


def _blocks(size: int) -> Iterator[slice]:
    """The blocks of columns of a (size, size) matrix."""
    width = max(_LEAST, -(-size // _BLOCKS))
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


def _mirrored(matrix: Tensor) -> Tensor:
    """Fill in, in place, what is above the diagonal blocks."""
    for block in _blocks(len(matrix)):
        matrix[block, block.stop :] = matrix[block.stop :, block].T
    return matrix
