"""Dataset folders: `datasets` opens them, and a rebuilt folder never serves old rows from the cache."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from seesaw_cf.errors import RecordError
from seesaw_cf.records import cases_to_table, flag_cases, parse_record, table_to_cases, write_card, write_config
from seesaw_cf.records.card import content_hash
from seesaw_cf.types import Case
from tests.records import samples


def _cases(count: int, first: int = 0) -> list[Case]:
    return flag_cases([parse_record(samples.SEESAW | {"case_id": first + number}) for number in range(count)])


def _write(folder: Path, cases: list[Case]) -> str:
    write_config(folder, "pairs", cases_to_table(cases))
    write_config(folder, "words", pa.table({"word": ["a", "b"]}))
    return write_card(
        folder, {"pairs": "Pairs.", "words": "Words: two."}, template="# Title", metadata={"license": "mit"}
    )


def test_datasets_opens_the_folder(tmp_path: Path) -> None:
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


def test_a_rebuilt_folder_is_read_anew(tmp_path: Path) -> None:
    import datasets

    def first_ids() -> list[int]:
        rows = datasets.load_dataset(str(tmp_path / "x"), "pairs", split="test", cache_dir=str(tmp_path / "cache"))
        return list(rows["case_id"])

    _write(tmp_path / "x", _cases(3))
    assert first_ids() == [0, 1, 2]
    _write(tmp_path / "x", _cases(3, first=4))  # same number of rows and bytes per value: only the content differs
    assert first_ids() == [4, 5, 6]


def test_the_card_is_a_function_of_the_content(tmp_path: Path) -> None:
    one, two, other = (_write(tmp_path / name, _cases(3, first)) for name, first in (("a", 0), ("b", 0), ("c", 1)))
    assert one == two == (tmp_path / "a" / "README.md").read_text(encoding="utf-8")
    assert one != other
    assert one.startswith("---\nlicense: mit\n")
    assert one.endswith("---\n\n# Title\n")
    digest = content_hash((tmp_path / "a" / "data" / "words").iterdir())
    assert f"Words: two. [content sha256 {digest}]" in one


def test_shards_hold_all_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seesaw_cf.records.card.ROWS_PER_SHARD", 10)
    write_config(tmp_path, "n", pa.table({"n": range(25)}))
    files = sorted((tmp_path / "data" / "n").iterdir())
    assert [path.name for path in files] == [f"test-{number:05d}-of-00003.parquet" for number in range(3)]
    assert [row for path in files for row in pa.parquet.read_table(path)["n"].to_pylist()] == list(range(25))
    assert "num_examples: 25" in write_card(tmp_path, {"n": "Numbers."})
    with pytest.raises(RecordError, match=r"config '\.\./up'"):
        write_config(tmp_path, "../up", pa.table({"n": [1]}))
