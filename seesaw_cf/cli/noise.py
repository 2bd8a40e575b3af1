"""`seesaw-cf noise`: how far a score moves when only the batch changes."""

from __future__ import annotations

import argparse
import json

from seesaw_cf.cli.output import say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf noise`."""
    add = parser.add_argument
    add("--model", required=True, help="'seesaw-tiny', a Hub id or a folder")
    add("--revision", help="branch, tag or commit of a Hub model")
    add("--dtype", default="float32", choices=("float32", "float64", "bfloat16", "float16"))
    add("--device", default="auto", help="auto, cpu, cuda:1, ..., or balanced: one model over all GPUs (default: auto)")
    add("--trust-remote-code", action="store_true", help="run code from the model's repository")
    add("--data", default="sample", help="where the clozes come from: as for `seesaw-cf run`")
    add("--config", default="cross_subject", help="dataset config (default: cross_subject)")
    add("--clozes", type=int, default=256, help="how many, drawn with the seed (default: 256)")
    add("--scorer", default="auto", help="whose noise: as for `seesaw-cf run`")
    add("--seed", type=int, default=0)
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
    say(json.dumps(noise.record()) if args.json else str(noise))
