"""What the process runs with: versions, packages that are imported on first use, locks, memory."""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import logging
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from seesaw_cf.base.types import JsonObject

_LOG = logging.getLogger(__name__)
Item = TypeVar("Item")

_PATIENCE = 1.0  # seconds
_PACKAGES = ("seesaw_cf", "torch", "transformers", "tokenizers", "datasets", "evaluate", "numpy", "scipy", "pyarrow")


def versions() -> JsonObject:
    """Return the versions of what computes the numbers, Python, and the commit of this checkout ("" outside one)."""
    facts: JsonObject = {"python": platform.python_version(), **dict.fromkeys([*_PACKAGES, "commit"], "")}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            facts[name] = importlib.metadata.version(name)
    with suppress(OSError, subprocess.SubprocessError):
        asked = ["git", f"--git-dir={Path(__file__).parents[2] / '.git'}", "rev-parse", "HEAD"]  # not one around it
        facts["commit"] = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    return facts


# Public names of packages that are imported on first use, so that importing a package costs nothing.


def resolve(target: str) -> Any:
    """Return what "module:name" names.

    Args:
        target: A row of a table of names, such as "seesaw_cf.editors.ft:FT".
    """
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _import(module: str) -> Any:
    """Import a module; say so where that takes a while, as of torch and transformers the first time."""
    from seesaw_cf.base.retrying import say_when_waiting

    text = f"loading {module} and the libraries that it needs, such as torch; the first time takes up to half a minute"
    with say_when_waiting(lambda: text, _PATIENCE):
        return import_module(module)


def lazy(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    Args:
        package: `__name__` of the package.
        home: Public name -> the module that defines it, or that it is.

    Returns:
        A function that imports the module of a name (AttributeError for any other name), and one that lists the public
        names, so that completion shows them before they are imported.
    """

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = sys.modules.get(home[name]) or _import(home[name])
        return module if home[name] == f"{package}.{name}" else getattr(module, name)

    def names() -> list[str]:
        return sorted({*home, *getattr(sys.modules[package], "__all__", ())})

    return find, names


@contextmanager
def file_lock(file: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold a lock for this process; the system gives it back when the process dies.

    Args:
        file: The lock's own file, made where it is not there.
        wait: Wait for another process that holds it.

    Yields:
        True where this process holds it, or where the file system has no locks; False, at once, where another process
        does and `wait` is False.
    """
    from filelock import FileLock, Timeout  # slow to import

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
        _LOG.info("%s: this file system has no locks (%s)", file, error)
    try:
        yield True
    finally:
        lock.release()


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield items, none of them None; the next one is made meanwhile, on another thread."""
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(next, items, None)
        while (item := making.result()) is not None:
            making = pool.submit(next, items, None)
            yield item


_RARELY = 100
_USUAL: list[tuple[int, int, int]] = []  # how often it was, for each block that is open in any thread
_SETTING = threading.Lock()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look through all objects for garbage a hundredth as often while the block runs; through new ones as ever.

    Records and questions are millions of objects and no garbage: to look through them takes a second, again and again.
    The setting is the process's: it is put back after the last block of any thread.
    """
    with _SETTING:
        _USUAL.append(gc.get_threshold())
        young, older, whole = _USUAL[0]
        gc.set_threshold(young, older, whole * _RARELY)
    try:
        yield
    finally:
        with _SETTING:
            if len(_USUAL) == 1:
                gc.set_threshold(young, older, whole)
            _USUAL.pop()


# What the C library does with memory that arrays have freed: keep it for the next ones, or give it back.

_TRIM, _MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h
_LARGEST = 32 << 20  # from here on every array has pages of its own, whatever is said


def release_memory() -> None:
    """Return free memory to the system; that of arrays below 32 MB glibc keeps, in pieces that fit no larger one."""
    import pyarrow as pa

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
