"""AlphaEdit: MEMIT's update projected onto the null space of what the model already knows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.files import cache_folder
from seesaw_cf.base.system import file_lock
from seesaw_cf.editors.locate import SpreadEdit
from seesaw_cf.editors.locate.config import LocateThenEditConfig
from seesaw_cf.editors.locate.fitted import Fitted, require
from seesaw_cf.editors.tensor_files import load_tensors, save_tensors
from seesaw_cf.models.editor import Diagnostics, Model, Tokenizer
from seesaw_cf.models.tensors import float64_device, free_memory, in_float64

_WORK = 6
"""Matrices in float64 that an eigendecomposition holds: what goes in, what comes out, and what the library needs."""


@dataclass(frozen=True, kw_only=True)
class AlphaEditConfig(LocateThenEditConfig):
    """Settings of AlphaEdit; see `LocateThenEditConfig` for the shared ones.

    Attributes:
        null_threshold: Eigenvectors of C with an eigenvalue below span the space that may be written to.
        norm_weight: L2, the weight of the update's own norm.
    """

    editor: ClassVar[str] = "alphaedit"
    null_threshold: float = 2e-2
    norm_weight: float = 10.0


@dataclass(frozen=True)
class AlphaEdit(SpreadEdit):
    """Null-space constrained editing, for long sequences of edits.

    Source: Fang et al. 2025, eq. 14: Delta = R K^T P (K K^T P + K_p K_p^T P + L2 I)^-1 with P the projector onto the
    null space of C and K_p the keys of earlier edits.

    Deviates: The published program keeps P in a file of a fixed name that it then uses for any model, and its cache in
    a module variable that also grows with edits that were undone. It solves in float32; here float64 and Woodbury.

    Attributes:
        config: The settings.
        bases: Layer -> (d_ff, r), orthonormal columns spanning the null space; made by `fit`, on the model's device
            where it has room for all of them.
    """

    config_class: ClassVar[type[AlphaEditConfig]] = AlphaEditConfig
    config: AlphaEditConfig
    bases: Mapping[int, Tensor] = field(default_factory=dict, repr=False)

    def fit(self, model: Model, tokenizer: Tokenizer) -> Self:
        """Prepare context templates, second moments (computed or found on disk) and null spaces.

        Returns:
            A new editor with an empty cache; this one is not changed.

        Raises:
            EditError: No texts, or a threshold that leaves no null space.
            UnsupportedModelError: A model or layer that cannot be edited.
            StorageError: A damaged cache file.
        """
        editor = super().fit(model, tokenizer)
        fitted = require(editor.fitted, "AlphaEdit")
        bases = {layer: self._basis(moment.matrix, layer, model.device) for layer, moment in fitted.moments.items()}
        if sum(basis.nbytes for basis in bases.values()) <= fitted.room:
            bases = {layer: basis.to(float64_device(model.device)) for layer, basis in bases.items()}
        return replace(editor, bases=bases, past={})

    def _basis(self, moment: Tensor, layer: int, device: torch.device) -> Tensor:
        """Return the null space of a second moment; it is kept in the cache folder."""
        key = hashlib.sha256(moment.contiguous().numpy().data)
        key.update(f"{moment.dtype} {self.config.null_threshold!r}".encode())
        file = cache_folder() / "null_spaces" / f"{key.hexdigest()}.safetensors"
        with file_lock(file.with_suffix(".lock"), wait=True):  # another process may be at it
            if not file.exists():
                save_tensors(file, {"basis": self._null_space(moment, layer, device)}, {})
        return load_tensors(file)[0]["basis"]

    def _null_space(self, moment: Tensor, layer: int, device: torch.device) -> Tensor:
        room = free_memory(device) > _WORK * 8 * moment.numel()
        values, vectors = torch.linalg.eigh(in_float64(moment.to(float64_device(device) if room else "cpu")))
        small = values < self.config.null_threshold
        if not bool(small.any()):
            raise EditError(
                f"AlphaEdit: no eigenvalue of the second moment of layer {layer} is below null_threshold="
                f"{self.config.null_threshold} (smallest {float(values[0]):.3g}, median {float(values.median()):.3g}): "
                "nothing may be written. Raise null_threshold."
            )
        basis: Tensor = vectors[:, small].cpu().contiguous()
        return basis

    def facts(self) -> Diagnostics:
        """Return the sizes of the null spaces and of the cache."""
        return {"null_space": {str(layer): basis.shape[1] for layer, basis in self.bases.items()}, **super().facts()}

    @property
    def remembers(self) -> bool:
        """Whether the method spares earlier edits."""
        return True

    def solve(self, fitted: Fitted, layer: int, keys: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return (P (K K^T + K_p K_p^T) + L2 I)^-1 P K of each group, (d_ff, n) in float64.

        It comes from a system with a row for each key.
        """
        if layer not in self.bases:
            raise EditError(f"AlphaEdit: no null space of layer {layer}, only of {sorted(self.bases)}. Call fit first.")
        basis = self.bases[layer].to(float64_device(keys[0].device))
        return [self._solve(layer, basis, own) for own in keys]

    def _solve(self, layer: int, basis: Tensor, keys: Tensor) -> Tensor:
        new = basis.T @ in_float64(keys)
        old = self.past.get(layer)
        every = new if old is None else torch.cat([new, basis.T @ old.to(basis)], 1)
        small = every.T @ every + self.config.norm_weight * torch.eye(every.shape[1]).to(every)
        solved: Tensor = basis @ (new - every @ torch.linalg.solve(small, every.T @ new)) / self.config.norm_weight
        return solved
