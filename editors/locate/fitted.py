"""What `fit` computes for the methods that need second moments C and context templates.

One Cholesky factor of C per layer serves every edit (Woodbury).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.locate.config import LocateThenEditConfig
from seesaw_cf.editors.locate.moments import (
    MomentOptions,
    SecondMoment,
    load_moments,
    model_facts,
    moment_facts,
    moments_folder,
    second_moments,
)
from seesaw_cf.editors.locate.norms import check_norms
from seesaw_cf.editors.locate.positions import sample_templates
from seesaw_cf.models.architectures import ModelParts, model_parts
from seesaw_cf.models.corpus import Corpus
from seesaw_cf.models.editor import Diagnostics, HasLayers, Model, Tokenizer
from seesaw_cf.models.tensors import all_finite, float64_device, free_memory, in_float64
from seesaw_cf.models.trial import warn_without_bos

_LOG = logging.getLogger(__name__)
_RIDGES = (0.0, 1e-6, 1e-4)
"""Shares of the mean diagonal that are added until a matrix can be factored; float32 rounding may need the last."""


@dataclass(frozen=True)
class Factor:
    """Cholesky factor of C (+ ridge * I), in float64.

    Attributes:
        lower: (d_ff, d_ff).
        ridge: What was added to the diagonal; 0 unless C is singular to rounding.
    """

    lower: Tensor
    ridge: float

    def inverse_times(self, columns: Tensor) -> Tensor:
        """Return C^-1 times columns (d_ff, n), in float64, on the factor's device."""
        return torch.cholesky_solve(in_float64(columns).to(self.lower.device), self.lower)

    def inverse_times_each(self, groups: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Return each matrix (d_ff, n), in float64, and C^-1 times it; the factor is read once for all."""
        every = in_float64(torch.cat(list(groups), 1)).to(self.lower.device)
        sizes = [columns.shape[1] for columns in groups]
        return list(zip(every.split(sizes, 1), self.inverse_times(every).split(sizes, 1), strict=True))

    def regularised(self, groups: Sequence[Tensor], weight: float) -> list[Tensor]:
        """Return (weight * C + K K^T)^-1 K of each group's keys K, without forming the (d_ff, d_ff) matrix.

        Woodbury: with S = C^-1 K / weight this is S (I + K^T S)^-1.
        Source: MEMIT eq. 14 (C_0 = weight * C).

        Args:
            groups: K, (d_ff, n) each.
            weight: Lambda of MEMIT.

        Returns:
            (d_ff, n) of each, float64.
        """
        return [_woodbury(keys, solved / weight) for keys, solved in self.inverse_times_each(groups)]


def _woodbury(keys: Tensor, spread: Tensor) -> Tensor:
    small = torch.eye(keys.shape[1]).to(keys) + keys.T @ spread
    solved: Tensor = torch.linalg.solve(small.T, spread.T)
    return solved.T


def factorise(moment: Tensor, where: str, extra: float = 0.0) -> Factor:
    """Factor a second moment.

    Args:
        moment: C, (d_ff, d_ff), symmetric.
        where: For messages, e.g. "layer 5".
        extra: Added to the diagonal on purpose.

    Returns:
        The factor. A matrix that is singular to rounding (neurons that never fire, fewer tokens than d_ff) gets
        1e-6 of its mean diagonal added, or 1e-4 when that is too little, which is logged and reported in the delta's
        meta.

    Raises:
        EditError: Not finite, or not a second moment at all.
    """
    mean = float(in_float64(moment.diagonal()).mean())
    if not all_finite(moment):
        raise EditError(
            f"second moment of {where} has entries that are not finite. Delete the cached file and fit again."
        )
    for added in (share * mean for share in _RIDGES):
        matrix = moment.to(torch.float64, copy=True)
        matrix.diagonal().add_(extra + added)
        lower, failed = torch.linalg.cholesky_ex(matrix)
        if not int(failed):
            if added:
                _LOG.warning("second moment of %s is singular; added %.3g to its diagonal", where, added)
            return Factor(lower, added)
    raise EditError(
        f"second moment of {where} is not positive semi-definite (smallest eigenvalue "
        f"{float(torch.linalg.eigvalsh(in_float64(moment))[0]):.3g}). Delete the cached file and fit again with more "
        "texts."
    )


_SMALL = 32 * 2**20
"""Bytes of Cholesky factors that are kept for any model."""


@dataclass(frozen=True)
class Fitted:
    """Request-independent knowledge about one model.

    Attributes:
        templates: Context templates, the bare "{}" first.
        moments: Layer -> second moment; empty when the method runs without.
        source: What is known of moments that the config names; {} when they were computed from texts.
        room: Bytes that Cholesky factors kept for later edits may take; the last one is always kept.
    """

    templates: tuple[str, ...]
    moments: dict[int, SecondMoment] = field(default_factory=dict, repr=False)
    source: Diagnostics = field(default_factory=dict, repr=False)
    room: int = 1 << 40
    _factors: dict[tuple[int, torch.device, float], Factor] = field(default_factory=dict, repr=False, compare=False)
    _ridges: dict[int, float] = field(default_factory=dict, repr=False, compare=False)

    def factor(self, layer: int, like: Tensor, extra: float = 0.0) -> Factor:
        """Return the Cholesky factor of a layer's second moment (+ extra * I), made on first use and kept if it fits.

        Args:
            layer: Which layer.
            like: A tensor on the device the factor is wanted on.
            extra: Added to the diagonal.

        Raises:
            EditError: `fit` computed no second moment of this layer.
        """
        if layer not in self.moments:
            raise EditError(
                f"there is no second moment of layer {layer}, only of {sorted(self.moments)}. Name it in the config's "
                "layers and fit again."
            )
        key = (layer, like.device, extra)
        if key not in self._factors:
            matrix = self.moments[layer].matrix
            needed = 8 * matrix.numel()
            # Layers come in turn, so the youngest is wanted last: to drop it keeps the others for the next edit.
            while self._factors and sum(factor.lower.nbytes for factor in self._factors.values()) + needed > self.room:
                self._factors.popitem()
            self._factors[key] = factorise(matrix.to(float64_device(like.device)), f"layer {layer}", extra)
            self._ridges[layer] = self._factors[key].ridge
        return self._factors[key]

    def facts(self) -> JsonObject:
        """Return templates, sample sizes and ridges, JSON-able."""
        return {
            "context_templates": list(self.templates),
            "second_moments": {
                str(layer): {"n_tokens": m.n_tokens, "n_texts": m.n_texts} for layer, m in self.moments.items()
            },
            **({"moments_from": dict(self.source)} if self.source else {}),
            "ridge": {str(layer): ridge for layer, ridge in self._ridges.items() if ridge},
        }


def fit(
    model: Model,
    tokenizer: Tokenizer,
    config: LocateThenEditConfig,
    corpus: Sequence[str] | None,
    starts: Sequence[tuple[str, int]],
    editor: str,
) -> Fitted:
    """Sample templates (unless the config gives them) and compute or load the second moments.

    Args:
        model: The model to be edited.
        tokenizer: Its tokenizer.
        config: Layers, sample size and seeds.
        corpus: Texts; None = those of `config.dataset`.
        starts: What sampled templates begin with.
        editor: Name for messages.

    Returns:
        The fitted state.

    Raises:
        EditError: Second moments are needed and there is neither corpus nor dataset, or the texts are too short.
        StorageError: The config names second moments that are not there, or of another model.
        UnsupportedModelError: See `model_parts`.
    """
    parts = model_parts(model, config.architecture)
    parts.check_layers(config.layers, type(config).__name__)
    check_norms(parts, config.layers, editor)
    warn_without_bos(model, tokenizer)
    templates = config.context_templates or sample_templates(parts, tokenizer, starts, config.seed)
    if not config.moment_layers:
        return Fitted(templates)
    if config.moments is not None:
        folder, expected = moments_folder(config.moments), model_facts(model, tokenizer)
        moments = load_moments(folder, parts, config.moment_layers, expected)
        source = moment_facts(folder, expected)
    elif corpus is not None or config.dataset is not None:
        texts = corpus if corpus is not None else Corpus(config.dataset or "", config.sample_size, config.seed)
        how = MomentOptions(config.sample_size, config.max_length, config.seed, config.batch_tokens)
        moments, source = second_moments(parts, tokenizer, config.moment_layers, texts, how), {}
    else:
        raise EditError(
            f"{editor} needs texts for the second moments of its layers, got neither corpus nor dataset. Construct it "
            f"as {editor}(config, corpus=[...]) with texts the model knows, or set dataset='wikimedia/wikipedia:"
            "20231101.en' in the config to read them from the Hub, or moments='ORG/NAME' to use published ones."
        )
    check_tokens(moments, editor)
    room = int(config.factor_memory * free_memory(model.device))
    return Fitted(templates, moments, source, max(_SMALL, room))


def check_tokens(moments: Mapping[int, SecondMoment], user: str) -> None:
    """Refuse second moments of fewer tokens than dimensions, which have no inverse.

    Args:
        moments: Layer -> moment.
        user: Who needs them, for the message.

    Raises:
        EditError: Gives the number of tokens, and how many are needed.
    """
    for layer, moment in moments.items():
        if moment.n_tokens < len(moment.matrix):
            raise EditError(
                f"{user}: the texts are too short: {moment.n_texts:,} of them have {moment.n_tokens:,} tokens, and "
                f"the second moment of layer {layer} has {len(moment.matrix):,} dimensions, so it cannot be inverted. "
                "Give at least as many tokens, better a hundred times as many."
            )


def require(fitted: Fitted | None, editor: str) -> Fitted:
    """Return the fitted state, or raise an error that tells how to get it."""
    if fitted is None:
        raise EditError(
            f"{editor}.edit was called before fit. Write: editor = editor.fit(model, tokenizer); fit returns a new "
            "object and is quick the second time (its results are cached on disk)."
        )
    return fitted


def parts_for(model: Model, config: HasLayers) -> ModelParts:
    """Return the model's parts, with the config's layers checked."""
    parts = model_parts(model, config.architecture)
    parts.check_layers(config.layers, type(config).__name__)
    return parts
