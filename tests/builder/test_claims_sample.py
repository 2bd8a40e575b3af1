"""The sample of released claims: people with a QID each, rebuilt byte by byte, taken by name wherever the first is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.sample_claims import read_subjects
from seesaw_cf.builder_scripts.sample import claims
from seesaw_cf.builder_scripts.sample.build import build_sample
from seesaw_cf.builder_scripts.sample.facts import COLUMNS, read_tsv
from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.records import load_cases, sample, write_config
from seesaw_cf.records.arrow import cases_to_table
from seesaw_cf.run.preflight import data_notes
from seesaw_cf.texts.write.passages import read_records
from tests.builder.embedded import check_embedded

FOLDER = sample.path("sample-claims")
CONFIGS = ("candidates", "cross_property", "cross_subject", "demographics", "open_ended")


@pytest.mark.slow
def test_the_build_reproduces_the_embedded_bytes(tmp_path: Path) -> None:
    build_sample(tmp_path, "sample-claims")
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) == len(CONFIGS) + 1
    check_embedded(tmp_path, files, FOLDER)


def test_everybody_has_a_qid_and_every_fact_its_origin() -> None:
    """Half of the people is what a sample needs to be looked up in Wikidata; here it is all of them."""
    people = read_tsv(claims.CLAIMS)
    assert len(people) == 192
    for row in people:
        assert row["iri"][0] == "Q"
        assert row["iri"][1:].isdigit()
        stated = [property_id for column, (property_id, _) in COLUMNS.items() if row[column]]
        assert row["provenance"] == f"{','.join(stated)}:{claims.ORIGIN}"
    rows = pq.read_table(FOLDER / "data" / "demographics").to_pylist()
    known = {row["iri"] for row in people}
    assert len(rows) == 192
    assert all(row["id"] in known and row["provenance"] == [claims.ORIGIN] for row in rows)


def test_it_is_small() -> None:
    files = [claims.CLAIMS, *(path for path in FOLDER.rglob("*") if path.is_file())]
    assert sum(file.stat().st_size for file in files) < 700_000


def test_half_of_the_edited_people_are_women_and_every_edit_has_holders() -> None:
    genders = {row["id"]: row["gender"] for row in pq.read_table(FOLDER / "data" / "demographics").to_pylist()}
    cases = load_cases("sample-claims", "cross_subject")
    edited = [genders[case.extra["subject_id"]] for case in cases]
    assert edited.count(["women"]) == edited.count(["men"]) == len(cases) / 2 == 41
    assert not [case for case in cases if "few_holders" in case.flags]


def test_it_is_loaded_by_name_wherever_the_first_sample_is() -> None:
    assert sample.configs("sample-claims") == CONFIGS
    for name in ("cross_subject", "cross_property"):
        assert data_notes(load_cases("sample-claims", name)) == []
    assert len(sample.load("candidates", sample="sample-claims")) == 269
    assert len(read_records("sample-claims", "open_ended")) == 470
    with pytest.raises(UnknownNameError, match=r"unknown config 'coupled_counterfact'.*cross_property"):
        load_cases("sample-claims", "coupled_counterfact")
    with pytest.raises(UnknownNameError, match=r"unknown sample 'sample-claim'\. Did you mean 'sample-claims'"):
        sample.load(sample="sample-claim")
    with pytest.raises(UnknownNameError, match=r"unknown embedded sample 'claims'"):
        build_sample("nowhere", "claims")


@pytest.mark.slow
def test_the_command_line_builds_tags_and_lists_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records without tags get back what the builder attached; the first sample knows few of these people."""
    assert main(["build", "--source", "sample-claims", "--out", str(tmp_path / "built")]) == 0
    built, shipped = ((folder / "README.md").read_text(encoding="utf-8") for folder in (tmp_path / "built", FOLDER))
    assert re.sub(r"[0-9a-f]{64}", "", built) == re.sub(r"[0-9a-f]{64}", "", shipped)  # Parquet names its writer
    cases = load_cases("sample-claims", "cross_subject")
    bare = [
        replace(case, attribute_prompts=tuple(replace(p, gender=(), race=(), region=(), living=None) for p in prompts))
        for case in cases
        for prompts in [case.attribute_prompts]
    ]
    write_config(tmp_path / "bare", "cross_subject", {"test": cases_to_table(bare)})
    for source in ("sample-claims", "sample-small"):
        out = tmp_path / source
        assert main(["tag", str(tmp_path / "bare"), "--from", source, "--out", str(out)]) == 0
        found = load_cases(str(out), "cross_subject")
        assert (found == cases) is (source == "sample-claims")
    capsys.readouterr()
    assert main(["list", "samples"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2336 people, 100 with a Wikidata QID" in said
    assert "sample-claims" in said


@pytest.mark.slow
def test_the_page_counts_the_samples_right() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "building.md").read_text(encoding="utf-8")
    for name in sample.SAMPLES:
        rows = pq.read_table(sample.path(name) / "data" / "demographics").to_pylist()
        counts = [
            len(rows),
            sum(row["id"].startswith("Q") for row in rows),
            sum("women" in row["gender"] for row in rows),
            sum(bool(row["ethnic_group"]) for row in rows),
            len(load_cases(name, "cross_subject")),
        ]
        assert f"| `{name}` | {' | '.join(map(str, counts))} |" in page


def test_released_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"no \*_subject_info\.json\. Name the folder"):
        read_subjects(tmp_path)
    (tmp_path / "P1_subject_info.json").write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match=r"P1_subject_info\.json: not JSON"):
        read_subjects(tmp_path)


def test_years_before_christ_are_four_digits_with_a_sign() -> None:
    (born,) = [row["value"] for row in claims.claims_source().select("facts", people=["Q1398"], listed=["P569"])]
    assert born == "-0070-01-01T00:00:00Z"
