"""A run folder: what the run was made of, checked before it is continued and whenever somebody reads its results."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, RunFolderError, StorageError, hide_secrets
from seesaw_cf.base.files import cache_folder, create_text, sweep
from seesaw_cf.base.tables import RESULTS
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject

_log = logging.getLogger(__name__)
# What must agree before a run is continued; other versions than the model's and the machine are only recorded.
_IDENTITY = ("model", "editors", "data", "protocol", "seed", "settings", "scoring")
# What to do about a difference whose cause is not among the options that were given.
_ADVICE = {"scoring.threads": " (give --threads N to both)"}
_PARTS = ("model", "editors", "data", "scoring", "job", "machine", "versions", "edited")  # each a JSON object


@dataclass(frozen=True, slots=True)
class RunManifest:
    """Everything needed to repeat a run.

    Attributes:
        model: id, revision, dtype and what `seesaw_cf.models.identity.identity` returns.
        editors: Editor name -> its config.
        data: source, configs, number of cases and SHA-256 of the cases.
        protocol: "single" (edit, score, restore), "batch" (all cases of a relation edited together), "sequential"
            (one after another), "dose", "leme" or "stereotype graph".
        seed: Seed of everything random.
        settings: What the protocol is set to.
        scoring: Options of the scorer that can change rounding, and CPU threads; {} where nothing is scored.
        job: Every option of the run as it was given.
        machine: Device, platform.
        versions: Package versions and the commit of the checkout, when there is one.
        edited: Name -> what a model changed elsewhere moved; see `seesaw_cf.run.external.read_external`.
        notes: What the records cannot show, in sentences; see `seesaw_cf.run.prepare.data_notes`.
    """

    model: JsonObject
    editors: JsonObject
    data: JsonObject
    protocol: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    scoring: JsonObject = field(default_factory=dict)
    job: JsonObject = field(default_factory=dict)
    machine: JsonObject = field(default_factory=dict)
    versions: JsonObject = field(default_factory=dict)
    edited: JsonObject = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def identity(self) -> str:
        """SHA-256 (hex) over everything that must agree before a run is continued; every shard carries it."""
        parts = {key: value for key, value in asdict(self).items() if key in _IDENTITY}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def public_options(job: Any) -> JsonObject:
    """Return the options of a job as a manifest records them: JSON values, URLs without their secrets."""

    def public(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: public(item) for key, item in value.items()}
        if isinstance(value, list):
            return [public(item) for item in value]
        return hide_secrets(value) if isinstance(value, str) else value

    options: JsonObject = public(json.loads(json.dumps(asdict(job), default=str)))
    return options


def claim_folder(folder: Path, manifest: RunManifest) -> bool:
    """Make `folder` this run's own, or check that it already is.

    Of several processes that start the same run at once one claims the folder and the rest join it.

    Args:
        folder: The run folder; made when missing.
        manifest: What this run is made of.

    Returns:
        True when an earlier, interrupted run of the same kind is being continued, or another process's is joined.

    Raises:
        RunFolderError: The folder belongs to another run (every difference is listed), or holds something else.
        StorageError: The folder cannot be written.
    """
    check_folder(folder)
    file = folder / "manifest.json"
    document: dict[str, Any] = json.loads(json.dumps(asdict(manifest), sort_keys=True))
    try:
        text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"
    except ValueError as error:
        raise RecordError(f"{file}: a setting or measure of this run is not finite ({error}). Correct it.") from error
    if not file.exists() and create_text(file, text):
        return False
    _check_same(file, document)
    return True


def check_places(out: Path) -> None:
    """Refuse a run folder, or a cache folder, that cannot be written.

    Raises:
        RunFolderError: As `check_folder`.
        StorageError: No right to write there; the message names the option or variable that chooses another place.
    """
    check_folder(out)
    places = {out: "Choose another with --out.", cache_folder(): "Set SEESAW_CF_CACHE to another folder."}
    for folder, remedy in places.items():
        path = folder.absolute()
        there = next(place for place in (path, *path.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise StorageError(f"{folder} cannot be written (no right to write in {there}). {remedy}")


def check_folder(folder: Path) -> None:
    """Refuse a place that can be no run folder: a file, or a folder with something else in it.

    Raises:
        RunFolderError: See above.
        StorageError: The folder cannot be read.
    """
    try:
        there = [part.name for part in folder.iterdir()]
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise RunFolderError(
            f"{folder} is a file, expected a folder or a name that is free. Choose another with --out."
        ) from error
    except (OSError, ValueError) as error:
        raise StorageError(f"{folder}: cannot be read ({error}). Choose another folder with --out.") from error
    sweep(folder)
    # Looked at after the listing: what another process writes meanwhile, it writes after its manifest.
    strange = [name for name in there if not (name.startswith(".") and name.endswith(".tmp"))]
    if strange and not (folder / "manifest.json").exists():
        raise RunFolderError(
            f"{folder} is not empty and has no manifest.json, so it is not a run folder. "
            "Choose a new folder with --out."
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest in a run folder; {} when there is none that can be read."""
    document: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        document = read_json(folder / "manifest.json", any_number=True)
    return document


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A finished run of any command.

    Attributes:
        path: The folder.
        manifest: What its `manifest.json` records, see `RunManifest`.
    """

    path: Path
    manifest: JsonObject

    @classmethod
    def open(cls, folder: str | os.PathLike[str], command: str = "audit", tables: Sequence[str] = RESULTS) -> RunFolder:
        """Open the folder of a finished run.

        Args:
            folder: What the command was given as --out.
            command: What makes such a run.
            tables: Files that a finished run has.

        Raises:
            RunFolderError: Not a run folder, the run is not finished, or the record is damaged.
        """
        path, remedy = Path(folder), f"Give the folder that `seesaw-cf {command} --out` wrote."
        if not path.is_dir():
            raise RunFolderError(f"{path}: no such folder. {remedy}")
        if not (file := path / "manifest.json").exists():
            raise RunFolderError(f"{path} has no manifest.json, so it is not a run folder. {remedy}")
        missing = [name for name in tables if not (path / name).exists()]
        if missing and all((path / name).exists() for name in RESULTS):
            raise RunFolderError(f"{path}: a finished audit, which has no {' and '.join(missing)}. {remedy}")
        if missing:
            n_units = sum(1 for _ in path.glob("shards/*/*.parquet"))
            raise RunFolderError(
                f"{path}: the run is not finished ({' and '.join(missing)} missing, {n_units} units done). "
                f"Repeat the `seesaw-cf {command}` command that began it; it continues where it was."
            )
        manifest: JsonObject = read_json(file, error=RunFolderError, any_number=True)
        if wrong := [key for key in _PARTS if not isinstance(manifest.get(key, {}), dict)]:
            raise RunFolderError(
                f"{file} is damaged: {wrong[0]} is {shown(manifest[wrong[0]])}, expected dict. Run again into a new "
                "folder with --out."
            )
        return cls(path, manifest)

    def __truediv__(self, name: str) -> Path:
        """Return the path of a file of the run."""
        return self.path / name


def differences(first: Mapping[str, Any], second: Mapping[str, Any], path: str = "") -> list[tuple[str, Any, Any]]:
    """Return where two nested mappings differ: the path as "model.dtype", and both values (None where missing)."""
    rows: list[tuple[str, Any, Any]] = []
    for key in sorted({*first, *second}):
        place, left, right = f"{path}{key}", first.get(key), second.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            rows += differences(left, right, f"{place}.")
        elif left != right:
            rows.append((place, left, right))
    return rows


def _check_same(file: Path, expected: dict[str, Any]) -> None:
    try:
        stored = read_json(file, any_number=True)
        old = {key: stored[key] for key in _IDENTITY}
    except (ValueError, KeyError) as error:
        raise RunFolderError(f"{file} is damaged ({error!r}). Choose a new folder with --out.") from error
    lines = [
        f"{place}: the folder has {shown(left)}, this run {shown(right)}{_ADVICE.get(place, '')}"
        for place, left, right in differences(old, {key: expected[key] for key in _IDENTITY})
    ]
    if lines:
        raise RunFolderError(
            f"{file.parent} belongs to another run:\n  " + "\n  ".join(lines) + "\n"
            "Choose a new folder with --out, or repeat the command that made this one."
        )
    if other := differences(stored.get("versions") or {}, expected["versions"]):
        listed = ", ".join(f"{name} {shown(new)} for {shown(old)}" for name, old, new in other)
        _log.warning("%s was begun under other versions and goes on: %s", file.parent, listed)
