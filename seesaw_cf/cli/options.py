"""Options that the commands which edit a model share, the job they describe, and the types of numbers and paths.

No option is a bare `int`, `float` or `str` path: `nan`, `-1` and a name with a NUL in it are refused while the command
line is read, with the option's name, what was got and what was expected.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf import checks

if TYPE_CHECKING:
    from seesaw_cf.job import Job

__all__ = [
    "above_zero",
    "at_least_one",
    "at_least_zero",
    "corpus_options",
    "count",
    "finite",
    "inside",
    "job_of",
    "job_options",
    "model_options",
    "number",
    "path",
    "positive",
    "seconds",
    "seed",
    "share",
    "threads",
    "whole",
]


def whole(low: int = 0, high: int = checks.MOST) -> Callable[[str], int]:
    """The type of an option that is a whole number in a range, both ends included."""

    def convert(text: str) -> int:
        # Python refuses to read numbers of some thousand digits.
        value = int(text) if re.fullmatch(r"\s*[+-]?\d{1,40}\s*", text) else None
        if value is None or not low <= value <= high:
            raise _refused(text, checks.expected_number(low, high, kind="whole number"))
        return value

    return convert


def number(low: float = -math.inf, high: float = math.inf, *, ends: bool = True) -> Callable[[str], float]:
    """The type of an option that is a finite number in a range; `ends`: its finite ends belong to it."""

    def convert(text: str) -> float:
        try:
            return checks.number("", float(text), low, high, ends=ends)
        except ValueError as error:  # a RecordError is one, too
            raise _refused(text, checks.expected_number(low, high, ends=ends)) from error

    return convert


def path(text: str) -> Path:
    """The type of an option that names a file or folder, there or not."""
    long = [part for part in Path(text).parts if len(os.fsencode(part)) > _LONGEST_NAME]
    if not text or "\0" in text or long:
        raise _refused(text, f"a path without NUL characters whose names have at most {_LONGEST_NAME} bytes")
    return Path(text)


def _refused(text: str, expected: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"got {checks.shown(text, 80)}, expected {expected}")


# Of one name in a path, on every file system in use.
_LONGEST_NAME = 255

count = whole(0)
positive = whole(1)
seed = whole(0, checks.LAST_SEED)
threads = whole(1, checks.MOST_THREADS)
finite = number()
above_zero = number(0, ends=False)
at_least_zero = number(0)
share = number(0, 1)
inside = number(0, 1, ends=False)
at_least_one = number(1)
seconds = number(0, 1e6, ends=False)


def model_options(parser: argparse.ArgumentParser) -> None:
    """Adds which model is loaded, and how."""
    add = parser.add_argument
    add("--model", required=True, help="'seesaw-tiny', a Hub id or a folder")
    add("--revision", help="branch, tag or commit of a Hub model")
    add("--dtype", default="float32", choices=("float32", "float64", "bfloat16", "float16"))
    add("--device", default="auto", help="auto, cpu, cuda:1, ..., or balanced: one model over all GPUs (default: auto)")
    add("--trust-remote-code", action="store_true", help="run code from the model's repository")


def job_options(parser: argparse.ArgumentParser) -> None:
    """Adds the model, the editors, the data and what makes a run repeatable; each is a field of `Job`."""
    model_options(parser)
    add = parser.add_argument
    add("--editor", action="append", required=True, help="editing method; give it again for more")
    add(
        "--control", action="append", help="negative control of every editor: identity, random or unrelated; repeatable"
    )
    add("--editor-config", type=path, help='JSON file: {"memit": {"layers": [3, 4]}, ...}')
    corpus_options(parser)
    add("--data", default="sample", help="'sample', a dataset folder, a .json or .parquet file, or a Hub id")
    add("--config", action="append", help="dataset config; give it again for more (default: cross_subject)")
    add("--seed", type=seed, default=0)
    add("--threads", type=threads, help="CPU threads; results depend on them in the last digits (default: torch's)")


def corpus_options(parser: argparse.ArgumentParser) -> None:
    """Adds the texts that editors learn from."""
    text = (
        "texts for second moments: a text file (one a line), FILE.jsonl:COLUMN, FILE.parquet:COLUMN, or a Hub data set"
    )
    add = parser.add_argument
    add("--corpus", default=argparse.SUPPRESS, help=f"{text} ORG/NAME:CONFIG:SPLIT:COLUMN")
    limit = "most texts of --corpus, drawn with --seed (default: 100,000)"
    add("--corpus-limit", type=positive, default=argparse.SUPPRESS, help=limit)


def job_of(args: argparse.Namespace) -> Job:
    """The job that parsed options describe; options that a command does not have keep the job's defaults.

    Raises:
        RecordError: A number below 1.
    """
    from seesaw_cf.job import Job

    given = {field.name: getattr(args, field.name) for field in fields(Job) if hasattr(args, field.name)}
    named = {
        "editors": tuple(args.editor),
        "controls": tuple(args.control or ()),
        "configs": tuple(args.config or ("cross_subject",)),
    }
    return Job(**given | named)
