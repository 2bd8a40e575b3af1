"""Options that the commands which edit a model share, the job they describe, and the types of numbers and paths.

No option is a bare `int`, `float` or `str` path: `nan`, `-1` and a name with a NUL in it are refused while the command
line is read, with the option's name, what was got and what was expected.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from seesaw_cf import checks
from seesaw_cf.cli.paths import name_or_source, output_file, own_folder, source
from seesaw_cf.editors import EDITORS
from seesaw_cf.editors.control_names import CONTROLS
from seesaw_cf.errors import unknown_name

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from seesaw_cf.run.prepare import Job
    from seesaw_cf.types import Case


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


def _refused(text: str, expected: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"got {checks.shown(text, 80)}, expected {expected}")


SCORERS = ("auto", "trie", "plain", "single")
SCORES = ("summed", "normalised", "log_odds")
AXES = ("gender", "race", "region")

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


def one_of(*names: str) -> dict[str, Any]:
    """`type` and `metavar` of an option that takes one of a few names; the help lists them, an error suggests one."""

    def convert(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(str(unknown_name("value", text, names)))
        return text

    return {"type": convert, "metavar": f"{{{','.join(names)}}}"}


def model_options(
    parser: argparse.ArgumentParser,
    about: str = "'seesaw-tiny', a Hub id, a folder or a GGUF file; `seesaw-cf list models` has more",
    **defaults: Any,
) -> None:
    """Adds which model is loaded, and how.

    Args:
        parser: Of the command.
        about: What `--model` may name.
        **defaults: `default=argparse.SUPPRESS` when a preset says what is not given.
    """
    add = parser.add_argument
    add("--model", type=name_or_source, help=about, required=not defaults, **defaults)
    add("--revision", help="branch, tag or commit of a Hub model", **defaults)
    dtypes = one_of("float32", "float64", "bfloat16", "float16")
    add("--dtype", **dtypes, help="of weights and sums (default: float32)", **{"default": "float32"} | defaults)
    devices = "auto, cpu, cuda:1, ..., or balanced: one model over all GPUs (default: auto)"
    add("--device", help=devices, **{"default": "auto"} | defaults)
    add("--trust-remote-code", action="store_true", help="run code from the model's repository", **defaults)


def load(args: argparse.Namespace) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model that `model_options` name, and its tokenizer.

    Raises:
        SeesawError: See `load_model`.
    """
    from seesaw_cf.models.load import load_model

    how = {name: getattr(args, name) for name in ("device", "dtype", "revision", "trust_remote_code")}
    return load_model(args.model, **how)


def data_options(parser: argparse.ArgumentParser) -> None:
    """Adds where the cases come from."""
    add = parser.add_argument
    add(
        "--data",
        type=name_or_source,
        default="sample",
        help="'sample', 'sample-claims', a dataset folder, a .json or .parquet file, or a Hub id",
    )
    add("--config", action="append", help="dataset config; give it again for more (default: cross_subject)")


def cases_of(args: argparse.Namespace) -> list[Case]:
    """The cases that `data_options` name.

    Raises:
        SeesawError: See `load_cases`.
    """
    from seesaw_cf.records.load import load_cases

    return [case for config in args.config or ("cross_subject",) for case in load_cases(args.data, config)]


def editor_options(parser: argparse.ArgumentParser, *, needed: bool = True, **defaults: Any) -> None:
    """Adds the editors, their settings and the texts that they learn from.

    Args:
        parser: Of the command.
        needed: At least one editor must be named.
        **defaults: See `model_options`.
    """
    add = parser.add_argument
    editors = f"editing method, out of {', '.join(EDITORS)}; give it again for more"
    add("--editor", action="append", required=needed and not defaults, help=editors, **defaults)
    add("--editor-config", type=source, help='JSON file: {"memit": {"layers": [3, 4]}, ...}', **defaults)
    corpus_options(parser)
    moments_option(parser)


