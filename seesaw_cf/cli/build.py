"""`seesaw-cf build`: facts from an endpoint, a store, files or the embedded sample into a dataset folder."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from seesaw_cf import __version__
from seesaw_cf.builder_scripts.dataset.build import CONFIGS, About, Edits, build, choose_edits, query_bounds
from seesaw_cf.builder_scripts.dataset.coupled import build_coupled
from seesaw_cf.builder_scripts.dataset.statistics import markdown
from seesaw_cf.builder_scripts.make.coupled import coupled_bounds
from seesaw_cf.builder_scripts.make.seeds import read_seeds
from seesaw_cf.builder_scripts.options import SAMPLE_OPTIONS, BuildOptions, paper
from seesaw_cf.builder_scripts.sample.build import ABOUT as SAMPLE_ABOUT
from seesaw_cf.builder_scripts.sample.build import sample_couples
from seesaw_cf.builder_scripts.sample.facts import SAMPLE
from seesaw_cf.builder_scripts.source.claims import Claims
from seesaw_cf.builder_scripts.source.endpoint import WIKIDATA_ENDPOINT, EndpointSource, RequestPolicy
from seesaw_cf.builder_scripts.source.people import Facts
from seesaw_cf.builder_scripts.source.replies import CachedSource
from seesaw_cf.builder_scripts.source.sources import Source, StoreSource
from seesaw_cf.cli.options import path, positive, seconds, seed_option
from seesaw_cf.cli.output import say
from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.io.files import atomic_folder, cache_folder, write_text
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import Case

__all__ = ["configure", "run"]

T = TypeVar("T")

_WORDS = {
    "intro": """SEESAW-CF rebuilt: edits of five facts about people (gender, field of work, citizenship, place of birth,
native language), and prompts about {people} people that show whether such an edit changes what a language model
believes about *others*, by race, geographic origin and gender.""",
    "making": """Facts are what the source below recorded at the time of the build; `build.json` holds the rules, the
source and the digests of the files of edits, with which `seesaw-cf build` makes the same folder again.""",
    "limits": """The source records more about some people than about others: men, Europeans and North Americans, and
