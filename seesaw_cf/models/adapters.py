"""Weight deltas as standard LoRA adapters.

A delta of rank r is exactly a LoRA adapter of rank r: no training, no approximation beyond rounding to float32.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from seesaw_cf.base.errors import EditError, need
from seesaw_cf.base.files import atomic_folder, dump_json
from seesaw_cf.models.delta_files import describe
from seesaw_cf.models.weights import LowRank, WeightDelta, check_fits

_TENSORS = "adapter_model.safetensors"
_FACTS = "seesaw_cf.json"
_PREFIX = "base_model.model."
_REMEDY = (
    "Share it as a checkpoint (merge_and_save, --form checkpoint) or as a delta (save_delta, --form delta) instead."
)


def factorise(change: Tensor) -> LowRank | None:
    """Write a matrix as a product of fewer numbers than it has, when its numerical rank allows that exactly.

    The rank counts singular values (float64) above max(rows, columns) × the machine epsilon of the matrix's own dtype ×
    the largest one: below that lies rounding noise of the matrix itself.

    Args:
        change: (rows, columns).

    Returns:
        The factors in the dtype of `change`, or None when they would hold as many numbers as the matrix.
    """
    left, values, right = torch.linalg.svd(change.double(), full_matrices=False)
    floor = max(change.shape) * torch.finfo(change.dtype).eps * values[0]
    rank = max(1, int((values > floor).sum()))
    if rank * sum(change.shape) >= change.numel():
        return None
    root = values[:rank].sqrt()
    return LowRank((left[:, :rank] * root).to(change.dtype), (root[:, None] * right[:rank]).to(change.dtype))


def to_peft(
    delta: WeightDelta,
    model: PreTrainedModel,
    folder: str | os.PathLike[str],
    *,
    base_model: str | None = None,
    rank: int | None = None,
) -> None:
    """Write a delta as a LoRA adapter that `peft.PeftModel.from_pretrained(model, folder)` loads.

    All modules have one rank, the largest of their updates (the number of edits for ROME and MEMIT): smaller factors
    are filled with zeros, which add nothing. So `r` alone describes the adapter, as vLLM and other servers read it
    (no rank_pattern, no alpha_pattern), and its scale, lora_alpha / r, is exactly 1. The logits equal those of
    `applied(model, delta)` up to rounding (<= 1e-4 in float32). For a base in bfloat16 or float16 the adapter is added
    to activations and never rounded into the weights, so the two differ by that rounding.

    Args:
        delta: Low-rank updates of two-dimensional weights; a dense update only when its numerical rank is low.
        model: The unedited base; it is read, not changed.
        folder: A folder that does not exist yet, or is empty.
        base_model: What the adapter names as its base; the model's own id when None.
        rank: Rank to fill up to, for servers with buffers of fixed sizes; the largest rank needed when None.

    Raises:
        EditError: The delta cannot be an adapter: a text context, a bias, a dense update of high rank, or a rank above
            `rank`.
        DeltaMismatchError: The model misses a parameter of the delta, or has another shape there.
        MissingExtraError: `peft` is not installed.
        StorageError: The folder is not empty or cannot be written.
    """
    with need("peft", extra="hub", what_for="writing a LoRA adapter"):
        from peft import LoraConfig
    if delta.context or not delta.updates:
        kind = "is a text put before prompts" if delta.context else "changes nothing"
        raise EditError(f"this delta {kind}, so it has no adapter. Share it as a delta (save_delta, --form delta).")
    if biases := [name for name in delta.updates if not name.endswith(".weight")]:
        raise EditError(f"the delta changes {biases[0]!r}, no weight matrix: LoRA has no place for it. {_REMEDY}")
    updates = {name.removesuffix(".weight"): _low_rank(name, update) for name, update in delta.updates.items()}
    check_fits(model, delta)
    modules = {name: model.get_submodule(name) for name in updates}
    if others := [name for name, module in modules.items() if not isinstance(module, Conv1D | nn.Linear)]:
        raise EditError(f"module {others[0]!r} is a {type(modules[others[0]]).__name__}, not a linear layer. {_REMEDY}")
    conv1d = {name: isinstance(module, Conv1D) for name, module in modules.items()}
    if len(set(conv1d.values())) > 1:
        raise EditError(f"this delta mixes Conv1D and Linear modules ({conv1d}); one adapter cannot. {_REMEDY}")
    needed = max(update.left.shape[1] for update in updates.values())
    if rank is not None and rank < needed:
        raise EditError(
            f"rank: got {rank}, but an update of this delta has rank {needed}. Give at least {needed}, or leave it out."
        )
    one_rank = rank or needed
    config = LoraConfig(
        task_type="CAUSAL_LM",
        base_model_name_or_path=base_model or str(model.config._name_or_path or ""),
        inference_mode=True,
        r=one_rank,
        lora_alpha=one_rank,
        lora_dropout=0.0,
        target_modules=sorted(updates),
        fan_in_fan_out=next(iter(conv1d.values())),
    )
    facts = describe(delta, model, base_model)
    with atomic_folder(folder) as temporary:
        config.save_pretrained(str(temporary))
        save_file(_tensors(updates, conv1d, one_rank), temporary / _TENSORS, metadata={"format": "pt"})
        dump_json(temporary / _FACTS, facts, ensure_ascii=False)


def _tensors(updates: Mapping[str, LowRank], conv1d: Mapping[str, bool], rank: int) -> dict[str, Tensor]:
    """Return the updates as LoRA factors in float32, filled up with zeros to one rank.

    A Linear's weight gains B @ A, a Conv1D's (B @ A) transposed; A is (rank, inputs), B (outputs, rank).
    """
    tensors = {}
    for name, update in updates.items():
        a, b = (update.left.T, update.right.T) if conv1d[name] else (update.right, update.left)
        missing = rank - a.shape[0]
        for letter, factor in (("A", pad(a, (0, 0, 0, missing))), ("B", pad(b, (0, missing)))):
            tensors[f"{_PREFIX}{name}.lora_{letter}.weight"] = factor.detach().float().cpu().contiguous().clone()
    return tensors


def _low_rank(name: str, update: LowRank | Tensor) -> LowRank:
    if isinstance(update, LowRank):
        return update
    factors = factorise(update) if update.dim() == 2 else None
    if factors is None:
        raise EditError(
            f"the update of {name!r} is dense, shape {tuple(update.shape)}, and not of low rank: an adapter would hold "
            f"more numbers than the matrix. {_REMEDY}"
        )
    return factors
