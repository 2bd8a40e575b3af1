"""One process at a time, on one machine or on a folder that several share."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import StorageError

fcntl: Any = None
if find_spec("fcntl"):  # Windows has none
    import fcntl

_LOG = logging.getLogger(__name__)
_LOOK_AGAIN = 0.2  # seconds


@contextmanager
def file_lock(file: Path, *, wait: bool = False, required: bool = True) -> Iterator[bool]:
    """Hold a lock for this process; the system gives it back when the process dies.

    Where the system has no such locks (Windows) a file that is created exclusively stands for one. It stays behind when
    its process is killed, and is named then.

    Args:
        file: The lock's own file, made where it is not there.
        wait: Wait for another process that holds it.
        required: False: go on without a lock where the file system has none.

    Yields:
        Whether this process holds it. False, at once, where another one does and `wait` is False.

    Raises:
        StorageError: The file system has no locks.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        with _exclusive_file(file.with_name(f"{file.name}.held"), wait) as mine:
            yield mine
        return
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if wait:
                _LOG.info("%s: another process holds it, waiting", file)
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield wait
            return
        except OSError as error:
            if required:
                raise StorageError(
                    f"{file}: this file system has no locks ({error.strerror}), so that processes cannot share the "
                    "folder. Choose one on another file system."
                ) from error
        yield True


@contextmanager
def _exclusive_file(file: Path, wait: bool) -> Iterator[bool]:
    """Hold a file that only one process can create."""
    mine = warned = False
    while not mine:
        with contextlib.suppress(FileExistsError):
            file.touch(exist_ok=False)
            mine = True
        if not mine and not warned:
            _LOG.warning("%s: another process holds it; delete it if that one was killed", file)
            warned = True
        if mine or not wait:
            break
        time.sleep(_LOOK_AGAIN)
    try:
        yield mine
    finally:
        if mine:
            file.unlink(missing_ok=True)
