"""What is no pair is refused with what to do; what is left out is counted."""

import contextlib
import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import SeesawError
from seesaw_cf.logs import CompareSettings, compare, read_log
from tests.logs.made import FORMATS, Item, Made, items, write_log

ZSTANDARD = 93
QUICK = CompareSettings(clusters=("passage",), permutations=99)


def _logs(tmp_path: Path, rows: list[Item] | None = None, made: Made | None = None) -> tuple[Path, Path, Path]:
    """A log of a base, one of a changed model, and the latter's file of samples."""
    base = write_log(tmp_path / "base", items(), Made(model="small"))
    changed = write_log(tmp_path / "changed", items(seed=1) if rows is None else rows, made or Made(model="other"))
    return base, changed, next(changed.rglob("samples_*"))


DIFFERENT: Mapping[str, tuple[Made, str]] = {
    "version": (Made(version=2.0), "differ in the version of the task of quiz: 1.0 and 2.0"),
    "shots": (Made(shots=5), "differ in the number of few-shot examples of quiz: 0 and 5"),
    "seeds": (Made(seed=3), "differ in random seeds of quiz"),
    "content": (
        Made(prompt=lambda item: f"{item.prompt} Think."),
        "differ in what is asked under one id of quiz: 60 items",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_logs_that_were_made_otherwise_are_refused_unless_that_is_allowed(name: str, tmp_path: Path) -> None:
    made, message = DIFFERENT[name]
    base, changed, _ = _logs(tmp_path, made=replace(made, model="other"))
    with pytest.raises(SeesawError, match=message) as raised:
        compare(base, changed, QUICK)
    assert f"--allow {name}" in str(raised.value)
    assert compare(base, changed, replace(QUICK, allow=(name,))).counts["paired"].tolist() == [60]


def test_what_one_log_lacks_is_counted(tmp_path: Path) -> None:
    base, changed, _ = _logs(tmp_path, items(seed=1)[5:])
    comparison = compare(base, changed, QUICK)
    assert comparison.counts[["paired", "only_base", "only_changed"]].iloc[0].tolist() == [55, 5, 0]
    assert comparison.screen.missing == "Of 60 items 55 are scored in both logs: 5 are only in small."


def test_items_that_were_numbered_anew_are_paired_by_content(tmp_path: Path) -> None:
    base, turned, file = _logs(tmp_path, items(seed=1)[::-1])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(line | {"doc_id": number}) + "\n" for number, line in enumerate(lines)))
    comparison = compare(base, turned, QUICK)
    assert comparison.counts[["paired", "renumbered", "only_base"]].iloc[0].tolist() == [60, 60, 0]


