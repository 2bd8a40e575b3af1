"""Numbers of five runs against those that were frozen before the report was rebuilt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.report import read_results
from tests.report.frozen import COUNTS, FLOATS, GOLDENS, KEYS, RUNS, numbers, restore

pytestmark = pytest.mark.slow(20)


@pytest.mark.parametrize("name", RUNS)
def test_reports_of_frozen_runs_keep_their_numbers(name: str, tmp_path: Path) -> None:
    frozen = pd.read_parquet(GOLDENS / name / "numbers.parquet")
    found = numbers(read_results(restore(name, tmp_path)))
    pd.testing.assert_frame_equal(found[KEYS], frozen[KEYS])
    assert found["verdict"].tolist() == frozen["verdict"].tolist()
    for column in [*COUNTS, *FLOATS]:
        got, expected = found[column].to_numpy(), frozen[column].to_numpy()
        # the interval of a contrast ends at a point of permutations, whose sums are taken in single precision
        permuted = (frozen["what"] == "contrast") & (column in ("low", "high"))
        slack = np.where(permuted, 1e-7, 1e-12) + 1e-9 * np.abs(expected)
        far = ~((np.abs(got - expected) <= slack) | (np.isnan(got) & np.isnan(expected)))
        rows = found[KEYS].assign(got=got, expected=expected)[far]
        assert not far.any(), f"{name}, {column}:\n{rows.to_string()}"


def test_frozen_runs_have_every_kind_of_verdict() -> None:
    frozen = pd.concat(pd.read_parquet(GOLDENS / name / "numbers.parquet") for name in RUNS)
    contrasts = set(frozen.loc[frozen["what"] == "contrast", "verdict"])
    assert contrasts == {"worse off", "better off", "equivalent", "undetermined", "not testable"}
    levels = set(frozen.loc[frozen["what"] == "level beyond control", "verdict"]) - {""}
    assert levels >= {"worse than its control", "better than its control", "no more than its control", "undetermined"}
    assert frozen["n_unscored"].max() > 0
