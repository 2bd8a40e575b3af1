"""Tensors and facts in one safetensors file: written whole or not at all, with a SHA-256 of both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.files import atomic_path


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, object]) -> None:
    """Write tensors, and facts as JSON in the file's metadata.

    Raises:
        StorageError: The disk is full, or the folder cannot be written.
    """
    contents = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(facts)
    with atomic_path(path) as temporary:
        try:
            save_file(contents, temporary, metadata={"facts": text, "sha256": _sha256(contents, text)})
        except SafetensorError as error:  # how it reports a full disk
            size = sum(tensor.nbytes for tensor in contents.values()) / 2**20
            raise StorageError(
                f"could not write {path}: {error}; it takes {size:,.0f} MiB. "
                "Make room there, or set SEESAW_CF_CACHE to a folder on another disk, and run again."
            ) from error


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote, onto the CPU.

    Raises:
        StorageError: The file cannot be read, or was changed after it was written.
    """
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        metadata = file.metadata() or {}
    got = _sha256(tensors, metadata.get("facts", ""))
    if got != metadata.get("sha256"):
        raise StorageError(
            f"{path} has SHA-256 {got[:12]} over its contents, expected {metadata.get('sha256', '')[:12]}: it was "
            "damaged or changed after it was written. Delete the file and run again."
        )
    return tensors, json.loads(metadata["facts"])


def load_facts(path: Path) -> dict[str, Any]:
    """Read the facts alone; they are checked against the SHA-256 by `load_tensors`.

    Raises:
        StorageError: The file cannot be read.
    """
    with _opened(path) as file:
        facts: dict[str, Any] = json.loads((file.metadata() or {}).get("facts", "{}"))
    return facts


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError, ValueError) as error:
        raise StorageError(f"{path} could not be read: {error}. Delete the file and run again.") from error


def _sha256(tensors: Mapping[str, Tensor], text: str) -> str:
    """Hash names, types, shapes and bytes of tensors, and a text."""
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"|{name}:{tensor.dtype}:{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
