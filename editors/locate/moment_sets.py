"""Sets of second moments: a folder with one file for each layer and `set.json`, which records what they were made from.

The folder of a pass in the cache is a set; `seesaw-cf moments` publishes, fetches and lists them. What is in the files
is never taken on trust: `set.json` must have the key that every file is marked with, and the model its fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import atomic_folder, cache_folder, write_text
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.locate.moment_files import MomentFiles, SecondMoment
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.corpus import Corpus, corpus_facts, read_source
from seesaw_cf.models.identity import fingerprint, libraries, tokenizer_hash
from seesaw_cf.models.packaged import known_name

log = logging.getLogger(__name__)

RECORD = "set.json"
ORIGIN = "origin.json"
"""Beside a set that was fetched: repository, revision, and SHA-256 of each file."""

_FACTS: dict[str, type] = {"model": str, "corpus": str, "sample_size": int, "dtype": str, "max_length": int}
_FACTS |= {"tokenizer": str, "libraries": dict}
"""What the key is made of; the length is None for models without a context length."""
_RECORD = {"facts": dict, "part": str, "model": dict, "corpus": dict}
_PART = re.compile(r"([0-9a-f]{12}-\d{1,9}), within (\d[0-9.e-]{0,30})|")
_FILE = re.compile(r"layer-(\d{1,4})\.safetensors")


class MomentFacts(TypedDict):
    """What the key of a set is made of: the model's fingerprint, a hash of the texts, how the model read them."""

    model: str
    corpus: str
    sample_size: int
    dtype: str
    max_length: int | None
    tokenizer: str
    libraries: dict[str, str]


class MomentRecord(TypedDict, total=False):
    """Content of `set.json`: `part` is "" for all texts; `files` (SHA-256 of each) only of a published set."""

    facts: MomentFacts
    part: str
    model: dict[str, str]
    corpus: dict[str, str]
    files: dict[str, str]


class MomentOrigin(TypedDict, total=False):
    """Where a set was fetched from."""

    repository: str
    revision: str
    files: dict[str, str]


