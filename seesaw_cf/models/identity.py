"""Which model computes: one identity for scores, second moments, texts, trained networks and run folders.

Equal identities mean equal logits, on one type of machine. Names and paths are left out, so a copy is the same model.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.weights import digest, hash_tensor, parameter_hashes

_FORMAT = 2  # one more when what is hashed or what scores are made of changes: caches of older formats are not read
_NAMES = ("_name_or_path", "_commit_hash", "architectures", "transformers_version", "auto_map")
_IMPLEMENTATIONS = ("_attn_implementation", "_experts_implementation")


def identity(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> JsonObject:
    """Return all that scores and texts of a model depend on, as JSON values; the weights are read once.

    Returns:
        fingerprint, weights (SHA-256 of the tensors alone, as deltas name their base), tokenizer, configuration (to say
        what differs) and libraries.
    """
    weights = digest(parameter_hashes(model))
    return {
        "fingerprint": _fingerprint(model, weights),
        "weights": weights,
        "tokenizer": tokenizer_hash(tokenizer),
        "configuration": configuration(model),
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


def fingerprint(model: nn.Module) -> str:
    """Return one SHA-256 (hex) of weights, buffers, configuration and foreign code: what a model's logits depend on."""
    return _fingerprint(model, digest(parameter_hashes(model)))


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


def _fingerprint(model: nn.Module, weights: str) -> str:
    buffers = {name: hash_tensor(tensor) for name, tensor in unstored_buffers(model).items()}
    return _sha256([_FORMAT, weights, buffers, configuration(model), type(model).__name__, _foreign_code(model)])


def unstored_buffers(model: nn.Module) -> dict[str, Tensor]:
    """Return the buffers that no checkpoint holds, rotary frequencies as they were before a long text changed them."""
    stored = model.state_dict().keys()
    own = {name: tensor for name, tensor in model.named_buffers() if name not in stored}
    for name in own:
        place, _, leaf = name.rpartition(".")
        first = getattr(model.get_submodule(place), leaf.replace("inv_freq", "original_inv_freq"), None)
        if leaf.endswith("inv_freq") and isinstance(first, Tensor):
            own[name] = first
    return own


def _foreign_code(model: nn.Module) -> list[str]:
    """Return hashes of the code that came with a model (`trust_remote_code`)."""
    names = {type(part).__module__ for part in model.modules()}
    files = {Path(str(sys.modules[name].__file__)) for name in names if name.startswith("transformers_modules.")}
    return sorted(_file_hash(file) for own in files for file in own.parent.glob("*.py"))


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
