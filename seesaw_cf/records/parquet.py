"""Files of cases: Parquet (a file or a folder of shards), JSON and JSON lines, recognised by what they contain."""

from __future__ import annotations

import os
from pathlib import Path

from seesaw_cf.checks import check_path
from seesaw_cf.errors import RecordError
from seesaw_cf.io.files import read_bytes
from seesaw_cf.records.arrow import table_to_cases
from seesaw_cf.records.checks import check_unique
from seesaw_cf.records.json_files import parse_json
from seesaw_cf.tables import read_table
from seesaw_cf.types import Case


def read_cases(path: str | os.PathLike[str]) -> list[Case]:
    """Read cases from a Parquet file, a folder of Parquet shards, or a JSON or JSON-lines file.

    What the file contains decides, not its name. JSON records are flagged (`seesaw_cf.records.flags`); cases from
    Parquet keep the flags they have.

    Args:
        path: The file or folder. A name `seesaw_cf_P27_P101.json` means that P101 is the effect relation.

    Returns:
        The cases in file order; of a folder, shard after shard by name.

    Raises:
        StorageError: The file does not exist.
        RecordError: The file is empty, damaged or of another kind, a record is malformed, two cases share a case_id.
        UnknownNameError: A relation is unknown.
    """
    place = check_path(path)
    if place.is_dir():
        shards = sorted(place.glob("*.parquet"))
        if not shards:
            raise RecordError(
                f"{place}: a folder without .parquet files. Give a file, or one config's folder such as data/NAME."
            )
        return check_unique([case for shard in shards for case in _read_parquet(shard)], place)
    content = read_bytes(place)
    return check_unique(_read_parquet(place), place) if content.startswith(b"PAR1") else parse_json(content, place)


def _read_parquet(path: Path) -> list[Case]:
    table = read_table(path)
    try:
        return table_to_cases(table)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