def output_options(parser: argparse.ArgumentParser, what: str = "run folder") -> None:
    """Adds the folder of a job that can be continued, and whether bars are shown."""
    parser.add_argument("--out", type=own_folder, required=True, help=f"{what}; an interrupted job in it is continued")
    quiet_option(parser)


def quiet_option(parser: argparse.ArgumentParser) -> None:
    """Adds whether progress bars are shown."""
    parser.add_argument("--quiet", action="store_true", help="no progress bars")


def full_option(parser: argparse.ArgumentParser) -> None:
    """Add `--full`."""
    parser.add_argument("--full", action="store_true", help="print every table of a run's report, not one screen")


def open_option(parser: argparse.ArgumentParser) -> None:
    """Adds whether the page is shown."""
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def seed_option(parser: argparse.ArgumentParser, what: str = "everything that is drawn", **defaults: Any) -> None:
    """Adds the seed."""
    parser.add_argument("--seed", type=seed, help=f"seed of {what} (default: 0)", **{"default": 0} | defaults)


def server_options(parser: argparse.ArgumentParser, **defaults: Any) -> None:
    """Adds an OpenAI-compatible server."""
    add = parser.add_argument
    add("--base-url", help="OpenAI-compatible server, such as http://localhost:8000/v1", **{"default": ""} | defaults)
    key = "environment variable with the server's key; '' for a server without keys (default: OPENAI_API_KEY)"
    add("--key-env", help=key, **{"default": "OPENAI_API_KEY"} | defaults)


def json_option(parser: argparse.ArgumentParser) -> None:
    """Adds the file that takes every number."""
    parser.add_argument("--json", type=output_file, metavar="FILE", help="also write every number to this file")


def job_options(parser: argparse.ArgumentParser, needs_editor: bool = True) -> None:
    """Adds the model, the editors, the data and what makes a run repeatable; each is a field of `Job`."""
    model_options(parser)
    editor_options(parser, needed=needs_editor)
    add = parser.add_argument
    add("--control", action="append", **one_of(*CONTROLS), help="negative control of every editor; repeatable")
    data_options(parser)
    seed_option(parser)
    add("--threads", type=threads, help="CPU threads; results depend on them in the last digits (default: torch's)")


def corpus_options(parser: argparse.ArgumentParser) -> None:
    """Adds the texts that editors learn from."""
    text = (
        "texts for second moments: a text file (one a line), FILE.jsonl:COLUMN, FILE.parquet:COLUMN, or a Hub data set"
    )
    add = parser.add_argument
    add("--corpus", type=name_or_source, default=argparse.SUPPRESS, help=f"{text} ORG/NAME:CONFIG:SPLIT:COLUMN")
    limit = "most texts of --corpus, drawn with --seed (default: 100,000)"
    add("--corpus-limit", type=positive, default=argparse.SUPPRESS, help=limit)


def moments_option(parser: argparse.ArgumentParser) -> None:
    """Adds second moments that are there already."""
    text = "second moments in place of texts: a folder, a set of `moments list`, or ORG/NAME after `moments pull`"
    parser.add_argument("--moments", type=name_or_source, metavar="SET", default=argparse.SUPPRESS, help=text)


def fields_of(kind: type[Any], args: argparse.Namespace) -> dict[str, Any]:
    """The parsed options that are fields of a dataclass; what a command has no option for keeps its default."""
    return {field.name: getattr(args, field.name) for field in fields(kind) if hasattr(args, field.name)}


def job_of(args: argparse.Namespace) -> Job:
    """The job that parsed options describe; options that a command does not have keep the job's defaults.

    Raises:
        RecordError: A number below 1.
    """
    from seesaw_cf.run.prepare import Job

    named = {
        "editors": tuple(args.editor or ()),
        "edited": tuple(getattr(args, "edited", None) or ()),
        "controls": tuple(args.control or ()),
        "configs": tuple(args.config or ("cross_subject",)),
    }
    return Job(**fields_of(Job, args) | named)
