"""Loading causal language models: the embedded one by name, every other one as transformers does.

The only file of the library that may reach the network, and only for a model that is not on the disk.
"""

from __future__ import annotations

import difflib
import importlib.resources
import importlib.util
import random
import textwrap
from pathlib import Path

import torch
from huggingface_hub import constants as hub
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.errors import StorageError, UnknownNameError, unknown_name

__all__ = ["EMBEDDED", "load_model", "model_path", "model_texts", "sample_corpus"]

# Models that come with the package: folders below seesaw_cf/models/.
EMBEDDED: tuple[str, ...] = ("seesaw-tiny",)

# Devices that mean several: how accelerate spreads the blocks of one model over the GPUs (and then the CPU).
_SPREAD = ("balanced", "balanced_low_0", "sequential")

_NEEDED = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def model_path(name: str) -> Path:
    """The folder of an embedded model.

    Raises:
        UnknownNameError: No embedded model has that name; near names are suggested.
        StorageError: The folder is incomplete, as in a package that was built without its data files.
    """
    if name not in EMBEDDED:
        raise unknown_name("embedded model", name, EMBEDDED)
    folder = Path(str(importlib.resources.files("seesaw_cf"))) / "models" / name
    missing = [file for file in _NEEDED if not (folder / file).is_file()]
    if missing:
        raise StorageError(
            f"embedded model {name!r}: {missing} are missing in {folder}. "
            "Reinstall seesaw_cf, or make it again with `python -m seesaw_cf.builder_scripts.train_tiny_model`."
        )
    return folder


def load_model(
    name_or_path: str,
    *,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Loads a causal language model and its tokenizer.

    Args:
        name_or_path: "seesaw-tiny", a folder, or the id of a model on the Hugging Face Hub.
        device: A torch device; "auto" is the GPU when there is one. "balanced", "balanced_low_0" and "sequential"
            spread the blocks of a model that is too large for one GPU, as transformers' `device_map` does.
        dtype: Name of a torch dtype such as "float32" or "bfloat16", or "auto" for the checkpoint's own.
        revision: Branch, tag or commit of a Hub model.
        trust_remote_code: Allow code from the model's repository to run.

    Returns:
        The model in eval mode on the device, and the tokenizer.

    Raises:
        UnknownNameError: No such model, or no such dtype; says what was tried and what to do offline. Or the device
            does not exist, or means several and accelerate is not installed.
    """
    source = name_or_path
    if name_or_path in EMBEDDED:
        source, revision = str(model_path(name_or_path)), None
    elif _is_misspelt(name_or_path):
        raise unknown_name("model", name_or_path, EMBEDDED)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    spread = device if device in _SPREAD else None
    if spread and importlib.util.find_spec("accelerate") is None:
        raise UnknownNameError(
            f"device {device!r} needs accelerate, which is not installed. Install it with `pip install accelerate`, or "
            "name one device."
        )
    if spread is None:
        _check_device(device)
    options = {"revision": revision or "main", "trust_remote_code": trust_remote_code}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        model = AutoModelForCausalLM.from_pretrained(source, dtype=_dtype(dtype), device_map=spread, **options)
    except (OSError, ValueError) as error:
        raise _not_loaded(name_or_path, revision, error) from error
    if spread is None:
        torch.nn.Module.to(model, device)
    return model.eval(), tokenizer


def _check_device(device: str | torch.device) -> None:
    """Puts nothing on the device: a wrong one is found before the weights are read."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:  # torch asserts that it was built with CUDA
        why = textwrap.shorten(str(error), 120, placeholder=" ...")
        known = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        raise UnknownNameError(
            f"device {str(device)!r} cannot be used ({why}). Expected 'auto', one of this machine's devices "
            f"({', '.join(known)}) or one of {', '.join(_SPREAD)}. Leave it out to take the GPU when there is one."
        ) from error


def _dtype(dtype: str | torch.dtype) -> str | torch.dtype:
    if isinstance(dtype, torch.dtype) or dtype == "auto":
        return dtype
    found = getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype):
        raise unknown_name("dtype", dtype, ["auto", "bfloat16", "float16", "float32", "float64"])
    return found


def _is_misspelt(name: str) -> bool:
    """A bare name close to an embedded one that is no folder: refused before the network is asked."""
    bare = "/" not in name and not Path(name).exists()
    return bare and bool(difflib.get_close_matches(name.lower(), EMBEDDED, n=1, cutoff=0.6))


def _not_loaded(name: str, revision: str | None, error: Exception) -> UnknownNameError:
    place = f"folder {name}" if Path(name).is_dir() else f"model {name!r}"
    why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    remedy = (
        "HF_HUB_OFFLINE is set, so only models already in the cache can be had: unset it, or download the model first "
        f"with `hf download {name}`."
        if hub.HF_HUB_OFFLINE
        else "Check the spelling and the network; a gated model needs `hf auth login`; a repository with its own code "
        "needs trust_remote_code."
    )
    return UnknownNameError(
        f"{place}{f' at revision {revision!r}' if revision else ''} could not be loaded "
        f"({type(error).__name__}: {why}). Expected {' or '.join(map(repr, EMBEDDED))}, a folder with a transformers "
        f"causal language model, or an id on the Hugging Face Hub. {remedy}"
    )


def model_texts(name: str = "seesaw-tiny") -> list[str]:
    """All texts that come with an embedded model: fresh documents of its training distribution.

    Raises:
        UnknownNameError: No embedded model has that name.
        StorageError: The texts are missing.
    """
    file = model_path(name) / "corpus.txt"
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StorageError(f"{file}: cannot be read ({error.strerror}). Reinstall seesaw_cf.") from error


def sample_corpus(n: int | None = None, seed: int = 0, name: str = "seesaw-tiny") -> list[str]:
    """Texts for second moments of an embedded model's activations (the covariance of ROME and MEMIT).

    Args:
        n: How many, drawn without replacement; None = all, in file order.
        seed: Seed of the draw.
        name: Which embedded model.

    Returns:
        n documents of one to some ten sentences.

    Raises:
        UnknownNameError: No embedded model has that name.
        StorageError: The texts are missing.
        ValueError: More texts are asked for than there are.
    """
    texts = model_texts(name)
    if n is None:
        return texts
    if not 0 <= n <= len(texts):
        raise ValueError(f"sample_corpus: n is {n}, expected 0 to {len(texts)}, the texts that come with {name!r}.")
    return random.Random(seed).sample(texts, n)
