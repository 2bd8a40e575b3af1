"""`seesaw-cf build`: facts from an endpoint, a store, files or an embedded sample into a dataset folder."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from seesaw_cf import __version__
from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import atomic_folder, dump_json
from seesaw_cf.base.types import Case, JsonObject
from seesaw_cf.base.urls import hide_secrets
from seesaw_cf.builder_scripts.dataset.build import (
    CONFIGS,
    About,
    build,
    build_coupled,
    choose_edits,
    couples_of,
    query_bounds,
)
from seesaw_cf.builder_scripts.dataset.statistics import markdown
from seesaw_cf.builder_scripts.make.coupled import COUPLED_SCHEMAS, coupled_bounds
from seesaw_cf.builder_scripts.make.seeds import read_seeds
from seesaw_cf.builder_scripts.options import SAMPLE_OPTIONS, BuildOptions, paper
from seesaw_cf.builder_scripts.sample.build import ABOUT, sample_couples
from seesaw_cf.builder_scripts.source.claims import Claims
from seesaw_cf.builder_scripts.source.people import Facts
from seesaw_cf.builder_scripts.source.replies import CachedSource
from seesaw_cf.builder_scripts.source.sources import Source
from seesaw_cf.cli.options import seed_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import name_or_source, own_folder, source
from seesaw_cf.cli.sources import bar, source_of, source_options
from seesaw_cf.cli.types import positive
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.records.sample import SAMPLE

_WORDS = {
    "intro": """SEESAW-CF rebuilt: edits of five facts about people (gender, field of work, citizenship, place of birth,
native language), and prompts about {people} people that show whether such an edit changes what a language model
believes about *others*, by race, geographic origin and gender.""",
    "making": """Facts are what {source} recorded at the time of the build; `build.json` holds the rules, the
source and the digests of the files of edits, with which `seesaw-cf build` makes the same folder again.""",
    "limits": """The source records more about some people than about others: men, Europeans and North Americans, and
people whom Wikipedia knows. Who is missing from it is missing here. Ethnic groups are recorded for few people.""",
}

_DIGITS = 7  # of a number of edits: more people than any source knows


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf build`."""
    add = parser.add_argument
    add(
        "--source",
        type=name_or_source,
        nargs="+",
        default=[SAMPLE],
        metavar="SOURCE",
        help="sample, wikidata, an endpoint's URL, a folder made by `oxigraph load`, or RDF files",
    )
    add("--out", type=own_folder, metavar="DIR", help="dataset folder to make")
    add("--edits", nargs="+", type=source, default=[], metavar="FILE", help="CounterFact, SEESAW-CF or zsRE JSON")
    add(
        "--coupled",
        nargs="+",
        type=source,
        default=[],
        metavar="FILE",
        help="CounterFact or zsRE JSON: also make configs of Coupled Entity Prompts",
    )
    add("--coupled-only", action="store_true", help="make nothing but the configs of --coupled")
    add("--paper", action="store_true", help="the published rules: nobody who holds the old value, two genders, ...")
    add("--number", nargs="+", default=[], metavar="RELATION=N", help="edits to draw, such as P27=100 gender=50")
    add(
        "--per-gender",
        type=positive,
        metavar="N",
        help="holders of the new answer asked about, per gender (default: 100)",
    )
    seed_option(parser)
    source_options(parser)
    add("--version", default="1.0.0", help="of the dataset, major.minor.patch (default: 1.0.0)")
    add("--dry-run", action="store_true", help="count the queries and stop")


