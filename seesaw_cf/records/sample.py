"""The embedded sample: about 300 well-known people as edit cases, prompts, candidates and demographics.

The package folder is a `datasets` data folder: its README.md describes the configs, `data/<config>/` holds them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.arguments import check_public
from seesaw_cf.checks import one_of
from seesaw_cf.errors import RecordError

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["configs", "load", "path"]


def path() -> Path:
    """The folder that `datasets.load_dataset(str(path()), config)` opens: this package, in a checkout or installed."""
    return Path(__file__).parents[1]


def configs() -> tuple[str, ...]:
    """The configs of the sample, sorted: "candidates", "cross_property", "cross_subject", ..."""
    return tuple(sorted({file.parent.name for file in (path() / "data").glob("*/*.parquet")}))


def load(config: str = "cross_subject", split: str = "test", **options: object) -> Dataset:
    """Loads one config with `datasets.load_dataset`, from any directory and without network.

    Args:
        config: One of `configs()`.
        split: The sample has only "test".
        **options: More arguments of `datasets.load_dataset`, such as `streaming=True` or `cache_dir`.

    Returns:
        The rows, with the features that README.md declares.

    Raises:
        UnknownNameError: There is no such config.
        RecordError: There is no such split, or part of one.
    """
    one_of("config", config, configs())
    from datasets import load_dataset

    try:
        return load_dataset(str(path()), config, split=split, **options)
    except ValueError as error:
        raise RecordError(f"split {split!r} of config {config!r} cannot be read: {error} Expected 'test'.") from error


check_public(globals())