people whom Wikipedia knows. Who is missing from it is missing here. Ethnic groups are recorded for few people.""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf build`."""
    add = parser.add_argument
    add(
        "--source",
        nargs="+",
        default=["sample"],
        metavar="SOURCE",
        help="sample, wikidata, the URL of a SPARQL endpoint, a folder made by `oxigraph load`, or RDF files",
    )
    add("--out", type=path, metavar="DIR", help="dataset folder to make")
    add("--edits", nargs="+", type=path, default=[], metavar="FILE", help="CounterFact, SEESAW-CF or zsRE JSON")
    add(
        "--coupled",
        nargs="+",
        type=path,
        default=[],
        metavar="FILE",
        help="CounterFact or zsRE JSON: make Coupled Entity Prompts instead",
    )
    add("--paper", action="store_true", help="the published rules: nobody who holds the old value, two genders, ...")
    add("--number", nargs="+", default=[], metavar="RELATION=N", help="edits to draw, such as P27=100 gender=50")
    add("--per-gender", type=positive, metavar="N", help="holders of a value asked about, per gender (default: 100)")
    seed_option(parser)
    add("--language", default="en", help="language of the names (default: en)")
    add(
        "--cache",
        type=path,
        metavar="DIR",
        help="where replies are kept (default: $SEESAW_CF_CACHE, else ~/.cache/seesaw_cf)",
    )
    add("--offline", action="store_true", help="use kept replies only, never ask")
    add("--contact", default="", help="mail address or web page for the User-Agent, as public endpoints ask")
    add("--timeout", type=seconds, default=70.0, metavar="S", help="seconds for one reply (default: 70)")
    add("--version", default="1.0.0", help="of the dataset, major.minor.patch (default: 1.0.0)")
    add("--dry-run", action="store_true", help="count the queries and stop")


def run(args: argparse.Namespace) -> None:
    """Builds, or counts what a build would ask."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", args.version):
        raise RecordError(f"--version {args.version!r}: expected major.minor.patch such as 1.2.0.")
    options = _options(args)
    seeds = read_seeds(args.edits)
    if args.dry_run:
        bounds = coupled_bounds(read_seeds(args.coupled)) if args.coupled else query_bounds(options, seeds)
        say(markdown(["Queries at most, for", "Number"], [*bounds.items(), ["**Total**", sum(bounds.values())]]))
        return
    if args.out is None:
        raise RecordError("build: no --out DIR was given. Name the folder to make, or use --dry-run.")
    source = _source(args)
    facts = Facts(source, options, _bar)
    if args.coupled:
        _couple(args, source, facts)
    else:
        _build(args, source, facts, seeds)
    if isinstance(source, CachedSource):
        say(f"{source.misses} queries asked, {source.hits} answered by kept replies")
    say(f"\nWritten to {args.out}.")


def _build(args: argparse.Namespace, source: Source, facts: Facts, seeds: Sequence[Case]) -> None:
    sample = args.source == ["sample"]
    with atomic_folder(args.out) as folder:
        edits = choose_edits(facts, seeds)
        about = SAMPLE_ABOUT if sample else About(_WORDS, args.version)
        statistics = build(folder, facts, edits, about, sample_couples(source, facts) if sample else ())
        write_text(folder / "build.json", _manifest(args, facts.options, source, edits))
    say(statistics.cross_subject())
    say("\n" + statistics.cross_property())
    for reason, number in sorted(edits.skipped.items()):
        say(f"{number} records of the edit files make no edit: {reason}")
    say(f"\nUse it with: seesaw-cf run --data {args.out} --config {next(iter(CONFIGS))} ...")


def _couple(args: argparse.Namespace, source: Source, facts: Facts) -> None:
    with atomic_folder(args.out) as folder:
        counts = build_coupled(folder, facts, Claims(source, facts), read_seeds(args.coupled))
    say(markdown(["Coupled Entity Prompts", "Number"], counts.items()))


def _bar(steps: Sequence[T], label: str) -> Iterable[T]:
    """A progress bar with the time that is left; none for a single step."""
    return tqdm(steps, desc=label, disable=len(steps) < 2, smoothing=0.1)


def _options(args: argparse.Namespace) -> BuildOptions:
    options = SAMPLE_OPTIONS if args.source == ["sample"] else BuildOptions()
    options = paper(options) if args.paper else options
    changes = {"seed": args.seed, "language": args.language, "edits": dict(options.edits) | _numbers(args.number)}
    return dataclasses.replace(options, **changes, per_gender=args.per_gender or options.per_gender)


def _numbers(words: Iterable[str]) -> dict[str, int]:
    """Relation -> number out of "P27=100" or "citizenship=100"."""
    from seesaw_cf.records.relations import relation

    found = {}
    for word in words:
        name, equals, number = word.partition("=")
        if not equals or not number.isdigit():
            raise RecordError(
                f"--number {word!r}: expected RELATION=N such as P27=100 for one of {', '.join(RELATIONS)}."
            )
        found[relation(name).id] = int(number)
    return found


def _source(args: argparse.Namespace) -> Source:
    """The source that the words after --source name; endpoints and large stores with a cache in front."""
    words: list[str] = args.source
    if words == ["sample"]:
        return StoreSource([SAMPLE / "sample.nt"])
    source: Source
    if len(words) == 1 and (words[0] == "wikidata" or "://" in words[0]):
        url = WIKIDATA_ENDPOINT if words[0] == "wikidata" else words[0]
        source = EndpointSource(url, RequestPolicy(contact=args.contact, timeout=args.timeout))
    elif len(words) == 1 and Path(words[0]).is_dir():
        source = StoreSource(store=words[0])
    elif missing := [word for word in words if not Path(word).is_file()]:
        raise StorageError(
            f"--source {missing[0]!r}: no such file or folder, and not 'sample', 'wikidata' or a URL. Check the name."
        )
    else:
        source = StoreSource(words)
    return CachedSource(source, args.cache or cache_folder() / "replies", offline=args.offline)


def _manifest(args: argparse.Namespace, options: BuildOptions, source: Source, edits: Edits) -> str:
    """What made the folder; nothing in it depends on when or where."""
    facts = {
        "made_by": f"seesaw_cf {__version__}",
        "source": source.identity,
        "options": dataclasses.asdict(options),
        "edit_files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in args.edits},
        "skipped": dict(sorted(edits.skipped.items())),
    }
    return json.dumps(facts, indent=1, sort_keys=True) + "\n"
