"""One process at a time, on one machine or on a folder that several share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from seesaw_cf.base.errors import StorageError

_LOG = logging.getLogger(__name__)


@contextmanager
def file_lock(file: Path, *, wait: bool = False, required: bool = True) -> Iterator[bool]:
    """Hold a lock for this process; the system gives it back when the process dies.

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
    lock = FileLock(file, fallback_to_soft=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if not wait:
            yield False
            return
        _LOG.info("%s: another process holds it, waiting", file)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        if required:
            raise StorageError(
                f"{file}: this file system has no locks ({error}), so that processes cannot share the folder. "
                "Choose one on another file system."
            ) from error
    try:
        yield True
    finally:
        lock.release()
