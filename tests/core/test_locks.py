"""A lock is one process's, and the system gives it back when that process is killed."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from seesaw_cf.base.system import file_lock

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
