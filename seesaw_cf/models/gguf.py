"""Models in GGUF files: made into folders of safetensors, once, in the cache."""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import SeesawError, StorageError, UnsupportedModelError, need
from seesaw_cf.base.files import atomic_folder, cache_folder
from seesaw_cf.base.locks import file_lock
from seesaw_cf.models.hooks import silent_loaders

SOURCE = "source.json"
"""In a converted folder: which file it was made of."""


def gguf_folder(file: Path, *, progress: bool = True) -> Path:
    """Return the folder that a GGUF file was converted to; convert the file first unless it is cached.

    Args:
        file: A GGUF file of a causal language model with its tokenizer.
        progress: Show transformers' bars on stderr.

    Returns:
        A folder that transformers loads, in float32: `models/NAME-HASH` below the cache.

    Raises:
        StorageError: No such file, or the cache cannot be written.
        UnsupportedModelError: The file is damaged, or its architecture is unknown to transformers.
        MissingExtraError: gguf or accelerate is not installed.
    """
    digest = file_sha256(file)
    folder = cache_folder() / "models" / f"{file.stem[:100]}-{digest[:16]}"
    if not (folder / SOURCE).is_file():
        with file_lock(folder.parent / f".{folder.name}.lock", wait=True, required=False):
            if not (folder / SOURCE).is_file():  # whoever held the lock may have made it
                convert_gguf(file, folder, {"file": file.name, "sha256": digest}, progress=progress)
    return folder


def file_sha256(file: Path) -> str:
    """Return the SHA-256 (hex) of a file.

    Raises:
        StorageError: It cannot be read.
    """
    try:
        with check_path(file).open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"{file}: cannot be read ({error.strerror}), expected a file. Check the path.") from error


def convert_gguf(file: Path, folder: Path, source: Mapping[str, str], *, progress: bool = True) -> None:
    """Write a GGUF file's weights, dequantised to float32, and its tokenizer as transformers saves them.

    Args:
        file: The GGUF file.
        folder: Must not exist, or be empty; it appears when everything is written.
        source: What `source.json` records of the file.
        progress: Show transformers' bars on stderr.

    Raises:
        SeesawError: See `gguf_folder`.
    """
    with need("gguf", extra="gguf", what_for="a model in a GGUF file"):
        import accelerate  # noqa: F401 - transformers asks for both
        import gguf  # noqa: F401
    place = {"gguf_file": file.name}
    try:
        with silent_loaders(progress):
            tokenizer = AutoTokenizer.from_pretrained(file.parent, **place)
            model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **place)
    except SeesawError:
        raise
    except Exception as error:  # the reader and the loaders fail in any way on a damaged file
        why = textwrap.shorten(str(error).splitlines()[0] if str(error) else type(error).__name__, 200)
        raise UnsupportedModelError(
            f"{file}: cannot be loaded ({why}). Expected a whole GGUF file of a causal language model whose "
            "architecture transformers reads (https://huggingface.co/docs/transformers/gguf). Download it again, or "
            "name the original checkpoint's folder or Hub id."
        ) from error
    _forget_quantisation(model)
    with atomic_folder(folder) as temporary, silent_loaders(progress):
        try:
            model.save_pretrained(temporary)
            tokenizer.save_pretrained(temporary)
        except SafetensorError as error:
            size = f"{4 * model.num_parameters() / 2**20:,.0f} MiB"
            raise StorageError(
                f"{folder}: the converted weights cannot be written ({error}); they take {size}. "
                "Make room there, or set SEESAW_CF_CACHE to a folder on another disk."
            ) from error
        (temporary / SOURCE).write_text(json.dumps(dict(source), indent=1) + "\n", encoding="utf-8")
        for path in temporary.iterdir():
            path.chmod(0o644)  # safetensors writes 0600


def _forget_quantisation(model: Any) -> None:
    """Remove the marks of quantisation, with which transformers would refuse to save the weights, float32 by now."""
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False
