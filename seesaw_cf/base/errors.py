"""Every error the package raises on purpose.

One root, `SeesawError`; each leaf also is the builtin it resembles, so a caller can catch either. Messages tell where,
what was got, what was expected and what to do.

    SeesawError
    ├── RecordError (ValueError)          a data record that cannot be used as it is
    ├── UnknownNameError (LookupError)    a name outside a known list; suggests near ones
    ├── PromptError (ValueError)          a prompt, subject or target that cannot be tokenised as asked
    ├── DeltaMismatchError (ValueError)   a weight delta that does not belong to this model
    ├── EditError (RuntimeError)          an edit that failed or was refused
    │   └── SettingError (ValueError)     a setting of an editor no edit could run with
    ├── UnsupportedModelError (TypeError) a model the table of architectures does not cover
    ├── MissingExtraError (ImportError)   a package of an extra that is not installed
    ├── RunFolderError (RuntimeError)     a run folder that is incomplete or belongs to another run
    ├── ServiceError (ConnectionError)    a server that cannot be used as it is asked: key, model or address
    ├── HarmError (AssertionError)        an audit that found harm where none was allowed
    └── StorageError (OSError)            a file that could not be written or read
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

# A path keeps one of the two slashes.
_USER = re.compile(r"(?<=\w\w)(:/{1,2})[^\s/?#'\"<>]+@")  # with or without a password
_QUERY = re.compile(r"(?<=\w\w)(:/{1,2}[^\s?#'\"<>]*[?#])[^\s'\"<>]+")  # or a fragment


def hide_secrets(text: str) -> str:
    """Return a text with the users, passwords, queries and fragments of its URLs as "***", also of chained URLs (`a::s3://...`).

    Signatures and tokens are in queries and behind "#". Other text is as before.
    """
    return _QUERY.sub(r"\1***", _USER.sub(r"\1***@", text)) if ":/" in text else text


class SeesawError(Exception):
    """Root of every deliberate error of this package."""

    def __str__(self) -> str:
        """Return the message, printable: half surrogate pairs are spelled out, and secrets of URLs are hidden."""
        return hide_secrets(super().__str__().encode("utf-8", "backslashreplace").decode("utf-8"))


class RecordError(SeesawError, ValueError):
    """A data record is malformed, incomplete or contradicts itself."""


class UnknownNameError(SeesawError, LookupError):
    """A name is not in a known list (relation, editor, config, axis, ...)."""


class HarmError(SeesawError, AssertionError):
    """An audit found harm where none was allowed; the message is what it found."""


class PromptError(SeesawError, ValueError):
    """A prompt, subject or target cannot be tokenised or scored as asked."""


class DeltaMismatchError(SeesawError, ValueError):
    """A weight delta names parameters or shapes that this model does not have, or was made on another base."""


class EditError(SeesawError, RuntimeError):
    """An edit failed (NaN loss, singular system) or was refused (quantised model, contradictory requests)."""


class SettingError(EditError, ValueError):
    """A setting of an editor is of another type, not finite or outside its range."""


class UnsupportedModelError(SeesawError, TypeError):
    """The table of architectures has no row for this model, or the layer asked for does not exist."""


class MissingExtraError(SeesawError, ImportError):
    """A package that an extra installs cannot be imported; `name` is the package."""


class RunFolderError(SeesawError, RuntimeError):
    """A run folder is incomplete, damaged or belongs to another model, editor or data set."""


class ServiceError(SeesawError, ConnectionError):
    """A server cannot be used as it is asked: the key is missing or refused, or it does not know the model."""


class StorageError(SeesawError, OSError):
    """A file could not be written or read; nothing half-written is left under its final name."""


@contextmanager
def need(package: str, *, extra: str, what_for: str, otherwise: str = "") -> Iterator[None]:
    """Guard the import of a package that an extra installs: `with need("openai", extra="api", ...): import openai`.

    Args:
        package: What the extra is asked for.
        extra: Of setup.cfg.
        what_for: What cannot be done without it, a noun.
        otherwise: What can be done instead, a sentence.

    Raises:
        MissingExtraError: An import of the block failed; the message tells how to install the extra.
    """
    try:
        yield
    except ImportError as error:
        if isinstance(error, SeesawError) or (error.name or "").split(".")[0] == "seesaw_cf":
            raise  # not the extra's affair
        raise MissingExtraError(
            f"{package}, needed for {what_for}, cannot be imported ({error}). Install it with: "
            f"pip install 'seesaw_cf[{extra}]'{f'. {otherwise}' if otherwise else ''}",
            name=package,
        ) from error


def unknown_name(kind: str, got: object, accepted: Iterable[str]) -> UnknownNameError:
    """Build the error for a name outside a known list, with near matches.

    Args:
        kind: What the name is for, such as "editor".
        got: The name that was asked for, or what was given in its place.
        accepted: Every name that would have been accepted.

    Returns:
        The error, ready to raise.
    """
    names = sorted(accepted)
    by_lower = {name.lower(): name for name in names}
    # A match of a long text is slow to look for, and no help.
    word = got.lower()[:100] if isinstance(got, str) else ""
    near = [by_lower[match] for match in difflib.get_close_matches(word, list(by_lower), n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    value = repr(got).encode("utf-8", "backslashreplace").decode("utf-8")
    value = value if len(value) <= 200 else f"{value[:196]} ..."
    return UnknownNameError(f"unknown {kind} {value}.{hint} Known: {', '.join(names)}.")
