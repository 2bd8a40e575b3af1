"""A model changed elsewhere, by path or name: checkpoint, adapter, delta, steering vector, GGUF file.

Reaches the network for an id on the Hugging Face Hub only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import DeltaMismatchError, RecordError, StorageError
from seesaw_cf.base.hub import download
from seesaw_cf.models.adapters import from_peft, is_low_rank
from seesaw_cf.models.change import Change
from seesaw_cf.models.delta_files import load_delta, save_delta
from seesaw_cf.models.difference import check_checkpoint, difference, token_rows
from seesaw_cf.models.gguf import gguf_folder
from seesaw_cf.models.hooks import silent_loaders
from seesaw_cf.models.merged import change_between, merged
from seesaw_cf.models.quantised import load_quantised, plain_weights, quantisation
from seesaw_cf.models.steering import STEERING_JSON, SteeringVector, load_steering
from seesaw_cf.models.trial import check_model, embedding
from seesaw_cf.models.vocabulary import Vocabulary, compare_vocabularies, own_tokenizer
from seesaw_cf.models.weights import WeightDelta

# What tells a folder's form, in the order in which it is looked for: that of an adapter may hold a config.json, too.
_FORMS = {
    "delta.json": "delta",
    STEERING_JSON: "steering vector",
    "adapter_config.json": "adapter",
    "config.json": "checkpoint",
}
_WANTED = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")


@dataclass(frozen=True, slots=True)
class ChangedModel:
    """A changed model with its numbers.

    Attributes:
        change: What it changes of the base, on what both have; names, norms and controls are made of it.
        notes: What a reader of its numbers must know, in sentences.
        rounded: The dtype in which every weight was rounded; None where none was.
        rounding: The change is a rounding of the base's weights, and nothing else.
        vocabulary: What differs from the base's; None where both make the same tokens of every text.
        whole: The model that is asked in place of the base with the change; None where that is the same.
    """

    change: Change
    notes: tuple[str, ...] = ()
    rounded: torch.dtype | None = None
    rounding: bool = False
    vocabulary: Vocabulary | None = None
    whole: PreTrainedModel | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model changed elsewhere, before its numbers are read.

    Attributes:
        source: As it was given.
        folder: Where it is on this machine.
        form: "checkpoint", "quantised checkpoint", "adapter", "delta", "steering vector" or "GGUF file".
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
        if self.form in ("checkpoint", "GGUF file"):
            check_checkpoint(self.folder, outline)
        if self.form == "steering vector":
            load_steering(self.folder).check(outline, str(self.folder))

    def read(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> ChangedModel:
        """Take the difference to the base, once.

        Args:
            model: The base; it is read, not changed.
            tokenizer: Of the base.

        Returns:
            The change with `meta["sha256"]`, which names it, and `meta["moved"]`, see `Change.moved`.

        Raises:
            SeesawError: It does not belong to the base, changes nothing, or cannot be read.
        """
        found = _READ[self.form](self.folder, model, tokenizer)
        change = found.change
        if change.is_zero():
            raise RecordError(
                f"{self.folder}: this {self.form} changes nothing (every number of it is 0), so there is no edit to "
                "audit. Was it saved before it was trained?"
            )
        if isinstance(change, WeightDelta) and change.context:
            raise RecordError(
                f"{self.folder}: this delta puts a text before every prompt and changes no weights. Audit it with "
                "--editor ike."
            )
        if not change.is_finite():
            raise RecordError(
                f"{self.folder}: this {self.form} holds numbers that are not finite, so what made it failed. Train it "
                "again with smaller steps, or give an earlier checkpoint."
            )
        facts = {"sha256": change.sha256()} | dict(change.meta) | {"moved": change.moved(model)}
        return dataclasses.replace(found, change=with_meta(change, facts))


def with_meta(change: Change, meta: Mapping[str, object]) -> Change:
    """Return the same change with other facts."""
    assert isinstance(change, WeightDelta | SteeringVector)
    return dataclasses.replace(change, meta=meta)


def save_change(change: Change, folder: Path) -> None:
    """Write a change as a folder that `find_edited` finds.

    Raises:
        StorageError: The folder exists and is not empty, or cannot be written.
    """
    assert isinstance(change, WeightDelta | SteeringVector)
    if isinstance(change, WeightDelta):
        save_delta(change, folder)
    else:
        change.save(folder)


def find_edited(source: str) -> Checkpoint:
    """Find a model changed elsewhere.

    Args:
        source: A folder with a checkpoint, an adapter, a saved delta or a steering vector, a GGUF file, or an id on
            the Hugging Face Hub, as "ORG/NAME" or "ORG/NAME@REVISION" (branch, tag or commit).

    Raises:
        StorageError: None of these, or a folder with nothing of that kind.
    """
    folder = check_path(source)
    if source.endswith(".gguf"):
        return Checkpoint(source, gguf_folder(folder, progress=False), "GGUF file")
    if not folder.exists():
        what = "no such folder, and the Hub gives no model of that id"
        remedy = "for the Hub check name, revision and network; a gated model needs `hf auth login`"
        folder = download(source, what, remedy, allow_patterns=list(_WANTED))  # only the files that are read
    form = next((form for name, form in _FORMS.items() if (folder / name).is_file()), None)
    if form is None:
        run = "It is a run folder: name one of its deltas/EDITOR/UNIT." if (folder / "manifest.json").exists() else ""
        raise StorageError(
            f"{source}: holds none of {', '.join(_FORMS)}; expected a checkpoint that save_pretrained wrote, an "
            f"adapter of peft, or a delta or steering vector that was saved. {run or 'Name its folder.'}"
        )
    if form == "checkpoint" and quantisation(folder):
        form = "quantised checkpoint"
    return Checkpoint(source, folder, form)


# How each form is read.


def _read_quantised(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> ChangedModel:
    _, vocabulary = _tokens(folder, model, tokenizer)
    if vocabulary is not None:
        raise DeltaMismatchError(
            f"{folder}: {vocabulary}. Of a quantised model only the base's own tokens are asked. Give the base that it "
            "was quantised from with --model."
        )
    change = change_between(model, plain_weights(load_quantised(folder, model)))
    note = (
        f"it is quantised by {quantisation(folder)} and asked as transformers loads it, one text at a time, because "
        "its scores depend on what else is in a batch"
    )
    return ChangedModel(change, (note,), rounding=True, whole=load_quantised(folder, model))


def _read_checkpoint(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> ChangedModel:
    own, vocabulary = _tokens(folder, model, tokenizer)
    delta = difference(folder, model, vocabulary.rows if vocabulary else None)
    notes = [] if own else [f"{folder.name} has no tokenizer; the base's is used"]
    rounded = getattr(torch, delta.meta["dtype"]) if "dtype" in delta.meta else None
    if rounded:
        only = "and nothing else changed" if delta.meta["rounded"] else "beside what changed"
        notes.append(f"its weights are stored in {delta.meta['dtype']}: every one was rounded, {only}")
    whole, rows, size = None, token_rows(folder, model), len(embedding(model))
    if vocabulary is not None or rows != size:
        notes.append(_apart(vocabulary, rows, size))
        whole = _load(folder, model, own or tokenizer)
    return ChangedModel(delta, tuple(notes), rounded, bool(delta.meta.get("rounded")), vocabulary, whole)


def _read_adapter(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> ChangedModel:
    if is_low_rank(folder):
        return ChangedModel(from_peft(folder, model))
    whole, size = merged(folder, model), len(embedding(model))
    change = change_between(model, dict(whole.named_parameters()))
    if (rows := len(embedding(whole))) == size:
        return ChangedModel(change)
    _, vocabulary = _tokens(folder, model, tokenizer)
    return ChangedModel(change, (_apart(vocabulary, rows, size),), vocabulary=vocabulary, whole=whole)


def _tokens(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> tuple[PreTrainedTokenizerBase | None, Vocabulary | None]:
    """Return the tokenizer of a folder, and what differs from the base's; None for each that is not there."""
    own = own_tokenizer(folder)
    return own, compare_vocabularies(folder, own, tokenizer, len(embedding(model))) if own else None


def _apart(vocabulary: Vocabulary | None, rows: int, size: int) -> str:
    """Return what a reader must know of a model that is asked in place of the base with a change."""
    if vocabulary is None:
        return f"its embedding has {rows:,} rows, that of the base {size:,}: it is asked apart from the base"
    return f"{vocabulary}: it is asked with its own tokenizer, about texts that both cut into the same tokens"


def _load(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Load a checkpoint with tensors that were checked, in the dtype and on the device of its base."""
    with silent_loaders(bars=False):
        whole: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder, dtype=model.dtype, use_safetensors=True)
    torch.nn.Module.to(whole, model.device)
    check_model(whole.eval(), tokenizer)
    return whole


_READ: Mapping[str, Callable[[Path, PreTrainedModel, PreTrainedTokenizerBase], ChangedModel]] = {
    "checkpoint": _read_checkpoint,
    "GGUF file": lambda *args: dataclasses.replace(_read_checkpoint(*args), rounding=True),
    "adapter": _read_adapter,
    "quantised checkpoint": _read_quantised,
    "delta": lambda folder, model, _: ChangedModel(load_delta(folder, model)),
    "steering vector": lambda folder, *_: ChangedModel(load_steering(folder)),
}
