"""The embedded samples: people as edit cases, prompts, candidates and demographics, in the package.

"sample" has some 2,300 well-known people, at least sixty of each group of the papers; "sample-small" 320 of them;
"sample-claims" 192 of the people that the papers edit, each with a Wikidata QID. The folder of each is a `datasets`
data folder: README.md describes the configs, `data/<config>/` holds them. The first one's is the package folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.public import checked

if TYPE_CHECKING:
    from datasets import Dataset

_PACKAGE = Path(__file__).parents[1]
# What stands for a data set in `--data` -> its folder.
SAMPLES: Mapping[str, Path] = {
    "sample": _PACKAGE,
    "sample-small": _PACKAGE / "sample_small",
    "sample-claims": _PACKAGE / "sample_claims",
}


@checked
def path(sample: str = "sample") -> Path:
    """Return the folder that `datasets.load_dataset(str(path()), config)` opens, in a checkout or installed.

    Args:
        sample: One of `SAMPLES`.

    Raises:
        UnknownNameError: The sample does not exist.
    """
    return SAMPLES[one_of("sample", sample, SAMPLES)]


@checked
def configs(sample: str = "sample") -> tuple[str, ...]:
    """Return the configs of a sample, sorted: "candidates", "cross_property", "cross_subject", ..."""
    return tuple(sorted({file.parent.name for file in (path(sample) / "data").glob("*/*.parquet")}))


@checked
def load(config: str = "cross_subject", split: str = "test", *, sample: str = "sample", **options: object) -> Dataset:
    """Load one config with `datasets.load_dataset`, from any directory and without network.

    Args:
        config: One of `configs(sample)`.
        split: The samples have only "test".
        sample: One of `SAMPLES`.
        **options: More arguments of `datasets.load_dataset`, such as `streaming=True` or `cache_dir`.

    Returns:
        The rows, with the features that README.md declares.

    Raises:
        UnknownNameError: The sample or config does not exist.
        RecordError: The split, or the part of one, does not exist.
    """
    one_of("config", config, configs(sample))
    from datasets import load_dataset

    try:
        return load_dataset(str(path(sample)), config, split=split, **options)
    except ValueError as error:
        raise RecordError(f"split {split!r} of config {config!r} cannot be read: {error} Expected 'test'.") from error
