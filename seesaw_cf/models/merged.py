"""Adapters that are more than a sum of low-rank updates: peft merges them into a copy of the base."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import PreTrainedModel

from seesaw_cf.base.errors import DeltaMismatchError, RecordError, SeesawError, need
from seesaw_cf.base.text import read_json
from seesaw_cf.models.adapters import ADAPTER_CONFIG, ADAPTER_TENSORS
from seesaw_cf.models.hooks import silent_loaders
from seesaw_cf.models.low_rank import update_of
from seesaw_cf.models.tensor_files import whole_tensors
from seesaw_cf.models.trial import embedding, is_tied, some_ids
from seesaw_cf.models.weights import LowRank, WeightDelta

_ROUNDING = {torch.float64: 1e-6, torch.float32: 1e-3}
"""Nats that merging may move a log-probability by; in narrower dtypes the weights are rounded once more (0.3)."""
_EMBEDDING = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "embed_tokens.base_layer.weight")


def merged(folder: Path, model: PreTrainedModel) -> PreTrainedModel:
    """Load an adapter of any kind onto a copy of its base and merge it into the copy's weights.

    Args:
        folder: With `adapter_config.json` and `adapter_model.safetensors`.
        model: The base; it is read, not changed.

    Returns:
        The merged model, with as many tokens as the adapter has.

    Raises:
        MissingExtraError: peft is not installed.
        RecordError: peft cannot load or merge it, or the merged model computes something else, as that of an adapter
            that acts on some prompts only.
        StorageError: Its tensors are missing.
        DeltaMismatchError: It is for another base, or has a head or an embedding of its own on a base that ties them.
    """
    kind = str(read_json(folder / ADAPTER_CONFIG).get("peft_type"))
    with need("peft", extra="hub", what_for=f"an adapter of type {kind}"):
        from peft import PeftModel
    base, rows = copy.deepcopy(model), _token_rows(folder)
    ids = torch.tensor([some_ids(model, 8)], device=embedding(model).device)
    try:
        with silent_loaders(bars=False), torch.random.fork_rng():
            if rows and rows != len(embedding(base)):
                base.resize_token_embeddings(rows, mean_resizing=False)
            adapted: Any = PeftModel.from_pretrained(base, str(folder)).eval()
            before = _logprobs(adapted, ids)
            whole: PreTrainedModel = adapted.merge_and_unload().eval()
    except SeesawError:
        raise
    except Exception as error:  # peft fails in any way where base and adapter do not fit
        lines = str(error).strip().splitlines() or [type(error).__name__]
        if "size mismatch" in str(error) or "Target modules" in str(error):
            raise DeltaMismatchError(
                f"{folder}: this {kind} adapter does not fit {type(model).__name__} ({lines[-1].strip()[:200]}). Give "
                "the base it was made on with --model."
            ) from error
        raise RecordError(
            f"{folder}: peft cannot load and merge this {kind} adapter ({type(error).__name__}: {lines[0][:200]}). "
            f"{_REMEDY}"
        ) from error
    moved = float((before - _logprobs(whole, ids)).abs().max())
    if moved > _ROUNDING.get(model.dtype, 0.3):
        raise RecordError(
            f"{folder}: merged into the weights, this {kind} adapter moves log-probabilities by {moved:.2g} nats, "
            "expected 0: it acts on some prompts only, or on one of several modules that share weights (tied "
            "embeddings, layer_replication). Where they share weights, give a base that keeps them apart, with "
            f"tie_word_embeddings false. {_REMEDY}"
        )
    if is_tied(model) and not is_tied(whole) and len(embedding(whole)) == len(embedding(model)):
        raise DeltaMismatchError(
            f"{folder}: this {kind} adapter has a head or an embedding of its own, but the base ties the two to one "
            "parameter. Give a base with tie_word_embeddings false, saved with both."
        )
    return whole


_REMEDY = (
    "Convert it with peft.convert_to_lora, or merge it yourself and audit the checkpoint; one that acts on some "
    "prompts only cannot be audited."
)


def change_between(model: PreTrainedModel, theirs: Mapping[str, Tensor]) -> WeightDelta:
    """Return what weights in memory changed of the base; of more tokens those that both have.

    Args:
        model: The base; it is read, not changed.
        theirs: Parameter name -> weights of a model of the same class.
    """
    updates: dict[str, LowRank | Tensor] = {}
    for name, parameter in model.named_parameters():
        own, value = parameter.detach(), theirs[name].detach().to(parameter.device, parameter.dtype)
        if own.shape != value.shape:
            value = torch.cat([value[: len(own)], own[len(value) :]])
        if not torch.equal(own, value):
            updates[name] = update_of(value, own)
    return WeightDelta(updates)


def _token_rows(folder: Path) -> int:
    """Return how many tokens the adapter's own embedding has; 0 when it has none."""
    file = folder / ADAPTER_TENSORS
    with whole_tensors(file), safe_open(file, framework="pt") as opened:
        names = [name for name in opened.keys() if name.endswith(_EMBEDDING)]  # noqa: SIM118 - it is no mapping
        return int(opened.get_slice(names[0]).get_shape()[0]) if names else 0


def _logprobs(model: Any, ids: Tensor) -> Tensor:
    with torch.inference_mode():
        logits: Tensor = model(input_ids=ids, use_cache=False).logits
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
