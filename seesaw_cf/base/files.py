"""Writing files so that nothing half-written ever looks whole: temporary name, flush to disk, rename.

Reading text and JSON is in `seesaw_cf.base.text`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.checks import check_path, shown
from seesaw_cf.base.errors import SeesawError, StorageError

if TYPE_CHECKING:
    import pandas as pd


_TEMPORARY = ".tmp"
_DAY = 86_400.0
# What the running command reads: `atomic_path` never replaces it.
_READ: list[Path] = []


@contextlib.contextmanager
def reading(paths: Iterable[Path]) -> Iterator[None]:
    """Keep this package from writing onto these files, under any name, while the block runs."""
    before = len(_READ)
    _READ.extend(paths)
    try:
        yield
    finally:
        del _READ[before:]


def cache_folder() -> Path:
    """Return the folder for what can be computed or asked again: `$SEESAW_CF_CACHE` or `~/.cache/seesaw_cf`."""
    return Path(os.environ.get("SEESAW_CF_CACHE") or Path.home() / ".cache" / "seesaw_cf")


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str], *, flush: bool = True) -> Iterator[Path]:
    """Yield a temporary path in the same folder; rename it to `path` when the block ends without an exception.

    Args:
        path: The final file. Its folder is made when missing.
        flush: Wait until it is on the disk; False for what is read at once and need not survive a power cut.

    Raises:
        StorageError: The disk is full, the folder cannot be written or the path is a folder or a device; what has the
            final name is untouched.
        RecordError: It is not a path.
    """
    with _renamed(check_path(path), check_target, Path.touch) as temporary:
        yield temporary
        if flush:
            _flush([temporary])


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder next to `path`; rename it to `path` when the block ends without an exception.

    Args:
        path: The final folder. It may exist only when it is empty; its parent is made when missing.

    Raises:
        StorageError: The folder holds something already, or cannot be written; the final name is untouched.
    """
    with _renamed(check_path(path), _check_empty, Path.mkdir) as temporary:
        yield temporary
        _flush(file for file in temporary.rglob("*") if file.is_file())


