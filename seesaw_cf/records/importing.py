"""Released files in, a dataset folder out: the work behind `seesaw-cf import`."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError
from seesaw_cf.base.files import dump_json, safe_name
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import Case
from seesaw_cf.records.arrow import cases_to_table, read_cases
from seesaw_cf.records.card import FileSummary, ImportSummary, summarise, write_card, write_config
from seesaw_cf.records.checks import CASE_FLAGS, PROMPT_FLAGS
from seesaw_cf.records.open_ended import CONFIG, open_ended

_MANIFEST = "import.json"
_MADE_BY = "seesaw-cf import"
_BODY = """# Imported edit cases

One config per file, split `test`, one row per edit case, columns named as in CounterFact. `open_ended`, where there is
one, has their open-ended prompts, one a row, for `seesaw-cf texts write`. Nothing of a record is changed:
`seesaw_cf.records` writes every case back as it was. Records that are left out are counted below. `{manifest}` names
the sources.

```python
from datasets import load_dataset

cases = load_dataset("path/to/this/folder", "{first}", split="test")
```

{table}

Damage is flagged per prompt (`attribute_prompts[].flags`) and per case (`flags`):

{flags}
"""


def import_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    skip_bad: bool = False,
) -> ImportSummary:
    """Turn released files into a folder that `datasets.load_dataset(out, config)` opens, one config per file.

    The folder is built next to `out` under a temporary name and appears whole or not at all. A folder that an earlier
    import made, and to which nothing was added, is replaced.

    Args:
        paths: JSON, JSON-lines or Parquet files of cases; a folder stands for its `seesaw_cf_*.json` files. The config
            is named after the file, without `seesaw_cf_`.
        out: The dataset folder to make.
        skip_bad: Leave malformed records out and count them, instead of refusing their file.
        force: Move a folder that holds anything else aside (to `OUT.before-import`) instead of refusing.

    Returns:
        Counts per file; `to_markdown()` is the table to print.

    Raises:
        RecordError: A file is damaged or malformed (its name and the record are named), two files would have the same
            config name, or an argument is not a path.
        UnknownNameError: A record has an unknown relation.
        StorageError: A file is missing, the disk is full, reading or writing is not allowed, or `out` holds something
            else and `force` is off.
    """
    sources = config_files([paths] if isinstance(paths, (str, os.PathLike)) else paths)
    final = Path(os.path.realpath(check_path(out)))
    try:
        aside = _aside(final, list(sources.values()), force)
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{final.name}.", suffix=".tmp", dir=final.parent) as work:
            new = Path(work) / "new"
            skipped: dict[str, list[str]] = {name: [] for name in sources}
            cases = {name: read_cases(path, skipped[name] if skip_bad else None) for name, path in sources.items()}
            files = tuple(_import_one(new, name, path, cases[name], skipped[name]) for name, path in sources.items())
            prompts = write_open_ended(new, cases)
            summary = ImportSummary(final, files, aside)
            _describe(new, summary, prompts)
            if final.exists():
                final.replace(aside or Path(work) / "old")
            new.replace(final)
    except OSError as error:
        if isinstance(error, SeesawError):
            raise
        raise StorageError(
            f"could not write {final}: {error.strerror or error}. Free some space or choose another folder, "
            "then import again."
        ) from error
    return summary


def config_files(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Path]:
    """Return config name → file, for files and for folders with `seesaw_cf_*.json` files.

    Raises:
        RecordError: No paths, a folder without such files, or two files of one name.
    """
    configs: dict[str, Path] = {}
    for path in map(check_path, paths):
        files = sorted(path.glob("seesaw_cf_*.json")) if path.is_dir() else [path]
        if not files:
            raise RecordError(f"{path}: a folder without seesaw_cf_*.json files. Name the files to import one by one.")
        for file in files:
            name = safe_name(file.stem.removeprefix("seesaw_cf_"))
            if name in configs:
                raise RecordError(f"{file} and {configs[name]} would both be config {name!r}. Rename one of them.")
            configs[name] = file
    if not configs:
        raise RecordError("nothing to import: no paths were given. Name at least one file.")
    return configs


def _aside(final: Path, sources: list[Path], force: bool) -> Path | None:
    """Return where what is now at `final` must be moved; None when nothing is there but an earlier import."""
    foreign = _foreign(final) if final.is_dir() else ["a file of that name"] if final.exists() else []
    if not foreign:
        return None
    backup = final.with_name(f"{final.name}.before-import")
    inside = [path for path in (Path.cwd(), *(source.resolve() for source in sources)) if path.is_relative_to(final)]
    remedies = (
        (not final.is_dir(), "Choose another name."),
        (bool(inside), f"It is in use ({', '.join(map(str, inside[:1]))} is in it). Choose another folder."),
        (backup.exists(), f"{backup} exists too. Choose another folder, or move one of them away."),
        (not force, f"Choose another folder, or use force to have it moved to {backup.name}."),
    )
    remedy = next((text for applies, text in remedies if applies), None)
    if remedy is not None:
        raise StorageError(f"{final} holds what no import wrote ({', '.join(foreign[:3])}). {remedy}")
    return backup


def _foreign(folder: Path) -> list[str]:
    """Return the files in the folder that no import wrote; all of them without an import's manifest."""
    try:
        manifest = read_json(folder / _MANIFEST)
        own = {_MANIFEST, *manifest["written"]} if manifest["made_by"] == _MADE_BY else set()
    except (OSError, ValueError, KeyError, TypeError):
        own = set()
    return sorted(set(_files(folder)) - own)


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def write_open_ended(folder: str | os.PathLike[str], cases: Mapping[str, Sequence[Case]]) -> dict[str, str]:
    """Write the config `open_ended` of cases that have open-ended prompts.

    Args:
        folder: The dataset folder.
        cases: Config -> its cases.

    Returns:
        The config and its line for the card; nothing where no case has such prompts.

    Raises:
        RecordError: A config of cases has its name.
    """
    table = pa.concat_tables([open_ended(name, rows) for name, rows in cases.items()])
    if not table.num_rows:
        return {}
    if CONFIG in cases:
        raise RecordError(f"config {CONFIG!r} is taken by the open-ended prompts of the cases. Rename the file.")
    write_config(folder, CONFIG, {"test": table})
    return {CONFIG: f"{table.num_rows:,} open-ended prompts of these cases"}


def _import_one(folder: Path, name: str, path: Path, cases: Sequence[Case], skipped: Sequence[str]) -> FileSummary:
    write_config(folder, name, {"test": cases_to_table(cases)})
    return summarise(name, path.name, hashlib.sha256(path.read_bytes()).hexdigest(), cases, skipped)


def _describe(folder: Path, summary: ImportSummary, prompts: Mapping[str, str]) -> None:
    """Write the card and the manifest of a folder with all its shards."""
    meanings = "\n".join(f"- `{flag}`: {meaning}" for flag, meaning in (PROMPT_FLAGS | CASE_FLAGS).items())
    names = [file.name for file in summary.files]
    body = _BODY.format(
        manifest=_MANIFEST,
        first=names[0],
        table="\n".join([summary.to_markdown(), "", *summary.left_out()]),
        flags=meanings,
    )
    descriptions = {file.name: f"{file.cases} cases imported from {safe_name(file.source)}" for file in summary.files}
    descriptions |= prompts
    write_card(folder, descriptions, body=body, metadata={"pretty_name": "Imported edit cases", "language": ["en"]})
    manifest = {"made_by": _MADE_BY, "written": _files(folder), "files": [asdict(file) for file in summary.files]}
    dump_json(folder / _MANIFEST, manifest)
