"""`seesaw-cf run`: the main job."""

from __future__ import annotations

import argparse
import re

from seesaw_cf.checks import shown
from seesaw_cf.cli.options import (
    SCORERS,
    at_least_zero,
    full_option,
    job_of,
    job_options,
    one_of,
    open_option,
    output_options,
    positive,
)
from seesaw_cf.cli.output import open_page, say
from seesaw_cf.cli.paths import name_or_source, output_folder, source
from seesaw_cf.run.explain import explain


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf run`."""
    job_options(parser, needs_editor=False)
    add = parser.add_argument
    edited = "model that somebody else edited: a checkpoint, LoRA adapter or saved delta; repeatable"
    where = "WHERE is a folder or ORG/NAME[@REVISION]"
    add("--edited", action="append", type=name_or_source, metavar="NAME=WHERE", help=f"{edited}; {where}")
    requests = "record file with the facts that the models of --edited were edited for (default: none is claimed)"
    add("--requests", type=source, metavar="FILE", help=requests)
    add("--limit", type=positive, help="only this many cases of each config, sampled with the seed")
    left = "leave out people on whom the settings of --editor-config were tuned (they are refused otherwise)"
    add("--leave-out-tuned", action="store_true", help=left)
    protocols = "single: edit, score, restore; batch: all cases of a relation are edited together (default: single)"
    add("--protocol", **one_of("single", "batch"), default="single", help=protocols)
    scorers = "trie: each prefix once; plain: padded batches; single: no batches (default: auto)"
    add("--scorer", **one_of(*SCORERS), default="auto", help=scorers)
    add("--max-tokens", type=positive, help="tokens in one forward pass (default: what suits the device)")
    add("--block", type=positive, default=8, help="edits that are made and scored together (default: 8)")
    add("--memory", type=_bytes, help="memory for scoring beside the model, such as 4GiB")
    add("--engine", **one_of("local", "ray"), default="local", help="local also runs under torchrun (default: local)")
    add("--actors", type=positive, help="ray: number of actors (default: one per GPU, else per CPU)")
    add("--gpus", type=at_least_zero, help="ray: GPUs of one actor, such as 0.5 (default: 1 where there are any)")
    add("--ray-address", help="ray: a running cluster, or 'auto' (default: start one here)")
    add("--explain", action="store_true", help="say how each block of edits is scored, and what it costs")
    add("--anyway", action="store_true", help="go on when an editor's first edits spoil what the model knew of others")
    output_options(parser)
    add("--report", type=output_folder, help="folder for tables and pictures (default: OUT/report)")
    full_option(parser)
    open_option(parser)
    add("--keep-deltas", action="store_true", help="save every edit below OUT/deltas, for `seesaw-cf share`")
    add("--checkpoints", action="store_true", help="write every edit as a whole model below OUT/checkpoints")


def _bytes(text: str) -> int:
    """The number of bytes that "4GiB" means."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None or len(text) > 40:
        raise argparse.ArgumentTypeError(f"got {shown(text, 80)}, expected an amount of memory such as 4GiB or 500MB")
    power = "KMGT".find(match[2].upper()) + 1 if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def run(args: argparse.Namespace) -> None:
    """Run the job that the options describe and print its conclusion, or all its tables."""
    from seesaw_cf.run.job import run_job

    if args.explain:
        explain()
    merged = run_job(
        job_of(args),
        args.out,
        keep_deltas=args.keep_deltas,
        progress=not args.quiet,
        engine=args.engine,
        actors=args.actors,
        gpus=args.gpus,
        address=args.ray_address,
    )
    if not merged:
        return
    from seesaw_cf.report import write_report

    say(write_report(args.out, args.report, full=args.full))
    if args.open:
        open_page((args.report or args.out / "report") / "report.html")
