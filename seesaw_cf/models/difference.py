"""A checkpoint made elsewhere, as its difference to the base: computed once, one tensor at a time.

What agrees bit for bit is left out. A change that equals a product of thin factors up to the rounding of the
weights is kept so (an edit, a merged adapter), any other whole. The checkpoint is never loaded as a second model.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers import PreTrainedModel

from seesaw_cf.base.errors import DeltaMismatchError, RecordError, StorageError
from seesaw_cf.base.text import read_json
from seesaw_cf.models.low_rank import compress
from seesaw_cf.models.weights import LowRank, WeightDelta

# The tensors of a checkpoint folder, one at a time: what they are is known without reading them.

_ONE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


@dataclass(frozen=True)
class TensorFiles:
    """The safetensors files of a checkpoint, in one piece or in several with an index.

    Attributes:
        folder: Where they are.
    """

    folder: Path

    @cached_property
    def files(self) -> dict[str, Path]:
        """Tensor name -> the file it is in.

        Raises:
            StorageError: No safetensors file exists, or one that the index names is missing.
            RecordError: The index or a file is damaged.
        """
        if (self.folder / _INDEX).is_file():
            named: Any = read_json(self.folder / _INDEX).get("weight_map")
            if not isinstance(named, dict) or not all(isinstance(n, str) and Path(n).name == n for n in named.values()):
                raise RecordError(
                    f"{self.folder / _INDEX}: no 'weight_map' from tensors to files of this folder. Copy or download "
                    "the checkpoint again."
                )
            return {name: self.folder / file for name, file in named.items()}
        if not (self.folder / _ONE).is_file():
            raise StorageError(f"{self.folder}: no {_ONE} in it. {self._remedy()}")
        with self._opened(self.folder / _ONE) as file:
            return dict.fromkeys(file.keys(), self.folder / _ONE)

    def shapes(self) -> dict[str, torch.Size]:
        """Tensor name -> shape, from the files' headers.

        Raises:
            StorageError: A file is missing.
            RecordError: A file is damaged, or misses a tensor that the index lists.
        """
        shapes: dict[str, torch.Size] = {}
        for file in dict.fromkeys(self.files.values()):
            with self._opened(file) as opened:
                there = [name for name, place in self.files.items() if place == file]
                shapes |= {name: torch.Size(opened.get_slice(name).get_shape()) for name in there}
        return shapes

    def tensor(self, name: str) -> Tensor:
        """Read one tensor, onto the CPU.

        Raises:
            StorageError: Its file is missing.
            RecordError: Its file is damaged.
        """
        with self._opened(self.files[name]) as file:
            tensor: Tensor = file.get_tensor(name)
        return tensor

    @contextmanager
    def _opened(self, file: Path) -> Iterator[Any]:
        try:
            with safe_open(file, framework="pt", device="cpu") as opened:
                yield opened
        except OSError as error:
            raise StorageError(
                f"{file}: cannot be read ({error.strerror or error}). Copy or download the whole checkpoint."
            ) from error
        except SafetensorError as error:
            raise RecordError(f"{file}: damaged ({error}). Copy or download it again.") from error

    def _remedy(self) -> str:
        if any((self.folder / name).exists() for name in _PICKLED):
            return (
                "Its weights are pickled (.bin), which is not read because it can run code. Where you trust the file, "
                "convert it once with AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)."
            )
        return "Expected a folder that save_pretrained wrote, with its safetensors files."


BUFFERS = re.compile(r"(^|\.)(attn|attention)\.(masked_)?bias$|\.rotary_emb\.inv_freq$|(^|\.)position_ids$")
"""Causal masks, positions and rotary frequencies in checkpoints of older versions."""

# Settings of a model that change what it computes without a change of weights or shapes, by their names in config.json.
_SETTINGS = (
    *("n_head", "num_heads", "num_attention_heads", "num_key_value_heads", "head_dim", "rotary_dim", "rotary_pct"),
    *("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor", "sliding_window", "layer_types"),
    *("activation_function", "hidden_act", "rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon"),
    *("use_parallel_residual", "parallel_attn", "alibi", "do_layer_norm_before", "scale_attn_weights"),
    *("attn_logit_softcapping", "final_logit_softcapping", "logits_scaling", "embedding_multiplier"),
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
    """

    name: str
    own: Tensor
    other: str
    same: tuple[str, ...] = ()


