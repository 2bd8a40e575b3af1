"""A folder that `datasets.load_dataset(folder, config)` opens: Parquet shards per config, and a card.

The card's YAML is made from the shards themselves, so the two cannot disagree. It holds a content hash per config:
`datasets` keys its cache on the YAML, not on the files, and would serve old rows after a rebuild without it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import atomic_path, safe_name, write_text

if TYPE_CHECKING:
    from datasets.info import DatasetInfosDict


Place = tuple[int, int]
ROWS_PER_SHARD = 5000
# Small enough that streaming one case does not read a whole shard.
_ROWS_PER_GROUP = 100


def write_rows(
    folder: str | os.PathLike[str], config: str, tables: Iterable[pa.Table], schema: pa.Schema, place: Place = (0, 1)
) -> None:
    """Write tables of one schema into one file, `folder/data/CONFIG/test-00000-of-00001.parquet`, each a row group.

    Args:
        folder, config: Where to.
        tables: Made while they are written.
        schema: Of all of them.
        place: Number of the file, and how many there are.

    Raises:
        StorageError: The disk is full or the folder cannot be written.
    """
    path = Path(folder) / "data" / config / f"test-{place[0]:05d}-of-{place[1]:05d}.parquet"
    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", compression_level=19) as writer,
    ):
        for table in tables:
            writer.write_table(table)


def write_config(folder: str | os.PathLike[str], name: str, table: pa.Table) -> None:
    """Write one config, the same bytes for the same rows.

    Args:
        folder: The dataset folder.
        name: Name of the config: letters, digits, ".", "_", "-".
        table: At least one row of any schema.

    Raises:
        RecordError: The name cannot be a folder name.
        StorageError: The disk is full or the folder cannot be written.
    """
    if safe_name(name) != name:
        raise RecordError(f"config {name!r}: expected ASCII letters, digits, '.', '_', '-'; use {safe_name(name)!r}.")
    count = -(-table.num_rows // ROWS_PER_SHARD)
    for number in range(count):
        rows = table.slice(number * ROWS_PER_SHARD, ROWS_PER_SHARD)
        parts = (rows.slice(start, _ROWS_PER_GROUP) for start in range(0, len(rows), _ROWS_PER_GROUP))
        write_rows(folder, name, parts, table.schema, (number, count))


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
    template: str = "",
    metadata: Mapping[str, Any] | None = None,
    version: str = "1.0.0",
    **texts: Any,
) -> str:
    """Write the card of a dataset folder with shards that `write_config` wrote.

    Features, sizes and the content hash are read from the shards. The same shards and arguments give the same
    bytes.

    Args:
        folder: The dataset folder.
        configs: Config name → description of one line; the first is the default config.
        template: Jinja template of the Markdown below the YAML.
        metadata: More YAML keys (license, tags, pretty_name, ...).
        version: Version of the data, "major.minor.patch".
        **texts: What the template is filled with.

    Returns:
        The text written.

    Raises:
        StorageError: The disk is full or the folder cannot be written.
    """
    from huggingface_hub import DatasetCard, DatasetCardData

    shards_of = {name: sorted((Path(folder) / "data" / name).glob("*.parquet")) for name in configs}
    entries = [
        {
            "config_name": name,
            **({"default": True} if position == 0 else {}),
            "version": version,
            "description": f"{configs[name]} [content sha256 {content_hash(shards)}]",
            "data_files": [{"split": "test", "path": f"data/{name}/test-*.parquet"}],
        }
        for position, (name, shards) in enumerate(shards_of.items())
    ]
    card = DatasetCardData(**(metadata or {}), configs=entries)
    _infos(shards_of).to_dataset_card_data(card)
    template = f"---\n{{{{ card_data }}}}\n---\n\n{template.strip()}"
    text = f"{str(DatasetCard.from_template(card, template_str=template, **texts)).rstrip()}\n"
    write_text(Path(folder) / "README.md", text)
    return text


def _infos(configs: Mapping[str, Sequence[Path]]) -> DatasetInfosDict:
    """Return the features and sizes of every config: the YAML's `dataset_info`."""
    from datasets import DatasetInfo, Features, SplitDict, SplitInfo
    from datasets.info import DatasetInfosDict

    infos = {}
    for name, shards in configs.items():
        metadata = [pq.read_metadata(path) for path in shards]
        groups = (part.row_group(number) for part in metadata for number in range(part.num_row_groups))
        size = sum(group.total_byte_size for group in groups)  # before compression
        infos[name] = DatasetInfo(
            features=Features.from_arrow_schema(pq.read_schema(shards[0])),
            splits=SplitDict({"test": SplitInfo("test", size, sum(part.num_rows for part in metadata))}),
            download_size=sum(path.stat().st_size for path in shards),
            dataset_size=size,
            config_name=name,
        )
    return DatasetInfosDict(infos)
