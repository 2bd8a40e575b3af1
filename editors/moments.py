"""Uncentred second moments C = E[k k^T] of the input of the MLP output projection, for all layers in one pass.

Texts are tokenised once, sorted by length and run in batches that stop after the last layer needed. Products are made
in blocks in the model's precision (float32 at least) and summed in float64. A pass that is killed continues from its
last checkpoint; results are kept on disk and found again by (model fingerprint, texts, sample size, dtype, length).

Source: ROME section 3.1 (C = K K^T), MEMIT section 4.2; each text alone, from position 0, special tokens counted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seesaw_cf.editors.activations import batches, pad
from seesaw_cf.editors.arch import ModelParts
from seesaw_cf.editors.hooks import hooked, stop_after, untouched, watch
from seesaw_cf.editors.solve import all_finite
from seesaw_cf.errors import EditError, StorageError
from seesaw_cf.files import atomic_path, cache_folder, write_text
from seesaw_cf.scoring.hf import context_length
from seesaw_cf.weights import fingerprint

__all__ = ["SecondMoment", "load_texts", "second_moments"]

_LOG = logging.getLogger(__name__)
_PROBES = 32
"""Random directions along which two halves of the sample are compared (the sampling error)."""
CHECKPOINT_SECONDS = 600.0
"""Time between checkpoints of an unfinished pass."""


@dataclass(frozen=True)
class SecondMoment:
    """C of one layer.

    Attributes:
        matrix: (d_ff, d_ff), mean of k k^T over tokens, on the CPU; float32 (float64 for float64 models).
        n_tokens: Tokens counted.
        n_texts: Texts they came from.
        relative_error: Estimated standard error of C in Frobenius norm over ||C||: half the difference between the
            moments of two halves of the texts, along random directions. More texts lower it by 1 / sqrt(texts).
    """

    matrix: Tensor
    n_tokens: int
    n_texts: int
    relative_error: float


def load_texts(dataset: str, n: int, seed: int = 0) -> list[str]:
    """Reads texts of a Hub data set (its `text` column, `train` split) by the ordinary client, as a stream.

    Args:
        dataset: "id" or "id:config", e.g. "wikimedia/wikipedia:20231101.en".
        n: How many.
        seed: Of the shuffle.

    Returns:
        At most n texts.

    Raises:
        EditError: The data set cannot be read, or has no `text` column.
    """
    from datasets import load_dataset

    name, _, config = dataset.partition(":")
    try:
        rows = load_dataset(name, config or None, split="train", streaming=True).shuffle(seed=seed, buffer_size=10_000)
        return [str(row["text"]) for row in rows.take(n)]
    except Exception as error:
        raise EditError(
            f"could not read texts from data set {dataset!r}: {error}. Check the id ('id' or 'id:config', split train, "
            "column text) and the network, or pass the editor corpus=[...] with texts of your own."
        ) from error


def second_moments(
    parts: ModelParts,
    tokenizer: PreTrainedTokenizerBase,
    layers: Sequence[int],
    texts: Sequence[str],
    *,
    sample_size: int = 100_000,
    max_length: int | None = None,
    seed: int = 0,
    batch_tokens: int = 4096,
    cache: Path | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] | None = None,
) -> dict[int, SecondMoment]:
    """Second moments of several layers, from the cache or from one pass over the texts.

    Args:
        parts: The model.
        tokenizer: Its tokenizer; texts are encoded with special tokens, as the published programs do.
        layers: The layers wanted.
        texts: The corpus; `sample_size` of them are drawn with `seed` when there are more.
        sample_size: Most texts used.
        max_length: Tokens kept of each text; None = the model's context length.
        seed: Of the draw.
        batch_tokens: Tokens per forward pass.
        cache: Folder for results and checkpoints; None = `cache_folder()`.
        progress: Wraps the batches, e.g. `tqdm.tqdm`.

    Returns:
        Layer -> moment.

    Raises:
        EditError: No usable text, or activations that are not finite.
        StorageError: A cached file is damaged or belongs to something else.
    """
    sample = _sample(texts, sample_size, seed)
    length = max_length or context_length(parts.model)
    facts = {
        "model": fingerprint(parts.model),
        "corpus": _hash_texts(sample),
        "sample_size": len(sample),
        "dtype": str(parts.stream_dtype),
        "max_length": length,
        "tokenizer": _hash_texts([json.dumps(tokenizer.get_vocab(), sort_keys=True)]),
    }
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]
    folder = (cache or cache_folder()) / "second_moments" / key
    missing = [layer for layer in layers if not (folder / f"layer-{layer}.safetensors").exists()]
    if missing:
        write_text(folder / "key.json", json.dumps(facts, indent=1))
        rows = _encode(tokenizer, sample, length)
        sums = _Sums.start(parts, missing, folder, key)
        _accumulate(parts, rows, sums, batch_tokens, progress)
        for layer in missing:
            _save(folder / f"layer-{layer}.safetensors", sums.moment(layer, parts), key)
        sums.checkpoint.unlink(missing_ok=True)
    return {layer: _load(folder / f"layer-{layer}.safetensors", key, parts.key_size(layer)) for layer in layers}


def _sample(texts: Sequence[str], size: int, seed: int) -> list[str]:
    if isinstance(texts, str):
        raise EditError("the corpus is one string, expected a sequence of texts. Pass corpus=[text, ...].")
    kept = [text for text in texts if text.strip()]
    if not kept:
        raise EditError(
            f"second moments need texts, got {len(texts)} of which none has visible characters. Pass corpus=[...]."
        )
    return kept if len(kept) <= size else random.Random(seed).sample(kept, size)


def _hash_texts(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)}:".encode() + text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _encode(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], length: int | None) -> list[list[int]]:
    rows = [list(ids)[:length] for ids in tokenizer(list(texts), add_special_tokens=True, verbose=False)["input_ids"]]
    return [row for row in rows if row]


@dataclass
class _Sums:
    """Running sums of an unfinished pass."""

    layers: list[int]
    checkpoint: Path
    key: str
    products: dict[int, Tensor]
    probed: dict[int, Tensor]  # (2, d_ff, probes): C times random directions, for each half of the texts
    tokens: list[int]  # of each half
    n_texts: int
    n_batches: int

    @classmethod
    def start(cls, parts: ModelParts, layers: list[int], folder: Path, key: str) -> _Sums:
        """Zero sums, or those of a checkpoint of the same pass."""
        name = "-".join(map(str, layers))
        sums = cls(list(layers), folder / f"partial-{name}.safetensors", f"{key}:{name}", {}, {}, [0, 0], 0, 0)
        for layer in layers:
            size, device = parts.key_size(layer), parts.weight(layer).device
            sums.products[layer] = torch.zeros(size, size, dtype=torch.float64, device=device)
            sums.probed[layer] = torch.zeros(2, size, _PROBES, dtype=torch.float64, device=device)
        if sums.checkpoint.exists():
            tensors, meta = _read(sums.checkpoint, sums.key)
            for layer in layers:
                sums.products[layer].copy_(tensors[f"product{layer}"])
                sums.probed[layer].copy_(tensors[f"probed{layer}"])
            sums.tokens, sums.n_texts, sums.n_batches = meta["tokens"], meta["n_texts"], meta["n_batches"]
        return sums

    def add(self, layer: int, keys: Tensor, half: Tensor) -> None:
        """Adds the tokens of one batch: `keys` (tokens, d_ff), `half` (tokens,) says to which half each belongs."""
        self.products[layer] += (keys.T @ keys).double()
        size = keys.shape[1]
        directions = torch.randn(size, _PROBES, generator=torch.Generator().manual_seed(size)).to(keys)
        along = keys @ directions
        for number in (0, 1):
            mine = half == number
            self.probed[layer][number] += (keys[mine].T @ along[mine]).double()

    def save(self) -> None:
        """Writes the checkpoint, whole or not at all."""
        tensors = {f"product{layer}": product.cpu() for layer, product in self.products.items()}
        tensors |= {f"probed{layer}": probed.cpu() for layer, probed in self.probed.items()}
        facts = {"tokens": self.tokens, "n_texts": self.n_texts, "n_batches": self.n_batches}
        _write(self.checkpoint, tensors, self.key, facts)

    def moment(self, layer: int, parts: ModelParts) -> SecondMoment:
        """The moment after the last batch."""
        total = sum(self.tokens)
        matrix = self.products[layer] / total
        if not all_finite(matrix):
            raise EditError(
                f"second moment of layer {layer} is not finite after {total} tokens: activations overflow in "
                f"{parts.stream_dtype}. Load the model in bfloat16 or float32."
            )
        first, second = self.probed[layer]
        error = math.nan
        if all(self.tokens):
            difference = first / self.tokens[0] - second / self.tokens[1]
            error = float(difference.norm() / 2 / ((first + second) / total).norm())
        wide = torch.promote_types(parts.stream_dtype, torch.float32)
        return SecondMoment(matrix.to(wide).cpu(), total, self.n_texts, error)


def _accumulate(
    parts: ModelParts,
    rows: Sequence[Sequence[int]],
    sums: _Sums,
    batch_tokens: int,
    progress: Callable[[Iterable[Any]], Iterable[Any]] | None,
) -> None:
    """Runs the batches that are not in the sums yet, longest texts first."""
    groups = list(batches([len(row) for row in rows], batch_tokens))[sums.n_batches :]
    modules = {str(layer): parts.mlp_out(layer) for layer in sums.layers}
    saved = time.monotonic()
    with untouched(parts.model), torch.no_grad():
        for group in progress(groups) if progress else groups:
            ids, mask = pad([rows[index] for index in group], parts.model.device)
            seen: dict[str, Tensor] = {}
            stop = stop_after(modules[str(max(sums.layers))])
            with hooked([*watch(seen, modules), stop]):
                parts.model(input_ids=ids, attention_mask=mask, use_cache=False)
            real = mask.bool().reshape(-1)
            half = (torch.arange(len(group), device=mask.device) % 2)[:, None].expand_as(mask).reshape(-1)[real]
            for layer in sums.layers:
                keys = seen[str(layer)]
                keys = keys.reshape(-1, keys.shape[-1])[real.to(keys.device)]
                sums.add(layer, keys.to(torch.promote_types(keys.dtype, torch.float32)), half.to(keys.device))
            sums.tokens = [count + int((half == number).sum()) for number, count in enumerate(sums.tokens)]
            sums.n_texts += len(group)
            sums.n_batches += 1
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                sums.save()
                saved = time.monotonic()


def _save(path: Path, moment: SecondMoment, key: str) -> None:
    facts = {"n_tokens": moment.n_tokens, "n_texts": moment.n_texts, "relative_error": moment.relative_error}
    _write(path, {"matrix": moment.matrix.contiguous()}, key, facts)


def _load(path: Path, key: str, size: int) -> SecondMoment:
    tensors, facts = _read(path, key)
    matrix = tensors["matrix"]
    if matrix.shape != (size, size) or not all_finite(matrix):
        raise StorageError(
            f"{path} holds a matrix of shape {tuple(matrix.shape)}, expected finite numbers of shape {(size, size)}. "
            "Delete the file and run again; it will be computed anew."
        )
    return SecondMoment(matrix, facts["n_tokens"], facts["n_texts"], facts["relative_error"])


def _write(path: Path, tensors: dict[str, Tensor], key: str, facts: dict[str, Any]) -> None:
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={"key": key, "facts": json.dumps(facts)})


def _read(path: Path, key: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise StorageError(
            f"{path} could not be read as second moments: {error}. Delete the file and run again; it will be computed "
            "anew."
        ) from error
    if metadata.get("key") != key:
        raise StorageError(
            f"{path} belongs to {metadata.get('key')!r}, expected {key!r} (model, texts, sample size, dtype, length). "
            "Delete the file and run again; it will be computed anew."
        )
    return tensors, dict(json.loads(metadata["facts"]))
