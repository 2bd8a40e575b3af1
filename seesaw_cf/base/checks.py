"""Checks of arguments: each returns its value, or raises: where, what was got, what was expected.

Functions and options use the same ones, so that `margin=float("nan")` and `--margin nan` are refused alike. Nothing
heavy is imported here.
"""

from __future__ import annotations

import contextlib
import errno
import math
import numbers
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from seesaw_cf.base.errors import RecordError, SeesawError, StorageError, hide_secrets, unknown_name

T = TypeVar("T")

# Largest whole number that every library behind this package takes for a size.
LARGEST = 2**31 - 1
# Largest seed that numpy, torch and scikit-learn all take.
LAST_SEED = 2**32 - 1
# A million samples tell an interval's ends to a thousandth of its length; more only fill the memory.
MOST_DRAWS = 1_000_000
# More threads than any machine has cores can make torch fail, or the machine stand still.
MOST_THREADS = 1024


@dataclass(frozen=True)
class Range:
    """A range of numbers, a check by itself and as metadata of `Annotated`.

    Attributes:
        low, high: Its ends.
        ends: Its finite ends belong to it.
        whole: Only whole numbers are in it.
    """

    low: float = -math.inf
    high: float = math.inf
    ends: bool = True
    whole: bool = False

    @property
    def words(self) -> str:
        """The numbers of the range, for messages."""
        kind, low, high = f"a {'whole' if self.whole else 'finite'} number", self.low, self.high
        if low == -math.inf and high == math.inf:
            return kind
        if high in (math.inf, LARGEST):
            return f"{kind} {f'of at least {low}' if self.ends else f'above {low}'}"
        if low == -math.inf:
            return f"{kind} {f'of at most {high}' if self.ends else f'below {high}'}"
        return f"{kind} {f'from {low} to {high}' if self.ends else f'between {low} and {high}, both excluded'}"

    def check(self, where: str, value: Any, error: type[SeesawError] = RecordError) -> float:
        """Return a value that is in the range.

        Raises:
            RecordError: (or `error`) It is not a number, not finite or outside.
        """
        kind = is_finite(value) and (isinstance(value, numbers.Integral) or not self.whole)
        if kind and (self.low <= value <= self.high if self.ends else self.low < value < self.high):
            return value  # type: ignore[no-any-return]
        raise error(f"{where} is {shown(value)}, expected {self.words}.")


def number(where: str, value: object, low: float = -math.inf, high: float = math.inf, *, ends: bool = True) -> float:
    """Check that a value is a finite number in a range, and return it as a float.

    Raises:
        RecordError: See `Range.check`.
    """
    return float(Range(low, high, ends).check(where, value))


def whole(where: str, value: object, low: int = 0, high: int = LARGEST) -> int:
    """Check that a value is a whole number in a range, both ends included, and return it.

    Raises:
        RecordError: It is something else.
    """
    return int(Range(low, high, whole=True).check(where, value))


def seed(where: str, value: object) -> int:
    """Check that a value is a seed that every random generator takes, 0 to 2**32 - 1, and return it.

    Raises:
        RecordError: It is something else.
    """
    return whole(where, value, 0, LAST_SEED)


def draws(where: str, value: object) -> int:
    """Check how many samples are to be drawn, 0 (no interval) to 1,000,000, and return it.

    Raises:
        RecordError: It is something else.
    """
    return whole(where, value, 0, MOST_DRAWS)


def text(where: str, value: object, *, empty: bool = True) -> str:
    """Check that a value is text that can be written as UTF-8, without half a surrogate pair, and return it.

    Raises:
        RecordError: It is something else, or is blank although `empty` is False.
    """
    if not isinstance(value, str) or not (empty or value.strip()):
        raise RecordError(f"{where} is {shown(value)}, expected text.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as found:
        raise RecordError(
            f"{where} is {shown(value)}: character {found.start} is half a surrogate pair, which no UTF-8 file can "
            "hold. Repair the text where it comes from."
        ) from found
    return value


def check_path(path: str | os.PathLike[str]) -> Path:
    """Check that a path can be asked for, and return it.

    Raises:
        RecordError: It is not a path, is empty or too long, or holds a NUL character or half a surrogate pair.
        StorageError: It is in a folder that this user may not look into.
    """
    if isinstance(path, str | os.PathLike) and isinstance(os.fspath(path), str) and os.fspath(path):
        try:
            os.stat(path)
        except PermissionError as error:  # neither to be read nor to be made
            raise StorageError(f"{shown(path)}: no right to look into its folder. Choose another.") from error
        except ValueError as error:
            raise RecordError(f"{shown(path)} is no path of a file or folder: {error}. Choose another name.") from error
        except OSError as error:  # what is not there is up to the caller
            if error.errno == errno.ENAMETOOLONG:
                raise RecordError(f"{shown(path)} is too long a path. Choose a shorter name.") from error
        return Path(path)
    raise RecordError(f"{shown(path)} is no path of a file or folder: expected a name.")


def one_of(kind: str, value: object, names: Collection[str]) -> str:
    """Check that a name is in a known list, and return it.

    Raises:
        UnknownNameError: It is not in the list; near names are suggested.
    """
    if isinstance(value, str) and value in names:
        return value
    raise unknown_name(kind, value, names)


def instance(where: str, value: object, kind: type[T], expected: str = "") -> T:
    """Check that a value is an object of a class, and return it.

    Raises:
        RecordError: It is something else.
    """
    if isinstance(value, kind):
        return value
    raise RecordError(f"{where} is {shown(value)}, expected {expected or f'a {kind.__name__}'}.")


def items(where: str, value: object, expected: str = "a list") -> tuple[object, ...]:
    """Return the items of a list; a string or bytes is not a list.

    Raises:
        RecordError: It cannot be iterated over, or is one string.
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray) and getattr(value, "ndim", True):
        return tuple(value)
    raise RecordError(f"{where} is {shown(value)}, expected {expected}.")


def each(where: str, value: object, check: Callable[[str, object], T]) -> tuple[T, ...]:
    """Check each item of a list and return what the checks return; the message names the position.

    Raises:
        RecordError: It is not a list, or an item was refused.
    """
    return tuple(check(f"{where}[{index}]", item) for index, item in enumerate(items(where, value)))


def shown(value: object, most: int = 120) -> str:
    """Return a value as it is shown in a message: its `repr`, cut to a length, with half surrogate pairs escaped."""
    try:
        text = repr(value)
    except Exception:  # a broken __repr__ must not hide the message it is for
        text = f"a {type(value).__name__}"
    text = hide_secrets(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def brief(record: Any) -> str:
    """Return a dataclass as text of at most 2,000 characters: every field, long values cut."""
    room = 1800 // len(fields(record)) - 20
    parts = (f"{field.name}={shown(getattr(record, field.name), room)}" for field in fields(record))
    return f"{type(record).__name__}({', '.join(parts)})"


def address(where: str, value: str, like: str = "http://localhost:8000/v1") -> SplitResult:
    """Check the address of a server and return its parts.

    Raises:
        RecordError: It is none of http or https with a host.
    """
    with contextlib.suppress(ValueError):
        parts = urlsplit(value)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    raise RecordError(f"{where} is {shown(value)}, expected one such as {like}.")


def is_finite(value: object) -> bool:
    """Return whether a value is a number, no bool, that is finite as a float."""
    try:
        return not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)
    except OverflowError:
        return False
