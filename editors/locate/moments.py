"""Uncentred second moments C = E[k k^T] of the input of the MLP output projection, for all layers in one pass.

Texts are taken in random order, chunk by chunk, in batches of like length that stop at the last key needed. A layer's
moment is one file, found again by (model, texts, dtype, length, libraries). A killed pass goes on from its checkpoint.

Source: ROME section 3.1 (C = K K^T), MEMIT section 4.2; each text alone, from position 0, special tokens counted.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError, StorageError
from seesaw_cf.base.files import cache_folder
from seesaw_cf.base.hub import download, public_name
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.base.system import file_lock
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.tensor_files import load_facts, load_tensors, save_tensors
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.corpus import corpus_facts
from seesaw_cf.models.editor import Model, Tokenizer
from seesaw_cf.models.hooks import frozen, hooked, stop_before, watch
from seesaw_cf.models.identity import fingerprint, libraries, tokenizer_hash
from seesaw_cf.models.names import known_name
from seesaw_cf.models.tensors import all_finite, batches, float64_device, pad, wide_product
from seesaw_cf.scoring.hf_scorer import context_length
from seesaw_cf.scoring.support import shared_limit

_CPU_TOKENS = 1024
"""Tokens of a forward pass on a CPU: more do not run faster there, and are padded more."""


@dataclass(frozen=True)
class SecondMoment:
    """C of one layer.

    Attributes:
        matrix: (d_ff, d_ff), mean of k k^T over tokens, on the CPU; float32 (float64 for float64 models).
        n_tokens, n_texts: What it was counted over.
        file: Where it is kept.
    """

    matrix: Tensor
    n_tokens: int
    n_texts: int
    file: Path


@dataclass(frozen=True, slots=True)
class MomentOptions:
    """Which texts are used, and how.

    Attributes:
        sample_size: Most texts used.
        max_length: Tokens kept of each text; None = the model's context length.
        seed: Of the draw, and of the order in which texts are run.
        batch_tokens: Tokens per forward pass.
        tokens: Texts are drawn until they have this many tokens; None = `sample_size` texts.
        chunk: Texts that are sorted by length together, and between two checkpoints at least.
        checkpoint_seconds: Time between checkpoints of an unfinished pass, which take as much disk as the sums.
    """

    sample_size: int = 100_000
    max_length: int | None = None
    seed: int = 0
    batch_tokens: int = 4096
    tokens: int | None = None
    chunk: int = 1000
    checkpoint_seconds: float = 600.0


def second_moments(
    parts: ModelParts,
    tokenizer: Tokenizer,
    layers: Sequence[int],
    texts: Sequence[str],
    options: MomentOptions | None = None,
    cache: Path | None = None,
) -> dict[int, SecondMoment]:
    """Return layer -> second moment of several layers, from the cache or from one pass over the texts.

    Args:
        parts, tokenizer: The model; texts are encoded with special tokens, as the published programs do.
        layers: The layers wanted.
        texts: The corpus; `options.sample_size` of them are drawn when there are more.
        options: Which of them, and how; the defaults when None.
        cache: Folder for results and checkpoints; None = `cache_folder()`.

    Raises:
        EditError: No usable text, or activations that are not finite.
        StorageError: A cached file is damaged or belongs to something else.
    """
    how = options or MomentOptions()
    length = how.max_length or context_length(parts.model)
    sample = _sample(tokenizer, texts, length, how)
    facts: JsonObject = {
        **model_facts(parts.model, tokenizer),
        "texts": _hash(sorted(sample)),
        "n_texts": len(sample),
        "max_length": length,
        "libraries": libraries(),
    }
    folder = (cache or cache_folder()) / "second_moments" / _hash([json.dumps(facts, sort_keys=True)])[:24]
    if _missing(folder, layers):
        with file_lock(folder.with_suffix(".lock"), wait=True):  # another process may be at it
            if missing := _missing(folder, layers):
                order = _hash([*sample, str(how.chunk), str(sorted(layers))])[:12]  # the same when some are there
                job = _Pass(parts, tokenizer, missing, sample, length, how, folder / f"partial-{order}.safetensors")
                job.write({**facts, **_origin(parts, texts)})
    return load_moments(folder, parts, layers, facts)


def _missing(folder: Path, layers: Sequence[int]) -> list[int]:
    return [layer for layer in layers if not (folder / f"layer-{layer}.safetensors").exists()]


def _origin(parts: ModelParts, texts: Sequence[str]) -> JsonObject:
    """Return names of model and corpus for the card of published moments; of a path its last part."""
    name = known_name(str(parts.model.name_or_path))
    corpus = str(corpus_facts(texts).get("corpus", {}).get("source", ""))
    return {"id": "" if os.path.exists(name) else name, "corpus": public_name(corpus) if corpus else ""}


def moments_folder(name: str) -> Path:
    """Return the folder that a user means: itself, or ORG/NAME[@REVISION] of a data set on the Hub, downloaded once.

    Raises:
        StorageError: It cannot be had.
    """
    if os.path.isdir(name):
        return Path(name)
    what, remedy = "no such folder, and no second moments of that name on the Hub", "check name, network and token"
    return download(name, what, remedy, repo_type="dataset", allow_patterns="layer-*.safetensors")


def moment_files(folder: Path) -> dict[int, Path]:
    """Return layer -> file of a folder, lowest layer first; StorageError where there is none."""
    names = (re.fullmatch(r"layer-(\d{1,4})\.safetensors", file.name) for file in folder.iterdir())
    if files := {int(match[1]): folder / match[0] for match in names if match}:
        return dict(sorted(files.items()))
    raise StorageError(f"{folder}: no second moments there, expected files layer-N.safetensors. Check --moments.")


def moment_facts(folder: Path, expected: JsonObject) -> JsonObject:
    """Return what manifests and deltas record of the second moments in a folder; see `load_moments`.

    Raises:
        StorageError: There are none, or they are of another model.
    """
    layer, file = next(iter(moment_files(folder).items()))
    facts = _facts(file, {**expected, "layer": layer})
    revision = {"revision": folder.name} if folder.parent.name == "snapshots" else {}  # as the Hub's cache has them
    return {name: facts[name] for name in ("texts", "n_texts", "n_tokens", "corpus")} | revision


def load_moments(
    folder: Path, parts: ModelParts, layers: Sequence[int], expected: JsonObject
) -> dict[int, SecondMoment]:
    """Read the second moments of some layers of a folder; `expected` is what they must be made with, see `model_facts`.

    Raises:
        StorageError: Of another model, of other layers, or damaged.
    """
    files, moments = moment_files(folder), {}
    if absent := [layer for layer in layers if layer not in files]:
        raise StorageError(
            f"{folder} has second moments of layers {list(files)}, expected {absent} as well. Compute those, too "
            "(`seesaw-cf share MODEL --moments`), or set the editor's layers to those that are there."
        )
    for layer in layers:
        file, size = files[layer], parts.key_size(layer)
        facts = _facts(file, {**expected, "layer": layer})
        matrix = load_tensors(file)[0]["matrix"]
        if matrix.shape != (size, size) or not all_finite(matrix):
            raise StorageError(f"{file}: a matrix {tuple(matrix.shape)}, expected finite numbers {(size, size)}.")
        moments[layer] = SecondMoment(matrix, facts["n_tokens"], facts["n_texts"], file)
    return moments


def _facts(file: Path, expected: JsonObject) -> dict[str, Any]:
    """Return what a file says of itself; refuse one of another model, tokenizer, layer or texts."""
    facts = load_facts(file)
    for name, value in expected.items():
        if facts.get(name) != value:
            raise StorageError(
                f"{file} is of another {name}: {str(facts.get(name))[:16]}, expected {str(value)[:16]}. Load the model "
                f"it was made with ({facts.get('id') or 'a local folder'}), or compute moments of this one."
            )
    return facts


def model_facts(model: Model, tokenizer: Tokenizer) -> JsonObject:
    """Return what second moments depend on, but for texts."""
    return {"dtype": str(model.dtype), "model": fingerprint(model), "tokenizer": tokenizer_hash(tokenizer)}


def _hash(texts: Sequence[str]) -> str:
    """Return a SHA-256 (hex) over texts in their order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)}:".encode() + text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _sample(tokenizer: Tokenizer, texts: Sequence[str], length: int | None, how: MomentOptions) -> list[str]:
    """Draw the texts to use, in the order in which they are used; the first that together have `how.tokens` tokens."""
    candidates = [] if isinstance(texts, str) else [text for text in texts if text.strip()]
    if not candidates:
        got = "one string" if isinstance(texts, str) else len(texts)
        raise EditError(f"second moments: got {got} without one visible character, expected corpus=[text, ...].")
    sample = random.Random(how.seed).sample(candidates, min(how.sample_size, len(candidates)))
    left = how.tokens or 0
    for number, text in enumerate(sample if left else (), 1):
        left -= len(tokenizer(text, add_special_tokens=True, verbose=False)["input_ids"][:length])
        if left <= 0:
            return sample[:number]
    return sample


