"""A folder that `datasets.load_dataset(folder, config)` opens: Parquet shards per config and split, and a card.

The card's YAML is made from the shards themselves, so the two cannot disagree. It holds a content hash per config:
`datasets` keys its cache on the YAML, not on the files, and would serve old rows after a rebuild without it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.checks import whole
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import atomic_path, safe_name, write_text
from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.base.types import Case, Entity
from seesaw_cf.records.checks import count_flags
from seesaw_cf.records.load import locality, portability, unread_keys

if TYPE_CHECKING:
    from datasets.info import DatasetInfosDict


ROWS_PER_SHARD = 5000
MAX_REASONS = 10  # of records left out, shown for each file
# Small enough that streaming one case does not read a whole shard.
_ROWS_PER_GROUP = 100
_SHARD = re.compile(r"(?P<split>\w+(?:\.\w+)*)-\d{5}-of-\d{5}\.parquet")


def write_config(
    folder: str | os.PathLike[str], name: str, splits: Mapping[str, pa.Table], *, rows_per_shard: int = ROWS_PER_SHARD
) -> list[Path]:
    """Write one config as `folder/data/NAME/SPLIT-00000-of-00001.parquet`, the same bytes for the same rows.

    Args:
        folder: The dataset folder.
        name: Name of the config: letters, digits, ".", "_", "-".
        splits: Split name → table of any schema; all splits share it.
        rows_per_shard: Rows in one file.

    Returns:
        The files, in order.

    Raises:
        RecordError: The name cannot be a folder name, or a split has no rows.
        StorageError: The disk is full or the folder cannot be written.
    """
    whole("rows_per_shard", rows_per_shard, 1)
    if safe_name(name) != name:
        raise RecordError(f"config {name!r}: expected ASCII letters, digits, '.', '_', '-'; use {safe_name(name)!r}.")
    written = []
    for split, table in splits.items():
        if table.num_rows == 0:
            raise RecordError(f"config {name!r}, split {split!r}: no rows. Leave the split out.")
        count = -(-table.num_rows // rows_per_shard)
        for number in range(count):
            path = Path(folder) / "data" / name / f"{split}-{number:05d}-of-{count:05d}.parquet"
            with atomic_path(path) as temporary:
                shard = table.slice(number * rows_per_shard, rows_per_shard)
                pq.write_table(shard, temporary, compression="zstd", row_group_size=_ROWS_PER_GROUP)
            written.append(path)
    return written


def content_hash(files: Iterable[Path]) -> str:
    """Return the SHA-256 (hex) over the names and bytes of files, in the order of their names."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.name):
        content = file.read_bytes()
        digest.update(f"{file.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def write_card(
    folder: str | os.PathLike[str],
    configs: Mapping[str, str],
    *,
    body: str,
    metadata: Mapping[str, Any] | None = None,
    version: str = "1.0.0",
) -> str:
    """Write the card of a dataset folder with shards that `write_config` wrote.

    Features, split sizes and the content hash are read from the shards. The same shards and arguments give the same
    bytes.

    Args:
        folder: The dataset folder.
        configs: Config name → description of one line; the first is the default config.
        body: Markdown below the YAML.
        metadata: More YAML keys (license, tags, pretty_name, ...).
        version: Version of the data, "major.minor.patch".

    Returns:
        The text written.

    Raises:
        RecordError: A config has no shards, or its shards differ in their columns.
        StorageError: The disk is full or the folder cannot be written.
    """
    from huggingface_hub import DatasetCardData

    shards_of = {name: _shards(Path(folder), name) for name in configs}
    entries = [
        {
            "config_name": name,
            **({"default": True} if position == 0 else {}),
            "version": version,
            "description": f"{configs[name]} [content sha256 {content_hash(_flat(shards))}]",
            "data_files": [{"split": split, "path": f"data/{name}/{split}-*.parquet"} for split in shards],
        }
        for position, (name, shards) in enumerate(shards_of.items())
    ]
    card = DatasetCardData(**(metadata or {}), configs=entries)
    _infos(shards_of).to_dataset_card_data(card)
    text = f"---\n{card.to_yaml(line_break=chr(10)).rstrip()}\n---\n\n{body.strip()}\n"
    write_text(Path(folder) / "README.md", text)
    return text


