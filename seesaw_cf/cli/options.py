"""Options that the commands which edit a model share, and the job they describe."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seesaw_cf.job import Job

__all__ = ["job_of", "job_options", "model_options", "positive"]


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
    add("--editor-config", type=Path, help='JSON file: {"memit": {"layers": [3, 4]}, ...}')
    add("--corpus", type=Path, help="text file, one text a line, for the editors' second moments")
    add("--data", default="sample", help="'sample', a dataset folder, a .json or .parquet file, or a Hub id")
    add("--config", action="append", help="dataset config; give it again for more (default: cross_subject)")
    add("--seed", type=int, default=0)
    add("--threads", type=positive, help="CPU threads; results depend on them in the last digits (default: torch's)")


def job_of(args: argparse.Namespace) -> Job:
    """The job that parsed options describe; options that a command does not have keep the job's defaults.

    Raises:
        RecordError: A number below 1.
    """
    from seesaw_cf.job import Job

    given = {field.name: getattr(args, field.name) for field in fields(Job) if hasattr(args, field.name)}
    return Job(**given | {"editors": tuple(args.editor), "configs": tuple(args.config or ("cross_subject",))})


def positive(text: str) -> int:
    """A whole number of at least 1, as an option's type."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a whole number of at least 1")
    return int(text)
