"""`seesaw-cf graph run|compare`: stereotype knowledge graphs, before and after an edit."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from seesaw_cf.base.errors import RecordError, SeesawError, need
from seesaw_cf.base.text import read_json
from seesaw_cf.cli.actions import Actions, add_actions
from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.options import json_option, model_options, output_options, seed_option, server_options
from seesaw_cf.cli.output import say, write_json, write_numbers
from seesaw_cf.cli.paths import name_or_source, source
from seesaw_cf.cli.types import at_least_zero, count, one_of, positive
from seesaw_cf.texts.graph.settings import CrawlSettings

WARNING = """\
WARNING: these commands make a language model write what it has learnt to say about groups of people. What it writes is
offensive in places, can be upsetting, and is not true of anybody. Do not use it to judge people."""
_ATTACK = "'detoxify', 'perspective', a classifier's Hub id or folder, or 'none' (default: detoxify)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `seesaw-cf graph`."""
    for action in add_actions(parser, _ACTIONS):
        action.add_argument("--acknowledge-content", action="store_true", help="the warning has been read; do not ask")


def run(args: argparse.Namespace) -> None:
    """Warn, ask once, and run the action."""
    sys.stderr.write(WARNING + "\n")
    if not (args.acknowledge_content or (getattr(args, "folder", args.out) / "acknowledged").exists()):
        if not sys.stdin.isatty():
            raise SeesawError("nobody is there to read the warning above. Give --acknowledge-content when you have.")
        sys.stderr.write("Continue? [y/N] ")
        if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
            raise SeesawError("stopped before anything was written.")
    _ACTIONS[args.action][2](args)


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
    add("--rows", type=positive, default=64, help="completions written at once by a local model (default: 64)")
    regard = "classifier of regard: Hub id, folder or 'none' (default: sasha/regardv3)"
    add("--regard", type=name_or_source, default="sasha/regardv3", help=regard)
    add("--regard-labels", help="meaning of its labels: LABEL_0=negative,LABEL_1=neutral,...")
    add("--attack", type=name_or_source, default="detoxify", help=_ATTACK)
    add("--attack-label", default="identity_attack", help="label of that classifier (default: identity_attack)")
    add("--contents", type=count, default=40, help="sentences that measure the scorers' bias (default: 40; 0 = all)")
    add("--plain", type=source, metavar="CRAWL", help="the same crawl made with --no-prefix both, for figure 5")
    add("--min-triples", type=positive, default=30, help="no topics of an identity with fewer (default: 30)")
    _topic_options(parser)
    output_options(parser, "crawl folder")


def _topic_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topics", type=positive, default=8, help="number of topics (default: 8)")
    parser.add_argument(
        "--topic-method", **one_of("auto", "bertopic", "nmf"), default="auto", help="how they are found"
    )


def _options_of_compare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=source, metavar="BASE", help="crawl of the unedited model")
    add("edited", type=source, metavar="EDITED", help="crawl of the edited model, same settings")
    add("--identity-control", type=source, help="crawl after an edit that writes what the model knows already")
    add("--random-control", type=source, help="crawl after a random change of the same size")
    add("--force", action="store_true", help="compare although the crawls were made differently; the list is shown")
    _topic_options(parser)
    seed_option(parser)
    json_option(parser)


def crawl(args: argparse.Namespace) -> None:
    """Crawl a local model or a server; score, sort, draw and print what was found."""
    from seesaw_cf.texts.graph.backends import local, served
    from seesaw_cf.texts.graph.scorers import attack_scorer, regard_scorer

    with need("matplotlib, networkx or scikit-learn", extra="stereotypes", what_for="graphs"):
        import matplotlib  # noqa: F401
        import networkx  # noqa: F401
        import sklearn  # noqa: F401
    device = "cpu" if args.device == "auto" else args.device
    regard = regard_scorer(args.regard, _labels(args.regard_labels), device=device)
    attack = attack_scorer(args.attack, args.attack_label, device=device)
    if args.base_url:
        if args.delta:
            raise RecordError("--delta edits a local model; with --base-url the server must serve the edited one.")
        found = _crawl(args, *served(args.model, args.base_url, key_env=args.key_env))
    else:
        options = {name: getattr(args, name) for name in ("revision", "dtype", "device", "rows", "trust_remote_code")}
        with local(args.model, args.delta, **options) as (generator, facts):
            found = _crawl(args, generator, facts)
    _results(args, found, regard, attack)


def _crawl(args: argparse.Namespace, generator: Any, facts: Any) -> Any:
    from seesaw_cf.generation.types import Sampling
    from seesaw_cf.run.manifest import read_manifest
    from seesaw_cf.texts.graph.crawl import crawl_identities
    from seesaw_cf.texts.graph.settings import REFUSALS, read_refusals, refusals_for

    lists = read_refusals(args.refusals) if args.refusals else REFUSALS
    settings = CrawlSettings(
        **{name: getattr(args, name) for name in ("triples", "runs", "seed", "budget", "tries", "examples")},
        chat=args.conversation,
        prefix_start=args.no_prefix not in ("start", "both"),
        prefix_expand=args.no_prefix not in ("expand", "both"),
        refusals=refusals_for(args.model, lists),
        sampling=Sampling(args.max_new_tokens, args.temperature, 0, 1.0, ("\n",)),
    )
    identities = _identities(args, generator)
    try:
        return crawl_identities(generator, identities, settings, args.out, facts=facts, progress=not args.quiet)
    finally:
        if read_manifest(args.out).get("protocol") == "stereotype graph":
            (args.out / "acknowledged").touch()  # the warning was read; do not ask when the crawl is continued


