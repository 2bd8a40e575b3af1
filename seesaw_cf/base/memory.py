"""What the C library does with memory that arrays have freed: keep it for the next ones, or give it back."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

import pyarrow as pa

_TRIM, _MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h
_LARGEST = 32 << 20  # from here on every array has pages of its own, whatever is said


def release_memory() -> None:
    """Return free memory to the system; that of arrays below 32 MB glibc keeps, in pieces that fit no larger one."""
    pa.default_memory_pool().release_unused()
    _tell("malloc_trim", 0)


def keep_memory() -> None:
    """Keep what is freed, up to 64 MB a thread, for the rest of the process: for loops that make like arrays again.

    Otherwise threads return it after every step, and get it back page by page, cleared: a third of some loops' time.
    """
    _tell("mallopt", _MAP, _LARGEST)
    _tell("mallopt", _TRIM, 2 * _LARGEST)


def _tell(function: str, *arguments: int) -> None:
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library
            getattr(ctypes.CDLL(None), function)(*arguments)