@dataclass(frozen=True)
class MomentSet:
    """Second moments of some layers of one model, from the same texts.

    Attributes:
        folder: Where the files are.
        record: What `set.json` records.
    """

    folder: Path
    record: MomentRecord

    @property
    def key(self) -> str:
        """Under which it lies in the cache."""
        return hashlib.sha256(json.dumps(self.record["facts"], sort_keys=True).encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """What `find_set` finds it by: its key, or its folder when it is of some of the texts."""
        return str(self.folder) if self.record["part"] else self.key

    @property
    def files(self) -> MomentFiles:
        """Its files, with what they must be marked with."""
        return MomentFiles(self.folder, ", ".join(filter(None, (self.key, self.record["part"]))))

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers it has, in order."""
        names = (_FILE.fullmatch(file.name) for file in self.folder.iterdir())
        return tuple(sorted(int(match[1]) for match in names if match))

    @property
    def origin(self) -> MomentOrigin:
        """Repository and revision it was fetched from; {} for one that was computed here."""
        file = self.folder / ORIGIN
        return read_json(file) if file.exists() else {}

    def place(self, root: Path) -> Path:
        """Return the folder below `root` in which `second_moments` looks for it."""
        return root / self.key / str(self.record["part"]).replace(", within ", "-within-")

    def copy(self, folder: Path) -> MomentSet:
        """Write it into another folder, whole or not at all.

        Raises:
            StorageError: The folder holds something, or cannot be written.
        """
        with atomic_folder(folder) as temporary:
            for file in (RECORD, *(self.files.path(layer).name for layer in self.layers)):
                shutil.copyfile(self.folder / file, temporary / file)
        return read_set(folder)

    def facts(self) -> JsonObject:
        """Return what a manifest records of it."""
        texts = {"texts": self.record["facts"]["sample_size"], "sha256": self.record["facts"]["corpus"]}
        facts: JsonObject = {"set": self.files.key, "corpus": self.record["corpus"], **texts}
        return facts | {name: self.origin[name] for name in ("repository", "revision") if name in self.origin}

    def check(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Refuse a model or tokenizer that it was not made with.

        Raises:
            StorageError: The set differs; the message tells where.
        """
        facts, about = self.record["facts"], self.record["model"]
        pairs = {
            "dtype": (str(model.dtype), facts["dtype"]),
            "model fingerprint": (fingerprint(model), facts["model"]),
            "tokenizer": (tokenizer_hash(tokenizer), facts["tokenizer"]),
        }
        for what, (ours, theirs) in pairs.items():
            if ours != theirs:
                raise StorageError(
                    f"moments {self.folder} are of another model: {what} {theirs[:16]} of "
                    f"{about.get('id') or 'a local folder'}{_commit_text(about.get('revision'))}, got {ours[:16]} of "
                    f"{known_name(str(model.name_or_path)) or 'this model'}. Load that model, with that --dtype and "
                    "--revision, or make moments of this one (`seesaw-cf moments make`)."
                )
        if facts["libraries"] != libraries():
            log.warning("moments %s were made with %s, used with %s", self.folder, facts["libraries"], libraries())

    def load(
        self, parts: ModelParts, tokenizer: PreTrainedTokenizerBase, layers: Sequence[int]
    ) -> dict[int, SecondMoment]:
        """Read the moments of some layers for a model.

        Args:
            parts: The model.
            tokenizer: Its tokenizer.
            layers: The layers wanted.

        Returns:
            Layer -> moment.

        Raises:
            StorageError: Of another model, of other layers, or damaged.
        """
        self.check(parts.model, tokenizer)
        if absent := [layer for layer in layers if layer not in self.layers]:
            raise StorageError(
                f"moments {self.folder} are of layers {list(self.layers)}, expected {absent} as well. Make those, too "
                "(`seesaw-cf moments make`), or set the editor's layers to those that are there."
            )
        return {layer: self.files.load(layer, parts.key_size(layer)) for layer in layers}


def describe_set(folder: Path, facts: JsonObject, part: str, model: PreTrainedModel, texts: Sequence[str]) -> None:
    """Write the `set.json` of a pass; a file of the corpus is named without its folder.

    Raises:
        StorageError: The folder cannot be written.
    """
    name = known_name(str(model.name_or_path))
    about = {"id": "" if os.path.exists(name) else name, "revision": getattr(model.config, "_commit_hash", None) or ""}
    corpus: JsonObject = {**corpus_facts(texts).get("corpus", {})}
    if isinstance(texts, Corpus) and read_source(texts.spec).path is not None:
        corpus["source"] = Path(texts.spec).name
    record = {"facts": dict(facts), "part": part, "model": about, "corpus": corpus}
    write_text(folder / RECORD, json.dumps(record, indent=1) + "\n")


def read_set(folder: Path) -> MomentSet:
    """Return the set in a folder; its matrices are read when they are used.

    Raises:
        StorageError: There is none, or `set.json` is damaged.
    """
    file = folder / RECORD
    if not file.is_file():
        raise StorageError(
            f"{folder}: no second moments there (no {RECORD}). `seesaw-cf moments list` shows the sets of this machine."
        )
    record = read_json(file, expected='{"facts": {...}, ...}')
    wrong = [name for name, kind in _RECORD.items() if not isinstance(record.get(name), kind)]
    wrong = wrong or [f"facts.{name}" for name, kind in _FACTS.items() if _other(record["facts"].get(name), kind)]
    if wrong or not _PART.fullmatch(record["part"]):
        raise StorageError(
            f"{file} does not describe second moments ({', '.join(wrong) or 'part'} is missing or of another kind). "
            "Fetch or make them again."
        )
    return MomentSet(folder, record)


def sets_folder() -> Path:
    """Return the folder in which the sets of this machine are."""
    return cache_folder() / "second_moments"


def sets() -> list[MomentSet]:
    """Return the sets of this machine that have files; warn of a damaged one and leave it out."""
    files = sorted([*sets_folder().glob(f"*/{RECORD}"), *sets_folder().glob(f"*/*/{RECORD}")])
    return [moment_set for file in files for moment_set in _whole(file.parent)]


def _whole(folder: Path) -> list[MomentSet]:
    """Return the set in a folder as a list of one; [] when it is damaged or has no layers."""
    try:
        moment_set = read_set(folder)
    except (RecordError, StorageError) as error:
        log.warning("left out: %s", error)
        return []
    return [moment_set] if moment_set.layers else []


def find_set(name: str | os.PathLike[str]) -> MomentSet:
    """Find the set that a user means.

    Args:
        name: A folder; the beginning of a key in the cache, or the ORG/NAME it was fetched from.

    Raises:
        StorageError: There is none, or several.
    """
    text = os.fspath(name)
    if os.path.isdir(text):
        return read_set(Path(text))
    available = sets()
    matches = [e for e in available if text and (e.origin.get("repository") == text or e.files.key.startswith(text))]
    matches = [e for e in matches if e.files.key == text] or matches
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise StorageError(
            f"moments {text}: {len(matches)} sets are called so ({'; '.join(e.files.key for e in matches[:5])}). "
            "Write the whole name."
        )
    raise StorageError(
        f"moments {text}: neither a folder with {RECORD} nor a set on this machine ("
        f"{', '.join(e.origin.get('repository') or e.key for e in available[:5]) or 'there is none'}). Fetch a "
        "published one with `seesaw-cf moments pull ORG/NAME`, or make one with `seesaw-cf moments make`."
    )


def hash_texts(texts: Sequence[str]) -> str:
    """Return a SHA-256 (hex) over texts in their order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)}:".encode() + text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _commit_text(revision: object) -> str:
    return f" at {revision}" if revision else ""


def _other(value: object, kind: type) -> bool:
    return type(value) is not kind and not (kind is int and value is None)
