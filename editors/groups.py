"""The common course of MEMIT, EMMET and AlphaEdit: values for all requests together, then one update per group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import accumulate, pairwise
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.arch import ModelParts
from seesaw_cf.editors.checks import check_requests, finished
from seesaw_cf.editors.config import LocateThenEditConfig
from seesaw_cf.editors.fitted import Fitted, parts_for, require
from seesaw_cf.editors.hooks import untouched
from seesaw_cf.editors.optimise import optimise
from seesaw_cf.editors.positions import prepare
from seesaw_cf.editors.spread import spread
from seesaw_cf.errors import EditError
from seesaw_cf.types import EditRequest
from seesaw_cf.weights import WeightDelta, base_facts

__all__ = ["edit_groups", "ready"]


def edit_groups(
    name: str,
    config: LocateThenEditConfig,
    fitted: Fitted | None,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    groups: Sequence[Sequence[EditRequest]],
    solve: Callable[[int, Tensor], Tensor],
    **facts: Any,
) -> list[WeightDelta]:
    """Edits several groups of requests, each on the model as it is; values are optimised for all of them at once.

    Args:
        name: The editor's name in `EDITORS`.
        config: Its settings.
        fitted: Its fitted state.
        model: Left as it is.
        tokenizer: The model's tokenizer.
        groups: Requests that are edited together; what is done for one group does not depend on the others.
        solve: See `spread`.
        **facts: More facts for `meta`.

    Returns:
        One delta per group.

    Raises:
        EditError: See `ready`; contradictory requests in a group, a loss or an update that is not finite.
        PromptError: A prompt that cannot be encoded as asked.
        UnsupportedModelError: A model or layer that cannot be edited.
    """
    for group in groups:
        check_requests(group, name, config.allow_identity)
    fitted, parts = ready(name, config, fitted, model)
    edits = [prepare(model, tokenizer, r, fitted.templates, config.kl_prompt) for group in groups for r in group]
    with untouched(model):
        found = optimise(parts, edits, max(config.layers), config)
        cuts = [0, *accumulate(len(group) for group in groups)]
        slices = [slice(*pair) for pair in pairwise(cuts)]
        prepared, values = [edits[mine] for mine in slices], [found.part(mine) for mine in slices]
        updates = spread(parts, prepared, values, config.layers, solve, config.batch_tokens)
    every = WeightDelta({weight: change for update in updates for weight, change in update.items()})
    diagnostics, facts = found.diagnostics(), {**fitted.facts(), **facts, "base": base_facts(model, every)}
    return [
        finished(name, asdict(config), group, update, diagnostics[mine], **facts)
        for group, update, mine in zip(groups, updates, slices, strict=True)
    ]


def ready(
    name: str, config: LocateThenEditConfig, fitted: Fitted | None, model: PreTrainedModel
) -> tuple[Fitted, ModelParts]:
    """What an edit starts from, once model and fitted state are known to belong together.

    Raises:
        EditError: Not fitted, or fitted on a model whose keys have another length.
        UnsupportedModelError: See `parts_for`.
    """
    fitted, parts = require(fitted, name), parts_for(model, config)
    for layer, moment in fitted.moments.items():
        size = parts.key_size(layer)
        if len(moment.matrix) != size:
            raise EditError(
                f"{name}: the second moment of layer {layer} is of size {len(moment.matrix)}, the keys of "
                f"{type(model).__name__} have length {size} there: the editor was fitted on another model. Fit it "
                "again: editor = editor.fit(model, tokenizer). The model is unchanged."
            )
    return fitted, parts
