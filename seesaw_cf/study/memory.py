"""What a report of a study has computed, kept in the study's folder: read again while input and versions are the same.

An entry is a ZIP file of JSON and Arrow tables, which name data and never code. One that is cut off, damaged, or of
other input or versions is computed anew and replaced.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.tables import CONTROL_SEEDS, RESULTS
from seesaw_cf.base.types import Estimate
from seesaw_cf.base.versions import versions
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.locality import Locality
from seesaw_cf.effects.success import Success
from seesaw_cf.report.audit import AuditTables
from seesaw_cf.report.floor import Floor
from seesaw_cf.report.known import KnownTables
from seesaw_cf.report.results import Results

T = TypeVar("T")
_CLASSES = (AuditSettings, AuditTables, Estimate, Floor, KnownTables, Locality, Results, Success)
_BY_NAME: Mapping[str, Callable[..., Any]] = {one.__name__: one for one in _CLASSES}
_VALUE = "value.json"
# What reading an entry raises that is not there, not whole, or not what this version wrote.
_UNUSABLE = (OSError, EOFError, KeyError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, pa.ArrowException)


def digest_of(run: Path) -> str:
    """Return the SHA-256 of what a run's report is made of."""
    sums = []
    for file in (run / name for name in (*RESULTS, CONTROL_SEEDS) if (run / name).exists()):
        with file.open("rb") as stream:
            sums.append([file.name, hashlib.file_digest(stream, "sha256").hexdigest()])
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Memory:
    """Values by name and input.

    Attributes:
        folder: Where they are kept; None: nowhere, each is computed.
    """

    folder: Path | None = None

    def value(self, names: Sequence[str], inputs: Sequence[object], compute: Callable[[], T]) -> T:
        """Return a value as it is kept, else compute and keep it.

        Args:
            names: What the value is called; it takes the place of an earlier one of these names.
            inputs: All that it depends on besides versions: digests of files, records of settings.
            compute: Makes a value of frames, records of `_CLASSES`, plain values, and lists and mappings of those.

        Raises:
            StorageError: It cannot be kept.
        """
        if self.folder is None:
            return compute()
        file = self.folder / f"{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]}.zip"
        key = repr((_versions(), *inputs))
        try:
            content: T = _read(file, key)
        except _UNUSABLE:
            content = compute()
            _write(file, key, content)
        return content


NOWHERE = Memory()
"""Keeps nothing."""


@cache
def _versions() -> str:
    return json.dumps(versions(), sort_keys=True)


def _read(file: Path, key: str) -> Any:
    with zipfile.ZipFile(file) as archive:
        content = json.loads(archive.read(_VALUE))
        if content["key"] != key:
            raise ValueError("of other input")
        return _decoded(content["value"], archive)


def _write(file: Path, key: str, value: object) -> None:
    with atomic_path(file) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        content = {"key": key, "value": _encoded(value, archive)}
        archive.writestr(zipfile.ZipInfo(_VALUE), json.dumps(content))


def _encoded(value: object, archive: zipfile.ZipFile) -> Any:
    """Return plain JSON; the rows of frames go into the archive."""
    if isinstance(value, pd.DataFrame):
        return _stored(value, archive)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {entry.name: _encoded(getattr(value, entry.name), archive) for entry in fields(value)}
        return {"class": _BY_NAME[type(value).__name__].__name__, "fields": parts}
    if isinstance(value, Mapping):
        return {"mapping": {str(name): _encoded(own, archive) for name, own in value.items()}}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(own, archive) for own in value]}
    if isinstance(value, (list, np.ndarray)):
        return [_encoded(own, archive) for own in value]
    if isinstance(value, Path):
        return {"path": str(value)}
    return value.item() if isinstance(value, np.generic) else value


def _decoded(value: Any, archive: zipfile.ZipFile) -> Any:
    if isinstance(value, list):
        return [_decoded(own, archive) for own in value]
    if not isinstance(value, dict):
        return value
    if "frame" in value:
        return _frame(value, archive)
    if "class" in value:
        parts = {name: _decoded(own, archive) for name, own in value["fields"].items()}
        return _BY_NAME[value["class"]](**parts)
    if "path" in value:
        return Path(value["path"])
    if "tuple" in value:
        return tuple(_decoded(own, archive) for own in value["tuple"])
    return {name: _decoded(own, archive) for name, own in value["mapping"].items()}


def _stored(frame: pd.DataFrame, archive: zipfile.ZipFile) -> Mapping[str, object]:
    """Write a frame as an Arrow stream; cells that are no numbers or words become JSON."""
    coded = [str(name) for name in frame if frame[name].dtype == object]
    texts = {name: [json.dumps(_encoded(cell, archive)) for cell in frame[name]] for name in coded}
    table, name = pa.Table.from_pandas(frame.assign(**texts)), f"{len(archive.namelist())}.arrow"
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    archive.writestr(zipfile.ZipInfo(name), stream.getvalue())
    return {"frame": name, "coded": coded}


def _frame(value: Mapping[str, Any], archive: zipfile.ZipFile) -> pd.DataFrame:
    frame: pd.DataFrame = pa.ipc.open_stream(archive.read(value["frame"])).read_pandas()
    cells = {name: [_decoded(json.loads(text), archive) for text in frame[name]] for name in value["coded"]}
    return frame.assign(**{name: pd.Series(own, frame.index, object) for name, own in cells.items()})
