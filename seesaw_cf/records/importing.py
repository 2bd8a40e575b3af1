"""Released files in, a dataset folder out: records as they are."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import atomic_folder, dump_json, safe_name
from seesaw_cf.base.tables import column_names
from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.base.types import Case, Entity
from seesaw_cf.records.arrow import CASES, cases_to_table, open_ended, read_cases
from seesaw_cf.records.card import write_card, write_config
from seesaw_cf.records.checks import CASE_FLAGS, PROMPT_FLAGS, count_flags
from seesaw_cf.records.load import locality, portability, unread_keys

_MANIFEST = "import.json"
CONFIG = "open_ended"
MAX_REASONS = 10  # of records left out, shown for each file
_CARD = (Path(__file__).parent / "import.md.jinja").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What one file holds.

    Attributes:
        source: Name of the file it came from, without folder.
        sha256: Of that file (hex).
        record_formats: The formats its records have.
        numbers: What is counted, with the words of the table -> one or several numbers.
        skipped: Messages of the records that are left out.
        notes: "flag NAME (prompts)", "flag NAME (cases)" or "key NAME, not read" -> how many.
    """

    source: str
    sha256: str
    record_formats: tuple[str, ...]
    numbers: Mapping[str, tuple[float, ...]]
    skipped: tuple[str, ...]
    notes: Mapping[str, int]


def summarise(source: str, sha256: str, cases: Sequence[Case], skipped: Sequence[str] = ()) -> FileSummary:
    """Count what a file of at least one case holds; people and targets are told apart by id, then by name."""
    rows = [row for case in cases for row in case.attribute_prompts]
    per_case, ids = [len(case.attribute_prompts) for case in cases], [case.case_id for case in cases]
    open_prompts = [text for case in cases for text in case.generation_prompts]
    new, true = (_keys([getattr(case.request, role) for case in cases]) for role in ("target_new", "target_true"))
    others = (sum(len(getattr(case, f"{name}_prompts")) for case in cases) for name in ("paraphrase", "neighborhood"))
    numbers: dict[str, tuple[float, ...]] = {
        "cases": (len(cases),),
        "case ids, first / last": (min(ids), max(ids)),
        "prompts": (len(rows),),
        "unique prompts": (len({row.text for row in rows}),),
        "prompts per case, min / mean / max": (min(per_case), sum(per_case) / len(per_case), max(per_case)),
        "generation prompts": (len(open_prompts),),
        "unique generation prompts": (len(set(open_prompts)),),
        "paraphrase / neighborhood prompts": tuple(others),
        "portability and locality prompts": (sum(len(portability(case)) + len(locality(case)) for case in cases),),
        "edit subjects": (len({case.request.subject for case in cases}),),
        "test subjects": (len(_keys([row.subject for row in rows])),),
        "targets, new / true / either": (len(new), len(true), len(new | true)),
        "prompts with a group tag": (sum(bool(row.gender or row.race or row.region) for row in rows),),
    }
    notes = {
        f"flag {flag} ({of})": number
        for of, flags in zip(("prompts", "cases"), count_flags(cases), strict=True)
        for flag, number in flags.items()
    }
    unread = Counter(key for case in cases for key in unread_keys(case))
    notes |= {f"key {key}, not read".replace("|", r"\|"): number for key, number in unread.items()}
    formats = tuple(sorted({case.record_format for case in cases}))
    return FileSummary(source, sha256, formats, numbers, tuple(skipped), notes)