def run(args: argparse.Namespace) -> None:
    """Build, or count what a build would ask."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", args.version):
        raise RecordError(f"--version {args.version!r}: expected major.minor.patch such as 1.2.0.")
    if args.language.partition("-")[0] != "en":
        raise RecordError(
            f"build --language {args.language}: the templates of prompts are English, expected en. Names of another "
            "language in English sentences would measure something else; write records of your own and `tag` them."
        )
    options = _options(args)
    seeds = read_seeds(args.edits)
    if args.dry_run:
        bounds = {} if args.coupled_only else query_bounds(options, seeds)
        bounds |= coupled_bounds(read_seeds(args.coupled)) if args.coupled else {}
        say(markdown(["Queries at most, for", "Number"], [*bounds.items(), ["**Total**", sum(bounds.values())]]))
        return
    if args.coupled_only and not args.coupled:
        raise RecordError("build: --coupled-only without --coupled. Give --coupled FILE, or leave --coupled-only out.")
    if args.out is None:
        raise RecordError("build: no --out DIR was given. Name the folder to make, or use --dry-run.")
    source = source_of(args.source, args)
    facts = Facts(source, options, bar)
    if args.coupled_only:
        _couple(args, source, facts)
    else:
        _build(args, source, facts, seeds)
    if isinstance(source, CachedSource):
        say(f"{source.misses} queries asked, {source.hits} answered by kept replies")
    say(f"\nWritten to {args.out}.")


def _build(args: argparse.Namespace, source: Source, facts: Facts, seeds: Sequence[Case]) -> None:
    with atomic_folder(args.out) as folder:
        couples = sample_couples(source, facts) if _embedded(args) else {}
        skipped: Mapping[str, int] = {}
        if args.coupled:
            from_files, skipped = couples_of(facts, Claims(source, facts), read_seeds(args.coupled))
            couples |= from_files
        edits = choose_edits(facts, seeds)
        edits = dataclasses.replace(edits, skipped={**edits.skipped, **skipped})
        about = _about(args, source)
        statistics = build(folder, facts, edits, about, couples)
        facts_of_build = _manifest(args, facts, source, edits.skipped) | _date(about, source)
        dump_json(folder / "build.json", facts_of_build, sort_keys=True)
    say(statistics.cross_subject())
    say("\n" + statistics.cross_property() + "\n")
    for config, pairs in couples.items():
        say(f"{config}: {len(pairs):,} coupled edits")
    for reason, number in sorted(edits.skipped.items()):
        say(f"{number} records of the edit files make no edit: {reason}")
    say(f"\nUse it with: seesaw-cf audit --data {args.out} --config {next(iter(CONFIGS))} ...")


def _couple(args: argparse.Namespace, source: Source, facts: Facts) -> None:
    about = _about(args, source)
    with atomic_folder(args.out) as folder:
        claims = Claims(source, facts)
        counts = build_coupled(folder, facts, claims, read_seeds(args.coupled), source.identity, about.version)
        skipped = {reason: number for reason, number in counts.items() if reason not in COUPLED_SCHEMAS}
        facts_of_build = _manifest(args, facts, source, skipped) | _date(about, source)
        dump_json(folder / "build.json", facts_of_build, sort_keys=True)
    say(markdown(["Coupled Entity Prompts", "Number"], counts.items()))


def _about(args: argparse.Namespace, source: Source) -> About:
    """Return the card's words; how the sample was made holds for a build by its own rules alone."""
    about = ABOUT if _embedded(args) else About(_WORDS)
    if not _embedded(args) or _options(args) != SAMPLE_OPTIONS or args.edits or args.coupled:
        name = f"`{SAMPLE if _embedded(args) else source.identity}`"
        about = dataclasses.replace(about, words={**about.words, "making": _WORDS["making"].replace("{source}", name)})
    return dataclasses.replace(about, version=args.version)


def _embedded(args: argparse.Namespace) -> bool:
    return bool(args.source == [SAMPLE])


def _options(args: argparse.Namespace) -> BuildOptions:
    options = SAMPLE_OPTIONS if _embedded(args) else BuildOptions()
    options = paper(options) if args.paper else options
    changes = {"seed": args.seed, "language": args.language, "edits": dict(options.edits) | _numbers(args.number)}
    return dataclasses.replace(options, **changes, per_gender=args.per_gender or options.per_gender)


def _numbers(words: Iterable[str]) -> dict[str, int]:
    """Return relation -> number out of "P27=100" or "citizenship=100"."""
    from seesaw_cf.records.relations import relation

    numbers = {}
    for word in words:
        name, equals, number = word.partition("=")
        if not equals or not number.isdecimal() or len(number) > _DIGITS:
            raise RecordError(
                f"--number {shown(word)}: expected RELATION=N such as P27=100, for one of {', '.join(RELATIONS)}; at "
                f"most {_DIGITS} digits."
            )
        numbers[relation(name).id] = int(number)
    return numbers


def _date(about: About, source: Source) -> dict[str, str]:
    """Return the day that the sample declares, else that of the last reply used, which the cache keeps."""
    day = about.date or (source.latest[:10] if isinstance(source, CachedSource) else "")
    return {"date": day} if day else {}


def _manifest(args: argparse.Namespace, facts: Facts, source: Source, skipped: Mapping[str, int]) -> JsonObject:
    """Return what made the folder; nothing in it depends on when or where it was made."""
    return {
        "made_by": f"seesaw_cf {__version__}",
        "source": hide_secrets(source.identity),
        "options": dataclasses.asdict(facts.options),
        "drawn": {id: dict(sorted(ways.items())) for id, ways in facts.draws.ways.items()},
        "edit_files": [
            {"option": f"--{option}", "name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for option in ("edits", "coupled")
            for path in getattr(args, option)
        ],
        "skipped": dict(sorted(skipped.items())),
    }
