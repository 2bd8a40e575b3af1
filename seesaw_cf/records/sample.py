"""The embedded sample: some 2,300 well-known people as edit cases, prompts, candidates and demographics.

At least sixty of them are of each group of the papers. The package folder is a `datasets` data folder: README.md
describes the configs, `data/<config>/` holds them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import checked

if TYPE_CHECKING:
    from datasets import Dataset

SAMPLE = "sample"  # what stands for its folder in `--data`


@checked
def path() -> Path:
    """Return the folder that `datasets.load_dataset(str(path()), config)` opens, in a checkout or installed."""
    return Path(__file__).parents[1]


@checked
def configs() -> tuple[str, ...]:
    """Return the configs of the sample, sorted: "candidates", "cross_property", "cross_subject", ..."""
    return tuple(sorted({file.parent.name for file in (path() / "data").glob("*/*.parquet")}))


@checked
def load(config: str = "cross_subject", split: str = "test", **options: object) -> Dataset:
    """Load one config with `datasets.load_dataset`, from any directory and without network.

    Args:
        config: One of `configs()`.
        split: The sample has only "test".
        **options: More arguments of `datasets.load_dataset`, such as `streaming=True` or `cache_dir`.

    Returns:
        The rows, with the features that README.md declares.

    Raises:
        UnknownNameError: The config does not exist.
        RecordError: The split, or the part of one, does not exist.
    """
    one_of("config", config, configs())
    from datasets import load_dataset

    try:
        return load_dataset(str(path()), config, split=split, **options)
    except ValueError as error:
        raise RecordError(f"split {split!r} of config {config!r} cannot be read: {error} Expected 'test'.") from error
