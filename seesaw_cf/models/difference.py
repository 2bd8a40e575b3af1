"""A checkpoint made elsewhere, as its difference to the base: computed once, one tensor at a time.

What agrees bit for bit is left out. A change that equals a product of thin factors up to the rounding of the
weights is kept so (an edit, a merged adapter), any other whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping

from seesaw_cf.base.errors import DeltaMismatchError, RecordError
from seesaw_cf.base.terminal import listed
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.hooks import silent_loaders
from seesaw_cf.models.low_rank import update_of
from seesaw_cf.models.tensor_files import TensorFiles
from seesaw_cf.models.weights import LowRank, WeightDelta, tensor_bytes

BUFFERS = re.compile(r"(^|\.)(attn|attention)\.(masked_)?bias$|\.rotary_emb\.inv_freq$|(^|\.)position_ids$")
"""Causal masks, positions and rotary frequencies in checkpoints of older versions."""

# Settings of config.json that move no log-probability of a model in eval mode, and those that tensors or other settings
# show: sizes, tied heads, and what `layer_types` is made of. All others must agree.
_HARMLESS = re.compile(
    r"_?name_or_path|architectures|auto_map|(.*_)?version|(torch_)?dtype|id2label|label2id|problem_type|"
    r".*token_id|.*_token_index|vocab_size.*|return_dict|output_.*|use_cache|num_logits_to_keep|chunk_size_feed_forward|"
    r".*drop(out)?(_.*)?|init_.*|initializer_range|.*_coef(ficient)?|router_jitter_noise|pretraining_tp|summary_.*|"
    r"tie_word_embeddings|max_position_embeddings|n_positions|n_ctx|max_window_layers"
)
_ANOTHER = 0.5  # a difference this large beside the base, in every matrix, is that of another training run
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Pair:
    """A parameter of the base and the tensor that stands for it in the checkpoint.

    Attributes:
        name: Of the parameter.
        own: Its weights in the base.
        other: Name of the checkpoint's tensor.
        same: Names of tensors that must equal it, because the base ties what they are for (a head to the embeddings).
        rows: Token number of the base -> row of the tensor, -1 for none; None where rows are no tokens.
    """

    name: str
    own: Tensor
    other: str
    same: tuple[str, ...] = ()
    rows: Tensor | None = None


def check_checkpoint(folder: Path, model: PreTrainedModel) -> None:
    """Refuse a checkpoint of another kind of model than the base, by its config.json and the headers of its files.

    Args:
        folder: With config.json and safetensors files.
        model: The base, or its outline without weights.

    Raises:
        DeltaMismatchError: Another type, other settings, tensors or shapes; more or fewer tokens are no fault.
        StorageError: A file is missing.
        RecordError: A file is damaged.
    """
    config = read_json(folder / "config.json", any_number=True)
    if config.get("model_type") != model.config.model_type:
        raise DeltaMismatchError(
            f"{folder}: a checkpoint of type {config.get('model_type')!r}, the base is of type "
            f"{model.config.model_type!r}. Give the base it was made from with --model."
        )
    own, other = _settings(model.config), _settings(type(model.config).from_pretrained(folder))
    changed = [key for key, value in own.items() if key in other and value != other[key]]
    if changed:
        text = "; ".join(f"{key} is {other[key]!r}, in the base {own[key]!r}" for key in changed)
        raise DeltaMismatchError(
            f"{folder}: {text}. With other settings the same weights compute something else, so the difference of the "
            "weights is not the whole edit. Give the base it was made from with --model."
        )
    files = TensorFiles(folder)
    if _is_converted(model):
        files.shapes()  # they are whole; what the loader makes of them shows when they are read
    else:
        _pairs(files, model)


def _settings(config: PreTrainedConfig) -> JsonObject:
    """Return the settings that must agree; what a file leaves out has the default of its class."""
    parts = {"": json.loads(config.to_json_string(use_diff=False))}
    parts |= {f"{key}.": part for key, part in parts[""].items() if key.endswith("_config") and isinstance(part, dict)}
    names = ((prefix, key) for prefix, part in parts.items() for key in part if f"{key}." not in parts)
    return {f"{prefix}{key}": parts[prefix][key] for prefix, key in names if not _HARMLESS.fullmatch(key)}


def token_rows(folder: Path, model: PreTrainedModel) -> int:
    """Return how many tokens a checkpoint has an embedding for, from its files' headers or its config.json.

    Raises:
        SeesawError: See `check_checkpoint`.
    """
    if _is_converted(model):
        config: Any = type(model.config).from_pretrained(folder)
        return int(config.get_text_config(decoder=True).vocab_size)
    files = TensorFiles(folder)
    return min(files.shapes()[pair.other][0] for pair in _pairs(files, model) if pair.rows is not None)


def difference(folder: Path, model: PreTrainedModel, rows: Tensor | None = None) -> WeightDelta:
    """Compute what a checkpoint changed of its base.

    Args:
        folder: With config.json and safetensors files, see `check_checkpoint`.
        model: The base with its weights; it is read, not changed.
        rows: Token number of the base -> number of that token in the checkpoint, -1 for none; None: they are equal.

    Returns:
        The change of every parameter that differs, on the CPU; `meta["sha256"]` names it. Added to the base it gives
        the checkpoint's weights in the base's dtype, up to their rounding; tokens that are not in both stay as they
        are. `meta["dtype"]` is that of the files where it cannot hold the base's weights: then the change holds the
        rounding of every weight, and nothing else where `meta["rounded"]` is True.

    Raises:
        DeltaMismatchError: See `check_checkpoint`; or every matrix is another one.
        RecordError: It differs in nothing, or holds numbers that are not finite or no floating-point weights, or a
            file is damaged.
        StorageError: A file is missing.
    """
    check_checkpoint(folder, model)
    files = (_ConvertedFiles if _is_converted(model) else TensorFiles)(folder)
    digest = hashlib.sha256()
    pairs = _pairs(files, model, rows)
    changed = [pair for pair in pairs if _differs(folder, files, pair)]
    if not changed:
        raise RecordError(
            f"{folder}: its {len(pairs)} tensors are those of the base, bit for bit, so there is no edit to audit. Was "
            "the model saved before it was edited, or is it the base itself?"
        )
    _check_related(folder, files, pairs, changed)
    updates: dict[str, LowRank | Tensor] = {}
    narrow, rounded = "", True
    for pair in changed:
        value, dtype = _value(files, pair), files.tensor(pair.other).dtype
        digest.update(f"{pair.name}:{value.dtype}:{tuple(value.shape)}:".encode())
        digest.update(tensor_bytes(value))
        updates[pair.name] = update_of(value, pair.own)
        held = _held(pair, dtype, files.shapes()[pair.other][0])
        narrow = narrow if torch.equal(held, pair.own) else _word(dtype)
        rounded = rounded and torch.equal(held, value)
    facts = {"dtype": narrow, "rounded": rounded} if narrow else {}
    return WeightDelta(updates, {"sha256": digest.hexdigest(), **facts})


def rounding(model: PreTrainedModel, dtype: torch.dtype) -> WeightDelta:
    """Return what it changes of a model's weights to store them in a narrower dtype."""
    named = [(name, parameter.detach()) for name, parameter in model.named_parameters()]
    return WeightDelta({name: weights.to(dtype).to(weights.dtype) - weights for name, weights in named})


