"""`import_files`: whole or not at all, never over somebody's folder, with a table of counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.records import import_files, parse_record, read_cases
from seesaw_cf.records.importing import summarise
from tests.records import samples


@pytest.fixture
def released(tmp_path: Path) -> Path:
    folder = tmp_path / "released"
    folder.mkdir()
    (folder / "seesaw_cf_P27_P101.json").write_text(json.dumps([samples.SEESAW]))
    (folder / "seesaw_cf_P27_eff.json").write_text(json.dumps([samples.EFF]))
    (folder / "P27_subject_info.json").write_text("{}")
    return folder


def test_a_folder_of_released_files(released: Path, tmp_path: Path) -> None:
    import datasets

    out = tmp_path / "out"
    summary = import_files(released, out)
    assert list(summary.files) == ["P27_P101", "P27_eff"]
    assert summary.out == out
    assert read_cases(out / "data" / "P27_P101") == read_cases(released / "seesaw_cf_P27_P101.json")
    rows = datasets.load_dataset(str(out), "P27_eff", split="test", cache_dir=str(tmp_path / "cache"))
    assert rows[0]["requested_rewrite"]["subject"] == "Marie Curie"
    assert summary.to_markdown() in (out / "README.md").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"released", "out", "cache"}  # nothing temporary is left
    prompts = datasets.load_dataset(str(out), "open_ended", split="test", cache_dir=str(tmp_path / "cache"))
    assert [(row["config"], row["prompt"]) for row in prompts] == [
        ("P27_P101", prompt) for prompt in samples.SEESAW["generation_prompts"]
    ]


def test_the_table_counts() -> None:
    records = [samples.SEESAW, samples.SEESAW | {"case_id": 8, "attribute_prompts": ["Ada  x"]}]
    records[1] |= {"attribute_aux_info": ["Q81731"], "attribute_aux_ent": ["Ada"]}
    row = summarise("n.json", "0" * 64, [parse_record(record) for record in records])
    assert row.record_formats == ("seesaw",)
    expected: dict[str, tuple[float, ...]] = {
        "cases": (2,),
        "case ids, first / last": (7, 8),
        "prompts": (3,),
        "unique prompts": (3,),
        "prompts per case, min / mean / max": (1, 1.5, 2),
        "generation prompts": (4,),
        "unique generation prompts": (2,),
        "paraphrase / neighborhood prompts": (0, 0),
        "portability and locality prompts": (0,),
        "edit subjects": (1,),
        "test subjects": (2,),  # people are counted by id, not by name
        "targets, new / true / either": (1, 1, 2),
        "prompts with a group tag": (0,),
    }
    assert row.numbers == expected


def test_importing_again_gives_the_same_bytes_and_never_over_a_folder(released: Path, tmp_path: Path) -> None:
    contents = []
    for out in (tmp_path / "one", tmp_path / "two"):
        import_files(released, out)
        contents.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert contents[0] == contents[1]
    with pytest.raises(StorageError, match="is not an empty folder"):
        import_files(released, tmp_path / "one")


def test_a_full_disk_leaves_nothing(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
    with pytest.raises(StorageError, match=r"No space left on device.*[Ff]ree some space"):
        import_files(released, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"released"}


def test_what_to_import_must_be_clear(released: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="a folder without cases in data/"):
        import_files(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(RecordError, match="nothing to read"):
        import_files([], tmp_path / "out")
    other = tmp_path / "empty" / "P27_eff.json"
    other.write_text("[]")
    with pytest.raises(RecordError, match=r"would both be config 'P27_eff'\. Rename one"):
        import_files([released, other], tmp_path / "out")
    with pytest.raises(StorageError, match=r"gone\.json: No such file"):
        import_files(tmp_path / "gone.json", tmp_path / "out")


@pytest.mark.parametrize("name", ["a\0b", "", "x" * 5000])
def test_what_is_no_path_is_refused_as_source_and_as_folder(name: str, released: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="path"):
        import_files([name], tmp_path / "out")
    with pytest.raises(RecordError, match="path"):
        import_files(released, name)
    assert [path.name for path in tmp_path.iterdir()] == ["released"]
