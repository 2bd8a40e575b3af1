"""`seesaw-cf noise`: how far a score moves when only the batch changes."""

from __future__ import annotations

import argparse

from seesaw_cf.base.terminal import wrap
from seesaw_cf.base.types import SCORERS
from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.options import DATA, cases_of, json_option, load, model_options, seed_option
from seesaw_cf.cli.output import say, write_numbers
from seesaw_cf.cli.types import one_of, positive
from seesaw_cf.run.jobs import Job


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf noise`."""
    model_options(parser)
    add = parser.add_argument
    options_from(parser, Job, DATA)
    add("--clozes", type=positive, default=256, help="how many, drawn with the seed (default: 256)")
    add("--scorer", **one_of(*SCORERS), default="auto", help="whose noise, as for `seesaw-cf run` (default: auto)")
    seed_option(parser)
    json_option(parser)


def run(args: argparse.Namespace) -> None:
    """Measure and print."""
    from seesaw_cf.run.questions import sample_clozes
    from seesaw_cf.scoring.choose import make_scorer
    from seesaw_cf.scoring.noise import measure_noise

    clozes = sample_clozes(cases_of(args), args.clozes, args.seed)
    model, tokenizer = load(args)
    scorer, _ = make_scorer(model, tokenizer, args.scorer)
    noise = measure_noise(scorer, clozes, args.seed)
    write_numbers(args, noise.record())
    say(wrap(str(noise)))
