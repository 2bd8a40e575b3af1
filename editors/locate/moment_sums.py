"""Running sums of a pass over texts: products of keys, what the sampling error is known from, how far the pass is."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.editors.locate.moment_files import SecondMoment, read, write
from seesaw_cf.editors.locate.solve import all_finite
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.wide import adds_in_float32, float64_device, wide_product

PARTS = 8
"""Random parts of the sample that are compared."""
_PROBES = 32
"""Random directions along which they are compared (the sampling error)."""
_BLOCKS = 6
"""Blocks of columns of a large matrix: 42 % of the products are above the diagonal; more blocks are narrow and slow."""
_LEAST = 256
"""Columns of a block at least."""
SHARES = 8
"""Shares of the texts at most: processes that can take part in a pass."""
_COUNTS = ("tokens", "n_texts", "n_chunks", "n_rows")


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
    def start(cls, parts: ModelParts, layers: list[int], share: TextShare) -> Sums:
        """Return zero sums, or those of a checkpoint of the same texts in the same order."""
        sums = cls(list(layers), share.file("partial"), share.owner, {}, {}, [0] * PARTS)
        for layer in layers:
            size, device = parts.key_size(layer), parts.weight(layer).device
            place = float64_device(device)
            sums.products[layer] = torch.zeros(size, size, dtype=torch.float64, device=place)
            sums.probed[layer] = torch.zeros(PARTS, size, _PROBES, dtype=torch.float64, device=place)
            drawn = torch.randn(size, _PROBES, generator=torch.Generator().manual_seed(size))
            sums.directions[layer] = drawn.to(device, sum_dtype(parts))
        if sums.checkpoint.exists():
            sums.add_saved(sums.checkpoint, share.owner)
        return sums

    def add_saved(self, file: Path, owner: str) -> None:
        """Add sums that were saved, of the same layers."""
        names = [f"{kind}{layer}" for kind in ("product", "probed") for layer in self.layers]
        tensors, facts = read(file, owner, names, _COUNTS)
        for layer in self.layers:
            self.products[layer] += tensors[f"product{layer}"].to(self.products[layer].device)
            self.probed[layer] += tensors[f"probed{layer}"].to(self.probed[layer].device)
        self.tokens = [old + new for old, new in zip(self.tokens, facts["tokens"], strict=True)]
        for name in _COUNTS[1:]:
            setattr(self, name, getattr(self, name) + facts[name])

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
            panel = wide_product(keys[0][:, rows].T, keys[0][:, columns])
            for more in keys[1:]:
                if adds_in_float32(more):
                    panel += wide_product(more[:, rows].T, more[:, columns])
                else:
                    panel.addmm_(more[:, rows].T, more[:, columns])
            total[rows, columns] += panel.to(total.device)
        for passed, sizes in zip(keys, counts, strict=True):
            wide = passed.to(self.directions[layer].dtype)
            along = wide @ self.directions[layer]
            for number, (part, probes) in enumerate(zip(wide.split(list(sizes)), along.split(list(sizes)))):
                self.probed[layer][number] += (part.T @ probes).to(total.device)

    def save(self, file: Path | None = None, dtype: torch.dtype = torch.float64) -> None:
        """Write the checkpoint, or another file with products of a type, whole or not at all."""
        tensors = {f"product{layer}": product.to(dtype).cpu() for layer, product in self.products.items()}
        tensors |= {f"probed{layer}": probed.cpu() for layer, probed in self.probed.items()}
        write(file or self.checkpoint, tensors, self.owner, {name: getattr(self, name) for name in _COUNTS})

    def error(self, layer: int) -> float:
        """Return the standard error of the mean over tokens, relative.

        It comes from each part's residual, as of a ratio of two sums.
        """
        probed, used = self.probed[layer], sum(count > 0 for count in self.tokens)
        if used < 2:
            return math.nan
        total, counts = probed.sum(0), torch.tensor(self.tokens).to(probed)[:, None, None]
        residual = probed - total * (counts / sum(self.tokens))
        return float((used / (used - 1)) ** 0.5 * residual.norm() / total.norm())

    def worst(self) -> float:
        """Return the largest error of any layer; NaN when one is."""
        return max(map(self.error, self.layers), key=lambda error: (math.isnan(error), error))

    def moment(self, layer: int, parts: ModelParts) -> SecondMoment:
        """Return the moment of the texts so far."""
        total = sum(self.tokens)
        matrix = self.products[layer] / total
        if not all_finite(matrix):
            raise EditError(
                f"second moment of layer {layer} is not finite after {total} tokens: activations overflow in "
                f"{parts.stream_dtype}. Load the model in bfloat16 or float32."
            )
        return SecondMoment(_mirrored(matrix.to(sum_dtype(parts))).cpu(), total, self.n_texts, self.error(layer))


@dataclass(frozen=True, slots=True)
class TextShare:
    """Texts that one process runs, all of a pass or a part of them.

    Attributes:
        texts: In the order in which they are run.
        folder: Where its sums are kept.
        owner: What the sums depend on.
        title: What a progress bar says.
    """

    texts: Sequence[str]
    folder: Path
    owner: str
    title: str = "second moments"

    def file(self, kind: str) -> Path:
        """Return the file of a kind: "partial" is the checkpoint, "share" has the finished sums."""
        return self.folder / f"{kind}-{hashlib.sha256(self.owner.encode()).hexdigest()[:12]}.safetensors"

    def delete_files(self, chunk: int) -> None:
        """Delete the files of these texts and of their shares."""
        for share in (self, *self.split(chunk)):
            for file in (share.file("partial"), share.file("share")):
                for path in (file, file.with_suffix(".lock")):
                    with contextlib.suppress(OSError):  # Windows: while others have it open
                        path.unlink()

    def split(self, chunk: int) -> list[TextShare]:
        """Split the texts into shares of whole chunks; return none where there is one chunk."""
        chunks = -(-len(self.texts) // chunk)
        count = min(chunks, SHARES)
        ends = [chunks * number // count * chunk for number in range(count + 1)]
        parts = [self.texts[start:end] for start, end in pairwise(ends)] if count > 1 else []
        names = (f", share {number} of {count}" for number in range(1, count + 1))
        return [
            TextShare(texts, self.folder, self.owner + name, self.title + name)
            for texts, name in zip(parts, names, strict=False)
        ]


def sum_dtype(parts: ModelParts) -> torch.dtype:
    """Return the type of sums within a batch, and of moments."""
    return torch.promote_types(parts.stream_dtype, torch.float32)


def _blocks(size: int) -> Iterator[slice]:
    """Yield the blocks of columns of a (size, size) matrix, as slices."""
    width = max(_LEAST, -(-size // _BLOCKS))
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


def _mirrored(matrix: Tensor) -> Tensor:
    """Fill in, in place, what is above the diagonal blocks."""
    for block in _blocks(len(matrix)):
        matrix[block, block.stop :] = matrix[block.stop :, block].T
    return matrix
