"""The sample: rebuilt byte by byte, enough edits and people of each group, prompts about neighbours."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seesaw_cf.builder_scripts.build import run_build
from seesaw_cf.builder_scripts.embedded import FOLDER, read_tsv
from seesaw_cf.builder_scripts.jobs import SAMPLE_OPTIONS, BuildJob
from seesaw_cf.records import groups, load_cases, sample
from seesaw_cf.records.relations import RELATIONS
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


def test_each_relation_has_eighty_edits_half_of_women_with_holders_of_both_values() -> None:
    columns = ["requested_rewrite", "extra", "neighborhood_prompts"]
    rows = pq.read_table(DATA / "data" / "cross_subject" / NAME, columns=columns).to_pylist()
    assert Counter(row["requested_rewrite"]["relation_id"] for row in rows) == dict.fromkeys(RELATIONS, 80)
    genders = {row["id"]: row["gender"] for row in pq.read_table(DATA / "data" / "demographics").to_pylist()}
    extras = [json.loads(row["extra"]) for row in rows]
    edited = Counter(tag for extra in extras for tag in genders[extra["subject_id"]])
    assert edited == {"men": 200, "women": 200}
    assert all(extra["holders"]["target_new"] >= SAMPLE_OPTIONS.min_holders - 1 for extra in extras)
    assert all(extra["holders"]["target_true"] >= SAMPLE_OPTIONS.min_true_holders for extra in extras)
    assert all(row["neighborhood_prompts"] for row in rows)


def test_each_group_of_the_papers_has_sixty_people_who_are_asked_about() -> None:
    rows = pq.read_table(DATA / "data" / "demographics").to_pylist()
    people = read_tsv(FOLDER / "people.tsv")
    assert {row["label"] for row in rows} <= {row["name"] for row in people}
    assert len(rows) > 0.98 * len(people)
    counts = Counter(tag for row in rows for axis in ("race", "region") for tag in row[axis])
    assert {tag: counts[tag] for tag in (*groups.RACES, *groups.REGIONS) if counts[tag] < 60} == {}
    assert all(row["provenance"] for row in rows)
