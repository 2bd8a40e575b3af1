"""What the command line says: the one place that writes to stdout, and words for errors.

Errors are those of the system and of the libraries below; any other is a fault and keeps its traceback. Files are named
where they are read. The edge keeps only classes with a message that explains what happened.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from seesaw_cf.base.errors import SeesawError, StorageError


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


# Errors.

_ADDRESS = "Check the address and the network, then try again."
# Module -> class -> what to do. A module that was never imported cannot have raised anything.
_KNOWN: dict[str, dict[str, str]] = {
    "huggingface_hub.errors": {
        "GatedRepoError": "Ask for access on its page, then `hf auth login`.",
        "RepositoryNotFoundError": "Check the spelling; a private repository needs `hf auth login`.",
        "LocalEntryNotFoundError": "Unset HF_HUB_OFFLINE, or download it first with `hf download`.",
        "OfflineModeIsEnabled": "Unset HF_HUB_OFFLINE, or download what is needed first with `hf download`.",
        "EntryNotFoundError": "Check the name of the file and the revision.",
        "HFValidationError": "Expected a name such as ORG/NAME.",
        "HfHubHTTPError": "Check the network and `hf auth whoami`, then try again.",
        "LocalTokenNotFoundError": "Log in with `hf auth login`.",
        "StrictDataclassError": "Correct config.json of the model, or take the model again.",
    },
    "httpx2": {"HTTPError": _ADDRESS},
    "httpx": {"HTTPError": _ADDRESS},
    "requests": {"RequestException": _ADDRESS},
    "safetensors": {"SafetensorError": "The file of weights is damaged or cut off: take it again."},
    "pyarrow": {"ArrowException": "The table is damaged or was made by something else: make it again."},
    "torch": {"OutOfMemoryError": "Give less at once (--memory, --block), a smaller --dtype or another --device."},
}

_PLACE = "Choose a place that you may read and write; HF_HOME and SEESAW_CF_CACHE say where caches lie."
_BY_NUMBER = {
    errno.ENOSPC: "Free some space or choose another folder, then run the same command again.",
    errno.EDQUOT: "Free some space or choose another folder, then run the same command again.",
    errno.EACCES: _PLACE,
    errno.EPERM: _PLACE,
    errno.EROFS: _PLACE,
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.ELOOP: "The links lead in a circle: name the file itself.",
    errno.EMFILE: "Allow more open files with `ulimit -n`.",
    errno.ENOMEM: "Close other programs, or use a machine with more memory.",
}


class UsageError(Exception):
    """Words that are no call of a command; the message says which."""


def explained(error: BaseException) -> str | None:
    """Explain an error without the traceback: what happened and what to do.

    Returns:
        The message; None for a fault of this package, where the traceback helps.
    """
    if isinstance(error, SeesawError):
        return str(error)
    if isinstance(error, MemoryError):  # that of Arrow is one of its errors, too
        remedy = "Close other programs, give less at once, or use a machine with more memory, then repeat the command."
        return f"not enough memory ({_first_lines(error)}). {remedy}"
    for module, classes in _KNOWN.items():
        for name, remedy in classes.items():
            kind = getattr(sys.modules.get(module), name, None)
            if isinstance(kind, type) and isinstance(error, kind):
                return f"{_first_lines(error)} {remedy}"
    if isinstance(error, ModuleNotFoundError) and not (error.name or "seesaw_cf").startswith("seesaw_cf"):
        return f"the package {error.name!r} is not installed. Install it with `pip install {error.name}`."
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, UnicodeError):
        return f"a text is not UTF-8: {error}. Convert the file it comes from to UTF-8."
    return None


def _of_system(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename is not None else ""
    remedy = _BY_NUMBER.get(error.errno or 0, "Check the path." if place else "")
    return f"{place}{error.strerror or _first_lines(error)}. {remedy}".strip()


def _first_lines(error: BaseException) -> str:
    """Return the beginning of a library's message, on one line and ended by a full stop."""
    message = textwrap.shorten(" ".join(str(error).split()) or type(error).__name__, 400, placeholder=" ...")
    return message if message.endswith((".", "!", "?")) else f"{message}."
