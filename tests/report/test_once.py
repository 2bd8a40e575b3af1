"""Several cases may ask about one edit: it is one trial, however often it is listed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seesaw_cf.report.findings import find
from seesaw_cf.report.results import read_results
from seesaw_cf.report.success import success_table
from tests.report import runs

pytestmark = pytest.mark.slow


def _doubled(folder: Path, out: Path) -> Path:
    """The run with every case there twice, under another number."""
    out.mkdir()
    for name in ("scores.parquet", "edits.parquet"):
        table = pq.read_table(folder / name)
        at = table.schema.get_field_index("case_id")
        again = table.set_column(at, "case_id", pa.array([number + 1000 for number in table["case_id"].to_pylist()]))
        pq.write_table(pa.concat_tables([table, again]), out / name)
    (out / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    return out


def test_an_edit_that_several_cases_ask_about_counts_once(tmp_path: Path) -> None:
    folder = runs.write_run(tmp_path / "one", runs.cases(["P19", "P27"], 6, 5), ("memit", "ft"), refused=2)
    one, two = read_results(folder), read_results(_doubled(folder, tmp_path / "two"))
    assert two.n_rows == 2 * one.n_rows
    assert len(two.edits) == 2 * len(one.edits) == 2 * len(two.distinct)
    pd.testing.assert_frame_equal(one.efficacy, two.efficacy)
    pd.testing.assert_frame_equal(one.known.facts.iloc[:3], two.known.facts.iloc[:3])  # the edited facts
    assert find(one).about == find(two).about
    left, right = (success_table(found.success).drop(columns="n_prompts") for found in (one, two))
    pd.testing.assert_frame_equal(left, right)


def test_a_batch_of_each_effect_relation_is_an_edit_of_its_own(tmp_path: Path) -> None:
    folder = runs.write_run(tmp_path / "one", runs.cases(["P19"], 6, 5), protocol="batch")
    found = read_results(_doubled(folder, tmp_path / "two"))
    assert len(found.distinct) == len(found.edits) == 12
