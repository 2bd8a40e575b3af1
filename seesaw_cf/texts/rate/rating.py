"""All raters of a run, one file each: what is rated is not rated again."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from seesaw_cf.base.files import safe_name
from seesaw_cf.base.tables import read_table
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.store import Key, Store
from seesaw_cf.texts.rate.survey import CALLS, Rater, SurveySample, survey
from seesaw_cf.texts.tables import RATINGS
from seesaw_cf.texts.write.writing import is_final


def rate(out: Path, raters: Sequence[Rater], samples: Sequence[SurveySample], manifest: RunManifest) -> pa.Table:
    """Rate what is not rated yet, and merge it to ratings.parquet and calls.parquet.

    Args:
        out: The run folder.
        raters: Who rates.
        samples: Of `survey_samples`.
        manifest: What the run is made of; see `seesaw_cf.run.store`.

    Returns:
        `tables.RATINGS`.
    """
    ratings, calls = Store(out, manifest, RATINGS, "ratings"), Store(out, manifest, CALLS, "calls")
    keys = [_rated(ratings, calls, rater, samples) for rater in raters]
    ratings.merge(keys, "ratings.parquet")
    calls.merge(keys, "calls.parquet")
    return read_table(out / "ratings.parquet", RATINGS)


def _rated(ratings: Store, calls: Store, rater: Rater, samples: Sequence[SurveySample]) -> Key:
    """Rate with one rater unless that is done; the name of its units. A server that gave up is asked again."""
    key = (f"{safe_name(rater.name)}-{sha256(rater.name.encode()).hexdigest()[:12]}",)
    if not (calls.has(key) and is_final(ratings, key)):
        rows, judge_calls = survey(samples, rater)
        calls.write(key, judge_calls)
        ratings.write(key, rows)
    return key