def _shards(folder: Path, config: str) -> dict[str, list[Path]]:
    """Return split → its shards, both in the order of their names."""
    shards: dict[str, list[Path]] = {}
    for path in sorted((folder / "data" / config).glob("*.parquet")):
        match = _SHARD.fullmatch(path.name)
        if match is None:
            raise RecordError(
                f"{path}: expected a name such as test-00000-of-00001.parquet. Rename or remove the file."
            )
        shards.setdefault(match["split"], []).append(path)
    if not shards:
        raise RecordError(f"config {config!r}: no Parquet files in {folder / 'data' / config}. Write them first.")
    for split, paths in shards.items():
        expected = [f"{split}-{number:05d}-of-{len(paths):05d}.parquet" for number in range(len(paths))]
        got = [path.name for path in paths]
        if got != expected:
            raise RecordError(
                f"config {config!r}: split {split!r} has the shards {got}, expected {expected}. "
                "Remove what an earlier build left, or write the missing ones."
            )
    return shards


def _flat(shards: Mapping[str, list[Path]]) -> list[Path]:
    return [path for paths in shards.values() for path in paths]


def _infos(configs: Mapping[str, Mapping[str, list[Path]]]) -> DatasetInfosDict:
    """Return the features and split sizes of every config: the YAML's `dataset_info`."""
    from datasets import DatasetInfo, Features, SplitDict, SplitInfo
    from datasets.info import DatasetInfosDict

    infos = {}
    for name, shards in configs.items():
        schemas = {path.name: pq.read_schema(path) for path in _flat(shards)}
        first = next(iter(schemas.values()))
        other = next((file for file, schema in schemas.items() if not schema.equals(first)), None)
        if other is not None:
            raise RecordError(f"config {name!r}: {other} has other columns than the first file. Write them all again.")
        splits = SplitDict({split: SplitInfo(split, *_size(paths)) for split, paths in shards.items()})
        infos[name] = DatasetInfo(
            features=Features.from_arrow_schema(first),
            splits=splits,
            download_size=sum(path.stat().st_size for path in _flat(shards)),
            dataset_size=sum(split.num_bytes for split in splits.values()),
            config_name=name,
        )
    return DatasetInfosDict(infos)


def _size(paths: list[Path]) -> tuple[int, int]:
    """Return the bytes before compression and the number of rows of one split."""
    metadata = [pq.read_metadata(path) for path in paths]
    size = sum(part.row_group(index).total_byte_size for part in metadata for index in range(part.num_row_groups))
    return size, sum(part.num_rows for part in metadata)


