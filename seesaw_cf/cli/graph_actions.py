"""What `seesaw-cf graph` does: one function per action, each given the parsed options."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import read_json
from seesaw_cf.cli.output import say, show, write_json, write_numbers

if TYPE_CHECKING:
    from pathlib import Path

    from seesaw_cf.report.html.findings import Findings


def run_crawl(args: argparse.Namespace) -> None:
    """Crawl a local model or a server."""
    from seesaw_cf.texts.graph.backends import local, served

    if args.base_url:
        if args.delta:
            raise RecordError("--delta edits a local model; with --base-url the server must serve the edited one.")
        _crawl(args, *served(args.model, args.base_url, key_env=args.key_env))
        return
    options = {name: getattr(args, name) for name in ("revision", "dtype", "device", "rows", "trust_remote_code")}
    with local(args.model, args.delta, **options) as (generator, facts):
        _crawl(args, generator, facts)


def _crawl(args: argparse.Namespace, generator: Any, facts: Any) -> None:
    from seesaw_cf.generation.types import Sampling
    from seesaw_cf.run.manifest import read_manifest
    from seesaw_cf.texts.graph.crawl import crawl_identities
    from seesaw_cf.texts.graph.results import crawl_tables
    from seesaw_cf.texts.graph.settings import REFUSALS, CrawlSettings, read_refusals, refusals_for

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
        graph = crawl_identities(
            generator, identities, settings, args.out, facts=facts, redo=args.redo, progress=not args.quiet
        )
    finally:
        if read_manifest(args.out).get("protocol") == "stereotype graph":
            (args.out / "acknowledged").touch()  # the warning was read; do not ask when the crawl is continued
    say("\n\n".join(table.terminal() for table in crawl_tables(graph.counts)))


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


def score(args: argparse.Namespace) -> None:
    """Score a crawl and print what was found."""
    from seesaw_cf.texts.graph.changes import regard_and_attack
    from seesaw_cf.texts.graph.folder import read_crawl
    from seesaw_cf.texts.graph.results import score_table
    from seesaw_cf.texts.graph.score import score_crawl
    from seesaw_cf.texts.graph.scorers import (
        URL,
        Detoxifier,
        Perspective,
        attack_classifier,
        regard_classifier,
    )

    _check_scorers(args)
    crawl = read_crawl(args.folder)
    attack: Any = None
    if args.attack == "perspective":
        attack = Perspective(args.attack_url or URL, args.attack_key_env)
        attack.check()
    regard: Any = None
    if args.regard != "none":
        regard = regard_classifier(args.regard, _labels(args.regard_labels), device=args.device)
    if args.attack == "detoxify":
        attack = Detoxifier()
    elif args.attack not in ("none", "perspective"):
        attack = attack_classifier(args.attack, args.attack_label or "identity_attack", device=args.device)
    scored = score_crawl(crawl, regard, attack, contents=args.contents, seed=args.seed)
    results = regard_and_attack(scored)
    write_json(args.folder / "results.json", results)
    say(score_table(results).terminal())


def _check_scorers(args: argparse.Namespace) -> None:
    """Refuse an option that the scorer of `--attack` or `--regard` has no use for."""
    named = args.attack not in ("none", "detoxify", "perspective")
    for option, scorer, used, remedy in (
        ("attack-label", "attack", named, "Name a classifier with --attack"),
        ("attack-url", "attack", args.attack == "perspective", "Give --attack perspective"),
        ("regard-labels", "regard", args.regard != "none", "Name a classifier with --regard"),
    ):
        if getattr(args, option.replace("-", "_")) is not None and not used:
            value = getattr(args, scorer)
            raise RecordError(
                f"graph score: --{option} has no use when --{scorer} is {value!r}. {remedy}, or leave --{option} out."
            )


def _labels(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.split("=", 1) for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise RecordError(f"--regard-labels {text!r}: expected LABEL=meaning,LABEL=meaning.")
    return {label.strip(): meaning.strip() for label, meaning in pairs}


def _fit(args: argparse.Namespace, texts: list[str]) -> Any:
    from seesaw_cf.effects.topics import DIMENSIONS
    from seesaw_cf.texts.graph.topics import fit_topics, sentence_encoder

    dimensions: Any = DIMENSIONS
    if args.dimensions:
        dimensions = read_json(args.dimensions, expected='{"warmth": ["friendly", "rude"]}')
        if not all(isinstance(words, list) and all(isinstance(w, str) for w in words) for words in dimensions.values()):
            raise RecordError(f"{args.dimensions}: expected JSON such as {{'warmth': ['friendly', 'rude']}}.")
    encoder = sentence_encoder(args.encoder) if args.encoder else None
    return fit_topics(
        texts, args.topics, method=args.topic_method, encoder=encoder, dimensions=dimensions, seed=args.seed
    )


def topics(args: argparse.Namespace) -> None:
    """Sort a crawl into topics and print words and entropies."""
    from seesaw_cf.texts.graph.changes import content_texts, topic_results
    from seesaw_cf.texts.graph.folder import read_crawl
    from seesaw_cf.texts.graph.results import topic_tables

    crawl = read_crawl(args.folder)
    topic_model = _fit(args, content_texts(crawl.triples))
    results = topic_results(crawl.triples, topic_model, min_triples=args.min_triples, seed=args.seed)
    about = {name: getattr(topic_model, name) for name in ("topic", "words", "labels", "method")}
    write_json(args.folder / "topics.json", {"topics": about, "results": results})
    say("\n\n".join(table.terminal() for table in topic_tables(topic_model, results)))


def draw(args: argparse.Namespace) -> None:
    """Draw the figures."""
    from seesaw_cf.texts.graph.changes import content_texts
    from seesaw_cf.texts.graph.draw import draw as draw_figures
    from seesaw_cf.texts.graph.folder import read_crawl

    crawl = read_crawl(args.folder)
    plain = read_crawl(args.plain) if args.plain else None
    topic_model = _fit(args, content_texts(crawl.triples))
    folder = args.out or args.folder / "figures"
    pictures = draw_figures(
        crawl, folder, topics=topic_model, plain=plain, min_triples=args.min_triples, seed=args.seed
    )
    say("\n".join(f"{folder / name}: {what}" for name, what in pictures.items()))


def compare(args: argparse.Namespace) -> None:
    """Print what an edit changed."""
    from seesaw_cf.texts.graph.changes import changes, check_comparable, content_texts
    from seesaw_cf.texts.graph.folder import read_crawl
    from seesaw_cf.texts.graph.page import graph_findings
    from seesaw_cf.texts.graph.results import change_table

    folders = {"identity edit": args.identity_control, "random edit": args.random_control}
    controls = {name: read_crawl(path) for name, path in folders.items() if path}
    base, edited = read_crawl(args.folder), read_crawl(args.edited)
    differ = check_comparable(base, {"edited": edited, **controls}, args.force)
    crawls = [base, edited, *controls.values()]
    topic_model = _fit(args, [content for crawl in crawls for content in content_texts(crawl.triples)])
    table = changes(base, edited, controls, topics=topic_model, seed=args.seed)
    page = graph_findings(base, edited, table, differ)
    write_numbers(args, {"findings": page.screen.record(), "differences": differ, "rows": table.to_dict("records")})
    notes = {f"{row['measure']}, {row['identity']}: {row['note']}" for row in table.to_dict("records") if row["note"]}
    forced, rows = [f"forced: {line}" for line in differ], change_table(table)
    columns = [column for column in rows.columns if column.head != "note"]
    if args.out:
        _write(page, args.out, args)
        return
    say(replace(rows, columns=columns, lines=[*forced, *sorted(notes)]).terminal())
    say(f"\n{page.screen.terminal()}")


def export(args: argparse.Namespace) -> None:
    """Write the graph in three forms."""
    from seesaw_cf.texts.graph.folder import read_crawl
    from seesaw_cf.texts.graph.graph import export_graphml, export_json
    from seesaw_cf.texts.graph.page import graph_findings

    crawl, folder = read_crawl(args.folder), args.out or args.folder
    export_graphml(crawl, folder / "graph.graphml")
    export_json(crawl, folder / "graph.json")
    say("\n".join(str(folder / f"graph.{ending}") for ending in ("graphml", "json")))
    _write(graph_findings(crawl), folder / "report", args)


def _write(page: Findings, folder: Path, args: argparse.Namespace) -> None:
    """Write the report and show it."""
    from seesaw_cf.report.forms import findings_report

    say(findings_report(page).write(folder, full=args.full))
    show(args, folder / "report.html")