def _keys(entities: Sequence[Entity]) -> set[tuple[str | None, str]]:
    keys = {(item.id, "" if item.id is not None else item.label) for item in entities}
    return keys - {(None, "")}


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import wrote.

    Attributes:
        out: The dataset folder.
        files: Config -> its summary, in the order of the import.
    """

    out: Path
    files: Mapping[str, FileSummary]

    def to_markdown(self) -> str:
        """Return a table: a column for each config, a row for each count; flags that occur nowhere are absent."""
        files = list(self.files.values())
        rows = [[label, *(_cell(file.numbers[label]) for file in files)] for label in files[0].numbers]
        labels = dict.fromkeys(label for file in files for label in file.notes)
        rows += [[label, *(f"{file.notes.get(label, 0):,}" for file in files)] for label in labels]
        return markdown_table(["", *self.files], rows)

    def left_out(self) -> list[str]:
        """Return a line on each file of which records are left out, with the first reasons below it."""
        lines = []
        for file in self.files.values():
            lines += [f"{len(file.skipped):,} records of {file.source} are left out:\n"] if file.skipped else []
            lines += [f"- {text}" for text in file.skipped[:MAX_REASONS]]
        return lines


def _cell(numbers: tuple[float, ...]) -> str:
    return " / ".join(f"{number:,}" if isinstance(number, int) else f"{number:,.1f}" for number in numbers)


def import_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    skip_bad: bool = False,
    version: str = "1.0.0",
) -> ImportSummary:
    """Turn released files into a folder that `datasets.load_dataset(out, config)` opens, one config per file.

    The folder appears whole or not at all.

    Args:
        paths: JSON, JSON-lines or Parquet files of cases; a folder stands for its `seesaw_cf_*.json` files. The config
            is named after the file, without `seesaw_cf_`.
        out: The dataset folder to make; nothing is there.
        skip_bad: Leave malformed records out and count them, instead of refusing their file.
        version: Of the data, "major.minor.patch".

    Returns:
        Counts per file; `to_markdown()` is the table to print.

    Raises:
        RecordError: A file is damaged or malformed (its name and the record are named), two files would have the same
            config name, or an argument is not a path.
        UnknownNameError: A record has an unknown relation.
        StorageError: A file is missing, the disk is full, reading or writing is not allowed, or `out` is there.
    """
    sources = config_files([paths] if isinstance(paths, (str, os.PathLike)) else paths)
    skipped: dict[str, list[str]] = {name: [] for name in sources}
    with atomic_folder(check_path(out)) as folder:
        cases = {name: read_cases(path, skipped[name] if skip_bad else None) for name, path in sources.items()}
        for name, rows in cases.items():
            write_config(folder, name, cases_to_table(rows))
        files = {name: summarise(path.name, digest(path), cases[name], skipped[name]) for name, path in sources.items()}
        summary = ImportSummary(Path(out), files)
        names = {name: safe_name(file.source) for name, file in files.items()}
        about = {name: f"{len(cases[name])} cases imported from {source}" for name, source in names.items()}
        about |= write_open_ended(folder, cases)
        texts = {
            "first": next(iter(files)),
            "table": "\n".join([summary.to_markdown(), "", *summary.left_out()]),
            "flags": "\n".join(f"- `{flag}`: {meaning}" for flag, meaning in (PROMPT_FLAGS | CASE_FLAGS).items()),
        }
        metadata = {"pretty_name": "Imported edit cases", "language": ["en"]}
        write_card(folder, about, template=_CARD, metadata=metadata, version=version, **texts)
        manifest = {"made_by": "seesaw-cf build --records", "files": [asdict(file) for file in files.values()]}
        dump_json(folder / _MANIFEST, manifest)
    return summary


def config_files(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Path]:
    """Return config name → its file, or its folder of shards.

    Args:
        paths: Files of cases; a folder stands for the configs of cases in its `data/`, or for its `seesaw_cf_*.json`.

    Raises:
        RecordError: No paths, a folder without such files, or two files of one name.
    """
    configs: dict[str, Path] = {}
    for path in map(check_path, paths):
        files = _in_folder(path) if path.is_dir() else [path]
        if not files:
            raise RecordError(f"{path}: a folder without cases in data/ and without seesaw_cf_*.json. Name the files.")
        for file in files:
            name = safe_name(file.name if file.is_dir() else file.stem.removeprefix("seesaw_cf_"))
            if name in configs:
                raise RecordError(f"{file} and {configs[name]} would both be config {name!r}. Rename one of them.")
            configs[name] = file
    if not configs:
        raise RecordError("nothing to read: no paths were given. Name at least one file.")
    return configs


def digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file, or of a folder's shards one after the other."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _in_folder(folder: Path) -> list[Path]:
    shards = {shard.parent: shard for shard in sorted(folder.glob("data/*/*.parquet"), reverse=True)}
    cases = [config for config, shard in shards.items() if set(CASES.names) <= set(column_names(shard))]
    return sorted(cases) or sorted(folder.glob("seesaw_cf_*.json"))


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
    write_config(folder, CONFIG, table)
    return {CONFIG: f"{table.num_rows:,} open-ended prompts of these cases"}
