"""Errors suggest, files are whole or absent, types refuse what no stage could use."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import atomic_path, safe_name, sweep, write_text
from seesaw_cf.types import EditRequest, Entity


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
    answer = subprocess.run([sys.executable, "-c", code, str(final)], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
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


@pytest.mark.parametrize(
    ("prompt", "subject", "target", "message"),
    [
        ("was born in", "Ada", "London", "has 0 '{}' placeholders, expected exactly one"),
        ("{} and {} met", "Ada", "London", "has 2 '{}' placeholders"),
        ("{} was born in", " ", "London", "subject is ' ', expected text"),
        ("{} was born in", "Ada", "", "target_new is '', expected text"),
    ],
)
def test_requests_nobody_could_edit_are_refused(prompt: str, subject: str, target: str, message: str) -> None:
    with pytest.raises(RecordError, match=message.replace("{", r"\{").replace("}", r"\}")):
        EditRequest(prompt, subject, "P19", Entity(None, target), Entity(None, "Paris"))


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
