"""Numbers of five runs against those that were frozen before the report became one frame."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.report import build_frame, read_run
from tests.report.frame_numbers import frame_numbers
from tests.report.frozen import COUNTS, FLOATS, GOLDENS, KEYS, RUNS, restore

pytestmark = pytest.mark.slow(20)

# (what, scale) of frozen rows that a report does not have any more, see goldens/README.md.
GONE = {("likelier before", ""), ("beyond control", "share"), ("editors", "share")}
GONE |= {(f"level {when}", scale) for when in ("before", "after") for scale in ("probability", "log-odds", "share")}


@pytest.mark.parametrize("name", RUNS)
def test_reports_of_frozen_runs_keep_their_numbers(name: str, tmp_path: Path) -> None:
    frozen = pd.read_parquet(GOLDENS / name / "numbers.parquet").set_index(KEYS)
    found = frame_numbers(build_frame(read_run(restore(name, tmp_path))))
    assert not found.index.duplicated().any()
    assert not len(found.index.difference(frozen.index))
    names = KEYS.index("what"), KEYS.index("scale")
    missing = [key for key in frozen.index.difference(found.index) if (key[names[0]], key[names[1]]) not in GONE]
    empty = frozen.loc[missing, "n"].fillna(0) == 0 if missing else pd.Series(dtype=bool)
    assert empty.all(), f"{name}: {empty.index[~empty.to_numpy()][:5].tolist()}"
    frozen = frozen.loc[found.index]
    known = frozen["verdict"] != ""
    assert found.loc[known, "verdict"].tolist() == frozen.loc[known, "verdict"].tolist()
    for column in ("value", "low", "high"):
        assert not (frozen[column].notna() & found[column].isna()).any(), "what was a number is one"
    for column in [*COUNTS, *FLOATS]:
        got, expected = found[column].to_numpy(float), frozen[column].to_numpy(float)
        permuted = (found.index.get_level_values("what") == "contrast") & (column in ("low", "high"))
        slack = np.where(permuted, 1e-7, 1e-12) + 1e-9 * np.abs(expected)
        far = ~((np.abs(got - expected) <= slack) | np.isnan(got) | np.isnan(expected))
        rows = pd.DataFrame({"got": got, "expected": expected}, found.index)[far]
        assert not far.any(), f"{name}, {column}:\n{rows.to_string()}"


def test_frozen_runs_have_every_kind_of_verdict() -> None:
    frozen = pd.concat(pd.read_parquet(GOLDENS / name / "numbers.parquet") for name in RUNS)
    contrasts = set(frozen.loc[frozen["what"] == "contrast", "verdict"])
    assert contrasts == {"worse off", "better off", "equivalent", "undetermined", "not testable"}
    levels = set(frozen.loc[frozen["what"] == "level beyond control", "verdict"]) - {""}
    assert levels >= {"worse than its control", "better than its control", "no more than its control", "undetermined"}
    assert frozen["n_unscored"].max() > 0
