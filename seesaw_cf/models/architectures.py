"""Where things are inside a language model: one row of data per `config.model_type`.

Nothing here branches on a model's name. A model type without a row is edited by passing one:

    row = Architecture(blocks="model.layers", mlp_in=("mlp.up_proj",), mlp_out="mlp.down_proj", norm="model.norm")
    MEMIT(MEMITConfig(layers=(4, 5), architecture=row), corpus=texts)
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import UnsupportedModelError
from seesaw_cf.base.fields import checked

_OWN_MASKS = ("flash", "flex", "paged")


@dataclass(frozen=True, slots=True)
class Architecture:
    """One row of the table; paths are dotted attribute names.

    Attributes:
        blocks: The list of transformer blocks, from the model's root.
        mlp_in: Input projection(s) of the MLP, from a block.
        mlp_out: Output projection of the MLP, from a block: the matrix that ROME and MEMIT edit.
        norm: The norm before the head, from the root.
        head: The output embedding, from the root.
        orientation: "linear" stores weights as (out, in), "conv1d" (GPT-2) as (in, out).
        post_norm: A norm between the MLP's output and the residual stream, from a block; "" when there is none.
        packed: The attention takes a ready four-dimensional mask, so that rows of different edits can share one
            sequence. False is always right, only slower.
        bos: Of no use without a beginning-of-text token before every text, so that a tokenizer that puts none there is
            worth a warning (Gemma; the texts of other types begin in either way).
    """

    blocks: str
    mlp_in: tuple[str, ...]
    mlp_out: str
    norm: str
    head: str = "lm_head"
    orientation: Literal["linear", "conv1d"] = "linear"
    post_norm: str = ""
    packed: bool = False
    bos: bool = False


_GATED = ("mlp.gate_proj", "mlp.up_proj")
_LLAMA = Architecture("model.layers", _GATED, "mlp.down_proj", "model.norm", packed=True)
_SANDWICH = Architecture(
    "model.layers", _GATED, "mlp.down_proj", "model.norm", post_norm="post_feedforward_layernorm", packed=True
)

ARCHITECTURES: dict[str, Architecture] = {
    "gpt2": Architecture(
        "transformer.h", ("mlp.c_fc",), "mlp.c_proj", "transformer.ln_f", orientation="conv1d", packed=True
    ),
    "gptj": Architecture("transformer.h", ("mlp.fc_in",), "mlp.fc_out", "transformer.ln_f", packed=True),
    # Local attention layers read a mask of their own, by place in the sequence: rows cannot be packed.
    "gpt_neo": Architecture("transformer.h", ("mlp.c_fc",), "mlp.c_proj", "transformer.ln_f"),
    "gpt_neox": Architecture(
        "gpt_neox.layers", ("mlp.dense_h_to_4h",), "mlp.dense_4h_to_h", "gpt_neox.final_layer_norm", packed=True
    ),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gemma": replace(_LLAMA, bos=True),
    "gemma2": replace(_SANDWICH, bos=True),
    "gemma3_text": replace(_SANDWICH, bos=True),
    "gemma3": replace(_SANDWICH, blocks="model.language_model.layers", norm="model.language_model.norm", bos=True),
    "olmo2": _SANDWICH,
    "phi": Architecture("model.layers", ("mlp.fc1",), "mlp.fc2", "model.final_layernorm", packed=True),
    "phi3": Architecture("model.layers", ("mlp.gate_up_proj",), "mlp.down_proj", "model.norm", packed=True),
    "opt": Architecture("model.decoder.layers", ("fc1",), "fc2", "model.decoder.final_layer_norm", packed=True),
    # Falcon with ALiBi (RW models) builds its bias from a two-dimensional mask; rotary Falcon could be packed.
    "falcon": Architecture("transformer.h", ("mlp.dense_h_to_4h",), "mlp.dense_4h_to_h", "transformer.ln_f"),
}


@dataclass(frozen=True, slots=True)
class ModelParts:
    """A model together with its row of the table.

    Attributes:
        model: The model itself; never written through this object.
        row: Its architecture.
    """

    model: PreTrainedModel
    row: Architecture

    @property
    def n_layers(self) -> int:
        """Number of transformer blocks."""
        return len(cast(nn.ModuleList, self.model.get_submodule(self.row.blocks)))

    def block(self, layer: int) -> nn.Module:
        """Return transformer block number `layer`.

        Raises:
            UnsupportedModelError: The model has no such block; also by the methods below that take a layer.
        """
        if not self._has(layer):
            raise UnsupportedModelError(
                f"layer {shown(layer)}: {type(self.model).__name__} has blocks 0 to {self.n_layers - 1}."
            )
        return self.model.get_submodule(f"{self.row.blocks}.{layer}")

    def mlp_out(self, layer: int) -> nn.Module:
        """Return the MLP's output projection in block `layer`."""
        return self.block(layer).get_submodule(self.row.mlp_out)

    def weight_name(self, layer: int) -> str:
        """Return the full parameter name of the MLP output projection's weight in block `layer`."""
        self.block(layer)
        return f"{self.row.blocks}.{layer}.{self.row.mlp_out}.weight"

    def weight(self, layer: int) -> Tensor:
        """Return the MLP output projection's weight as stored: (d, d_ff), or (d_ff, d) for "conv1d"."""
        return self.model.get_parameter(self.weight_name(layer))

    def key_size(self, layer: int) -> int:
        """Return d_ff, the length of a key: the input of the MLP output projection."""
        return self.weight(layer).shape[0 if self.row.orientation == "conv1d" else 1]

    @property
    def width(self) -> int:
        """d, the length of the residual stream's vectors."""
        return self.weight(0).shape[1 if self.row.orientation == "conv1d" else 0]

    @property
    def norm(self) -> nn.Module | None:
        """The norm before the head; None for models that leave it out (some OPT sizes)."""
        parent, _, name = self.row.norm.rpartition(".")
        return cast("nn.Module | None", getattr(self.model.get_submodule(parent), name))

    @property
    def head_device(self) -> torch.device:
        """Where the head is, and so the logits."""
        return next(self.model.get_submodule(self.row.head).parameters()).device

    @property
    def stream_dtype(self) -> torch.dtype:
        """Dtype of the weights that are edited, taken as the model's."""
        return self.weight(0).dtype

    def logits(self, hidden: Tensor) -> Tensor:
        """Apply the final norm and the head to residual-stream vectors.

        Args:
            hidden: (..., d), the output of some block.

        Returns:
            (..., vocabulary), in float32 (float64 for float64 models).

        """
        head = self.model.get_submodule(self.row.head)
        norm = self.norm
        if norm is not None:
            hidden = norm(hidden.to(next(norm.parameters(), hidden).device))
        project = getattr(self.model.get_submodule(self.row.norm.rpartition(".")[0]), "project_out", None)
        if project is not None:  # OPT-350m: the head lives in a smaller space
            hidden = project(hidden)
        logits = head(hidden.to(self.head_device))
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        cap = getattr(self.text_config, "final_logit_softcapping", None)
        return cast(Tensor, torch.tanh(logits / cap) * cap if cap else logits)

    @property
    def text_config(self) -> Any:
        """The part of the config that describes the language model."""
        return text_config(self.model)

    def can_pack(self, longest: int) -> bool:
        """Return whether rows of different prompts may share one sequence under one mask.

        Args:
            longest: Tokens of the longest row; rows longer than a sliding window need the model's own masks.
        """
        window = getattr(self.text_config, "sliding_window", None)
        return self.row.packed and not makes_masks(self.model) and not (window and longest > window)

    def check_layers(self, layers: Iterable[int], where: str) -> None:
        """Refuse layers the model does not have.

        Raises:
            UnsupportedModelError: A layer is negative, too large, or named twice, or none is given.
        """
        asked = list(layers)
        if not asked or not all(map(self._has, asked)) or len(set(asked)) != len(asked):
            raise UnsupportedModelError(
                f"{where}: layers {shown(asked)} were asked for, expected different numbers from 0 to "
                f"{self.n_layers - 1} ({type(self.model).__name__} has {self.n_layers} blocks). "
                f"Set layers=..., or use {where}.for_model(model)."
            )

    def _has(self, layer: object) -> bool:
        return type(layer) is not bool and isinstance(layer, numbers.Integral) and 0 <= int(layer) < self.n_layers