class _ConvertedFiles(TensorFiles):
    """Files with tensors that transformers renames or joins when it loads them, such as the experts of a layer."""

    @cached_property
    def loaded(self) -> dict[str, Tensor]:
        """Name in the model -> tensor; missing from the model or of another shape: an empty one on the meta device."""
        how = dict.fromkeys(("use_safetensors", "ignore_mismatched_sizes", "output_loading_info"), True)
        try:
            with silent_loaders(bars=False):
                loaded: Any = AutoModelForCausalLM.from_pretrained(self.folder, dtype="auto", **how)
        except Exception as error:  # the loader fails in any way where tensors that it joins do not fit
            raise DeltaMismatchError(
                f"{self.folder}: transformers cannot load its tensors ({str(error).splitlines()[0][:200]}). Give a "
                "checkpoint that save_pretrained wrote."
            ) from error
        model, report = loaded
        parameters = model.named_parameters(remove_duplicate=False)
        tensors = {name: weights.detach() for name, weights in parameters if name not in report["missing_keys"]}
        odd = [*((name, (0,)) for name in report["unexpected_keys"]), *(key[:2] for key in report["mismatched_keys"])]
        return tensors | {name: torch.empty(shape, device="meta") for name, shape in odd}

    def shapes(self) -> dict[str, torch.Size]:
        """Return name in the model -> shape."""
        return {name: tensor.shape for name, tensor in self.loaded.items()}

    def tensor(self, name: str) -> Tensor:
        """Return one tensor as the model has it."""
        return self.loaded[name]


def _is_converted(model: PreTrainedModel) -> bool:
    """Return whether transformers renames or joins tensors of files of this type."""
    return bool(get_model_conversion_mapping(model, add_legacy=False))