@contextlib.contextmanager
def _renamed(final: Path, check: Callable[[Path], None], make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield what `make` made next to `final`. Rename it to `final` when the block ends well, else remove it."""
    temporary = final.with_name(f".{safe_name(final.name)[:100]}.{uuid.uuid4().hex}{_TEMPORARY}")
    try:
        check(final)
        final.parent.mkdir(parents=True, exist_ok=True)
        make(temporary)
        try:
            yield temporary
            temporary.replace(final)
        finally:
            remove(temporary)
    except (OSError, UnicodeEncodeError) as error:  # Parquet takes no file names with half surrogate pairs
        raise _not_written(final, error) from error


def _check_empty(final: Path) -> None:
    if os.path.lexists(final) and (not final.is_dir() or any(final.iterdir())):
        raise StorageError(f"{final} exists and is not an empty folder. Choose another name or delete it first.")


def _flush(files: Iterable[Path]) -> None:
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def remove(path: Path) -> None:
    """Delete a file or a folder with all that is in it, as far as that is allowed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def last_use(path: Path) -> float:
    """Return when a file, or the youngest file in a folder, was last read or written, in seconds since 1970."""
    stats = [file.stat() for file in (path, *path.rglob("*")) if file.is_file()]
    return max((max(stat.st_atime, stat.st_mtime) for stat in stats), default=path.stat().st_mtime)


def sweep(folder: Path) -> None:
    """Delete what killed processes left in a folder: temporary files and folders that are older than a day."""
    for path in folder.glob(f".*{_TEMPORARY}"):
        with contextlib.suppress(FileNotFoundError):  # its writer is alive and has just finished
            if time.time() - last_use(path) > _DAY:
                remove(path)


def size(amount: float) -> str:
    """Return a number of bytes as people read it: "8.20GB"."""
    from tqdm import tqdm

    return f"{tqdm.format_sizeof(amount)}B"


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file.

    Raises:
        StorageError: The file is missing, a folder, or cannot be read; or a device, which may never end.
        RecordError: It is not a path.
    """
    file = check_path(path)
    try:
        if not (file.is_char_device() or file.is_block_device()):
            return file.read_bytes()
    except OSError as error:
        raise StorageError(f"{file}: {error.strerror or error}. Check the path.") from error
    raise StorageError(f"{file}: a device, expected a file. Name a file.")


def check_target(final: Path) -> None:
    """Refuse what a rename could not replace, or must not: a folder, a device, a pipe, a file that is being read.

    Raises:
        StorageError: See above.
    """
    if os.path.lexists(final) and not final.is_file():
        kind = "a folder" if final.is_dir() else "no ordinary file"
        raise StorageError(f"could not write {final}: it is {kind}. Name a file.")
    if final.parent.is_file():
        raise StorageError(f"could not write {final}: {final.parent} is a file, expected a folder. Name another file.")
    check_outputs([final], _READ)


def _not_written(final: Path, error: OSError | UnicodeEncodeError) -> SeesawError:
    """Return what to raise. An error that names its cause, such as a silent server, is not about the file."""
    if isinstance(error, SeesawError):
        return error
    if isinstance(error, UnicodeEncodeError):
        piece = shown(error.object[max(0, error.start - 20) : error.start + 20])
        return StorageError(
            f"could not write {final}: half a surrogate pair at {piece}. Repair it where it comes from."
        )
    return StorageError(
        f"could not write {final}: {error.strerror or error}. Nothing was left under that name; free some space or "
        "choose another folder, then run the same command again."
    )


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text whole or not at all.

    Raises:
        StorageError: See `atomic_path`.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def dump_json(path: str | os.PathLike[str], value: object, **options: Any) -> None:
    """Write a value as indented JSON, whole or not at all; `options` are those of `json.dumps`.

    Raises:
        StorageError: See `atomic_path`.
    """
    write_text(path, json.dumps(value, indent=1, **options) + "\n")


def check_outputs(outputs: Iterable[str | os.PathLike[str]], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse to write `outputs` onto what a command reads, `inputs`, or two things onto one name.

    Raises:
        StorageError: An output is an input (by any name: link, other spelling), or the same as another output.
    """
    occupied = [(check_path(path), "is read by the same command") for path in inputs]
    for path in map(check_path, outputs):
        for other, why in occupied:
            if _same(path, other):
                raise StorageError(
                    f"could not write {path}: it {why} ({other}). Nothing was written; name another file."
                )
        occupied.append((path, "is named twice for what is written"))


def write_new(files: Sequence[tuple[Path, bytes | str]], *, overwrite: bool = False) -> None:
    """Write files that people may have filled in or paid for since. Never replace one by other content.

    All are checked before the first one is written. A file with the same content is left as it is.

    Args:
        files: Each path with bytes, or text that is written as UTF-8.
        overwrite: Replace files with other content; what is being read is never replaced.

    Raises:
        StorageError: See `check_outputs`; or a file is there with other content.
    """
    check_outputs([path for path, _ in files], _READ)
    contents = [(path, text.encode("utf-8") if isinstance(text, str) else text) for path, text in files]
    for path, content in contents:
        if not overwrite and path.is_file() and path.read_bytes() != content:
            raise StorageError(
                f"{path} exists with other content, which would be lost. Nothing was written; name another file, or "
                "add --overwrite."
            )
    for path, content in contents:
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)


def _same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def create_text(path: str | os.PathLike[str], text: str) -> bool:
    """Write a file that does not exist yet, whole or not at all; of several processes exactly one does.

    Returns:
        False when the file was there already; it is whole and left as it is.

    Raises:
        StorageError: See `atomic_path`.
    """
    final = Path(path)
    written = final.with_name(f".{final.name}.{uuid.uuid4().hex}{_TEMPORARY}")
    write_text(written, text)
    try:
        os.link(written, final)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links: there the last process wins, its file is whole all the same
        written.replace(final)
    finally:
        written.unlink(missing_ok=True)
    return True


def safe_name(name: str) -> str:
    """Return a file name of ASCII letters, digits, ".", "_" and "-"; names from data are never used as they are."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).strip(".-") or "unnamed"


# CSV files for spreadsheets: no text from data or a model is taken for a formula.

_FORMULA = re.compile(r"'*[=+\-@\t\r].", re.DOTALL)
# A number as a report shows it: value, unit, star, interval in brackets or words why there is none, n.
_NUMBER = re.compile(r"{0}%?\*?( \[{0}, {0}\]| \([\w ,.:;-]*\))?( n=\d+)?".format(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]\d+)?"))


def neutral(text: str) -> str:
    """Return text that no spreadsheet reads as a formula; leave numbers and a lone sign as they are."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table as CSV without its index, with `neutral` text cells and line ends as on Unix."""
    safe = frame.map(lambda cell: neutral(cell) if isinstance(cell, str) else cell)
    return str(safe.rename(columns=neutral).to_csv(index=False, lineterminator="\n"))
