"""Files and folders of cases: content decides, and broken files say where and why."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.base.tables import write_table
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.records import cases_to_table, flag_cases, parse_record, read_cases, write_json
from seesaw_cf.types import Case
from tests.records import samples


def _numbered(count: int) -> list[dict[str, Any]]:
    return [samples.SEESAW | {"case_id": number} for number in range(count)]


def _cases(count: int) -> list[Case]:
    return flag_cases([parse_record(record) for record in _numbered(count)])


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


def test_written_json_is_whole_and_read_back(tmp_path: Path) -> None:
    records = list(samples.RECORDS.values())[:3]
    write_json(tmp_path / "mixed.json", [parse_record(record) for record in records])
    assert json.loads((tmp_path / "mixed.json").read_text()) == records
    assert [case.record_format for case in read_cases(tmp_path / "mixed.json")] == ["seesaw", "eff", "counterfact"]


def test_zsre_cases_are_numbered_by_position(tmp_path: Path) -> None:
    (tmp_path / "zsre.json").write_text(json.dumps([samples.ZSRE, samples.ZSRE]))
    cases = read_cases(tmp_path / "zsre.json")
    assert [case.case_id for case in cases] == [0, 1]
    write_json(tmp_path / "again.json", cases)
    assert json.loads((tmp_path / "again.json").read_text()) == [samples.ZSRE, samples.ZSRE]


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
BROKEN = [
    (WHOLE[:-40], r"not whole JSON: .* at line 1, column \d+ \(character \d+ of \d+\), near .*take it again"),
    ("[\n{},\n oops]", r"Expecting value at line 3, column 2"),
    ("", r"not whole JSON: Expecting value at line 1"),
    ("   \n", r"not whole JSON"),
    ("[]", r"no records in it, expected at least one"),
    ("42", r"got 42, expected a JSON list of records"),
    (json.dumps({"Q1": {"name": "x"}}), r"line 1: the keys 'Q1' belong to no known record\. Expected SEESAW-CF"),
    ('{"case_id": 1,\n"x": 2}', r"line 1: not whole JSON"),
    (json.dumps(samples.SEESAW) + "\n" + WHOLE[1:80], r"line 2: not whole JSON"),
    ("[1]", r"record 0: got 1, expected a JSON object"),
    (json.dumps([samples.SEESAW, samples.SEESAW]), r"record 1: case_id 7 was used before.*Renumber"),
    ('[{"case_id": 1, "case_id": 2}]', r"the key 'case_id' occurs twice in one object"),
    ('[{"case_id": NaN}]', r"NaN is no JSON number"),
    ("[" * 100_000, r"not usable JSON: .*recursion"),
    ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", r"a Git LFS pointer.*git lfs pull"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=range(len(BROKEN)))
def test_broken_json_is_explained(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "released.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=rf"(?s)released\.json: .*{message}"):
        read_cases(path)


def test_the_damaged_record_of_many_is_named(tmp_path: Path) -> None:
    records = _numbered(5)
    records[3] = samples.changed(records[3], "requested_rewrite.relation_id", "P2")
    (tmp_path / "five.json").write_text(json.dumps(records))
    with pytest.raises(
        UnknownNameError, match=r"five\.json: record 3 \(case_id 3\): unknown relation 'P2'.*Did you mean"
    ):
        read_cases(tmp_path / "five.json")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'["\xff\xfe"]')
    with pytest.raises(RecordError, match=r"byte 2 is not UTF-8 text\. Expected JSON or Parquet"):
        read_cases(tmp_path / "x.json")


def test_truncated_parquet(tmp_path: Path) -> None:
    write_table(tmp_path / "whole.parquet", cases_to_table(_cases(3)))
    content = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(RecordError, match=r"cut\.parquet: not a whole Parquet file"):
        read_cases(tmp_path / "cut.parquet")


def test_parquet_of_something_else(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", cases_to_table(_cases(1)).select(["case_id"]))
    with pytest.raises(RecordError, match=r"t\.parquet: table of cases: columns .*'requested_rewrite'.* are missing"):
        read_cases(tmp_path / "t.parquet")


def test_shards_that_share_a_case(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_table(tmp_path / "shards" / f"{name}.parquet", cases_to_table(_cases(1)))
    with pytest.raises(RecordError, match="record 1: case_id 0 was used before"):
        read_cases(tmp_path / "shards")


def test_missing_file_and_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"none\.json: No such file or directory\. Check the path"):
        read_cases(tmp_path / "none.json")
    with pytest.raises(RecordError, match=r"a folder without \.parquet files.*data/NAME"):
        read_cases(tmp_path)


def test_flags_in_parquet_are_kept_as_they_are(tmp_path: Path) -> None:
    case = dataclasses.replace(parse_record(samples.SEESAW), flags=("checked_by_hand",))
    write_table(tmp_path / "x.parquet", cases_to_table([case]))
    assert read_cases(tmp_path / "x.parquet") == [case]