def _pairs(files: TensorFiles, model: PreTrainedModel, rows: Tensor | None = None) -> list[_Pair]:
    """Match every parameter of the base with its tensor, and check all names and shapes."""
    shapes = {name: shape for name, shape in files.shapes().items() if not BUFFERS.search(name)}
    full = {f"{model.base_model_prefix}.{name}": name for name in shapes} | {name: name for name in shapes}
    aliases: dict[Tensor, list[str]] = {}  # tensors are hashed by identity: the names that share one
    for name, parameter in model.named_parameters(remove_duplicate=False):
        aliases.setdefault(parameter, []).append(name)
    expected = {name for names in aliases.values() for name in names} | set(dict(model.named_buffers()))
    left_over = sorted(other for name, other in full.items() if name == other and not _names(model, name) & expected)
    words = _of_tokens(model)
    pairs = []
    for own, names in aliases.items():
        if others := [full[name] for name in names if name in full]:
            number = (torch.arange(len(own)) if rows is None else rows) if own in words else None
            pairs.append(_Pair(names[0], own.detach(), others[0], tuple(others[1:]), number))
    missing = sorted({names[0] for names in aliases.values()} - {pair.name for pair in pairs})
    if left_over or missing:
        faults = [f"{listed(missing, _SHOWN)} of the base are missing"] if missing else []
        faults += [f"{listed(left_over, _SHOWN)} are not part of the base"] if left_over else []
        raise DeltaMismatchError(
            f"{files.folder}: tensors {' and '.join(faults)}. Give the base it was made from with --model; a "
            "checkpoint with an adapter in it must be merged and saved whole first."
        )
    for pair in pairs:
        got, own_shape = tuple(shapes[pair.other]), tuple(pair.own.shape)
        if got[pair.rows is not None :] != own_shape[pair.rows is not None :]:
            raise DeltaMismatchError(
                f"{files.folder}: {pair.other} has shape {got}, in the base {own_shape}. Give the base it was made "
                "from with --model."
            )
    return pairs


def _of_tokens(model: PreTrainedModel) -> set[Tensor]:
    """Return the parameters with one row for each token: embeddings and head."""
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    return {parameter for end in ends if end is not None for parameter in end.parameters()}


def _names(model: PreTrainedModel, name: str) -> set[str]:
    """Return what a tensor may be called in the model: checkpoints of a bare transformer leave its prefix out."""
    return {name, f"{model.base_model_prefix}.{name}"}


def _value(files: TensorFiles, pair: _Pair) -> Tensor:
    """Return the checkpoint's weights of a parameter, with the dtype, device and order of tokens of the base's."""
    value = files.tensor(pair.other).to(pair.own.device, pair.own.dtype)
    return value if pair.rows is None else _aligned(value, pair.own, pair.rows)


def _aligned(value: Tensor, own: Tensor, rows: Tensor) -> Tensor:
    """Return the rows of `value` in the order of the base's tokens; for tokens missing there, the base's own rows."""
    there = (rows >= 0) & (rows < len(value))
    aligned = own.clone()
    aligned[there] = value[rows[there]]
    return aligned


def _held(pair: _Pair, dtype: torch.dtype, rows: int) -> Tensor:
    """Return the base's weights as a dtype holds them; tokens that a checkpoint of `rows` rows lacks keep theirs."""
    held = pair.own.to(dtype).to(pair.own.dtype)
    if pair.rows is not None:
        missing = (pair.rows < 0) | (pair.rows >= rows)
        held[missing] = pair.own[missing]
    return held


def _differs(folder: Path, files: TensorFiles, pair: _Pair) -> bool:
    tensor = files.tensor(pair.other)
    if not tensor.is_floating_point():
        raise RecordError(
            f"{folder}: {pair.other} holds {_word(tensor.dtype)}, expected floating-point weights: the checkpoint is "
            "quantised, and config.json does not say how. Give the one it was made from."
        )
    if untied := [name for name in pair.same if not torch.equal(files.tensor(name), tensor)]:
        raise DeltaMismatchError(
            f"{folder}: {untied[0]} differs from {pair.other}, but the base ties them to one parameter. Give a "
            "base with tie_word_embeddings false, or tie the checkpoint and save it again."
        )
    if not bool(torch.isfinite(tensor).all()):
        raise RecordError(
            f"{folder}: {pair.other} holds numbers that are not finite; the edit or training that made it failed. It "
            "cannot be audited."
        )
    return not torch.equal(_value(files, pair), pair.own)


def _check_related(folder: Path, files: TensorFiles, pairs: list[_Pair], changed: list[_Pair]) -> None:
    """Refuse a model that shares shapes with the base and nothing else."""
    matrices = [pair for pair in pairs if pair.own.dim() > 1]
    if not {pair.name for pair in matrices} <= {pair.name for pair in changed}:
        return
    change = own = 0.0
    for pair in matrices:
        change += float((_value(files, pair).double() - pair.own.double()).norm()) ** 2
        own += float(pair.own.double().norm()) ** 2
    if change > _ANOTHER**2 * own:
        raise DeltaMismatchError(
            f"{folder}: all of its {len(matrices)} matrices differ, by {math.sqrt(change / own):.2f} of the base's "
            "norm. Weights that were trained from this base lie closer: it was made from another one. Give that with "
            "--model."
        )


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
