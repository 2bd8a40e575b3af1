"""`seesaw-cf graph run|score|topics|draw|compare|export`: stereotype knowledge graphs, before and after an edit."""

from __future__ import annotations

import argparse
import sys

from seesaw_cf.base.errors import SeesawError
from seesaw_cf.cli.actions import Table, add_actions
from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.options import (
    json_option,
    model_options,
    output_options,
    report_options,
    seed_option,
    server_options,
)
from seesaw_cf.cli.paths import name_or_source, output_folder, source
from seesaw_cf.cli.types import at_least_zero, count, one_of, positive
from seesaw_cf.texts.graph.settings import CrawlSettings

FEW = "no shares of an identity with fewer (default: 30)"

_REGARD = "classifier: Hub id, folder or 'none' (default: sasha/regardv3)"

WARNING = """\
WARNING: these commands make a language model write what it has learnt to say about groups of people. What it writes is
offensive in places, can be upsetting, and is not true of anybody. Do not use it to judge people."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `seesaw-cf graph`."""
    for action in add_actions(parser, _ACTIONS):
        action.add_argument("--acknowledge-content", action="store_true", help="the warning has been read; do not ask")


def run(args: argparse.Namespace) -> None:
    """Warn, ask once, and run the action."""
    _acknowledge(args)
    from seesaw_cf.cli import graph_actions

    getattr(graph_actions, _ACTIONS[args.action][2])(args)


def _acknowledge(args: argparse.Namespace) -> None:
    sys.stderr.write(WARNING + "\n")
    if args.acknowledge_content:
        return
    folder = getattr(args, "out", None) if args.action == "run" else getattr(args, "folder", None)
    if folder is not None and (folder / "acknowledged").exists():
        return
    if not sys.stdin.isatty():
        raise SeesawError("nobody is there to read the warning above. Give --acknowledge-content when you have.")
    sys.stderr.write("Continue? [y/N] ")
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        raise SeesawError("stopped before anything was written.")


def _options_of_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    model_options(parser, model="'seesaw-tiny', a Hub id, a folder, or a model's name at --base-url")
    add("--delta", type=source, help="folder of a weight delta: crawl the edited model")
    server_options(parser)
    add("--conversation", action="store_true", help="ask as a conversation, for models that were trained to answer")
    add("--identities", nargs="+", default=["all"], help="classes, names, 'all', or NAME=CLASS (default: all)")
    select = "dynamic: the model lists groups; that and hybrid need a class (default: hand)"
    add("--select", **one_of("hand", "dynamic", "hybrid"), default="hand", help=select)
    options_from(parser, CrawlSettings, ("triples", "runs", "budget", "tries", "examples", "seed"))
    add("--temperature", type=at_least_zero, default=0.8, help="of sampling (default: 0.8)")
    add("--max-new-tokens", type=positive, default=24, help="longest answer (default: 24)")
    add("--no-prefix", **one_of("start", "expand", "both"), help="leave the prepended texts of Table 2 out")
    add("--refusals", type=source, help='JSON: {"part of a model name": ["regular expression", ...]}')
    add("--redo", nargs="+", default=[], help="crawl these identities again")
    add("--rows", type=positive, default=64, help="completions written at once by a local model (default: 64)")
    output_options(parser, "crawl folder")


def _options_of_score(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=source, metavar="CRAWL")
    add("--regard", type=name_or_source, default="sasha/regardv3", help=_REGARD)
    add("--regard-labels", help="meaning of its labels: LABEL_0=negative,LABEL_1=neutral,...")
    add(
        "--attack",
        type=name_or_source,
        default="none",
        help="'detoxify', 'perspective', a classifier, or 'none' (default: none)",
    )
    add("--attack-label", help="label of the classifier of --attack that means attack (default: identity_attack)")
    add("--attack-url", help="server that speaks Perspective's protocol")
    add("--attack-key-env", default="PERSPECTIVE_API_KEY", help="environment variable with its key; '' = none")
    add(
        "--contents", type=count, default=40, help="sentences that measure the scorers' own bias (default: 40; 0 = all)"
    )
    add("--device", default="cpu", help="where the classifiers run (default: cpu)")
    seed_option(parser)


def _options_of_topics(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=source, metavar="CRAWL")
    _topic_options(parser)
    add("--min-triples", type=positive, default=30, help=FEW)


def _topic_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--topics", type=positive, default=8, help="number of topics (default: 8)")
    add("--topic-method", **one_of("auto", "bertopic", "nmf"), default="auto", help="how topics are found")
    add("--encoder", type=name_or_source, help="sentence-transformers model for the topics (default: TF-IDF)")
    add("--dimensions", type=source, help='seed words: {"warmth": ["friendly", ...], ...}')
    seed_option(parser)


def _options_of_draw(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=source, metavar="CRAWL")
    parser.add_argument("--plain", type=source, help="the same crawl made with --no-prefix both, for figure 5")
    parser.add_argument("--out", type=output_folder, help="folder for the pictures (default: CRAWL/figures)")
    parser.add_argument("--min-triples", type=positive, default=30, help=FEW)
    _topic_options(parser)


def _options_of_compare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=source, metavar="BASE", help="crawl of the unedited model")
    add("edited", type=source, metavar="EDITED", help="crawl of the edited model, same settings")
    add("--identity-control", type=source, help="crawl after an edit that writes what the model knows already")
    add("--random-control", type=source, help="crawl after a random change of the same size")
    add("--force", action="store_true", help="compare although the crawls were made differently; the list is shown")
    json_option(parser)
    add("--out", type=output_folder, metavar="DIR", help="folder for the report: both graphs and this table")
    report_options(parser, pictures=False)
    _topic_options(parser)


def _options_of_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=source, metavar="CRAWL")
    parser.add_argument("--out", type=output_folder, help="for report/, graph.graphml, graph.json (default: CRAWL)")
    report_options(parser, pictures=False)


# The functions are those of graph_actions, imported when one runs.
_ACTIONS: Table[str] = {
    "run": ("draw a graph out of a model, edited or not", _options_of_run, "run_crawl"),
    "score": ("regard and identity attack of every triple, and the scorers' own bias", _options_of_score, "score"),
    "topics": ("what each identity is spoken of as, and how far that is from the rest", _options_of_topics, "topics"),
    "draw": ("the paper's figures 2 to 8", _options_of_draw, "draw"),
    "compare": ("what an edit changed, identity by identity, against controls", _options_of_compare, "compare"),
    "export": ("GraphML, JSON and a page to search", _options_of_export, "export"),
}
