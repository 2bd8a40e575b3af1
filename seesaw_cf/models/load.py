"""Loading causal language models: by a name of this package, or as transformers does.

Of this room only this file and `changed` reach the network, for a model that is not on the disk.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import constants as hub
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import SeesawError, StorageError, UnknownNameError, UnsupportedModelError, unknown_name
from seesaw_cf.base.fields import checked
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import DTYPES
from seesaw_cf.models.names import EMBEDDED, check_model_name, model_path
from seesaw_cf.models.trial import check_model, silent_loaders, warn_without_bos

log = logging.getLogger(__name__)

# Devices that mean several: how accelerate spreads the blocks of one model over the GPUs (and then the CPU).
_SPREAD = ("balanced", "balanced_low_0", "sequential")
_QUANTISED = ("bitsandbytes", "gptq", "awq", "torchao", "quanto", "hqq", "compressed-tensors")
# Words in what the loaders say -> what to do about it.
_FAULTS: dict[tuple[str, ...], str] = {
    ("SafetensorError", "MetadataIncompleteBuffer", "HeaderTooSmall"): "A weights file is damaged. Download it again: "
    "`hf download NAME --force-download`, or copy the folder anew.",
    ("not a valid JSON file", "Unrecognized model", "JSONDecodeError"): "Expected a config.json of a transformers "
    "causal language model, with its model_type. Download it again.",
    _QUANTISED: "The checkpoint is quantised: install the package that its method needs, or give a dequantised copy.",
    ("gguf", "GGUF"): "Expected a whole GGUF file of an architecture that transformers reads, with gguf and accelerate "
    "installed (`pip install gguf accelerate`).",
    ("backend tokenizer", "Can't load tokenizer", "tokenizer.json"): "Expected a tokenizer beside the weights. Put it "
    "there with AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER).",
    ("named model.safetensors", "use_safetensors=True"): "Expected weights as safetensors; pickle (.bin) is not read, "
    "because it can run code. Where you trust the file, convert it once with "
    "AutoModelForCausalLM.from_pretrained(NAME).save_pretrained(FOLDER).",
}

_BUFFERS = re.compile(r"(^|\.)(attn|attention)\.(masked_)?bias$|\.rotary_emb\.inv_freq$|(^|\.)position_ids$")
"""Causal masks, positions and rotary frequencies in checkpoints of older versions."""


@checked
def load_model(
    name_or_path: str,
    *,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    progress: bool = True,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal language model and its tokenizer.

    Args:
        name_or_path: "seesaw-tiny", a folder, a GGUF file (transformers' `gguf_file`, which needs gguf and
            accelerate), or the id of a model on the Hugging Face Hub.
        device: A torch device; "auto" is the GPU when there is one. "balanced", "balanced_low_0" and "sequential"
            spread the blocks of a model that is too large for one GPU, as transformers' `device_map` does.
        dtype: Name of a torch dtype such as "float32" or "bfloat16", or "auto" for the checkpoint's own.
        revision: Branch, tag or commit of a Hub model.
        trust_remote_code: Allow code from the model's repository to run.
        progress: Show transformers' progress bar on stderr.

    Returns:
        The model in eval mode on the device, and the tokenizer.

    Raises:
        UnknownNameError: No such model, or no such dtype; lists what was tried and what to do offline. Or the device
            does not exist, or means several and accelerate is not installed.
        UnsupportedModelError: The weights are not those of the model that config.json describes: tensors are missing or
            of another shape, or files are damaged, or there is pickle only. Or it cannot be asked, see
            `seesaw_cf.models.trial.check_model`.
        StorageError: A GGUF file that is not there.
    """
    model, tokenizer, notes = read_model(name_or_path, device, dtype, revision, trust_remote_code, progress)
    for note in notes:
        log.warning("%s: %s", name_or_path, note)
    return model, tokenizer


def read_model(
    name: str,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    progress: bool = False,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, list[str]]:
    """Load a model as `load_model` does, and return what a reader must know of its files, in sentences.

    Args:
        name, device, dtype, revision, trust_remote_code, progress: See `load_model`.
        tokenizer: Taken in place of one beside the weights.
    """
    source, where = _source(name, revision)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    spread = device if device in _SPREAD else None
    _check_device(device)
    options: dict[str, Any] = {**where, "trust_remote_code": trust_remote_code}
    with _explained(name, revision), silent_loaders(bars=progress and sys.stderr.isatty()):
        tokenizer = tokenizer or AutoTokenizer.from_pretrained(source, **options)
        config = AutoConfig.from_pretrained(source, **options)
        quantised = getattr(config, "quantization_config", None) is not None and "gguf_file" not in where
        places: Any = {"": device} if quantised and spread is None else spread  # such a model cannot be moved
        weights = {"dtype": _dtype(dtype), "device_map": places, "use_safetensors": True, "output_loading_info": True}
        # With sizes ignored, tensors of another shape are reported like the missing ones, and refused below.
        loaded: Any = AutoModelForCausalLM.from_pretrained(source, ignore_mismatched_sizes=True, **weights, **options)
    model: PreTrainedModel = loaded[0]
    if "gguf_file" in where:  # without the marks of quantisation: with them transformers refuses to save a model
        vars(model.config).pop("quantization_config", None)
        vars(model).update(hf_quantizer=None, is_quantized=False)
    if getattr(model, "_hf_peft_config_loaded", False):
        raise UnsupportedModelError(
            f"{_place(name)} is an adapter of peft. Merge it first and give the checkpoint, or give its base, and it "
            "as a changed model (--changed NAME=WHERE)."
        )
    notes = [*_check_whole(name, loaded[1]), *_tensors_twice(Path(source))]
    if quantised:
        notes.append("it is quantised, and asked one text at a time: its scores depend on what else is in a batch")
    if places is None:
        torch.nn.Module.to(model, device)
    warn_without_bos(model, tokenizer)
    check_model(model.eval(), tokenizer)
    return model, tokenizer, notes