def check_checkpoint(folder: Path, model: PreTrainedModel) -> None:
    """Refuse a checkpoint of another kind of model than the base, by its config.json and the headers of its files.

    Args:
        folder: With config.json and safetensors files.
        model: The base, or its outline without weights.

    Raises:
        DeltaMismatchError: Another type, other settings, vocabulary, tensors or shapes.
        StorageError: A file is missing.
        RecordError: A file is damaged.
    """
    config = read_json(folder / "config.json", any_number=True)
    if config.get("model_type") != model.config.model_type:
        raise DeltaMismatchError(
            f"{folder}: a checkpoint of type {config.get('model_type')!r}, the base is of type "
            f"{model.config.model_type!r}. Give the base it was made from with --model."
        )
    own, other = model.config.to_dict(), type(model.config).from_pretrained(folder).to_dict()
    changed = [key for key in _SETTINGS if own.get(key) != other.get(key)]
    if changed:
        text = "; ".join(f"{key} is {other.get(key)!r}, in the base {own.get(key)!r}" for key in changed)
        raise DeltaMismatchError(
            f"{folder}: {text}. These change what a model computes without a change of its weights, so the difference "
            "of the weights is not the whole edit. Give the base it was made from with --model."
        )
    for _ in _pairs(TensorFiles(folder), model):
        pass


