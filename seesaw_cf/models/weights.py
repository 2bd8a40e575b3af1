"""An edit is a weight delta: a small object that can be applied, restored exactly, saved and shared.

A model is never handed back mutated. `applied` copies the original weights back in `finally`, so the restore is
bitwise; adding a delta and subtracting it again is not (about 6 % of float32 entries differ afterwards).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import DeltaMismatchError
from seesaw_cf.models.hooks import alone
from seesaw_cf.models.tensors import in_float64

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class LowRank:
    """A matrix held as the product `left @ right`.

    Attributes:
        left: (rows, rank).
        right: (rank, columns).
    """

    left: Tensor
    right: Tensor

    @property
    def shape(self) -> torch.Size:
        """Shape of the product: (rows, columns), in the parameter's stored orientation."""
        return torch.Size((self.left.shape[0], self.right.shape[1]))

    def dense(self) -> Tensor:
        """Return the product, (rows, columns)."""
        return self.left @ self.right


@dataclass(frozen=True, slots=True)
class WeightDelta:
    """What an editor returns: a change per parameter, or a text put before every prompt, or both.

    Attributes:
        updates: Parameter name -> change (new minus old) in the parameter's stored orientation.
        meta: JSON-able facts about the edit: editor, config, requests, diagnostics per request.
        context: Text put before every prompt (in-context editing); "" for weight edits.
    """

    updates: Mapping[str, LowRank | Tensor] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    context: str = ""

    def dense(self, name: str) -> Tensor:
        """Return the change of one parameter as a full tensor of that parameter's shape.

        Raises:
            UnknownNameError: The delta does not change it.
        """
        one_of("parameter of this delta", name, self.updates)
        update = self.updates[name]
        return update.dense() if isinstance(update, LowRank) else update

    def is_finite(self) -> bool:
        """Return whether every stored number is finite."""
        return all(bool(torch.isfinite(part).all()) for part in self.tensors())

    def is_zero(self) -> bool:
        """Return whether nothing would change: without a context, and every update is exactly zero."""
        return not self.context and all(not bool(self.dense(name).any()) for name in self.updates)

    def norms(self) -> dict[str, float]:
        """Return the Frobenius norm of the change of each parameter."""
        return {name: _norm(update) for name, update in self.updates.items()}

    def tensors(self) -> Iterator[Tensor]:
        """Yield every tensor that is stored: full changes, and both factors of those that are held as a product."""
        for update in self.updates.values():
            yield from (update.left, update.right) if isinstance(update, LowRank) else (update,)


def _norm(update: LowRank | Tensor) -> float:
    """Return the Frobenius norm; of a thin product through two small triangular factors, without forming it."""
    if not isinstance(update, LowRank) or update.left.shape[1] > min(update.shape):
        return float(in_float64(update.dense() if isinstance(update, LowRank) else update).norm())
    left, right = (torch.linalg.qr(in_float64(part), mode="r").R for part in (update.left, update.right.mT))
    return float((left @ right.mT).norm())


def check_fits(model: nn.Module, delta: WeightDelta) -> dict[str, nn.Parameter]:
    """Return the parameters that a delta changes, by name.

    Raises:
        DeltaMismatchError: The model has no such parameter, or has another shape there.
    """
    parameters = dict(model.named_parameters())
    for name, update in delta.updates.items():
        shape = tuple(parameters[name].shape) if name in parameters else None
        if shape != tuple(update.shape):
            raise DeltaMismatchError(
                f"the delta changes {name!r} of shape {tuple(update.shape)}, {type(model).__name__} has "
                f"{shape or 'no such parameter'}. Apply it to the model it was made on."
            )
    return {name: parameters[name] for name in delta.updates}


@torch.no_grad()
def write(model: nn.Module, delta: WeightDelta) -> None:
    """Add a delta to a model's weights. Sums are made in float32 (float64 for float64 weights) and rounded once."""
    for name, parameter in check_fits(model, delta).items():
        wide = torch.promote_types(parameter.dtype, torch.float32)
        parameter.copy_(parameter.to(wide) + delta.dense(name).to(device=parameter.device, dtype=wide))


@contextlib.contextmanager
def applied(model: M, delta: WeightDelta) -> Iterator[M]:
    """Apply a delta inside a `with` block and restore the weights bitwise afterwards, also after an exception.

    Blocks nest: sequential edits are `with applied(model, first): with applied(model, second): ...`. Other threads that
    score or edit with the model wait (`alone`): they would read the edited weights.

    Args:
        model: Any module; written in place for the length of the block.
        delta: The change, see `write`.

    Yields:
        The same model, edited.

    Raises:
        DeltaMismatchError: A name or shape does not fit; nothing has been written.
    """
    with alone(model):
        targets = check_fits(model, delta)
        saved = {name: parameter.detach().clone() for name, parameter in targets.items()}
        try:
            write(model, delta)
            yield model
        finally:
            with torch.no_grad():
                for name, parameter in targets.items():
                    parameter.copy_(saved[name])


