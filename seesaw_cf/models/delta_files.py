"""A weight delta as a folder: `delta.safetensors` holds the numbers, `delta.json` everything else. No pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, TypedDict

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import DeltaMismatchError, EditError, RecordError, StorageError
from seesaw_cf.base.files import atomic_folder, dump_json
from seesaw_cf.base.system import versions
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.trial import silent_loaders
from seesaw_cf.models.weights import (
    BaseFacts,
    LowRank,
    WeightDelta,
    applied,
    base_facts,
    check_fits,
    digest,
    parameter_hashes,
)

FORMAT = "seesaw_cf.delta"
VERSION = 1
_JSON, _TENSORS = "delta.json", "delta.safetensors"
_KNOWN_META = ("base", "editor", "config", "requests")

logger = logging.getLogger(__name__)


class DeltaFacts(TypedDict, total=False):
    """Content of `delta.json`: everything about a delta but its numbers; the hash is that of the file of numbers."""

    format: str
    format_version: int
    base: BaseFacts | None
    editor: str | None
    config: JsonObject | None
    requests: list[JsonObject] | None
    context: str
    updates: Mapping[str, JsonObject]  # "kind" ("low_rank" or "dense"), shape and rank
    meta: JsonObject
    meta_keys: list[str]
    versions: JsonObject
    sha256: str


def _json(value: object) -> Any:
    """Return dataclasses, mappings, sequences, paths and numpy or torch scalars as plain JSON values."""
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    forms: dict[Any, Callable[[Any], object]] = {Mapping: dict, set | frozenset: sorted, os.PathLike: os.fspath}
    for kind, form in forms.items():
        if isinstance(value, kind):
            return form(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise RecordError(
        f"a delta's meta holds {value!r} of type {type(value).__name__}, which JSON has no form for. "
        "Keep numbers, text, lists, mappings and dataclasses of these in it."
    )


def describe(delta: WeightDelta, model: PreTrainedModel | None = None, base_model: str | None = None) -> DeltaFacts:
    """Return everything about a delta but its numbers, as JSON values.

    Args:
        delta: The edit; `meta` keys "editor", "config", "requests" and "base" get separate places.
        model: The unedited base. With it the base is described anew and fingerprinted whole.
        base_model: Name of the base to write down instead of the model's own (which may be a local path).

    Returns:
        The content of `delta.json`.
    """
    base = dict(delta.meta.get("base") or {})
    if model is not None:
        base = {**base_facts(model, delta), "fingerprint": digest(parameter_hashes(model))}
    if base_model is not None:
        base["model_id"] = base_model
    updates: dict[str, JsonObject] = {}
    for name, update in delta.updates.items():
        updates[name] = {"kind": "low_rank" if isinstance(update, LowRank) else "dense", "shape": list(update.shape)}
        if isinstance(update, LowRank):
            updates[name]["rank"] = update.left.shape[1]
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "base": _json(base) or None,
        "editor": _json(delta.meta.get("editor")),
        "config": _json(delta.meta.get("config")),
        "requests": _json(delta.meta.get("requests")),
        "context": delta.context,
        "updates": updates,
        "meta": _json({key: value for key, value in delta.meta.items() if key not in _KNOWN_META}),
        "meta_keys": [str(key) for key in delta.meta],
        "versions": versions(),
    }


def save_delta(
    delta: WeightDelta,
    folder: str | os.PathLike[str],
    model: PreTrainedModel | None = None,
    *,
    base_model: str | None = None,
) -> None:
    """Write a delta as `delta.safetensors` and `delta.json`; the folder appears whole or not at all.

    Args:
        delta: The edit.
        folder: A folder that does not exist yet, or is empty.
        model: The unedited base the delta was made on. Its fingerprint is stored, so that loading onto another base is
            refused. Without it the facts the editor left in `delta.meta["base"]` are stored.
        base_model: Name of the base to write down, instead of the model's own.

    Raises:
        DeltaMismatchError: `model` misses a parameter of the delta.
        RecordError: `delta.meta` holds something that JSON cannot.
        StorageError: The folder exists and is not empty, or cannot be written.
    """
    facts = describe(delta, model, base_model)
    if facts["base"] is None:
        logger.warning("%s: the base of this delta is unknown; pass the model so that loading can check it.", folder)
    tensors: dict[str, Tensor] = {}
    for name, update in delta.updates.items():
        parts = {"left": update.left, "right": update.right} if isinstance(update, LowRank) else {"dense": update}
        for part, tensor in parts.items():
            tensors[f"{name}:{part}"] = tensor.detach().cpu().contiguous().clone()
    with atomic_folder(folder) as temporary:
        save_file(tensors, temporary / _TENSORS, metadata={"format": "pt"})
        facts["sha256"] = hashlib.sha256((temporary / _TENSORS).read_bytes()).hexdigest()
        dump_json(temporary / _JSON, facts, ensure_ascii=False)


def load_delta(
    folder: str | os.PathLike[str], model: PreTrainedModel | None = None, *, any_base: bool = False
) -> WeightDelta:
    """Read a delta back, bit for bit.

    Args:
        folder: What `save_delta` wrote.
        model: The model the delta is to be applied to. When given, it must be the base the delta was made on.
        any_base: Accept a model of the same shapes but other weights (another dtype, a fine-tuned sibling).

    Returns:
        The delta, on the CPU.

    Raises:
        StorageError: The folder or one of its files is missing.
        RecordError: A file is truncated, changed, or of an unknown format or version.
        DeltaMismatchError: `model` is not the base; the text gives both fingerprints.
    """
    facts = _read_facts(Path(folder))
    delta = WeightDelta(_read_updates(Path(folder), facts), _meta(facts), facts["context"])
    if model is not None:
        _check_base(Path(folder), delta, facts.get("base") or {}, model, any_base)
    return delta


# Keys of delta.json -> what they hold.
_FACTS: dict[str, type | UnionType] = {
    "context": str,
    "updates": dict,
    "sha256": str,
    "meta": dict,
    "meta_keys": list,
    "base": dict | None,
}


def _read_facts(folder: Path) -> DeltaFacts:
    file = folder / _JSON
    facts: DeltaFacts = read_json(file, any_number=True)
    found = facts.get("format"), facts.get("format_version")
    if found != (FORMAT, VERSION):
        raise RecordError(
            f"{file}: format and version are {shown(found)}, expected {shown((FORMAT, VERSION))}. Give what save_delta "
            "wrote, or install the version of seesaw_cf that wrote it (see its 'versions')."
        )
    for key, kind in _FACTS.items():
        if not isinstance(value := facts.get(key), kind):
            raise RecordError(f"{file}: {key} is {shown(value)}. The file is damaged; make it again.")
    return facts


def _meta(facts: DeltaFacts) -> JsonObject:
    """Return the delta's meta, with what was filled in at saving (the base)."""
    standard = {key: facts.get(key) for key in _KNOWN_META}
    meta = {key: standard[key] if key in standard else facts["meta"].get(key) for key in facts["meta_keys"]}
    return {**meta, **({"base": facts["base"]} if facts.get("base") else {})}