def difference(folder: Path, model: PreTrainedModel) -> WeightDelta:
    """What a checkpoint changed of its base.

    Args:
        folder: With config.json and safetensors files, see `check_checkpoint`.
        model: The base with its weights; it is read, not changed.

    Returns:
        The change of every parameter that differs, on the CPU; `meta["sha256"]` names it. Added to the base it gives
        the checkpoint's weights in the base's dtype, up to their rounding.

    Raises:
        DeltaMismatchError: See `check_checkpoint`; or the checkpoint was saved in a narrower dtype than the base has,
            or every matrix is another one.
        RecordError: It differs in nothing, is quantised or holds numbers that are not finite, or a file is damaged.
        StorageError: A file is missing.
    """
    check_checkpoint(folder, model)
    files, digest = TensorFiles(folder), hashlib.sha256()
    pairs = list(_pairs(files, model))
    changed = [pair for pair in pairs if _differs(folder, files, pair)]
    if not changed:
        raise RecordError(
            f"{folder}: its {len(pairs)} tensors are those of the base, bit for bit, so there is no edit to audit. Was "
            "the model saved before it was edited, or is it the base itself?"
        )
    _check_related(folder, files, pairs, changed)
    updates: dict[str, LowRank | Tensor] = {}
    for pair in changed:
        change, value = _change(files, pair)
        digest.update(f"{pair.name}:{value.dtype}:{tuple(value.shape)}:".encode())
        digest.update(value.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        updates[pair.name] = _update(change, pair.own)
    return WeightDelta(updates, {"sha256": digest.hexdigest()})


class MovedParameter(TypedDict):
    """What a delta moves: rank (None: kept whole), norm, and norm over that of the base's weights (None where 0)."""

    name: str
    shape: list[int]
    rank: int | None
    norm: float
    relative: float | None


def moved(delta: WeightDelta, model: PreTrainedModel) -> list[MovedParameter]:
    """Return one row for each parameter that a delta moves.

    Args:
        delta: The change.
        model: The base with its weights.
    """
    rows: list[MovedParameter] = []
    for name, norm in delta.norms().items():
        update, whole = delta.updates[name], float(model.get_parameter(name).detach().double().norm())
        rank = update.left.shape[1] if isinstance(update, LowRank) else None
        relative = norm / whole if whole else None
        rows.append({"name": name, "shape": list(update.shape), "rank": rank, "norm": norm, "relative": relative})
    return rows


def _pairs(files: TensorFiles, model: PreTrainedModel) -> Iterator[_Pair]:
    """Every parameter of the base with its tensor; all names and shapes are checked before the first is given."""
    shapes = {name: shape for name, shape in files.shapes().items() if not BUFFERS.search(name)}
    full = {f"{model.base_model_prefix}.{name}": name for name in shapes} | {name: name for name in shapes}
    aliases: dict[Tensor, list[str]] = {}  # tensors are hashed by identity: the names that share one
    for name, parameter in model.named_parameters(remove_duplicate=False):
        aliases.setdefault(parameter, []).append(name)
    expected = {name for names in aliases.values() for name in names} | set(dict(model.named_buffers()))
    left_over = sorted(other for name, other in full.items() if name == other and not _names(model, name) & expected)
    pairs = []
    for own, names in aliases.items():
        if others := [full[name] for name in names if name in full]:
            pairs.append(_Pair(names[0], own.detach(), others[0], tuple(others[1:])))
    missing = sorted({names[0] for names in aliases.values()} - {pair.name for pair in pairs})
    if left_over or missing:
        faults = [f"{_some(missing)} of the base are missing"] if missing else []
        faults += [f"{_some(left_over)} are not part of the base"] if left_over else []
        raise DeltaMismatchError(
            f"{files.folder}: tensors {' and '.join(faults)}. Give the base it was made from with --model; a quantised "
            "checkpoint, or one with an adapter in it, must be merged and saved whole first."
        )
    _check_shapes(files.folder, shapes, model, pairs)
    yield from pairs


def _names(model: PreTrainedModel, name: str) -> set[str]:
    """What a tensor may be called in the model: checkpoints of a bare transformer leave its prefix out."""
    return {name, f"{model.base_model_prefix}.{name}"}


def _check_shapes(folder: Path, shapes: dict[str, torch.Size], model: PreTrainedModel, pairs: list[_Pair]) -> None:
    words = cast(nn.Embedding, model.get_input_embeddings()).weight.shape[0]
    for pair in pairs:
        got, own = tuple(shapes[pair.other]), tuple(pair.own.shape)
        if got == own:
            continue
        if got[1:] == own[1:] and own[0] == words:
            raise DeltaMismatchError(
                f"{folder}: another vocabulary: {pair.other} has {got[0]:,} rows, in the base {own[0]:,}. A checkpoint "
                "is compared word for word; give one whose tokenizer was not extended, or the base with the same one."
            )
        raise DeltaMismatchError(
            f"{folder}: {pair.other} has shape {got}, in the base {own}. Give the base it was made from with --model."
        )


def _value(files: TensorFiles, pair: _Pair) -> Tensor:
    """The checkpoint's weights of a parameter as they are stored, where the base's are."""
    return files.tensor(pair.other).to(pair.own.device)


def _differs(folder: Path, files: TensorFiles, pair: _Pair) -> bool:
    value = _value(files, pair)
    if not value.is_floating_point():
        raise RecordError(
            f"{folder}: {pair.other} holds {_word(value)}, expected floating-point weights: the checkpoint is "
            "quantised. Give the one it was made from."
        )
    if untied := [name for name in pair.same if not torch.equal(files.tensor(name), files.tensor(pair.other))]:
        raise DeltaMismatchError(
            f"{folder}: {untied[0]} differs from {pair.other}, but the base ties them to one parameter. Give a "
            "base with tie_word_embeddings false, or tie the checkpoint and save it again."
        )
    if torch.equal(value.to(pair.own.dtype), pair.own):
        return False
    if not bool(torch.isfinite(value).all()):
        raise RecordError(
            f"{folder}: {pair.other} holds numbers that are not finite; the edit or training that made it failed. It "
            "cannot be audited."
        )
    if torch.promote_types(value.dtype, pair.own.dtype) != value.dtype:
        held = pair.own.to(value.dtype).to(pair.own.dtype)
        if not torch.equal(held, pair.own):
            raise DeltaMismatchError(
                f"{folder}: {pair.other} is stored in {_word(value)}, which cannot hold the base's weights in "
                f"{_word(pair.own)}: the rounding of every weight would count as an edit. Save the checkpoint in the "
                f"dtype of its base, or load the base as --dtype {_word(value)}."
            )
    return True


def _check_related(folder: Path, files: TensorFiles, pairs: list[_Pair], changed: list[_Pair]) -> None:
    """Refuse a model that shares shapes with the base and nothing else."""
    matrices = [pair for pair in pairs if pair.own.dim() > 1]
    if not {pair.name for pair in matrices} <= {pair.name for pair in changed}:
        return
    change = own = 0.0
    for pair in matrices:
        change += float(_change(files, pair)[0].norm()) ** 2
        own += float(pair.own.double().norm()) ** 2
    if change > _ANOTHER**2 * own:
        raise DeltaMismatchError(
            f"{folder}: all of its {len(matrices)} matrices differ, by {math.sqrt(change / own):.2f} of the base's "
            "norm. Weights that were trained from this base lie closer: it was made from another one. Give that with "
            "--model."
        )


def _change(files: TensorFiles, pair: _Pair) -> tuple[Tensor, Tensor]:
    """New minus old, in at least float32, and the new weights in the base's dtype."""
    value, wide = _value(files, pair).to(pair.own.dtype), torch.promote_types(pair.own.dtype, torch.float32)
    return value.to(wide) - pair.own.to(wide), value


def _update(change: Tensor, own: Tensor) -> LowRank | Tensor:
    """A product where it is one but for the rounding of the weights in their dtype (at least float32)."""
    allowed = torch.finfo(change.dtype).eps * max(float(own.double().norm()), float((own + change).double().norm()))
    factors = compress(change, allowed) if change.dim() == 2 else None
    return LowRank(factors.left.cpu(), factors.right.cpu()) if factors is not None else change.cpu()


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _word(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
