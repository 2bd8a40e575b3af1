"""Options that several commands share, and the job that they describe."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from seesaw_cf.cli.from_fields import options_from, values_of
from seesaw_cf.cli.paths import output_file, own_folder
from seesaw_cf.cli.types import seed
from seesaw_cf.models.names import check_model_name
from seesaw_cf.run.jobs import Job

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from seesaw_cf.base.types import Case

MODEL = ("model", "revision", "dtype", "device", "trust_remote_code")
DATA = ("data", "configs")
DESIGN = ("design", "prompts_per_person", "holders")
CORPUS = ("corpus", "corpus_limit")
# What every command that edits a model takes; the others are options of `run` alone.
EDITING = (*MODEL, "editors", "editor_config", *CORPUS, "moments", "controls", *DATA, *DESIGN, "seed", "threads")


def model_options(parser: argparse.ArgumentParser, **helps: str) -> None:
    """Add which model is loaded, and how; `helps` as for `options_from`."""
    options_from(parser, Job, MODEL, helps=helps)


def load(args: argparse.Namespace) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model that `model_options` name, and its tokenizer.

    Raises:
        SeesawError: See `load_model`.
    """
    from seesaw_cf.models.load import load_model

    return load_model(args.model, **{name: getattr(args, name) for name in MODEL[1:]})


def cases_of(args: argparse.Namespace) -> list[Case]:
    """Return the cases that the options of `DATA` name.

    Raises:
        SeesawError: See `load_cases`.
    """
    from seesaw_cf.records.load import load_cases

    return [case for config in args.configs or ("cross_subject",) for case in load_cases(args.data, config)]


def output_options(parser: argparse.ArgumentParser, what: str = "run folder") -> None:
    """Add the folder of a job that can be continued, and whether bars are shown."""
    parser.add_argument("--out", type=own_folder, required=True, help=f"{what}; an interrupted job in it is continued")
    quiet_option(parser)


def quiet_option(parser: argparse.ArgumentParser) -> None:
    """Add `--quiet`."""
    parser.add_argument("--quiet", action="store_true", help="no progress bars")


def paper_option(parser: argparse.ArgumentParser) -> None:
    """Add `--paper`."""
    what = "also the papers' tables and figures, by the published rules (papers.md)"
    parser.add_argument("--paper", action="store_true", help=what)


def report_options(parser: argparse.ArgumentParser, *, pictures: bool = True) -> None:
    """Add what a command that writes a report draws, prints and opens; not every report has pictures."""
    if pictures:
        parser.add_argument("--pictures", action="store_true", help="write every picture as a file too")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def seed_option(parser: argparse.ArgumentParser, what: str = "everything that is drawn") -> None:
    """Add `--seed`."""
    parser.add_argument("--seed", type=seed, default=0, help=f"seed of {what} (default: 0)")


def server_options(parser: argparse.ArgumentParser) -> None:
    """Add an OpenAI-compatible server."""
    parser.add_argument("--base-url", default="", help="OpenAI-compatible server, such as http://localhost:8000/v1")
    what = "environment variable with the server's key, '' for a server without (default: OPENAI_API_KEY)"
    parser.add_argument("--key-env", default="OPENAI_API_KEY", help=what)


def json_option(parser: argparse.ArgumentParser) -> None:
    """Add the file that takes every number."""
    parser.add_argument("--json", type=output_file, metavar="FILE", help="also write every number to this file")


def job_of(args: argparse.Namespace) -> Job:
    """Return the job that parsed options describe; options that a command does not have keep the job's defaults.

    Raises:
        RecordError: A number below 1, a malformed address, or a data folder without configs.
        UnknownNameError: The model's name can be none, or the data set on this machine has no such config.
    """
    job = Job(**values_of(Job, args))
    check_model_name(job.model)
    from seesaw_cf.records.load import check_configs

    check_configs(job.data, job.configs)
    return job
