"""Files are whole or absent and refused in clear words; locks end with their holder; tries are counted."""

import errno
import fcntl
import gc
import os
import resource
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.files import atomic_path, safe_name, sweep, write_text
from seesaw_cf.base.retrying import TryAgain, try_again
from seesaw_cf.base.system import file_lock, rare_collections
from seesaw_cf.base.text import read_json, read_text
from seesaw_cf.errors import RecordError, RunFolderError, StorageError
from tests import fresh


def test_atomic_path_leaves_nothing_after_an_exception(tmp_path: Path) -> None:
    final = tmp_path / "sub" / "table.txt"
    write_text(final, "old")

    def interrupted() -> None:
        with atomic_path(final) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert final.read_text() == "old"
    assert [child.name for child in final.parent.iterdir()] == ["table.txt"]


def test_a_full_disk_is_named_and_leaves_the_old_file(tmp_path: Path) -> None:
    """A file-size limit stands in for a full disk: the write fails in the middle with an OSError."""
    code = (
        "import resource, sys\n"
        "from seesaw_cf.base.files import write_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "write_text(sys.argv[1], 'x' * 5000)\n"
    )
    final = tmp_path / "out.txt"
    final.write_text("old")
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    answer = fresh.python("-c", code, str(final), ends=1)
    assert "StorageError: could not write" in answer.stderr
    assert "free some space" in answer.stderr
    assert final.read_text() == "old"
    assert [child.name for child in tmp_path.iterdir()] == ["out.txt"]


@given(st.text())
def test_safe_names_are_plain_and_stay_in_their_folder(text: str) -> None:
    name = safe_name(text)
    assert name
    assert name not in (".", "..")
    assert Path("folder", name).parent == Path("folder")
    assert all(char.isascii() and (char.isalnum() or char in "._-") for char in name)


def test_what_killed_writers_left_is_swept_after_a_day(tmp_path: Path) -> None:
    day_ago = time.time() - 90_000
    left, folder, recent, own = (tmp_path / name for name in (".a.png.x1.tmp", ".b.x2.tmp", ".c.x3.tmp", "d.tmp"))
    folder.mkdir()
    for file in (left, folder / "part", recent, own):
        file.write_text("half")
    for path in (left, folder / "part", folder, own):
        os.utime(path, (day_ago, day_ago))
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".c.x3.tmp", "d.tmp"]


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


_HOLDER = """
import sys, time
from pathlib import Path
from seesaw_cf.base.system import file_lock
with file_lock(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


def test_a_lock_is_free_again_after_its_holder_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "lock"
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(file)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    with file_lock(file) as mine:
        assert not mine
    holder.kill()
    holder.communicate()
    with file_lock(file, wait=True) as mine:
        assert mine


def test_without_locks_a_folder_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with file_lock(tmp_path / "lock") as mine:
        assert mine


def test_garbage_is_rarely_looked_for_in_a_block_only() -> None:
    usual = gc.get_threshold()
    with suppress(RuntimeError), rare_collections():
        assert gc.get_threshold() == (*usual[:2], 100 * usual[2])
        raise RuntimeError
    assert gc.get_threshold() == usual


BUSY = TryAgain("busy")
# Failures, tries, pauses in seconds, and the message of what is raised in the end.
FAILURES: list[tuple[list[Exception], int, list[float], str]] = [
    ([BUSY, TryAgain("busy", wait=7.0), BUSY], 4, [1.0, 7.0, 4.0], ""),
    ([TryAgain(f"no {number}") for number in range(5)], 3, [1.0, 2.0], "^no 2$"),
    ([BUSY, BUSY], 1, [], "^busy$"),
    ([TryAgain("silent again", last=True)], 9, [], "silent"),
    ([KeyError("bug")], 9, [], "bug"),
]


@pytest.mark.parametrize(("failures", "tries", "pauses", "message"), FAILURES)
def test_pauses_grow_unless_the_server_says_how_long_and_the_last_failure_is_raised(
    failures: list[Exception], tries: int, pauses: list[float], message: str
) -> None:
    left, waited = iter(failures), list[float]()

    def ask() -> str:
        if (failure := next(left, None)) is not None:
            raise failure
        return "answer"

    with pytest.raises(type(failures[0]), match=message) if message else nullcontext():
        assert try_again(ask, tries, lambda tried: 2.0**tried, waited.append) == "answer"
    assert waited == pauses
    assert len([*left]) == len(failures) - len(pauses) - bool(message)
