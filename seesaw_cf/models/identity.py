"""Which model computes: one identity for scores, second moments, texts, trained networks and run folders.

Equal identities mean equal logits, on one type of machine. Names and paths are left out, so a copy is the same model.
A model with hooks, with a replaced `forward` or with code that is in no file has another identity each time: nothing of
it is found in a cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.modules.module as torch_module
import transformers
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.weights import digest, hash_tensor, parameter_hashes

_FORMAT = 3  # one more when what is hashed or what scores are made of changes: caches of older formats are not read
_NAMES = ("_name_or_path", "_commit_hash", "architectures", "transformers_version", "auto_map")
_IMPLEMENTATIONS = ("_attn_implementation", "_experts_implementation")


def identity(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> JsonObject:
    """Return all that scores and texts of a model depend on, as JSON values; the weights are read once.

    Returns:
        fingerprint, weights (SHA-256 of the tensors alone, as deltas name their base), tokenizer, configuration and
        numerics (to say what differs) and libraries.
    """
    weights = digest(parameter_hashes(model))
    return {
        "fingerprint": fingerprint(model, weights),
        "weights": weights,
        "tokenizer": tokenizer_hash(tokenizer),
        "configuration": configuration(model),
        "numerics": numerics(model),
        "libraries": libraries(),
    }


def model_facts(
    name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, revision: str | None, dtype: str
) -> JsonObject:
    """Return what a manifest records of a model: `id`, `revision` (or the commit it has), `dtype`, and its `identity`.

    Args:
        name: What the model was called.
        model, tokenizer: The loaded model.
        revision, dtype: What was asked for; of "auto" the dtype that was loaded is recorded.
    """
    commit = revision or getattr(model.config, "_commit_hash", None) or ""
    held = str(model.dtype).removeprefix("torch.") if dtype == "auto" else dtype
    return {"id": name, "revision": commit, "dtype": held, **identity(model, tokenizer)}


def fingerprint(model: nn.Module, weights: str = "") -> str:
    """Return one SHA-256 (hex) of weights, buffers, configuration and foreign code: what a model's logits depend on.

    Args:
        model: Any module.
        weights: The digest of its tensors, where it is known.
    """
    return _sha256([contents(model, weights), uuid.uuid4().hex if has_own_code(model) else ""])


def contents(model: nn.Module, weights: str = "") -> str:
    """Return one SHA-256 (hex) of the same without hooks: equal before and after what leaves a model as it was."""
    weights = weights or digest(parameter_hashes(model))
    buffers = {name: hash_tensor(tensor) for name, tensor in unstored_buffers(model).items()}
    parts = [configuration(model), numerics(model), type(model).__name__, _settings(model), _foreign_code(model)]
    return _sha256([_FORMAT, weights, buffers, *parts])


def numerics(model: nn.Module) -> JsonObject:
    """Return the process's switches that move a logit: precision of products, autocast, kernels of attention."""
    cuda = torch.backends.cuda
    cpu, gpu = (torch.get_autocast_dtype(d) if torch.is_autocast_enabled(d) else None for d in ("cpu", "cuda"))
    return {
        "float32 products": torch.get_float32_matmul_precision(),
        "autocast": [None if dtype is None else str(dtype) for dtype in (cpu, gpu)],
        "reduced precision": [
            cuda.matmul.allow_fp16_reduced_precision_reduction,
            cuda.matmul.allow_bf16_reduced_precision_reduction,
            cuda.matmul.allow_fp16_accumulation,
        ],
        "oneDNN": torch.backends.mkldnn.enabled,
        "attention": [cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled()],
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def has_own_code(model: nn.Module) -> bool:
    """Return whether a model computes with what no hash can name: hooks, a replaced `forward`, a class in no file."""
    of_all = torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks
    return bool(of_all) or any(map(_is_changed, model.modules()))


def _is_changed(part: nn.Module) -> bool:
    if part._forward_hooks or part._forward_pre_hooks:
        return True
    if "forward" in vars(part) and not hasattr(part, "_hf_hook"):  # accelerate spreads models over devices so
        return True
    code = getattr(sys.modules.get(type(part).__module__), "__file__", None)
    return code is None or not Path(code).is_file()


def libraries() -> dict[str, str]:
    """Return the versions of the packages that compute logits; part of every cache's key."""
    return {"torch": torch.__version__, "transformers": transformers.__version__}


def configuration(model: nn.Module) -> JsonObject:
    """Return a model's configuration without names, with how its attention is computed; {} for a bare module."""
    config: Any = getattr(model, "config", None)
    if config is None:
        return {}
    how = {name: getattr(config, name, None) for name in _IMPLEMENTATIONS}
    plain: JsonObject = _plain({**config.to_dict(), **how})
    return plain


def tokenizer_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a SHA-256 (hex) of how a tokenizer encodes, of its special tokens and its chat template."""
    special = [tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token, tokenizer.chat_template]
    return _sha256([_FORMAT, encoding(tokenizer), special])


def encoding(tokenizer: PreTrainedTokenizerBase) -> JsonObject:
    """Return how a tokenizer turns a text into ids, by parts such as normalizer, pre_tokenizer and added_tokens.

    Of a slow one: the files of its vocabulary, added tokens and settings.
    """
    ids = list(tokenizer("a")["input_ids"])  # first: takes back padding and truncation of an earlier call
    backend = getattr(tokenizer, "backend_tokenizer", None)
    rules: JsonObject = _files(tokenizer) if backend is None else json.loads(backend.to_str())
    split = getattr(tokenizer, "split_special_tokens", False)
    return {**rules, "special tokens around a text": ids, "split_special_tokens": split}


def _files(tokenizer: PreTrainedTokenizerBase) -> JsonObject:
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(NotImplementedError):
            tokenizer.save_vocabulary(folder)
        files = {file.name: _file_hash(file) for file in sorted(Path(folder).iterdir())}
    settings = {key: value for key, value in tokenizer.init_kwargs.items() if not key.endswith(("_file", "_or_path"))}
    added = {token_id: repr(token) for token_id, token in tokenizer.added_tokens_decoder.items()}
    return {"files": files, "vocabulary": tokenizer.get_vocab(), "added_tokens": added, "settings": _plain(settings)}


def _settings(model: nn.Module) -> JsonObject:
    """Return the numbers and words that modules of other packages hold, such as the scales of peft's layers."""
    parts = {name: part for name, part in model.named_modules() if not _is_library(type(part))}
    return {name: _plain(_numbers(vars(part))) for name, part in parts.items()}


def _numbers(values: Mapping[str, Any]) -> JsonObject:
    return {key: value for key, value in values.items() if isinstance(value, _VALUES) and key not in _STATE}


def _is_library(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("torch", "transformers")


# Of torch's modules: containers, and what does not change what is computed in eval mode.
_STATE = {*vars(nn.Module()), "training"}
_VALUES = (bool, int, float, str, list, tuple, dict)


def unstored_buffers(model: nn.Module) -> dict[str, Tensor]:
    """Return the buffers that no checkpoint holds, rotary frequencies as they were before a long text changed them."""
    stored = model.state_dict().keys()
    own = {name: tensor for name, tensor in model.named_buffers() if name not in stored}
    for name in own:
        place, _, leaf = name.rpartition(".")
        part = model.get_submodule(place)
        first = getattr(part, leaf.replace("inv_freq", "original_inv_freq"), None)
        moves = any(kind in str(getattr(part, "rope_type", "")) for kind in ("dynamic", "longrope"))
        if leaf.endswith("inv_freq") and moves and isinstance(first, Tensor):
            own[name] = first
    return own


def _foreign_code(model: nn.Module) -> list[str]:
    """Return hashes of the code of modules that torch and transformers do not define, such as `trust_remote_code`."""
    kinds = {type(part) for part in model.modules()}
    modules = {kind.__module__ for kind in kinds if not _is_library(kind)}
    files = {Path(str(getattr(sys.modules.get(name), "__file__", None))) for name in modules}
    files |= {path for file in files if "transformers_modules" in file.parts for path in file.parent.glob("*.py")}
    names = sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return [*names, *sorted(_file_hash(file) for file in files if file.is_file())]


def _file_hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value as JSON values without names; what JSON has no form for, such as NaN, becomes text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if key not in _NAMES}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def _sha256(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
