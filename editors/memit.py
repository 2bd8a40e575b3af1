"""MEMIT: many facts at once, spread over the MLPs of several layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from seesaw_cf.base.fields import AboveZero
from seesaw_cf.editors.locate.config import LocateThenEditConfig
from seesaw_cf.editors.locate.fitted import Fitted
from seesaw_cf.editors.locate.method import SpreadEdit
from seesaw_cf.editors.locate.solve import key_groups


@dataclass(frozen=True, kw_only=True)
class MEMITConfig(LocateThenEditConfig):
    """Settings of MEMIT; see `LocateThenEditConfig` for the shared ones.

    Attributes:
        moment_weight: Lambda, the weight of the second moment against the new keys (15,000 for GPT-J).
    """

    editor: ClassVar[str] = "memit"
    moment_weight: AboveZero = 15_000.0


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
        """Return A = (lambda C + K K^T)^-1 K of each group, (d_ff, n) in float64."""
        groups = key_groups(keys)
        return fitted.factor(layer, groups[0]).regularised(groups, self.config.moment_weight)