def test_a_log_that_was_cut_is_refused_and_can_be_read_up_to_there(tmp_path: Path) -> None:
    base, changed, file = _logs(tmp_path)
    text = file.read_text()
    file.write_text(text[: len(text) * 2 // 3])
    with pytest.raises(SeesawError, match=r"line 41: its last line is not whole, so the log was cut.*--allow cut"):
        compare(base, changed, QUICK)
    comparison = compare(base, changed, replace(QUICK, allow=("cut",)))
    assert comparison.counts["paired"].tolist() == [40]
    assert any("the items before it count" in note for note in comparison.notes)
    file.write_text("".join(text.splitlines(keepends=True)[:50]))
    with pytest.raises(SeesawError, match="it holds 50 of 60 documents"):
        compare(base, changed, QUICK)


def test_repeated_lines_are_counted_and_a_log_given_twice_is_refused(tmp_path: Path) -> None:
    base, changed, file = _logs(tmp_path)
    file.write_text(file.read_text() * 2)
    assert compare(base, changed, QUICK).counts[["paired", "repeated"]].iloc[0].tolist() == [60, 60]
    with pytest.raises(SeesawError, match="is given twice"):
        compare(base, [changed, changed], QUICK)


def test_a_group_that_some_items_lack_takes_only_the_others(tmp_path: Path) -> None:
    rows = [replace(item, gender="" if item.number < 10 else item.gender) for item in items()]
    base = write_log(tmp_path / "base", rows, Made(model="small"))
    changed = write_log(tmp_path / "changed", rows, Made(model="other"))
    frame = compare(base, changed, QUICK).frame
    contrast = frame[(frame["axis"] == "gender") & (frame["what"] == "contrast") & (frame["asked"] == "acc")].iloc[0]
    assert contrast["n"] == 50


EVAL = '{{"version": {version}, "status": "{status}", "eval": {{"task": "t"}}}}'
BAD: Mapping[str, tuple[str, str | None, str]] = {
    "nothing": ("none", None, "no such file or folder"),
    "empty folder": ("", None, "no log among 0 files"),
    "no metric": ("x.csv", "item,gender\n1,woman\n", "no column of numbers is a metric"),
    "no item": ("x.csv", "name,acc\na,1\n", "expected one of item, sample_id, doc_id, id"),
    "no rows": ("x.csv", "item,acc\n", "no column of numbers is a metric"),
    "no JSON": ("samples_x.jsonl", "{}\nnope\n{}\n", "a sample of lm_eval with doc_id, metrics"),
    "list": ("samples_x.jsonl", "[1]\n", "got 1, expected an object"),
    "no zip": ("x.eval", "nope", "no log of inspect_ai"),
    "other version": ("x.json", EVAL.format(version=9, status="success"), "log version 9"),
    "broken run": ("x.json", EVAL.format(version=2, status="error"), "ended with status error"),
    "no Parquet": ("x.parquet", "nope", "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_log_is_explained(name: str, tmp_path: Path) -> None:
    file, text, message = BAD[name]
    if text is not None:
        (tmp_path / file).write_text(text)
    with pytest.raises(SeesawError, match=message):
        read_log(tmp_path / file)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD])
def test_a_damaged_sample_of_inspect_is_named(method: int, tmp_path: Path) -> None:
    sample = b"no sample " * 50
    content = pa.compress(sample, "zstd", asbytes=True) if method == ZSTANDARD else sample
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", '{"version": 2, "status": "success", "eval": {"task": "t"}}')
        archive.writestr("samples/1_epoch_1.json", content, 0 if method == ZSTANDARD else method)
        start = archive.getinfo("samples/1_epoch_1.json").header_offset + 30 + len("samples/1_epoch_1.json")
    data = bytearray(file.read_bytes())
    data[start : start + 8] = b"\xff" * 8
    if method == ZSTANDARD:  # Python writes it from 3.14 on: its number stands in the central directory
        data[data.rindex(b"PK\x01\x02") + 10] = ZSTANDARD
    file.write_bytes(bytes(data))
    with pytest.raises(SeesawError, match=r"log\.eval, samples/1_epoch_1\.json: damaged"):
        read_log(file)


def test_logs_of_two_harnesses_are_refused_and_a_table_beside_a_log_is_none(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "log", items(), Made())
    (folder / "groups.csv").write_text("item,gender\n1,woman\n")
    assert len(read_log(folder).items) == 60
    write_log(folder / "more", items(), Made(), "inspect_eval")
    with pytest.raises(SeesawError, match="logs of lm_eval and inspect_ai, expected one harness"):
        read_log(folder)


def test_logs_without_a_common_item_or_field_are_explained(tmp_path: Path) -> None:
    base = write_log(tmp_path / "a", items(), Made(model="small"))
    other = write_log(tmp_path / "b", items(), Made(model="other", task="else"))
    with pytest.raises(SeesawError, match="no item is in both logs"):
        compare(base, other, QUICK)
    same = write_log(tmp_path / "c", items(), Made(model="other"))
    with pytest.raises(
        SeesawError, match=r"no item of small has the cluster field 'story'; fields are gender, nothing, passage"
    ):
        compare(base, same, replace(QUICK, clusters=("story",)))
    with pytest.raises(SeesawError, match="unknown allow 'shot'"):
        CompareSettings(allow=("shot",))


@pytest.mark.parametrize("form", ["lm_eval", "inspect_eval"])
def test_a_folder_with_logs_of_two_models_is_refused(form: str, tmp_path: Path) -> None:
    for name in ("small", "other"):
        write_log(tmp_path / "logs" / name, items(), Made(model=name), form)
    with pytest.raises(SeesawError, match=r"logs of 2 models \(.*other.*small.*\), expected one"):
        read_log(tmp_path / "logs")


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from(sorted(FORMATS)),
    at=st.floats(0, 1, exclude_max=True),
    end=st.floats(0, 0.2),
    content=st.one_of(
        st.binary(max_size=6), st.sampled_from([b"null", b"1e999", b"[]", b'{"a": 1}', b"NaN", b"", b'"x"'])
    ),
)
def test_a_damaged_log_is_compared_or_told_of(form: str, at: float, end: float, content: bytes, tmp_path: Path) -> None:
    """Part of a file is replaced: nothing but an error of this package, and no score that the log does not have."""
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    base = write_log(place / "base", items(12), Made(model="small"), form)
    changed = write_log(place / "changed", items(12), Made(model="other"), form)
    file = changed if changed.is_file() else next(changed.rglob("samples_*"))
    data = file.read_bytes()
    start = int(at * len(data))
    file.write_bytes(data[:start] + content + data[start + int(end * len(data)) :])
    with contextlib.suppress(SeesawError):
        found = compare(base, changed, replace(QUICK, clusters=(), permutations=19))
        assert found.terminal()
        assert found.page()
