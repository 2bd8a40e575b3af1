"""A model edited elsewhere, by folder or name: a checkpoint, a LoRA adapter or a saved delta.

Reaches the network for an id on the Hugging Face Hub only.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import DeltaMismatchError, RecordError, StorageError, UnsupportedModelError
from seesaw_cf.models.adapters import from_peft
from seesaw_cf.models.delta_files import load_delta
from seesaw_cf.models.difference import check_checkpoint, difference, moved
from seesaw_cf.models.hooks import silent_loaders
from seesaw_cf.models.identity import encoding
from seesaw_cf.models.weights import WeightDelta

# What tells a folder's form, in the order in which it is looked for: that of an adapter may hold a config.json, too.
_FORMS = {"delta.json": "delta", "adapter_config.json": "adapter", "config.json": "checkpoint"}
_WANTED = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
_READ: Mapping[str, Callable[[Path, PreTrainedModel], WeightDelta]] = {
    "checkpoint": difference,
    "adapter": from_peft,
    "delta": load_delta,
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model edited elsewhere, before its numbers are read.

    Attributes:
        source: As it was given.
        folder: Where it is on this machine.
        form: "checkpoint", "adapter" or "delta".
    """

    source: str
    folder: Path
    form: str

    def check(self, outline: PreTrainedModel) -> None:
        """Refuse what does not belong to the base, as far as its files' headers tell.

        Args:
            outline: The base, with or without its weights.

        Raises:
            SeesawError: See `check_checkpoint`.
        """
        if self.form == "checkpoint":
            check_checkpoint(self.folder, outline)

    def check_tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> bool:
        """Refuse a tokenizer that gives texts other ids than that of the base.

        Args:
            tokenizer: Of the base.

        Returns:
            Whether there was a tokenizer to compare; adapters and deltas need none.

        Raises:
            DeltaMismatchError: Its words have other numbers, or it cuts or normalises texts differently.
            UnsupportedModelError: It cannot be loaded.
        """
        if not any((self.folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
            return False
        try:
            with silent_loaders(bars=False):
                own: Any = AutoTokenizer.from_pretrained(self.folder)
        except Exception as error:  # a damaged tokenizer makes the loaders fail in any way
            raise UnsupportedModelError(
                f"{self.folder}: its tokenizer cannot be loaded ({type(error).__name__}: {str(error)[:200]}). Copy it "
                "again, or take its files away: then the base's is used."
            ) from error
        theirs, ours = encoding(own), encoding(tokenizer)
        if parts := [part for part in sorted(theirs | ours) if theirs.get(part) != ours.get(part)]:
            raise DeltaMismatchError(
                f"{self.folder}: its tokenizer makes other ids of texts than the base's: they differ in "
                f"{', '.join(parts)}. Give the base it was made from with --model; a tokenizer that was extended or "
                "changed cannot be compared."
            )
        return True

    def delta(self, model: PreTrainedModel) -> WeightDelta:
        """The difference to the base, taken once.

        Args:
            model: The base; it is read, not changed.

        Returns:
            The change with `meta["sha256"]`, which names it, and `meta["moved"]`, see `difference.moved`.

        Raises:
            SeesawError: It does not belong to the base, changes nothing, or cannot be read.
        """
        delta = _READ[self.form](self.folder, model)
        if delta.is_zero():
            raise RecordError(
                f"{self.folder}: this {self.form} changes nothing (every number of it is 0), so there is no edit to "
                "audit. Was it saved before it was trained?"
            )
        if delta.context:
            raise RecordError(
                f"{self.folder}: this delta puts a text before every prompt and changes no weights. Audit it with "
                "--editor ike."
            )
        if not delta.is_finite():
            raise RecordError(
                f"{self.folder}: this {self.form} holds numbers that are not finite; what made it failed. It cannot be "
                "audited."
            )
        facts = {"sha256": _digest(delta)} | dict(delta.meta)
        return replace(delta, meta=facts | {"moved": moved(delta, model)})


def find_edited(source: str) -> Checkpoint:
    """Find a model edited elsewhere.

    Args:
        source: A folder with a checkpoint, a LoRA adapter or a saved delta, or an id on the Hugging Face Hub, as
            "ORG/NAME" or "ORG/NAME@REVISION" (branch, tag or commit).

    Raises:
        StorageError: Neither, or a folder with none of these.
    """
    folder = check_path(source)
    if not folder.exists():
        folder = _from_hub(source)
    form = next((form for name, form in _FORMS.items() if (folder / name).is_file()), None)
    if form is None:
        run = "It is a run folder: name one of its deltas/EDITOR/UNIT." if (folder / "manifest.json").exists() else ""
        raise StorageError(
            f"{source}: holds none of {', '.join(_FORMS)}; expected a checkpoint that save_pretrained wrote, a LoRA "
            f"adapter of peft, or a delta that save_delta wrote. {run or 'Name its folder.'}"
        )
    return Checkpoint(source, folder, form)


def _from_hub(source: str) -> Path:
    """The folder that a repository of the Hub was downloaded to; of its files only those that are read."""
    from huggingface_hub import snapshot_download

    name, _, revision = source.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=list(_WANTED)))
    except Exception as error:  # a malformed id, no network, no rights, no such repository
        offline = "HF_HUB_OFFLINE is set: unset it, or download it first" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise StorageError(
            f"{source}: no such folder, and the Hub gives no model of that id ({type(error).__name__}). Check the "
            f"path; {offline or 'for the Hub check name, revision and network; a gated model needs `hf auth login`'}."
        ) from error


def _digest(delta: WeightDelta) -> str:
    """SHA-256 (hex) of everything that is stored."""
    names = json.dumps([[name, list(update.shape)] for name, update in delta.updates.items()])
    digest = hashlib.sha256(names.encode())
    for part in delta.tensors():
        digest.update(part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
