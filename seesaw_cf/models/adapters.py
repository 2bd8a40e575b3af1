"""Weight deltas as standard LoRA adapters, and back.

A delta of rank r is exactly a LoRA adapter of rank r: no training, no approximation beyond rounding to float32.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from seesaw_cf.base.errors import DeltaMismatchError, EditError, RecordError, need
from seesaw_cf.base.files import atomic_folder, dump_json
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.delta_files import describe
from seesaw_cf.models.tensor_files import whole_tensors
from seesaw_cf.models.weights import LowRank, WeightDelta

ADAPTER_CONFIG, ADAPTER_TENSORS = "adapter_config.json", "adapter_model.safetensors"
_FACTS = "seesaw_cf.json"
_PREFIX = "base_model.model."
_FACTOR = re.compile(re.escape(_PREFIX) + r"(.+)\.lora_([AB])(?:\.default)?\.weight")
_REMEDY = "Share it as a checkpoint (merge_and_save, --as checkpoint) or as a delta (save_delta, --as delta) instead."


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
        raise EditError(f"this delta {kind}, so it has no adapter. Share it as a delta (save_delta, --as delta).")
    updates = {_module_name(name): _low_rank(name, update) for name, update in delta.updates.items()}
    conv1d = {name: isinstance(_module(model, name, update), Conv1D) for name, update in updates.items()}
    if len(set(conv1d.values())) > 1:
        raise EditError(f"this delta mixes Conv1D and Linear modules ({conv1d}); one adapter cannot. {_REMEDY}")
    one_rank = _one_rank(updates, rank)
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
        save_file(_tensors(updates, conv1d, one_rank), temporary / ADAPTER_TENSORS, metadata={"format": "pt"})
        dump_json(temporary / _FACTS, facts, ensure_ascii=False)


def _one_rank(updates: Mapping[str, LowRank], rank: int | None) -> int:
    needed = max(update.left.shape[1] for update in updates.values())
    if rank is not None and rank < needed:
        raise EditError(
            f"rank: got {rank}, but an update of this delta has rank {needed}. Give at least {needed}, or leave it out."
        )
    return rank or needed


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


def from_peft(folder: str | os.PathLike[str], model: PreTrainedModel) -> WeightDelta:
    """Read a LoRA adapter as a weight delta in the orientation of the model's parameters.

    Args:
        folder: A folder with `adapter_config.json` and `adapter_model.safetensors`, made by `to_peft` or by anyone.
        model: The base the adapter is for; used for names, shapes and orientation.

    Returns:
        The delta; scales (alpha / r, or alpha / sqrt(r) for rsLoRA) are multiplied into the left factor.

    Raises:
        StorageError: A file is missing.
        RecordError: A file is damaged, or the adapter is of a kind that is not a sum of low-rank updates (DoRA, trained
            biases, whole modules saved).
        DeltaMismatchError: The model has no such module, or another shape there.
    """
    where = Path(folder)
    file = where / ADAPTER_CONFIG
    config = read_json(file)
    if config.get("peft_type") != "LORA":
        raise RecordError(f"{file}: peft_type is {config.get('peft_type')!r}, expected 'LORA'. {_NOT_LORA}")
    if odd := _more(config):
        raise RecordError(f"{file}: {odd} is more than low-rank updates of weights. {_NOT_LORA}")
    with whole_tensors(where / ADAPTER_TENSORS):
        tensors = load_file(where / ADAPTER_TENSORS)
    pairs: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        match = _FACTOR.fullmatch(key)
        if match is None:
            raise RecordError(
                f"{where / ADAPTER_TENSORS}: tensor {key!r} is no LoRA factor of a linear module. {_NOT_LORA}"
            )
        pairs.setdefault(match[1], {})[match[2]] = tensor.float()
    updates = {f"{name}.weight": _from_pair(where, config, model, name, pair) for name, pair in sorted(pairs.items())}
    facts = read_json(where / _FACTS) if (where / _FACTS).exists() else {}
    meta = {key: facts[key] for key in ("editor", "config", "requests", "base") if facts.get(key) is not None}
    return WeightDelta(updates, {**meta, "adapter": {"r": config.get("r"), "lora_alpha": config.get("lora_alpha")}})


# Settings of peft that make an adapter more than a sum of low-rank updates, or one of another base: these ways to begin
# take something out of the weights they are added to.
_MORE = (
    *("use_dora", "modules_to_save", "lora_bias", "trainable_token_indices", "target_parameters"),
    *("layer_replication", "alora_invocation_tokens", "use_qalora", "use_bdlora"),
)
_CHANGES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
_NOT_LORA = "Merge the adapter into its base with peft and use the checkpoint instead."


def _module_name(name: str) -> str:
    if not name.endswith(".weight"):
        raise EditError(
            f"the delta changes {name!r}, which is not a weight matrix; LoRA has no place for it. {_REMEDY}"
        )
    return name.removesuffix(".weight")


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


def _module(model: nn.Module, name: str, update: LowRank) -> nn.Module:
    try:
        module = model.get_submodule(name)
    except AttributeError:
        module = None
    weight = getattr(module, "weight", None)
    if module is None or weight is None or weight.shape != update.shape:
        raise DeltaMismatchError(
            f"module {name!r}: the update has shape {tuple(update.shape)}, {type(model).__name__} has "
            f"{'none' if weight is None else tuple(weight.shape)} there. Use the model the edit was made on."
        )
    if not isinstance(module, (Conv1D, nn.Linear)):
        raise EditError(f"module {name!r} is a {type(module).__name__}, not a linear layer. {_REMEDY}")
    return module


def is_low_rank(folder: Path) -> bool:
    """Return whether `from_peft` can read an adapter; of one without tensors, what its config says."""
    names: list[str] = []
    with contextlib.suppress(OSError, SafetensorError), safe_open(folder / ADAPTER_TENSORS, framework="pt") as opened:
        names = list(opened.keys())
    config = read_json(folder / ADAPTER_CONFIG)
    return config.get("peft_type") == "LORA" and not _more(config) and all(map(_FACTOR.fullmatch, names))


def _more(config: JsonObject) -> JsonObject:
    """Return the settings of an adapter that make it more than low-rank updates of the base's own weights."""
    odd = {key: config[key] for key in _MORE if config.get(key)}
    odd |= {"bias": config["bias"]} if config.get("bias", "none") != "none" else {}
    begun = config.get("init_lora_weights")
    return odd | ({"init_lora_weights": begun} if str(begun).startswith(_CHANGES_BASE) else {})