@checked
def model_parts(model: PreTrainedModel, row: Architecture | None = None) -> ModelParts:
    """Find the row for a model and check that the model can be edited.

    Args:
        model: A transformers causal language model.
        row: Used instead of the table when given.

    Returns:
        The model with its row; every path has been looked up once.

    Raises:
        UnsupportedModelError: No row, a path that does not exist, another orientation, a quantised, wrapped, compiled
            or offloaded model.
    """
    kind, name = str(model.config.model_type), type(model).__name__
    _check_plain(model)
    row = row or ARCHITECTURES.get(kind)
    if row is None:
        raise UnsupportedModelError(
            f"no architecture row for model type {kind!r} ({name}); known: {', '.join(sorted(ARCHITECTURES))}. Pass a "
            "row in the editor's config, such as architecture=" + repr(_LLAMA) + "."
        )
    parts = ModelParts(model, row)
    try:
        conv1d = isinstance(parts.mlp_out(0), Conv1D)
        _ = [parts.norm, *map(model.get_submodule, (row.head, *(f"{row.blocks}.0.{path}" for path in row.mlp_in)))]
    except AttributeError as error:
        raise UnsupportedModelError(
            f"the architecture row for {kind!r} does not fit {name}: {error}. Row: {row}. Pass a corrected row as "
            "architecture=... in the config."
        ) from error
    if conv1d != (row.orientation == "conv1d"):
        raise UnsupportedModelError(
            f"{parts.weight_name(0)} is of a {type(parts.mlp_out(0)).__name__}, but the row for {kind!r} says "
            f"orientation={row.orientation!r}. Pass a row with the other orientation as architecture=... in the config."
        )
    _check_weights(parts)
    return parts


