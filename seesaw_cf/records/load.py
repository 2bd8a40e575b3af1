"""Cases from an embedded sample, a dataset folder, a record file or the Hub, by one name."""

from __future__ import annotations

from pathlib import Path

from seesaw_cf.arguments import check_public
from seesaw_cf.checks import check_path, one_of
from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.records.arrow import table_to_cases
from seesaw_cf.records.parquet import read_cases
from seesaw_cf.records.sample import SAMPLES, configs, path
from seesaw_cf.types import Case

# The configs of the samples whose rows are cases to run; the others are tables beside them.
CASE_CONFIGS = ("cross_subject", "cross_property", "coupled_counterfact")


def load_cases(source: str, config: str) -> list[Case]:
    """Read the cases of one config.

    Args:
        source: "sample", "sample-claims", a folder with one sub-folder (or `data/` sub-folder) per config, a .json,
            .jsonl or .parquet file (`config` is then not needed), or a Hub id such as "org/seesaw_cf".
        config: Name of the config.

    Raises:
        UnknownNameError: The source has no such config; near names are suggested.
        RecordError: A record is malformed.
        StorageError: Nothing can be read there.
    """
    return load_revised_cases(source, config)[0]


def load_revised_cases(source: str, config: str) -> tuple[list[Case], str]:
    """As `load_cases`, with the commit of the Hub's data set that was read; "" for what is local."""
    if source in SAMPLES:
        one_of("config", config, [name for name in CASE_CONFIGS if name in configs(source)])
        return read_cases(path(source) / "data" / config), ""
    local = check_path(source)
    if local.is_file():
        return read_cases(local), ""
    if local.is_dir():
        return read_cases(_config_folder(local, config)), ""
    return _from_hub(source, config)


def _config_folder(folder: Path, config: str) -> Path:
    root = folder / "data" if (folder / "data").is_dir() else folder
    folders = {child.name: child for child in root.iterdir() if child.is_dir() and any(child.glob("*.parquet"))}
    return folders[one_of(f"config of {folder}", config, folders)]


def _from_hub(source: str, config: str) -> tuple[list[Case], str]:
    from datasets import concatenate_datasets, load_dataset_builder
    from datasets.exceptions import DatasetNotFoundError

    try:
        builder = load_dataset_builder(source, config)
        builder.download_and_prepare()
        splits = builder.as_dataset()
    except (DatasetNotFoundError, ConnectionError, FileNotFoundError) as error:
        raise StorageError(
            f"{source!r} is neither {', '.join(map(repr, SAMPLES))}, a file or folder here, nor a data set the "
            f"Hub answers for ({type(error).__name__}: {error}). Check the name, the network and your access."
        ) from error
    except ValueError as error:
        raise RecordError(f"{source!r}: {error}") from error
    table = concatenate_datasets(list(splits.values())).data.table
    return table_to_cases(table), str(builder.hash or "")  # the hash of a data set without a script is its commit


check_public(globals())
