"""The one place where the command line writes to stdout."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from seesaw_cf.base.errors import StorageError


def say(text: str) -> None:
    """Write a text and a line end to stdout.

    Characters outside the terminal's encoding are written as escapes.

    Raises:
        StorageError: stdout cannot be written: a full disk, `/dev/full`.
        BrokenPipeError: The reader is gone, as after `| head`.
    """
    line = text.rstrip("\n") + "\n"
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding))
    except OSError as error:
        raise _not_written(error) from error
    finish()


def open_page(file: Path) -> None:
    """Open a page in the browser, or say that there is none."""
    import webbrowser

    if not webbrowser.open(file.absolute().as_uri()):
        say(f"No browser was found here. Open {file} in yours.")


def say_left_out(left_out: Mapping[str, int]) -> None:
    """Print why something was left out, and how often."""
    for reason, count in left_out.items():
        say(f"left out: {count}: {reason}")


def finish() -> None:
    """Hand on what was written to stdout, so that a failure is seen here and not at the end of the process.

    Raises:
        StorageError, BrokenPipeError: See `say`.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _not_written(error) from error


def _not_written(error: OSError) -> OSError:
    # What could not be written must not be tried again when Python ends; a stdout that is no file has nothing to write.
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return error
    return StorageError(
        f"the output cannot be written: {error.strerror or error}. Free some space, or send it somewhere else."
    )
