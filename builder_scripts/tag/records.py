"""The records that are tagged: files, folders of released files, dataset folders; each file or config by its name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import safe_name
from seesaw_cf.base.types import Case
from seesaw_cf.records.arrow import CASES, read_cases
from seesaw_cf.records.importing import config_files


@dataclass(frozen=True, slots=True)
class CaseFile:
    """One file or config of cases.

    Attributes:
        cases: In their order.
        source: Name of the file, or of the config's folder.
        sha256: Of the file, or of the shards' bytes one after the other (hex).
    """

    cases: list[Case]
    source: str
    sha256: str


def read_records(paths: Iterable[str | os.PathLike[str]]) -> dict[str, CaseFile]:
    """Read the records of every file: config name -> records.

    Args:
        paths: JSON, JSON-lines or Parquet files of cases; a folder stands for the configs of cases in its `data/`, or
            for its `seesaw_cf_*.json` files.

    Raises:
        RecordError: A file is damaged, two would have the same name, or a folder holds no cases.
        StorageError: A file is missing.
    """
    files: dict[str, Path] = {}
    for path in map(check_path, paths):
        for name, file in (_configs(path) if (path / "data").is_dir() else config_files([path])).items():
            if name in files:
                raise RecordError(f"{file} and {files[name]} would both be config {name!r}. Rename one of them.")
            files[name] = file
    if not files:
        raise RecordError("no records were named. Name at least one file or folder.")
    return {name: CaseFile(read_cases(path), path.name, _digest(path)) for name, path in files.items()}


def _configs(folder: Path) -> dict[str, Path]:
    """Return the configs of a dataset folder that hold cases."""
    shards = {path.parent: path for path in sorted((folder / "data").glob("*/*.parquet"), reverse=True)}
    cases = [path for path, shard in shards.items() if set(CASES.names) <= set(pq.read_schema(shard).names)]
    if not cases:
        raise RecordError(
            f"{folder}: no config in its data/ holds cases. Give the folder that `import` or `build` made."
        )
    return {safe_name(path.name): path for path in sorted(cases)}


def _digest(path: Path) -> str:
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
