"""`seesaw-cf tag`: groups, candidates and gold answers for records that come without."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import atomic_folder
from seesaw_cf.base.terminal import markdown_for_terminal
from seesaw_cf.builder_scripts.source.sources import BATCH
from seesaw_cf.builder_scripts.tag.ask import TagSource, is_pair, subject_id, tested
from seesaw_cf.builder_scripts.tag.attach import FACTS_CONFIG, SUMMARY, tag_records
from seesaw_cf.builder_scripts.tag.graph import GraphSource
from seesaw_cf.builder_scripts.tag.records import CaseFile, read_records
from seesaw_cf.builder_scripts.tag.table import TableSource
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import name_or_source, own_folder, source
from seesaw_cf.cli.sources import bar, endpoint_url, source_of, source_options


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf tag`."""
    add = parser.add_argument
    what = "JSON, JSON-lines or Parquet file of cases, a folder of released files, or a dataset folder"
    add("records", nargs="+", type=source, metavar="RECORDS", help=what)
    sources = "a folder made by `oxigraph load`, an RDF file, a table such as demographics.parquet, or a sample's name"
    add(
        "--from",
        action="append",
        required=True,
        dest="sources",
        type=name_or_source,
        metavar="SOURCE",
        help=f"wikidata, the URL of a SPARQL endpoint, {sources}; give it again for more",
    )
    add("--out", type=own_folder, metavar="DIR", help="dataset folder to make")
    source_options(parser)
    add("--dry-run", action="store_true", help="count the people and queries and stop")


def run(args: argparse.Namespace) -> None:
    """Tag the records, or count what that would ask."""
    records = read_records(args.records)
    if args.dry_run:
        say(_bounds(records))
        return
    if args.out is None:
        raise RecordError("tag: no --out DIR was given. Name the folder to make, or use --dry-run.")
    with atomic_folder(args.out) as folder:
        coverage = tag_records(folder, records, list(_sources(args)))
    say(markdown_for_terminal(coverage.to_markdown()))
    configs = " ".join(f"--config {name}" for name in records)
    say(f"\nWritten to {args.out}: the facts in config {FACTS_CONFIG}, these counts in {SUMMARY}.")
    say(f"Use it with: seesaw-cf audit --data {args.out} {configs} ...")


def _sources(args: argparse.Namespace) -> Iterator[TagSource]:
    """Return the sources that the words after --from name, each under a unique name."""
    names: set[str] = set()
    for number, word in enumerate(args.sources, 1):
        source: TagSource
        if Path(word).suffix == ".parquet" and not endpoint_url([word]):
            source = TableSource(word)
        else:
            graph = source_of([word], args, "--from", silent_attempts=2)
            source = GraphSource(endpoint_url([word]) or Path(word).name, graph, args.language, bar)
        if source.name in names:
            source.name = f"{source.name} ({number})"
        names.add(source.name)
        yield source


def _bounds(records: dict[str, CaseFile]) -> str:
    """Say how many people would be asked about, and in about how many queries, for one source."""
    cases = [case for file in records.values() for case in file.cases]
    ids = {row.subject.id for case in cases for row in tested(case) if row.subject.id}
    names = {case.request.subject for case in cases if is_pair(case) and not subject_id(case)}
    # Facts and mergers of everybody, look-ups of names, and facts of those who have them.
    queries = 2 * -(-len(ids) // BATCH) + 3 * -(-len(names) // BATCH)
    return (
        f"{len(cases):,} records about {len(ids):,} identified people, and {len(names):,} edited people to find by "
        f"name: about {queries:,} queries to each source, of at most {BATCH} people each."
    )