# Counts of one file of cases, and the table that shows several files side by side.


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What one file holds.

    Attributes:
        name: Its config.
        source: Name of the file it came from, without folder.
        sha256: Of that file (hex).
        record_formats: The formats its records have.
        cases: Number of edits.
        first_case_id, last_case_id: Smallest and largest id.
        prompts, unique_prompts: Cross-subject prompts about other people, and distinct texts among them. The single
            prompt of an `_eff` record is the edit's own and not counted.
        generation_prompts, unique_generation_prompts: Open-ended prompts, and distinct texts.
        paraphrase_prompts, neighborhood_prompts: CounterFact's and zsRE's.
        edit_subjects: Distinct names of edited subjects.
        test_subjects: Distinct people asked about, by id (by name where there is none); unnamed ones are not counted.
        targets_new, targets_true, targets: Distinct new and old targets by id (by text where there is none), and both.
        prompts_min, prompts_mean, prompts_max: Cross-subject prompts per case.
        tagged_prompts: Cross-subject prompts with a gender, race or region tag (none in the released files).
        further_prompts: EasyEdit's: what follows from the edit, and what must not change.
        skipped: Messages of the records that are left out.
        unread_keys: Key of records that nothing reads → records.
        prompt_flags, case_flags: Damage → number of prompts, of cases.
    """

    name: str
    source: str
    sha256: str
    record_formats: tuple[str, ...]
    cases: int
    first_case_id: int
    last_case_id: int
    prompts: int
    unique_prompts: int
    generation_prompts: int
    unique_generation_prompts: int
    paraphrase_prompts: int
    neighborhood_prompts: int
    edit_subjects: int
    test_subjects: int
    targets_new: int
    targets_true: int
    targets: int
    prompts_min: int
    prompts_mean: float
    prompts_max: int
    tagged_prompts: int
    further_prompts: int
    skipped: tuple[str, ...]
    unread_keys: dict[str, int]
    prompt_flags: dict[str, int]
    case_flags: dict[str, int]


def _keys(entities: Sequence[Entity]) -> set[tuple[str | None, str]]:
    keys = {(item.id, "" if item.id is not None else item.label) for item in entities}
    return keys - {(None, "")}


def summarise(name: str, source: str, sha256: str, cases: Sequence[Case], skipped: Sequence[str] = ()) -> FileSummary:
    """Count what a file of at least one case holds; see `FileSummary` for the meaning of each number."""
    rows = [row for case in cases for row in case.attribute_prompts]
    per_case = [len(case.attribute_prompts) for case in cases]
    open_ended = [text for case in cases for text in case.generation_prompts]
    new, true = (_keys([getattr(case.request, role) for case in cases]) for role in ("target_new", "target_true"))
    prompt_flags, case_flags = count_flags(cases)
    return FileSummary(
        name=name,
        source=source,
        sha256=sha256,
        record_formats=tuple(sorted({case.record_format for case in cases})),
        cases=len(cases),
        first_case_id=min(case.case_id for case in cases),
        last_case_id=max(case.case_id for case in cases),
        prompts=len(rows),
        unique_prompts=len({row.text for row in rows}),
        generation_prompts=len(open_ended),
        unique_generation_prompts=len(set(open_ended)),
        paraphrase_prompts=sum(len(case.paraphrase_prompts) for case in cases),
        neighborhood_prompts=sum(len(case.neighborhood_prompts) for case in cases),
        edit_subjects=len({case.request.subject for case in cases}),
        test_subjects=len(_keys([row.subject for row in rows])),
        targets_new=len(new),
        targets_true=len(true),
        targets=len(new | true),
        prompts_min=min(per_case),
        prompts_mean=sum(per_case) / len(per_case),
        prompts_max=max(per_case),
        tagged_prompts=sum(bool(row.gender or row.race or row.region) for row in rows),
        further_prompts=sum(len(portability(case)) + len(locality(case)) for case in cases),
        skipped=tuple(skipped),
        unread_keys=dict(Counter(key for case in cases for key in unread_keys(case))),
        prompt_flags=prompt_flags,
        case_flags=case_flags,
    )


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import wrote.

    Attributes:
        out: The dataset folder.
        files: One summary per config, in the order of the import.
        moved_aside: Where a folder that was in the way is now, None when there was none.
    """

    out: Path
    files: tuple[FileSummary, ...]
    moved_aside: Path | None = None

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table: a header of config names, then one row per count; flags that occur nowhere are absent."""
        table = [("", *(file.name for file in self.files))]
        table += [(label, *(template.format(file) for file in self.files)) for label, template in _LINES]
        kinds = {
            "prompt_flags": "flag {} (prompts)",
            "case_flags": "flag {} (cases)",
            "unread_keys": "key {}, not read",
        }
        for kind, label in kinds.items():
            counts = [getattr(file, kind) for file in self.files]
            for flag in dict.fromkeys(flag for count in counts for flag in count):
                table.append((label.format(flag), *(f"{count.get(flag, 0):,}" for count in counts)))
        return table

    def to_markdown(self) -> str:
        """Return the table as aligned Markdown, readable in a terminal too."""
        head, *rows = self.rows()
        return markdown_table(head, rows)

    def left_out(self) -> list[str]:
        """Return a line on each file of which records are left out, with the first reasons below it."""
        lines = []
        for file in (file for file in self.files if file.skipped):
            lines.append(f"{len(file.skipped):,} records of {file.source} are left out:\n")
            lines += [f"- {text}" for text in file.skipped[:MAX_REASONS]]
        return lines


# (row label, how a FileSummary fills it)
_LINES: tuple[tuple[str, str], ...] = (
    ("cases", "{0.cases:,}"),
    ("case ids", "{0.first_case_id}-{0.last_case_id}"),
    ("prompts", "{0.prompts:,}"),
    ("unique prompts", "{0.unique_prompts:,}"),
    ("prompts per case, min / mean / max", "{0.prompts_min} / {0.prompts_mean:.1f} / {0.prompts_max}"),
    ("generation prompts", "{0.generation_prompts:,}"),
    ("unique generation prompts", "{0.unique_generation_prompts:,}"),
    ("paraphrase / neighborhood prompts", "{0.paraphrase_prompts:,} / {0.neighborhood_prompts:,}"),
    ("portability and locality prompts", "{0.further_prompts:,}"),
    ("edit subjects", "{0.edit_subjects:,}"),
    ("test subjects", "{0.test_subjects:,}"),
    ("targets, new / true / either", "{0.targets_new} / {0.targets_true} / {0.targets}"),
    ("prompts with a group tag", "{0.tagged_prompts:,}"),
)
