"""A lock is one process's, and the system gives it back when that process is killed."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from seesaw_cf.base import locks
from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.locks import file_lock

_HOLDER = """
import sys, time
from pathlib import Path
from seesaw_cf.base.locks import file_lock
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


def test_without_locks_a_folder_is_shared_only_where_that_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match=r"has no locks \(Function not implemented\)"), file_lock(tmp_path / "lock"):
        pass
    with file_lock(tmp_path / "lock", required=False) as mine:
        assert mine


def test_a_system_without_locks_has_a_file_that_one_process_creates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    with file_lock(tmp_path / "lock") as mine, file_lock(tmp_path / "lock") as also:
        assert (mine, also) == (True, False)
        assert "lock.held: another process holds it; delete it if that one was killed" in caplog.text
    with file_lock(tmp_path / "lock", wait=True) as mine:
        assert mine
    assert not list(tmp_path.glob("*.held"))