def _check_weights(parts: ModelParts) -> None:
    """Refuse weights that are not floating point, and MLP weights, in any block, that are not their module's own."""
    row = parts.row
    edited = {f"{row.blocks}.{layer}.{path}" for layer in range(parts.n_layers) for path in (*row.mlp_in, row.mlp_out)}
    for name, module in parts.model.named_modules():
        weight = getattr(module, "weight", None)
        own = weight is not None and "weight" in dict(module.named_parameters(recurse=False))
        plain = own if name in edited else weight is None or isinstance(weight, Tensor)
        if not plain or (weight is not None and not weight.is_floating_point()):
            dtype = weight.dtype if isinstance(weight, Tensor) else type(weight).__name__
            raise UnsupportedModelError(
                f"{name}.weight of {type(parts.model).__name__} is {dtype} in a {type(module).__name__}, expected a "
                "float parameter of a plain layer: quantised or wrapped weights cannot be edited. Load the model "
                "without quantization_config, torch.ao.quantization or adapters (peft: merge_and_unload)."
            )


def _check_plain(model: PreTrainedModel) -> None:
    meta = [key for key, parameter in model.named_parameters() if parameter.device.type == "meta"]
    problems = {
        "went through torch.compile; pass the model from before": hasattr(model, "_orig_mod")
        or getattr(model, "_compiled_call_impl", None) is not None,
        "is quantised; load it without quantization_config": getattr(model, "is_quantized", False)
        or getattr(model, "hf_quantizer", None) is not None,
        f"has {len(meta)} parameters that are not in memory (first: {(meta or [''])[0]}); load it with a device_map "
        "that offloads nothing": meta,
    }
    for problem, present in problems.items():
        if present:
            raise UnsupportedModelError(f"{type(model).__name__} {problem}. Edits need plain weights in memory.")


# Where a model's transformer blocks are, found in the model itself: no table is needed to look at or skip a block.


def text_config(model: PreTrainedModel) -> Any:
    """Return the part of a model's config that describes the language model."""
    return model.config.get_text_config(decoder=True)


def attention_of(model: PreTrainedModel) -> str:
    """Return the name of the attention that a model computes with; "" where it has none."""
    return str(getattr(text_config(model), "_attn_implementation", None) or "")


def makes_masks(model: PreTrainedModel) -> bool:
    """Return whether a model's attention takes no mask of ours: flash, flex and paged ones, also as a Hub's kernels."""
    return any(word in attention_of(model) for word in _OWN_MASKS)


def transformer_blocks(model: PreTrainedModel) -> nn.ModuleList | None:
    """Return the decoder's first list of modules with as many members as it has layers; None without one."""
    lists = (part for part in model.get_decoder().modules() if isinstance(part, nn.ModuleList))
    return next((part for part in lists if len(part) == text_config(model).num_hidden_layers), None)


def has_one_stream(model: PreTrainedModel) -> bool:
    """Return whether a block needs one hidden state of the blocks below it, and nothing else.

    Gemma 3n carries several states; its upper blocks, and those of Gemma 4, may read keys and values of lower ones.
    """
    config = text_config(model)
    return not (getattr(config, "num_kv_shared_layers", 0) or hasattr(config, "altup_num_inputs"))


def block_number(model: PreTrainedModel, name: str) -> int | None:
    """Return the number of the block that holds a parameter or module of this full name; None outside the blocks."""
    blocks = transformer_blocks(model)
    path = next((path for path, part in model.named_modules() if part is blocks), None)
    if path is None or not name.startswith(f"{path}."):
        return None
    return int(name[len(path) + 1 :].split(".")[0])