def parameter_hashes(
    model: nn.Module, names: Iterable[str] | None = None, hash_of: Callable[[Tensor], str] | None = None
) -> dict[str, str]:
    """Return the SHA-256 (hex) of dtype, shape and bytes of each tensor of the model's state.

    Args:
        model: Any module.
        names: Which tensors; all parameters and buffers when None.
        hash_of: Another hash of a tensor, such as `checksum`; `hash_tensor` when None.

    Returns:
        Name -> hash, in name order.

    Raises:
        DeltaMismatchError: The model has no such tensor.
    """
    state = model.state_dict()
    chosen = sorted(state if names is None else names)
    if missing := [name for name in chosen if name not in state]:
        raise DeltaMismatchError(f"{type(model).__name__} has no tensor {shown(missing)}. Use the model of the delta.")
    tensors = [state[name] for name in chosen]
    parallel = hash_of is None and {tensor.device.type for tensor in tensors} <= _THREAD_SAFE
    with ThreadPoolExecutor(_HASH_THREADS if parallel else 1) as pool:
        return dict(zip(chosen, pool.map(hash_of or hash_tensor, tensors), strict=True))


def digest(hashes: Mapping[str, str]) -> str:
    """Return one SHA-256 (hex) for several tensors: of `parameter_hashes`, which it puts in name order."""
    return hashlib.sha256(json.dumps(dict(sorted(hashes.items()))).encode()).hexdigest()


def hash_tensor(tensor: Tensor) -> str:
    """Return the SHA-256 (hex) of a tensor's dtype, shape and bytes."""
    digest = hashlib.sha256(f"{tensor.dtype}:{tuple(tensor.shape)}:".encode())
    for block in _blocks(tensor):
        digest.update(block)
    return digest.hexdigest()


def _blocks(tensor: Tensor) -> Iterator[memoryview]:
    """Yield what a tensor holds, row by row; from a GPU in blocks through page-locked memory, as fast as the bus is."""
    if tensor.device.type != "cuda":
        yield tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
        return
    whole = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    buffer = torch.empty(min(len(whole), _BLOCK), dtype=torch.uint8, pin_memory=True)
    for part in whole.split(_BLOCK):
        yield buffer[: len(part)].copy_(part).numpy().data


def checksum(tensor: Tensor) -> str:
    """Return what tells whether a tensor's bytes are those of before, without moving them off its device.

    On a CPU `hash_tensor`. Elsewhere the sum of its words of at most four bytes, each times a random odd number of its
    place, modulo 2**64: another value at one place always changes it, at several places by a chance of some 2**-32 not.
    """
    if tensor.device.type == "cpu":
        return hash_tensor(tensor)
    return f"{tensor.dtype}:{tuple(tensor.shape)}:{word_sum(tensor)}"


def word_sum(tensor: Tensor) -> int:
    """Return the sum of `checksum`, computed where the tensor is."""
    words, total = tensor.detach().reshape(-1), torch.zeros((), dtype=torch.int64, device=tensor.device)
    words = words.view({1: torch.int8, 2: torch.int16}.get(tensor.element_size(), torch.int32))
    for start in range(0, len(words), _WORDS):
        part = words[start : start + _WORDS]
        odd = torch.arange(start + 1, start + 1 + len(part), device=tensor.device)
        for factor, shift in _MIX:  # splitmix64
            odd = odd * factor
            odd ^= odd >> shift
        total += ((odd | 1) * part).sum()
    return int(total)


_HASH_THREADS = 8
"""Threads that hash: SHA-256 takes a second a gigabyte and lets the others run."""
_THREAD_SAFE = {"cpu", "cuda"}
"""Devices that several threads may read from at once: MPS may not."""
_BLOCK = 2**24
"""Bytes of a tensor that are moved off a GPU at once."""
_WORDS = 2**22
"""Words of a tensor, of four bytes at most, that are summed at once."""
_MIX = ((-0x61C8864680B583EB, 30), (-0x40A7B892E31B1A47, 27), (-0x6B2FB644ECCEEE15, 31))
"""Multipliers, as signed numbers of 64 bits, and shifts."""


class BaseFacts(TypedDict, total=False):
    """What names the model a delta was made on.

    Attributes:
        model_id: Hub id or path.
        revision: Commit; None when unknown.
        parameter_hashes: Of the parameters that the delta names, before the edit.
    """

    model_id: str
    revision: str | None
    model_type: str
    dtype: str
    parameter_hashes: dict[str, str]


def base_facts(model: PreTrainedModel, delta: WeightDelta) -> BaseFacts:
    """Describe the base of a delta, cheaply enough for every edit; editors keep it in `meta["base"]`."""
    config: Any = model.config
    return {
        "model_id": str(config._name_or_path or ""),
        "revision": getattr(config, "_commit_hash", None),
        "model_type": str(config.model_type),
        "dtype": str(model.dtype).removeprefix("torch."),
        "parameter_hashes": parameter_hashes(model, delta.updates),
    }
