"""A report of a study computes only what no earlier one did, and has the same bytes."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.study import members, memory, pairs, tables
from seesaw_cf.study.members import read_members
from seesaw_cf.study.memory import Memory
from seesaw_cf.study.tables import compare
from seesaw_cf.study.write import write_comparison
from tests.report.runs import cases, property_cases, write_run

COMPUTED = [(members, "read_results"), (pairs, "_pair"), (tables, "_published_tests"), (tables, "_by_continent")]
SETTINGS = AuditSettings(permutations=0)
EDITORS = ("memit", "ft", "lora")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, and a report of two of them whose values are kept."""
    folder = tmp_path_factory.mktemp("first")
    for name in EDITORS:
        write_run(folder / name, cases(("P27",), 4, 3) + property_cases(2), (name,))
    report(folder, EDITORS[:2])
    return folder


@pytest.fixture
def folder(first: Path, tmp_path: Path) -> Path:
    """Its copy: values do not depend on where they are."""
    return shutil.copytree(first, tmp_path / "copy")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each thing is computed."""
    counts = {name: 0 for _, name in COMPUTED}

    def counted(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            counts[name] += 1
            return function(*args, **options)

        return call

    for module, name in COMPUTED:
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    return counts


def report(folder: Path, editors: Sequence[str], computed: str = "computed") -> dict[str, bytes]:
    names = {folder / name: (name, "tiny", "mine") for name in editors}
    found = read_members(list(names), SETTINGS, names, Memory(folder / computed))
    write_comparison(compare(found, SETTINGS), folder / "report", "Some runs")
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in (folder / "report").rglob("*.*")}


@pytest.mark.slow
def test_a_second_report_computes_nothing_and_has_the_same_bytes(folder: Path, calls: dict[str, int]) -> None:
    before = contents(folder)
    assert report(folder, EDITORS[:2]) == before
    assert list(calls.values()) == [0, 0, 0, 0]


@pytest.mark.slow(15)
def test_of_one_more_run_that_run_alone_is_computed(folder: Path, calls: dict[str, int]) -> None:
    grown = report(folder, EDITORS)
    assert list(calls.values()) == [1, 2, 1, 1]
    assert report(folder, EDITORS, "another folder") == grown
    assert list(calls.values()) == [4, 5, 4, 4]


@pytest.mark.slow
def test_a_changed_score_table_is_noticed(folder: Path, calls: dict[str, int]) -> None:
    before, file = contents(folder), folder / "memit" / "scores.parquet"
    scores = read_table(file, SCORES)
    place = scores.column_names.index("logprob")
    pq.write_table(scores.set_column(place, "logprob", pc.multiply(scores["logprob"], pa.scalar(1.01))), file)
    assert report(folder, EDITORS[:2]) != before
    assert list(calls.values()) == [1, 1, 1, 1]


@pytest.mark.slow
def test_another_version_is_noticed_and_its_values_replace_the_earlier_ones(
    folder: Path, calls: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = set((folder / "computed").iterdir())
    monkeypatch.setattr(memory, "_versions", lambda: "another")
    for counts in ([2, 1, 2, 2], [2, 1, 2, 2]):  # once, and nothing the second time
        report(folder, EDITORS[:2])
        assert list(calls.values()) == counts
    assert set((folder / "computed").iterdir()) == kept


@pytest.mark.slow
def test_damaged_files_are_computed_anew(folder: Path, calls: dict[str, int]) -> None:
    before, kept = contents(folder), sorted((folder / "computed").iterdir())
    for at, file in enumerate(kept):
        data = file.read_bytes()
        file.write_bytes([data[: len(data) // 2], b"", b"PK" * 99][at % 3])
    assert report(folder, EDITORS[:2]) == before
    assert list(calls.values()) == [2, 1, 2, 2]
    assert all(zipfile.is_zipfile(file) for file in kept)


@pytest.mark.slow
def test_one_other_byte_anywhere_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"value": [0.1, 0.2], "word": ["a", "b"]})
    kept = Memory(tmp_path)
    kept.value(["x"], [], lambda: frame)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        pd.testing.assert_frame_equal(kept.value(["x"], [], lambda: frame), frame)


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "share": [0.1 + 0.2, np.nan, np.inf],
            "rank": pd.array([1, None, 3], "Int32"),
            "known": pd.array([True, None, False], "boolean"),
            "word": ["a", None, "ü"],
            "clusters": [{"edit": 3, "person": 2.5}, {}, {"edit": float("inf")}],
            "tags": [("a", "b"), (), None],
        },
        index=[5, 3, 1],
    )
    value = (frame, [Estimate(0.1, clusters={"edit": 3})], {"one": np.float64(1 / 3), "none": None}, pd.DataFrame())
    kept = Memory(tmp_path)
    kept.value(["x"], [1], lambda: value)
    table, estimates, numbers, empty = kept.value(["x"], [1], computed_again)
    pd.testing.assert_frame_equal(table, frame)
    assert list(table["clusters"]) == list(frame["clusters"])
    assert list(table["tags"]) == list(frame["tags"])
    assert repr(estimates) == repr(value[1])
    assert numbers == {"one": 1 / 3, "none": None}
    assert empty.shape == (0, 0)


def computed_again() -> tuple[pd.DataFrame, list[Estimate], dict[str, object], pd.DataFrame]:
    pytest.fail("computed, not read")


def test_what_is_no_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        Memory(tmp_path).value(["x"], [], lambda: {"function": print})
    assert not list(tmp_path.iterdir())
