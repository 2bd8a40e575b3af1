"""`seesaw-cf noise`: how far a score moves when only the batch changes."""

from __future__ import annotations

import argparse
import json

from seesaw_cf.cli.options import model_options, positive, seed
from seesaw_cf.cli.output import say
from seesaw_cf.terminal import wrap

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf noise`."""
    model_options(parser)
    add = parser.add_argument
    add("--data", default="sample", help="where the clozes come from: as for `seesaw-cf run`")
    add("--config", default="cross_subject", help="dataset config (default: cross_subject)")
    add("--clozes", type=positive, default=256, help="how many, drawn with the seed (default: 256)")
    add("--scorer", default="auto", help="whose noise: as for `seesaw-cf run`")
    add("--seed", type=seed, default=0)
    add("--json", action="store_true", help="print the record that a manifest would hold")


def run(args: argparse.Namespace) -> None:
    """Measures and prints."""
    from seesaw_cf.pretrained import load_model
    from seesaw_cf.questions import some_clozes
    from seesaw_cf.reading import load_cases
    from seesaw_cf.scoring.choose import make_scorer
    from seesaw_cf.scoring.noise import measure_noise

    clozes = some_clozes(load_cases(args.data, args.config), args.clozes, args.seed)
    model, tokenizer = load_model(
        args.model,
        device=args.device,
        dtype=args.dtype,
        revision=args.revision,
        trust_remote_code=args.trust_remote_code,
    )
    scorer, _ = make_scorer(model, tokenizer, args.scorer)
    noise = measure_noise(scorer, clozes, args.seed)
    say(json.dumps(noise.record()) if args.json else wrap(str(noise)))
