"""`import_files`: whole or not at all, never over somebody's folder, with a table of counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.records import import_files, parse_record, read_cases
from seesaw_cf.records.card import summarise
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
    assert [file.name for file in summary.files] == ["P27_P101", "P27_eff"]
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


def test_a_file_cannot_have_the_name_of_the_open_ended_prompts(tmp_path: Path) -> None:
    (tmp_path / "open_ended.json").write_text(json.dumps([samples.SEESAW]))
    with pytest.raises(RecordError, match="Rename the file"):
        import_files(tmp_path / "open_ended.json", tmp_path / "out")


def test_the_table_counts() -> None:
    records = [samples.SEESAW, samples.SEESAW | {"case_id": 8, "attribute_prompts": ["Ada  x"]}]
    records[1] |= {"attribute_aux_info": ["Q81731"], "attribute_aux_ent": ["Ada"]}
    row = summarise("n", "n.json", "0" * 64, [parse_record(record) for record in records])
    assert (row.cases, row.first_case_id, row.last_case_id) == (2, 7, 8)
    assert (row.prompts, row.unique_prompts) == (3, 3)
    assert (row.prompts_min, row.prompts_mean, row.prompts_max) == (1, 1.5, 2)
    assert (row.generation_prompts, row.unique_generation_prompts) == (4, 2)
    assert (row.edit_subjects, row.test_subjects) == (1, 2)  # people are counted by id, not by name
    assert (row.targets_new, row.targets_true, row.targets) == (1, 1, 2)
    assert row.record_formats == ("seesaw",)


def test_counterfact_and_zsre_count_their_prompts_and_name_nobody() -> None:
    row = summarise("n", "n", "", [parse_record(samples.COUNTERFACT), parse_record(samples.ZSRE)])
    assert (row.paraphrase_prompts, row.neighborhood_prompts) == (2, 3)
    assert (row.prompts, row.test_subjects) == (1, 0)
    assert (row.targets_new, row.targets_true) == (2, 1)  # zsRE's unknown old target is none


def test_markdown_is_a_rectangle_with_every_flag(released: Path, tmp_path: Path) -> None:
    record = samples.SEESAW | {
        "attribute_prompts": ["Kotringo is a citizen of"] * 2,
        "attribute_aux_ent": ["Kotringo"] * 2,
    }
    (released / "seesaw_cf_P27_P101.json").write_text(json.dumps([record]))
    lines = import_files(released, tmp_path / "out").to_markdown().splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[0].split("|")[2].strip() == "P27_P101"
    (flag,) = (line for line in lines if "duplicate_prompt" in line)
    assert [cell.strip() for cell in flag.split("|")[2:4]] == ["1", "0"]


def test_importing_again_replaces_an_import_and_gives_the_same_bytes(released: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def content() -> dict[str, bytes]:
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}

    import_files(released, out)
    before = content()
    import_files(released, out)
    assert content() == before
    import_files([released / "seesaw_cf_P27_eff.json"], out)
    assert not (out / "data" / "P27_P101").exists()


def test_a_folder_with_other_things_is_refused_and_with_force_moved_aside(released: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    import_files(released, out)
    (out / "thesis.txt").write_text("years of work")
    with pytest.raises(
        StorageError, match=r"out holds what no import wrote \(thesis\.txt\).*use force.*out\.before-import"
    ):
        import_files(released, out)
    summary = import_files(released, out, force=True)
    assert summary.moved_aside == tmp_path / "out.before-import"
    assert (tmp_path / "out.before-import" / "thesis.txt").read_text() == "years of work"
    assert not (out / "thesis.txt").exists()
    (out / "more.txt").touch()
    with pytest.raises(StorageError, match=r"out\.before-import exists too"):
        import_files(released, out, force=True)


@pytest.mark.parametrize("force", [False, True])
def test_force_does_not_reach_files_and_folders_in_use(released: Path, tmp_path: Path, force: bool) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"\(a file of that name\)\. Choose another name"):
        import_files(released, tmp_path / "file", force=force)
    with pytest.raises(StorageError, match=r"It is in use \(.*seesaw_cf_P27_P101\.json is in it\)"):
        import_files(released, released, force=force)
    assert (tmp_path / "file").exists()
    assert (released / "P27_subject_info.json").exists()


def test_an_empty_folder_is_filled(released: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    import_files(released, tmp_path / "out")
    assert (tmp_path / "out" / "README.md").exists()


def test_a_damaged_file_leaves_the_earlier_import_as_it_was(released: Path, tmp_path: Path) -> None:
    import_files(released, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_bytes()
    (released / "seesaw_cf_P27_eff.json").write_text('[{"case_id": 1, ')
    with pytest.raises(RecordError, match=r"seesaw_cf_P27_eff\.json: not whole JSON"):
        import_files(released, tmp_path / "out")
    assert (tmp_path / "out" / "README.md").read_bytes() == card
    assert {path.name for path in tmp_path.iterdir()} == {"released", "out"}


def test_a_full_disk_leaves_nothing(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(StorageError, match=r"No space left on device.*[Ff]ree some space"):
        import_files(released, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"released"}


def test_what_to_import_must_be_clear(released: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match=r"a folder without seesaw_cf_\*\.json files"):
        import_files(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(RecordError, match="nothing to import"):
        import_files([], tmp_path / "out")
    other = tmp_path / "empty" / "P27_eff.json"
    other.write_text("[]")
    with pytest.raises(RecordError, match=r"would both be config 'P27_eff'\. Rename one"):
        import_files([released, other], tmp_path / "out")
    with pytest.raises(StorageError, match=r"gone\.json: No such file"):
        import_files(tmp_path / "gone.json", tmp_path / "out")


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A folder that this process may not look into; root may look into all, so it goes on as nobody."""
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0)
    user = os.geteuid()
    os.seteuid(user or 65534)
    yield folder
    os.seteuid(user)
    folder.chmod(0o700)


@pytest.mark.parametrize("name", ["a\0b", "", "x" * 5000])
def test_what_is_no_path_is_refused_as_source_and_as_folder(name: str, released: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="path"):
        import_files([name], tmp_path / "out")
    with pytest.raises(RecordError, match="path"):
        import_files(released, name)
    assert [path.name for path in tmp_path.iterdir()] == ["released"]


def test_a_locked_folder_is_named(locked: Path) -> None:
    with pytest.raises(StorageError, match=r"locked/x\.json.*: no right to look into its folder"):
        import_files(locked / "x.json", "out")


def test_a_locked_folder_cannot_be_written(released: Path, tmp_path: Path, locked: Path) -> None:
    with pytest.raises(StorageError, match="no right to look into its folder"):
        import_files(released, locked / "out")


def test_a_loop_of_links_cannot_be_written(released: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StorageError, match=r"could not write .*loop"):
        import_files(released, tmp_path / "loop" / "out")


def test_sources_are_read_from_a_generator(released: Path, tmp_path: Path) -> None:
    files = sorted(released.glob("seesaw_cf_*.json"))
    whole, once = import_files(files, tmp_path / "a"), import_files(iter(files), tmp_path / "b")
    assert once.files == whole.files