def _check_device(device: str | torch.device) -> None:
    """Put nothing on the device: a wrong one is found before the weights are read."""
    if device in _SPREAD and importlib.util.find_spec("accelerate") is None:
        raise UnknownNameError(f"device {device!r} needs accelerate. `pip install accelerate`, or name one device.")
    try:
        torch.empty(0, device=None if device in _SPREAD else device).tolist()  # of "meta" nothing can be read
    except (RuntimeError, AssertionError, ImportError) as error:  # torch asserts that it was built with CUDA
        why = textwrap.shorten(str(error), 120, placeholder=" ...")
        devices = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count())), *_SPREAD]
        raise UnknownNameError(
            f"device {str(device)!r} cannot be used ({why}). Expected 'auto' or one of {', '.join(devices)}."
        ) from error


def _dtype(dtype: str | torch.dtype) -> str | torch.dtype:
    if isinstance(dtype, torch.dtype) or dtype == "auto":
        return dtype
    torch_dtype = getattr(torch, dtype, None)
    if not isinstance(torch_dtype, torch.dtype):
        raise unknown_name("dtype", dtype, ["auto", *DTYPES])
    return torch_dtype


def _source(name: str, revision: str | None) -> tuple[str, dict[str, str]]:
    """Return what transformers is asked for, and its options: a folder and a file in it for a GGUF file.

    Raises:
        UnknownNameError: See `check_model_name`.
        StorageError: No such GGUF file.
    """
    if name in EMBEDDED:
        return str(model_path(name)), {}
    if name.endswith(".gguf"):
        file = check_path(name)
        if not file.is_file():
            raise StorageError(f"{name}: no such file. Check the path.")
        return str(file.parent), {"gguf_file": file.name}
    check_model_name(name)
    return name, {"revision": revision or "main"}


@contextlib.contextmanager
def _explained(name: str, revision: str | None) -> Iterator[None]:
    """Turn what the loaders raise into this package's errors."""
    try:
        yield
    except SeesawError:
        raise
    except Exception as error:  # a damaged config.json makes the loaders fail in any way
        words = f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"
        where = f"{_place(name)}{f' at revision {revision!r}' if revision else ''} could not be loaded"
        empty = os.path.isdir(name) and not os.path.exists(os.path.join(name, "config.json"))
        whole = f"{type(error).__name__}: {error}"
        hint = next((advice for known, advice in _FAULTS.items() if any(word in whole for word in known)), "")
        if hint and not empty:
            raise UnsupportedModelError(f"{where} ({textwrap.shorten(words, 200)}). {hint}") from error
        remedy = (
            "HF_HUB_OFFLINE is set: unset it, or `hf download` the model first."
            if hub.HF_HUB_OFFLINE
            else "Check spelling and network; a gated model needs `hf auth login`, own code trust_remote_code."
        )
        raise UnknownNameError(
            f"{where} ({words}). Expected {' or '.join(map(repr, EMBEDDED))}, a folder with a transformers causal "
            f"language model, a .gguf file, or an id on the Hugging Face Hub. {remedy}"
        ) from error


def _check_whole(name: str, report: dict[str, Any]) -> list[str]:
    """Refuse a checkpoint that does not fill the model: what is missing would be random.

    transformers leaves out of the report what a model's class declares as free to be absent or left over, such as tied
    heads; buffers that older versions saved and newer ones compute are left out here.

    Returns:
        A sentence about tensors that no part of the model takes, which transformers leaves out.
    """
    shapes = {f"{key} {tuple(got)} instead of {tuple(want)}" for key, got, want in report.get("mismatched_keys", ())}
    faults = {
        "missing in the files": set(report.get("missing_keys", ())),
        "of another shape": shapes,
        "not readable": set(report.get("error_msgs", ())),
    }
    problems = [_counted(names, what) for what, names in faults.items() if names]
    left_over = {key for key in report.get("unexpected_keys", ()) if not _BUFFERS.search(key)}
    if problems:
        problems += [_counted(left_over, "not part of the model")] if left_over else []
        raise UnsupportedModelError(
            f"{_place(name)} is not the model that its config.json describes: tensors {'; '.join(problems)}. What is "
            "missing would be random numbers. Download it again, or load the class it was saved from and save that "
            "with save_pretrained."
        )
    return [f"transformers leaves out tensors: {_counted(left_over, 'not part of the model')}"] if left_over else []


def _tensors_twice(folder: Path) -> list[str]:
    """Return a sentence about tensors that several shards hold: which one counts is transformers' choice."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file() or (folder / "model.safetensors").is_file():
        return []
    counts: Counter[str] = Counter()
    for file in sorted(set(read_json(index)["weight_map"].values())):
        with safe_open(folder / file, framework="pt") as shard:
            counts.update(shard.keys())
    twice = {key for key, number in counts.items() if number > 1}
    return [f"of tensors, {_counted(twice, 'stand in several files')}: transformers takes one of them"] if twice else []


def _counted(names: Collection[str], what: str) -> str:
    return f"{len(names)} {what} ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''})"


def _place(name: str) -> str:
    return f"folder {name}" if os.path.isdir(name) else f"model {name!r}"
