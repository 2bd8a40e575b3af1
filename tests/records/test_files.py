"""Files and folders of cases: content decides, and broken files say where and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.base.tables import write_table
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.records import cases_to_table, flag_cases, parse_record, read_cases
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