@dataclass(frozen=True)
class _Pass:
    """One pass over texts for some layers."""

    parts: ModelParts
    tokenizer: Tokenizer
    layers: Sequence[int]
    texts: Sequence[str]
    length: int | None
    options: MomentOptions
    checkpoint: Path

    def run(self) -> tuple[dict[int, Tensor], int]:
        """Return layer -> sum of k k^T in float64, and the number of tokens; go on from a checkpoint."""
        how, model, sums, first, n_tokens = self.options, self.parts.model, dict[int, Tensor](), 0, 0
        for layer in self.layers:
            size, device = self.parts.key_size(layer), float64_device(self.parts.weight(layer).device)
            sums[layer] = torch.zeros(size, size, dtype=torch.float64, device=device)
        if self.checkpoint.exists():
            tensors, facts = load_tensors(self.checkpoint)
            first, n_tokens = facts["n_texts"], facts["n_tokens"]
            sums = {layer: tensors[str(layer)].to(zeros.device) for layer, zeros in sums.items()}
        most = min(how.batch_tokens, _CPU_TOKENS) if model.device.type == "cpu" else how.batch_tokens
        saved, texts = time.monotonic(), self.texts
        bar = Bar[object](total=len(texts), initial=first, desc="second moments", unit="text", disable=no_bars())
        with frozen(model), torch.no_grad(), bar:
            for start in range(first, len(texts), how.chunk):
                rows = self._encode(texts[start : start + how.chunk])
                for group in batches([len(ids) for ids in rows], most, shared_limit(model)):
                    for layer, keys in self._keys([rows[index] for index in group]).items():
                        sums[layer] += wide_product(keys.T, keys).to(sums[layer].device)
                    bar.update(len(group))
                n_tokens += sum(map(len, rows))
                if time.monotonic() - saved >= how.checkpoint_seconds:
                    done = {"n_texts": start + how.chunk, "n_tokens": n_tokens}
                    save_tensors(self.checkpoint, {str(layer): total for layer, total in sums.items()}, done)
                    saved = time.monotonic()
        return sums, n_tokens

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self.tokenizer(list(texts), add_special_tokens=True, verbose=False)["input_ids"]
        return [list(ids)[: self.length] for ids in encoded if len(ids)]

    def _keys(self, rows: Sequence[Sequence[int]]) -> dict[int, Tensor]:
        """Return layer -> keys of every token, (tokens, d_ff). No mask: a causal model never looks at the right."""
        ids, mask = pad(rows, self.parts.model.device)
        seen: dict[str, Tensor] = {}
        modules = {str(layer): self.parts.mlp_out(layer) for layer in self.layers}
        with hooked([*watch(seen, modules), stop_before(modules[str(max(self.layers))])]):
            self.parts.model(input_ids=ids, use_cache=False)
        places = mask.flatten().nonzero()[:, 0]
        return {layer: (keys := seen[str(layer)]).flatten(0, -2)[places.to(keys.device)] for layer in self.layers}

    def write(self, facts: JsonObject) -> None:
        """Run the pass and write a file for each layer beside the checkpoint."""
        sums, n_tokens = self.run()
        dtype = torch.promote_types(self.parts.stream_dtype, torch.float32)
        for layer, total in sums.items():
            matrix = (total / n_tokens).to(dtype)
            if not all_finite(matrix):
                self.checkpoint.unlink(missing_ok=True)
                raise EditError(
                    f"second moment of layer {layer} is not finite after {n_tokens} tokens: activations overflow in "
                    f"{self.parts.stream_dtype}. Load the model in bfloat16 or float32."
                )
            own = {**facts, "layer": layer, "n_tokens": n_tokens}
            save_tensors(self.checkpoint.with_name(f"layer-{layer}.safetensors"), {"matrix": matrix}, own)
        self.checkpoint.unlink(missing_ok=True)