class _Scaling(TypedDict, total=False):
    """What decides the scale of an adapter's modules."""

    lora_alpha: float
    alpha_pattern: Mapping[str, float]
    use_rslora: bool


def _scale(config: _Scaling, name: str, rank: int) -> float:
    """Return the scale of one module's product: alpha / r, or alpha / sqrt(r) for rsLoRA.

    Patterns follow peft's rule: a regular expression on the end of the module's name.
    """
    patterns = config.get("alpha_pattern") or {}
    match = (alpha for pattern, alpha in patterns.items() if re.match(rf"(.*\.)?({pattern})$", name))
    alpha = float(next(match, config.get("lora_alpha", rank)))
    return alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)


def _from_pair(where: Path, config: _Scaling, model: PreTrainedModel, name: str, pair: Mapping[str, Tensor]) -> LowRank:
    if set(pair) != {"A", "B"}:
        raise RecordError(
            f"{where / ADAPTER_TENSORS}: module {name!r} has only factor {sorted(pair)}. Download it again."
        )
    a, b = _unpadded(pair["A"], pair["B"] * _scale(config, name, pair["A"].shape[0]))
    try:
        conv1d = isinstance(model.get_submodule(name), Conv1D)  # stores its weights as (inputs, outputs)
    except AttributeError:
        conv1d = False
    update = LowRank(a.T.contiguous(), b.T.contiguous()) if conv1d else LowRank(b, a)
    _module(model, name, update)
    return update


def _unpadded(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Leave out the components that are 0 in both factors, as `to_peft` fills in; the first one always stays."""
    used = a.any(dim=1) | b.any(dim=0)
    used[:1] = True  # a product needs at least one component
    return a[used], b[:, used]
