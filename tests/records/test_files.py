"""Files and folders of cases: content decides, and broken files say where and why."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seesaw_cf.base.tables import write_table
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.records import (
    cases_to_table,
    flag_cases,
    import_files,
    parse_record,
    read_cases,
    table_to_cases,
    write_card,
    write_config,
)
from seesaw_cf.types import Case
from tests.records import samples


def _numbered(count: int) -> list[dict[str, Any]]:
    return [samples.SEESAW | {"case_id": number} for number in range(count)]


def test_the_same_cases_from_json_lines_parquet_and_shards(tmp_path: Path) -> None:
    cases = _cases(3)
    (tmp_path / "list.json").write_text(json.dumps(_numbered(3), indent=2))
    (tmp_path / "misnamed.parquet.txt").write_text("\n".join(map(json.dumps, _numbered(3))) + "\n\n")
    (tmp_path / "bom.json").write_text("\ufeff" + json.dumps(_numbered(3)), encoding="utf-8")
    write_table(tmp_path / "table.bin", cases_to_table(cases))
    for number in range(3):
        write_table(
            tmp_path / "shards" / f"test-{number:05d}-of-00003.parquet", cases_to_table(cases[number : number + 1])
        )
    for name in ("list.json", "misnamed.parquet.txt", "bom.json", "table.bin", "shards"):
        assert read_cases(tmp_path / name) == cases


def test_json_lines_end_with_line_feeds_only(tmp_path: Path) -> None:
    record = samples.SEESAW | {"generation_prompts": ["one\u2028two\x85three"]}
    text = json.dumps(record, ensure_ascii=False) + "\r\n" + json.dumps(record | {"case_id": 8}, ensure_ascii=False)
    (tmp_path / "x.jsonl").write_text(text, encoding="utf-8", newline="")
    assert [case.generation_prompts for case in read_cases(tmp_path / "x.jsonl")] == [("one\u2028two\x85three",)] * 2


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("seesaw_cf_P27_P101.json", "P101"),
        ("seesaw_cf_P27_P101.jsonl", "P101"),
        ("seesaw_cf_P27.json", None),
        ("seesaw_cf_P27_P101_eff.json", None),
        ("seesaw_cf_P27_P9999.json", None),
        ("other.json", None),
    ],
)
def test_the_name_of_a_pair_file_gives_the_effect_relation(tmp_path: Path, name: str, effect: str | None) -> None:
    (tmp_path / name).write_text(json.dumps([samples.SEESAW]))
    assert read_cases(tmp_path / name)[0].effect_relation_id == effect


def test_a_pair_file_of_another_relation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "seesaw_cf_P19_P101.json"
    path.write_text(json.dumps([samples.SEESAW]))
    with pytest.raises(RecordError, match=r"record 0 \(case_id 7\): the edit is of P27, but the file's name says P19"):
        read_cases(path)


WHOLE = json.dumps(_numbered(2))
RECORD = samples.changed(samples.SEESAW, "requested_rewrite.relation_id", "P2") | {"case_id": 3}
BROKEN = [
    (WHOLE[:-40], "not whole JSON"),
    ("[\n{},\n oops]", "at line 3, column 2"),
    ("", "not whole JSON"),
    ("[]", "no records in it"),
    ("42", "got 42, expected a JSON list"),
    ('{"Q1": {"name": "x"}}', "line 1: the keys 'Q1' belong to no known record"),
    (json.dumps(samples.SEESAW) + "\n" + WHOLE[1:80], "line 2: not whole JSON"),
    ("[1]", "record 0: got 1, expected a JSON object"),
    (json.dumps([samples.SEESAW, samples.SEESAW]), "record 1: case_id 7 was used before"),
    (json.dumps([samples.SEESAW, RECORD]), r"record 1 \(case_id 3\): unknown relation 'P2'"),
    ('[{"case_id": 1, "case_id": 2}]', "the key 'case_id' occurs twice"),
    ('[{"case_id": NaN}]', "NaN is no JSON number"),
    ("[" * 100_000, "recursion"),
    ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    (b'["\xff\xfe"]', "byte 2 is not UTF-8"),
    (b"PAR1 and no more", "not a whole Parquet file"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN, ids=range(len(BROKEN)))
def test_broken_files_are_explained(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / "released.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises((RecordError, UnknownNameError), match=rf"(?s)released\.json: .*{message}"):
        read_cases(path)


def test_files_that_are_not_there_or_hold_a_case_twice(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"none\.json: No such file"):
        read_cases(tmp_path / "none.json")
    with pytest.raises(RecordError, match=r"a folder without \.parquet files"):
        read_cases(tmp_path)
    for name in ("a", "b"):
        write_table(tmp_path / "shards" / f"{name}.parquet", cases_to_table(_cases(1)))
    with pytest.raises(RecordError, match="record 1: case_id 0 was used before"):
        read_cases(tmp_path / "shards")


def _cases(count: int, first: int = 0) -> list[Case]:
    return flag_cases([parse_record(samples.SEESAW | {"case_id": first + number}) for number in range(count)])


def _write(folder: Path, cases: list[Case]) -> str:
    write_config(folder, "pairs", cases_to_table(cases))
    write_config(folder, "words", pa.table({"word": ["a", "b"]}))
    return write_card(
        folder, {"pairs": "Pairs.", "words": "Words: two."}, template="# Title", metadata={"license": "mit"}
    )


def test_datasets_opens_the_folder_and_reads_a_rebuilt_one_anew(tmp_path: Path) -> None:
    import datasets

    cases = _cases(3)
    _write(tmp_path / "data set", cases)
    options = {"cache_dir": str(tmp_path / "cache")}
    folder = str(tmp_path / "data set")
    assert datasets.get_dataset_config_names(folder) == ["pairs", "words"]
    loaded = datasets.load_dataset(folder, **options)  # the first config is the default
    assert table_to_cases(loaded["test"].data.table) == cases
    assert datasets.load_dataset(folder, "words", split="test", **options)["word"][:] == ["a", "b"]
    streamed = list(datasets.load_dataset(folder, "pairs", split="test", streaming=True))
    assert table_to_cases(pa.Table.from_pylist(streamed, schema=cases_to_table([]).schema)) == cases
    # Same number of rows and bytes per value: only the content differs.
    _write(tmp_path / "data set", _cases(3, first=4))
    assert list(datasets.load_dataset(folder, "pairs", split="test", **options)["case_id"]) == [4, 5, 6]


def test_shards_hold_all_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seesaw_cf.records.card.ROWS_PER_SHARD", 10)
    write_config(tmp_path, "n", pa.table({"n": range(25)}))
    files = sorted((tmp_path / "data" / "n").iterdir())
    assert [path.name for path in files] == [f"test-{number:05d}-of-00003.parquet" for number in range(3)]
    assert [row for path in files for row in pa.parquet.read_table(path)["n"].to_pylist()] == list(range(25))
    assert "num_examples: 25" in write_card(tmp_path, {"n": "Numbers."})
    with pytest.raises(RecordError, match=r"config '\.\./up'"):
        write_config(tmp_path, "../up", pa.table({"n": [1]}))


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


def test_a_locked_folder_cannot_be_read_or_written(released: Path) -> None:
    """Root may look into all, so it goes on as nobody, below a folder that is open to everybody."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(released, folder / "in")
        (folder / "locked").mkdir(mode=0)
        os.seteuid(user or 65534)
        try:
            with pytest.raises(StorageError, match=r"/locked/out.*no right to look into its folder"):
                import_files(folder / "in", folder / "locked" / "out")
            with pytest.raises(StorageError, match=r"/locked/x\.json.*no right to look into its folder"):
                import_files(folder / "locked" / "x.json", folder / "out")
        finally:
            os.seteuid(user)
