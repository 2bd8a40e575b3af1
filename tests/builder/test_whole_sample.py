"""The sample: rebuilt byte by byte, enough edits and people of each group, prompts about neighbours."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seesaw_cf.builder_scripts import BuildJob
from seesaw_cf.builder_scripts.build import run_build
from seesaw_cf.builder_scripts.embedded import FOLDER, read_tsv
from seesaw_cf.records import groups, load_cases
from seesaw_cf.records import load as sample
from seesaw_cf.run.prepare import data_notes
from tests.builder.embedded import check_embedded

DATA = sample.path()
NAME = "test-00000-of-00001.parquet"


@pytest.mark.slow(60)
@pytest.mark.exhaustive
def test_the_build_reproduces_the_embedded_bytes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_build(BuildJob(), out)
    (out / "build.json").unlink()
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert len(files) == len(sample.configs()) + 1
    check_embedded(out, files)
    assert data_notes(load_cases("sample", "cross_subject")) == []


def test_each_group_of_the_papers_has_sixty_people_who_are_asked_about() -> None:
    rows = pq.read_table(DATA / "data" / "demographics").to_pylist()
    people = read_tsv(FOLDER / "people.tsv")
    assert {row["label"] for row in rows} <= {row["name"] for row in people}
    assert len(rows) > 0.98 * len(people)
    counts = Counter(tag for row in rows for axis in ("race", "region") for tag in row[axis])
    assert {tag: counts[tag] for tag in (*groups.RACES, *groups.REGIONS) if counts[tag] < 60} == {}
    assert all(row["provenance"] for row in rows)
