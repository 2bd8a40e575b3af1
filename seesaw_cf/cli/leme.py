"""`seesaw-cf leme`: what edited models write at length, and the instruments that rate it."""

from __future__ import annotations

import argparse
from typing import Any

from seesaw_cf.cli.options import at_least_zero, corpus_options, count, path, positive, seed, share
from seesaw_cf.cli.output import say
from seesaw_cf.terminal import markdown_for_terminal
from seesaw_cf.textfiles import read_json

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the sub-commands of `seesaw-cf leme`."""
    from seesaw_cf.longform.training_command import configure_training

    commands = parser.add_subparsers(dest="leme_command", required=True, metavar="run|train-annotator|train-rater")
    text = "write passages before and after edits, rate and annotate them, report"
    _configure_run(commands.add_parser("run", help=text, description=text))
    configure_training(commands)


def _configure_run(parser: argparse.ArgumentParser) -> None:
    def add(*names: str, **options: Any) -> None:
        # Without a default, so that what is not given keeps the value of --config.
        parser.add_argument(*names, default=argparse.SUPPRESS, **options)

    parser.add_argument("--config", default="sample", help="'sample' or a JSON file with options (default: sample)")
    parser.add_argument("--out", type=path, required=True, help="run folder; an interrupted run in it is continued")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    add("--model", help="'seesaw-tiny', a Hub id, a folder, or a model's name at --base-url")
    add("--editor", dest="editors", action="append", help="editing method; give it again for more")
    corpus_options(parser)
    add("--editor-config", type=path, help='JSON file: {"memit": {"layers": [3, 4]}, ...}')
    add("--data", help="'sample', a dataset folder, a Parquet file, or a Hub id")
    add("--configs", nargs="+", help="coupled_counterfact, coupled_zsre, open_ended")
    add("--limit", type=positive, help="only this many cases of each config, sampled with the seed")
    add("--wording", help="essay or article")
    add("--no-relationship", dest="relationship", action="store_false", help="prompts without 'relationship to X'")
    add("--generation", help="leme, seesaw-cf (as published), short, or a JSON file; default: leme, short for the toy")
    add("--samples", type=positive, help="texts for each prompt")
    add("--max-new-tokens", type=positive, help="longest text")
    add("--temperature", type=at_least_zero)
    add("--top-k", type=count)
    add("--top-p", type=share)
    add("--repetition-penalty", type=at_least_zero, help="1 = none")
    add("--chat", help="ask through the chat template: auto, yes or no")
    add("--rater", dest="raters", action="append", help="lexical, minilm or a folder; give it again for more")
    add("--annotator", help="trained (default), lexical, nli:MODEL, llm (asks --judge) or a folder; '' for none")
    add("--judge", help="a model that rates: a Hub id, a folder, or a model's name at --judge-url")
    add("--judge-url", help="OpenAI-compatible server of the judge")
    add("--judge-key-env", help="environment variable with its key; '' for a server without keys")
    add("--judge-shots", type=count, help="rated examples shown to the judge (published: 8)")
    add("--judge-examples", help="folder with passages.parquet and ratings.parquet that people rated")
    add("--judge-tries", type=positive, help="times one question is asked at the most")
    add("--judge-wording", help="JSON or YAML with other words for the judge, such as the paper's own")
    add("--base-url", help="OpenAI-compatible server that writes; its models are edited by ike only")
    add("--key-env", help="environment variable with its key; '' for a server without keys")
    add("--revision", help="branch, tag or commit of a Hub model")
    add("--dtype", choices=("float32", "float64", "bfloat16", "float16"))
    add("--device", help="auto, cpu, cuda, cuda:1, ...")
    add("--rows", type=positive, help="texts that are written at once")
    add("--block", type=positive, help="cases that are edited and written together")
    add("--seed", type=seed)


def run(args: argparse.Namespace) -> None:
    """Runs the sub-command."""
    if args.leme_command != "run":
        from seesaw_cf.longform.training_command import run_training

        run_training(args)
        return
    from dataclasses import fields, replace

    from seesaw_cf.longform.run import LemeJob, read_preset, run_leme

    given = {field.name: getattr(args, field.name) for field in fields(LemeJob) if hasattr(args, field.name)}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    if "editor_config" in given:
        given["editor_config"] = read_json(given["editor_config"])
    say(markdown_for_terminal(run_leme(replace(read_preset(args.config), **given), args.out, progress=not args.quiet)))
