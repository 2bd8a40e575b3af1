"""Writing files so that nothing half-written ever looks whole: temporary name, flush to disk, rename."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from seesaw_cf.errors import StorageError

__all__ = ["atomic_folder", "atomic_path", "cache_folder", "safe_name", "write_text"]


def cache_folder() -> Path:
    """Where this package keeps what can be computed or asked again: `$SEESAW_CF_CACHE` or `~/.cache/seesaw_cf`."""
    return Path(os.environ.get("SEESAW_CF_CACHE") or Path.home() / ".cache" / "seesaw_cf")


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path in the same folder; renames it to `path` when the block ends without an exception.

    Args:
        path: The final file. Its folder is made when missing.

    Yields:
        The temporary path to write to.

    Raises:
        StorageError: The disk is full or the folder cannot be written; the final name is untouched.
    """
    final = Path(path)
    temporary: Path | None = None
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=".tmp", dir=final.parent)
        os.close(handle)
        temporary = Path(name)
        temporary.chmod(0o644)
        yield temporary
        with temporary.open("rb") as done:
            os.fsync(done.fileno())
        temporary.replace(final)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"could not write {final}: {error.strerror or error}. Nothing was left under that name; "
            "free some space or choose another folder, then run the same command again."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary folder beside `path`; renames it to `path` when the block ends without an exception.

    Args:
        path: The final folder. It may exist only when it is empty; its parent is made when missing.

    Yields:
        The temporary folder to write into.

    Raises:
        StorageError: The folder holds something already, or cannot be written; the final name is untouched.
    """
    final = Path(path)
    if final.is_file() or (final.is_dir() and any(final.iterdir())):
        raise StorageError(f"{final} exists and is not an empty folder. Choose another name or delete it first.")
    temporary: Path | None = None
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{final.name}.", suffix=".tmp", dir=final.parent))
        temporary.chmod(0o755)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb") as done:
                    os.fsync(done.fileno())
        temporary.replace(final)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"could not write {final}: {error.strerror or error}. Nothing was left under that name; "
            "free some space or choose another folder, then run the same command again."
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes UTF-8 text whole or not at all.

    Raises:
        StorageError: See `atomic_path`.
    """
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def safe_name(name: str) -> str:
    """A file name of ASCII letters, digits, ".", "_" and "-"; names from data are never used as paths as they are."""
    kept = "".join(char if (char.isalnum() and char.isascii()) or char in "._-" else "-" for char in name)
    return kept.strip(".-") or "unnamed"
