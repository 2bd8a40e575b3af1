"""Types of options: `nan`, `-1` and a misspelt name are refused while the command line is read.

An error names the option, what was got and what was expected.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import TypedDict

from seesaw_cf.base import checks
from seesaw_cf.base.errors import unknown_name


def whole(low: int = 0, high: int = checks.LARGEST) -> Callable[[str], int]:
    """Return the type of an option that is a whole number in a range, both ends included."""

    def convert(text: str) -> int:
        # Python refuses to read numbers of some thousand digits.
        value = int(text) if re.fullmatch(r"\s*[+-]?\d{1,40}\s*", text) else None
        if value is None or not low <= value <= high:
            raise _refused(text, checks.expected_number(low, high, kind="whole number"))
        return value

    return convert


def number(low: float = -math.inf, high: float = math.inf, *, ends: bool = True) -> Callable[[str], float]:
    """Return the type of an option that is a finite number in a range; `ends`: its finite ends belong to it."""

    def convert(text: str) -> float:
        try:
            return checks.number("", float(text), low, high, ends=ends)
        except ValueError as error:  # a RecordError is one, too
            raise _refused(text, checks.expected_number(low, high, ends=ends)) from error

    return convert


def _refused(text: str, expected: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"got {checks.shown(text, 80)}, expected {expected}")


count = whole(0)
positive = whole(1)
seed = whole(0, checks.LAST_SEED)
threads = whole(1, checks.MOST_THREADS)
finite = number()
above_zero = number(0, ends=False)
at_least_zero = number(0)
share = number(0, 1)
inside = number(0, 1, ends=False)
seconds = number(0, 1e6, ends=False)


class Choice(TypedDict):
    """What `add_argument` takes for an option with a few values."""

    type: Callable[[str], str]
    metavar: str


def one_of(*names: str) -> Choice:
    """Return `type` and `metavar` of an option with a few names; the help lists them, an error suggests one."""

    def convert(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(str(unknown_name("value", text, names)))
        return text

    return {"type": convert, "metavar": f"{{{','.join(names)}}}"}


def positive_or_all(text: str) -> int | str:
    """Return a whole number from 1, or "all"."""
    if text != "all" and not re.fullmatch(r"0*[1-9]\d{0,15}", text):
        raise _refused(text, "a whole number of at least 1, or all")
    return text if text == "all" else positive(text)


def memory_size(text: str) -> int:
    """Return the number of bytes that "4GiB" means."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None or len(text) > 40:
        raise _refused(text, "an amount of memory such as 4GiB or 500MB")
    power = "KMGT".find(match[2].upper()) + 1 if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def relation_pair(value: str) -> tuple[str, str]:
    """Return the two relations of "P27,P101"."""
    parts = value.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"{value!r} is no pair of relations; expected something like P27,P101")
    return parts[0].strip(), parts[1].strip()
