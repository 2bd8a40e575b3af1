"""Text and JSON files that are not what they should be are refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.text import read_json, read_text
from seesaw_cf.errors import RecordError, RunFolderError, StorageError


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": "\xff"}', "line 1: byte 0xff is not UTF-8, expected UTF-8 text. Convert the file"),
        (b"{\n'a': 1}", "not JSON (Expecting property name enclosed in double quotes: line 2 column 1 (char 2))"),
        (b"", "not JSON (Expecting value: line 1 column 1 (char 0)). Expected an object such as {...}."),
        (b"[1, 2]", "got [1, 2]. Expected an object such as {...}."),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"a": 1e999}', "1e999 is no JSON number"),
        (b'{"a": 1, "a": 2}', "the key 'a' occurs twice in one object"),
        (b'{"a": "\\ud800"}', "half a surrogate pair"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "Exceeds the limit"),
    ],
)
def test_files_that_are_no_json_object(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        read_json(file, expected="{...}")
    assert str(file) in str(caught.value)
    assert message in str(caught.value)
    with pytest.raises(RunFolderError):
        read_json(file, error=RunFolderError)


def test_json_that_is_good(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes('\ufeff{"a": "\\ud83d\\ude00 é"}'.encode())
    assert read_json(file) == {"a": "😀 é"}
    file.write_text("[1]")
    assert read_json(file, list) == [1]


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", None, 3, b"x", "missing", ".", "x" * 300])
def test_paths_that_cannot_be_read(tmp_path: Path, name: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((StorageError, RecordError), match=r"Check the path|no path of a file|too long a path"):
        read_text(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a\0b", "\ud800", None, 3, "folder", "x" * 300, "loop", "/dev/full", "file/x"])
def test_paths_that_cannot_be_written(tmp_path: Path, name: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything is computed: the block is never entered."""
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").touch()
    Path("loop").symlink_to("loop")
    with (
        pytest.raises((StorageError, RecordError), match=r"could not write|no path|too long"),
        atomic_path(name),  # type: ignore[arg-type]
    ):
        pytest.fail("the block was entered")
    assert sorted(child.name for child in tmp_path.iterdir()) == ["file", "folder", "loop"]
