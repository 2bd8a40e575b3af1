"""All raters of a run, one file each: what is rated is not rated again."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from seesaw_cf.files import safe_name
from seesaw_cf.longform.survey import CALLS, Rater, survey
from seesaw_cf.longform.tables import RATINGS
from seesaw_cf.longform.writing import is_final
from seesaw_cf.tables import read_table, write_table

__all__ = ["rate"]


def rate(out: Path, raters: Sequence[Rater], samples: Sequence[Any], run: str) -> pa.Table:
    """Rates what is not rated yet, and merges it to ratings.parquet and calls.parquet.

    Args:
        out: The run folder.
        raters: Who rates.
        samples: Of `survey_samples`.
        run: The run's identity; it is in the files' names.

    Returns:
        `tables.RATINGS`.
    """
    rated = [_rated(out, rater, samples, run) for rater in raters]
    _merge(out / "ratings.parquet", [out / "ratings" / file for file in rated], RATINGS)
    _merge(out / "calls.parquet", [out / "calls" / file for file in rated], CALLS)
    return read_table(out / "ratings.parquet", RATINGS)


def _rated(out: Path, rater: Rater, samples: Sequence[Any], run: str) -> str:
    """Rates with one rater unless that is done; the name of its two files. A server that gave up is asked again."""
    name = f"{safe_name(rater.name)}-{sha256(f'{run} {rater.name}'.encode()).hexdigest()[:12]}.parquet"
    if not is_final(out / "ratings" / name):
        ratings, calls = survey(samples, rater)
        write_table(out / "calls" / name, calls)
        write_table(out / "ratings" / name, ratings)
    return name


def _merge(file: Path, parts: Sequence[Path], schema: Any) -> None:
    tables = [read_table(part, schema) for part in parts]
    write_table(file, pa.concat_tables(tables) if tables else schema.empty_table())
