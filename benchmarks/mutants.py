"""Wrong implementations that somebody could write: what the source says, what it would say, which tests must fail."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

__all__ = ["MUTANTS", "Mutant"]


class Mutant(NamedTuple):
    """One wrong line.

    Attributes:
        name: For `--only`.
        file: From the repository's root.
        right: Text that occurs exactly once in the file.
        wrong: What is put in its place.
        what: What is wrong with it.
        tests: Fast tests, files or single ones, of which one must fail.
    """

    name: str
    file: str
    right: str
    wrong: str
    what: str
    tests: tuple[str, ...]


def _read() -> tuple[Mutant, ...]:
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["mutant"]
    return tuple(Mutant(**row | {"tests": tuple(row["tests"])}) for row in rows)


MUTANTS = _read()
