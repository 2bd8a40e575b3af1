"""Second moments on disk: each file stores model, layer and corpus and a SHA-256 of its contents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.files import atomic_path
from seesaw_cf.editors.locate.solve import all_finite

_FACTS = ("n_tokens", "n_texts", "relative_error")
_REMEDY = "Delete the file and run again; it will be computed anew."


class MomentCounts(TypedDict):
    """What a layer's file records in addition to its matrix; see `SecondMoment`."""

    n_tokens: int
    n_texts: int
    relative_error: float


@dataclass(frozen=True)
class SecondMoment:
    """C of one layer.

    Attributes:
        matrix: (d_ff, d_ff), mean of k k^T over tokens, on the CPU; float32 (float64 for float64 models).
        n_tokens: Tokens counted.
        n_texts: Texts they came from.
        relative_error: Estimated standard error of C in Frobenius norm over ||C||, from how the moments of eight
            random parts of the texts scatter along random directions; NaN for a single text. It falls with
            1 / sqrt(texts) and is itself good to about a third.
    """

    matrix: Tensor
    n_tokens: int
    n_texts: int
    relative_error: float


@dataclass(frozen=True)
class MomentFiles:
    """The finished moments of one pass: `folder`/layer-N.safetensors, each marked with `key` and its layer."""

    folder: Path
    key: str

    def path(self, layer: int) -> Path:
        """Return the file of a layer."""
        return self.folder / f"layer-{layer}.safetensors"

    def save(self, layer: int, moment: SecondMoment) -> None:
        """Write a layer's file, whole or not at all."""
        facts = {name: getattr(moment, name) for name in _FACTS}
        write(self.path(layer), {"matrix": moment.matrix}, self._owner(layer), facts)

    def outline(self, layer: int) -> MomentCounts:
        """Return the facts in a layer's file; its matrix is not read.

        Raises:
            StorageError: The file is damaged.
        """
        try:
            with safe_open(self.path(layer), "pt") as file:
                facts = json.loads((file.metadata() or {}).get("facts", ""))
                tokens, texts, error = (facts[name] for name in _FACTS)
                return {"n_tokens": tokens, "n_texts": texts, "relative_error": error}
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self.path(layer)} could not be read as second moments: {error}. {_REMEDY}") from error

    def load(self, layer: int, size: int | None = None) -> SecondMoment:
        """Read a layer's file.

        Args:
            layer: Which layer.
            size: d_ff; None = that of the file.

        Raises:
            StorageError: The file is damaged, or belongs to another model, layer or sample.
        """
        path = self.path(layer)
        tensors, facts = read(path, self._owner(layer), ["matrix"], _FACTS)
        matrix = tensors["matrix"]
        size = size or matrix.shape[-1]
        if matrix.shape != (size, size) or not all_finite(matrix):
            raise StorageError(
                f"{path} holds a matrix of shape {tuple(matrix.shape)}, expected finite numbers of shape "
                f"{(size, size)}. {_REMEDY}"
            )
        return SecondMoment(matrix, **{name: facts[name] for name in _FACTS})

    def _owner(self, layer: int) -> str:
        return f"{self.key}, layer {layer}"


def write(path: Path, tensors: Mapping[str, Tensor], owner: str, facts: Mapping[str, object]) -> None:
    """Write tensors and facts with their owner and hash, whole or not at all.

    Raises:
        StorageError: The disk is full, or the folder cannot be written.
    """
    contents, text = {name: tensor.contiguous() for name, tensor in tensors.items()}, json.dumps(facts)
    size = sum(tensor.nbytes for tensor in contents.values()) / 2**20
    with atomic_path(path) as temporary:
        try:
            save_file(contents, temporary, metadata={"owner": owner, "facts": text, "sha256": _hash(contents, text)})
        except SafetensorError as error:  # how it reports a full disk
            raise StorageError(
                f"could not write {path}: {error}; it takes {size:,.0f} MiB. "
                "Make room there, or set SEESAW_CF_CACHE to a folder on another disk, and run again."
            ) from error


def read(
    path: Path, owner: str, tensors: Sequence[str], facts: Sequence[str]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write` wrote.

    Args:
        path: The file.
        owner: Expected owner.
        tensors: Names of tensors it must hold.
        facts: Names of facts it must hold.

    Returns:
        Tensors on the CPU, and facts.

    Raises:
        StorageError: The file cannot be read, has another owner, is incomplete, or was changed after it was written.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            contents = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise StorageError(f"{path} could not be read as second moments: {error}. {_REMEDY}") from error
    if metadata.get("owner") != owner:
        raise StorageError(
            f"{path} belongs to {metadata.get('owner')!r}, expected {owner!r} (model, texts, sample size, dtype, "
            f"length; layer). {_REMEDY}"
        )
    text = metadata.get("facts", "")
    if metadata.get("sha256") != _hash(contents, text):
        raise StorageError(
            f"{path} has SHA-256 {_hash(contents, text)[:12]} over its contents, expected "
            f"{str(metadata.get('sha256'))[:12]}: it was damaged or changed after it was written. {_REMEDY}"
        )
    stored: dict[str, Any] = json.loads(text)
    absent = [name for names, there in ((tensors, contents), (facts, stored)) for name in names if name not in there]
    if absent:
        raise StorageError(
            f"{path} holds {sorted([*contents, *stored])}, expected {', '.join(absent)} as well. {_REMEDY}"
        )
    return contents, stored


def _hash(tensors: Mapping[str, Tensor], text: str) -> str:
    """Return a SHA-256 (hex) of names, types, shapes and bytes of tensors, and of a text."""
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"|{name}:{tensor.dtype}:{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