def _identities(args: argparse.Namespace, generator: Any) -> Any:
    """Return the identities named by hand, or those that the model lists; its lists are kept to continue the crawl."""
    from seesaw_cf.texts.graph.choose import choose
    from seesaw_cf.texts.graph.identities import Identity, find

    if args.select == "hand":
        return find(args.identities)
    file = args.out.parent / f"{args.out.name}-selection.json"
    if file.exists():
        try:
            return tuple(Identity(*row) for row in read_json(file)["identities"])
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{file}: no selection of identities ({error!r}). Delete it to ask again.") from error
    kind, *names = args.identities
    chosen = choose(kind, args.select, generator, add=names, seed=args.seed, chat=args.conversation)
    identities = [[row.name, row.kind] for row in chosen.identities]
    lists = [completion.text for completion in chosen.completions]
    write_json(file, {"identities": identities, "counts": chosen.counts, "lists": lists})
    return chosen.identities


def _results(args: argparse.Namespace, found: Any, regard: Any, attack: Any) -> None:
    """Score a crawl and sort it into topics; write figures, GraphML and results.json, and print the tables."""
    from seesaw_cf.texts.graph.changes import content_texts, regard_and_attack, topic_results
    from seesaw_cf.texts.graph.draw import draw
    from seesaw_cf.texts.graph.findings import findings
    from seesaw_cf.texts.graph.folder import read_crawl
    from seesaw_cf.texts.graph.graph import export_graphml
    from seesaw_cf.texts.graph.results import crawl_tables, score_table, topic_tables
    from seesaw_cf.texts.graph.score import score_crawl
    from seesaw_cf.texts.graph.topics import fit_topics

    plain = read_crawl(args.plain) if args.plain else None
    if (regard or attack) and len(found.triples):
        found = score_crawl(found, regard, attack, contents=args.contents, seed=args.seed)
    tables, results, topics = crawl_tables(found.counts), {}, None
    if found.scores is not None:
        results["scores"] = regard_and_attack(found)
        tables.append(score_table(results["scores"]))
    if len(found.triples) > 1:
        topics = fit_topics(content_texts(found.triples), args.topics, method=args.topic_method, seed=args.seed)
        about = {name: getattr(topics, name) for name in ("topic", "words", "labels", "method")}
        of_kinds = topic_results(found.triples, topics, min_triples=args.min_triples, seed=args.seed)
        results |= {"topics": of_kinds, "fit": about}
        tables += topic_tables(topics, of_kinds)
    write_json(args.out / "results.json", results)
    export_graphml(found, args.out / "graph.graphml")
    pictures = draw(found, args.out / "figures", results, topics=topics, plain=plain, seed=args.seed)
    say("\n\n".join(table.terminal() for table in tables))
    say("\n".join(f"{args.out / 'figures' / name}: {what}" for name, what in pictures.items()))
    say(f"\n{findings(found)}")


def _labels(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.split("=", 1) for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise RecordError(f"--regard-labels {text!r}: expected LABEL=meaning,LABEL=meaning.")
    return {label.strip(): meaning.strip() for label, meaning in pairs}


def compare(args: argparse.Namespace) -> None:
    """Print what an edit changed."""
    from seesaw_cf.texts.graph.changes import changes, check_comparable, content_texts
    from seesaw_cf.texts.graph.findings import findings
    from seesaw_cf.texts.graph.folder import read_crawl
    from seesaw_cf.texts.graph.results import change_table
    from seesaw_cf.texts.graph.topics import fit_topics

    folders = {"identity edit": args.identity_control, "random edit": args.random_control}
    controls = {name: read_crawl(path) for name, path in folders.items() if path}
    base, edited = read_crawl(args.folder), read_crawl(args.edited)
    differ = check_comparable(base, {"edited": edited, **controls}, args.force)
    texts = [text for each in (base, edited, *controls.values()) for text in content_texts(each.triples)]
    topics = fit_topics(texts, args.topics, method=args.topic_method, seed=args.seed)
    table = changes(base, edited, controls, topics=topics, seed=args.seed)
    rows = table.to_dict("records")
    write_numbers(args, {"differences": differ, "rows": rows})
    notes = sorted({f"{row['measure']}, {row['identity']}: {row['note']}" for row in rows if row["note"]})
    lines = [f"forced: {line}" for line in differ] + notes
    shown = change_table(table)
    columns = [column for column in shown.columns if column.head != "note"]
    say(replace(shown, columns=columns, lines=lines).terminal())
    say(f"\n{findings(base, edited, rows, differ)}")


_ACTIONS: Actions = {
    "run": ("draw a graph out of a model, edited or not; its scores, topics and figures", _options_of_run, crawl),
    "compare": ("what an edit changed, identity by identity, against controls", _options_of_compare, compare),
}