def _read_updates(folder: Path, facts: DeltaFacts) -> dict[str, LowRank | Tensor]:
    file = folder / _TENSORS
    try:
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        if sha256 != facts["sha256"]:
            raise RecordError(
                f"{file}: SHA-256 is {sha256}, {_JSON} says {facts['sha256']}. The file is truncated or was changed; "
                "copy or download it again."
            )
        tensors = load_file(file)
        return {name: _update(tensors, name, entry) for name, entry in facts["updates"].items()}
    except FileNotFoundError as error:
        raise StorageError(f"{file}: no such file. Copy the whole folder.") from error
    except (SafetensorError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError(f"{file} and {_JSON} do not agree ({error!r}). Copy or download both again.") from error


def _update(tensors: Mapping[str, Tensor], name: str, entry: JsonObject) -> LowRank | Tensor:
    low_rank = entry["kind"] == "low_rank"
    update = LowRank(tensors[f"{name}:left"], tensors[f"{name}:right"]) if low_rank else tensors[f"{name}:dense"]
    if list(update.shape) != entry["shape"]:
        raise RecordError(f"the update of {name!r} has shape {tuple(update.shape)}, {_JSON} says {entry['shape']}.")
    return update


def _check_base(folder: Path, delta: WeightDelta, base: BaseFacts, model: PreTrainedModel, any_base: bool) -> None:
    """Check that the model has the delta's names and shapes and, unless `any_base`, the bytes of its base."""
    check_fits(model, delta)
    facts = base_facts(model, delta)
    if any_base:
        return
    whole, touched = base.get("fingerprint"), base.get("parameter_hashes")
    expected = whole or (digest(touched) if touched else None)
    actual = digest(parameter_hashes(model)) if whole else digest(facts["parameter_hashes"])
    if expected is None:
        logger.warning("%s: the base of this delta was not recorded; only names and shapes were checked.", folder)
    elif expected != actual:
        raise DeltaMismatchError(
            f"{folder}: this delta was made on {base.get('model_id')!r} (revision {base.get('revision')}, "
            f"{base.get('dtype')}) with fingerprint {expected}; the model given is {facts['model_id']!r} (revision "
            f"{facts['revision']}, {facts['dtype']}) with fingerprint {actual}. Load that base in that dtype, or pass "
            "any_base=True to load_delta to accept other weights of the same shapes."
        )


# An edited model as a full checkpoint.


def merge_and_save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    delta: WeightDelta,
    folder: str | os.PathLike[str],
    *,
    base_model: str | None = None,
) -> None:
    """Write model, tokenizer and edit as one checkpoint that `from_pretrained(folder)` loads.

    The edit is rounded once into the dtype of the weights. The model is restored bitwise. `seesaw_cf.json` next to the
    weights records what was edited and on which base.

    Args:
        model: The unedited base.
        tokenizer: Its tokenizer.
        delta: The edit.
        folder: A folder that does not exist yet, or is empty.
        base_model: Name of the base to write down, instead of the model's own.

    Raises:
        EditError: The delta is a text context (in-context editing), which a checkpoint cannot hold.
        DeltaMismatchError: The delta does not fit the model.
        StorageError: The folder is not empty or cannot be written.
    """
    if delta.context:
        raise EditError(
            "this delta puts a text before every prompt; a checkpoint holds weights only. "
            "Share it as a delta (save_delta, --form delta) instead."
        )
    facts = describe(delta, model, base_model)
    with atomic_folder(folder) as temporary:
        with applied(model, delta), silent_loaders(bars=False):
            model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        dump_json(temporary / "seesaw_cf.json", facts, ensure_ascii=False)
