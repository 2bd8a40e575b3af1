"""MEMIT and EMMET: many facts at once, spread over the MLPs of several layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.fields import AboveZero
from seesaw_cf.editors.locate import SpreadEdit
from seesaw_cf.editors.locate.config import LocateThenEditConfig
from seesaw_cf.editors.locate.fitted import Fitted
from seesaw_cf.models.tensors import in_float64


@dataclass(frozen=True, kw_only=True)
class MEMITConfig(LocateThenEditConfig):
    """Settings of MEMIT; see `LocateThenEditConfig` for the shared ones.

    Attributes:
        moment_weight: Lambda, the weight of the second moment against the new keys (15,000 for GPT-J).
        spare_earlier: In a sequence also spare the keys of earlier edits, each with weight 1 (the paper does not).
    """

    editor: ClassVar[str] = "memit"
    moment_weight: AboveZero = 15_000.0
    spare_earlier: bool = False


@dataclass(frozen=True)
class MEMIT(SpreadEdit):
    """Mass-Editing Memory In a Transformer.

    Source: Meng et al. 2023, Algorithm 1: z by gradient descent at the last edited layer's output, then for each layer
    Delta = R K^T (lambda C + K K^T)^-1 with the residual shared equally among the layers left.

    Deviates: Seeded context templates; subject positions from character offsets; the target's tokens are those behind
    the prompt in the whole string; one Cholesky factor of C and Woodbury instead of a dense solve per edit. On models
    with a norm behind the MLP (Gemma 2 and 3, OLMo 2), which the paper does not treat, z is optimised in
    front of the last layer's norm, so that this layer can give it, and each projection is given the value that its norm
    turns into the wanted one, or the nearest there is (`seesaw_cf.editors.locate.norms`).

    Attributes:
        config: The settings.
    """

    config_class: ClassVar[type[MEMITConfig]] = MEMITConfig
    config: MEMITConfig

    def solve(self, fitted: Fitted, layer: int, keys: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return A = (lambda C + K_p K_p^T + K K^T)^-1 K of each group, (d_ff, n) in float64."""
        old = self.past.get(layer)
        every = keys if old is None else [torch.cat([in_float64(own), old.to(own.device)], 1) for own in keys]
        solved = fitted.factor(layer, keys[0]).regularised(every, self.config.moment_weight)
        return [whole[:, : own.shape[1]] for whole, own in zip(solved, keys, strict=True)]

    @property
    def remembers(self) -> bool:
        """Whether the method spares earlier edits."""
        return self.config.spare_earlier


@dataclass(frozen=True, kw_only=True)
class EMMETConfig(LocateThenEditConfig):
    """Settings of EMMET; see `LocateThenEditConfig` for the shared ones.

    Attributes:
        moment_weight: Weight of the second moment C.
        norm_weight: Weight of the identity added to it (the authors' update_norm_lambda).
        slack: Added to the diagonal of K^T C^-1 K, so that near-equal keys of a batch cannot blow the update up (the
            authors' emmet_lambda).
        slack_for_one: Also for a single request, as EasyEdit does; the authors' program does not.
    """

    editor: ClassVar[str] = "emmet"
    moment_weight: AboveZero = 100_000.0
    norm_weight: float = 0.0
    slack: float = 0.1
    slack_for_one: bool = False


@dataclass(frozen=True)
class EMMET(SpreadEdit):
    """Equality-constrained Mass Model Editing in a Transformer.

    Source: Gupta et al. 2024: Delta = R (K^T D K + slack I)^-1 K^T D with D = (w C + l I)^-1; several layers share the
    residual as in MEMIT.

    Attributes:
        config: The settings.
    """

    config_class: ClassVar[type[EMMETConfig]] = EMMETConfig
    config: EMMETConfig

    def solve(self, fitted: Fitted, layer: int, keys: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return A = D K (K^T D K + slack I)^-1 of each group, (d_ff, n) in float64."""
        weight = self.config.moment_weight
        factor = fitted.factor(layer, keys[0], self.config.norm_weight / weight)
        return [self._solve(layer, own, solved / weight) for own, solved in factor.inverse_times_each(keys)]

    def _solve(self, layer: int, keys: Tensor, spread_keys: Tensor) -> Tensor:
        config = self.config
        small = keys.T @ spread_keys
        if len(small) > 1 or config.slack_for_one:
            small = small + config.slack * torch.eye(len(small)).to(small)
        try:
            solved: Tensor = torch.linalg.solve(small.T, spread_keys.T)
        except RuntimeError as error:
            raise EditError(
                f"EMMET: the keys of {len(small)} requests at layer {layer} are linearly dependent ({error}), so they "
                "cannot all be met exactly. Set slack above 0, or drop repeated requests. The model is unchanged."
            ) from error
        return solved.T
