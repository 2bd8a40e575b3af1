"""`seesaw-cf flaws judge`: a language model rates."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from seesaw_cf.cli.options import (
    load,
    model_options,
    pairs_of,
    passages_options,
    report_options,
    server_options,
    wording_option,
)
from seesaw_cf.cli.output import say, show, write_json
from seesaw_cf.cli.paths import output_folder
from seesaw_cf.cli.types import at_least_zero, one_of, positive, share

if TYPE_CHECKING:
    from seesaw_cf.generation.types import Generator


def judge_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `judge`."""
    add = parser.add_argument
    passages_options(parser)
    model_options(parser, model="the judge: 'seesaw-tiny', a Hub id, a folder, or a model's name at --base-url")
    server_options(parser)
    add("--tries", type=positive, default=3, help="asks of a question whose reply cannot be read (default: 3)")
    add("--temperature", type=at_least_zero, default=0.0, help="of the replies (default: 0)")
    add("--sample", type=positive, help="only this many pairs, drawn evenly over relations, as people get them")
    protocol = "published: the judge knows which text is from after the edit (default: blind)"
    add("--protocol", **one_of("blind", "published"), default="blind", help=protocol)
    add("--swap", type=share, default=0.2, help="share of pairs judged in both orders (default: 0.2)")
    add("--rater", default="", help="name of the judge in the tables")
    wording_option(parser)
    add("--out", type=output_folder, required=True, help="folder for page, tables and replies; a second run resumes")
    report_options(parser, pictures=False)


def judge(args: argparse.Namespace) -> None:
    """Rate."""
    from seesaw_cf.base.tables import write_table
    from seesaw_cf.generation import CachedGenerator
    from seesaw_cf.generation.types import Sampling
    from seesaw_cf.texts.flaws.judge import JUDGE_SAMPLING, JudgeOptions, judge_pairs
    from seesaw_cf.texts.report.write import report_people
    from seesaw_cf.texts.wording import read_wording
    from seesaw_cf.texts.write.pairs import sample_pairs

    pairs = sample_pairs(pairs_of(args), args.sample, args.seed)
    generator = CachedGenerator(_generator(args), args.out / "replies")
    sampling = Sampling(JUDGE_SAMPLING.max_new_tokens, args.temperature)
    wording = read_wording(args.wording)
    options = JudgeOptions(args.flaws, args.seed, args.tries, sampling, wording, args.protocol)
    judged = judge_pairs(pairs, generator, options, swap=args.swap, rater=args.rater)
    tables = {"flaws": judged.table, "swapped": judged.swapped, "calls": judged.calls}
    facts = {
        "model": generator.name,
        "seed": args.seed,
        "tries": args.tries,
        "temperature": args.temperature,
        "protocol": args.protocol,
        "wording": wording.facts(),
    }
    results = {**facts, "counts": judged.counts}
    for name, table in tables.items():
        write_table(args.out / f"{name}.parquet", table)
    write_json(args.out / "judge.json", results)
    say(f"{judged.table.num_rows} judgements by {generator.name}: {judged.counts}")
    say(f"Tables, every reply and checks of the judge are in {args.out}.")
    say(report_people([args.out], args.out, judges=[args.rater or generator.name]))
    show(args, args.out / "report.html")


def _generator(args: argparse.Namespace) -> Generator:
    if args.base_url:
        from seesaw_cf.generation import OpenAIGenerator

        api = OpenAIGenerator(args.base_url, args.model, api_key_env=args.key_env, chat=True)
        api.check()
        return api
    from seesaw_cf.generation import HFGenerator

    model, tokenizer = load(args)
    return HFGenerator(model, tokenizer, chat=tokenizer.chat_template is not None)
