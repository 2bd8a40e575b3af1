"""The whole of `build`: open the source, draw and make the cases, write the folder, publish it."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from seesaw_cf import __version__
from seesaw_cf.base.errors import RecordError, StorageError, hide_secrets
from seesaw_cf.base.files import atomic_folder, cache_folder, dump_json, write_text
from seesaw_cf.base.hub import check_repo, explained
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.base.terminal import markdown_for_terminal
from seesaw_cf.base.types import Case, JsonObject
from seesaw_cf.builder_scripts.card import benchmark, published_card
from seesaw_cf.builder_scripts.coupled import Coupled, RecordedClaims, couple
from seesaw_cf.builder_scripts.dataset import About, build, build_coupled, choose_edits
from seesaw_cf.builder_scripts.embedded import curated, sample_couples, store
from seesaw_cf.builder_scripts.endpoint import WIKIDATA_ENDPOINT, EndpointSource, RequestPolicy
from seesaw_cf.builder_scripts.jobs import SAMPLE, SAMPLE_OPTIONS, Asking, BuildJob
from seesaw_cf.builder_scripts.people import Facts
from seesaw_cf.builder_scripts.seeds import read_seeds
from seesaw_cf.builder_scripts.sources import CachedSource, Source, StoreSource
from seesaw_cf.records.importing import import_files

T = TypeVar("T")
KNOCK = 20.0  # seconds for a query that needs no search; an endpoint that does not answer it is silent

# How the embedded sample was made, and a build from another source; `date`: when a table of facts was changed last.
_SAMPLE = About(
    {
        "intro": """\
The embedded sample of the package `seesaw_cf`: {people} well-known people, half of them women and at
least sixty of each race and region that the SEESAW-CF papers have, edits of five facts about them (gender, field of
work, citizenship, place of birth, native language), and prompts that show whether such an edit changes what a
language model believes about *other* people, by race, geographic origin and gender.""",
        "making": """\
`builder_scripts/sample/people.tsv` and `links.tsv` hold the facts with their provenance, which says
what agrees with sources that were not used to write them down (`builder_scripts/sample/README.md`). `seesaw-cf build
--source sample --out DIR` turns them into this folder, byte by byte the same.""",
        "limits": """\
The people are famous in some part of the world, so a model may know few of them: measure that first.
Facts are a selection, and a cell stays empty where the fact was not certain. Native language and ethnic group are
curated from encyclopaedic knowledge, recorded only where they are part of a well-documented public life.""",
    },
    references=True,
    date="2026-11-27",
)
_REBUILT = {
    "intro": """SEESAW-CF rebuilt: edits of five facts about people (gender, field of work, citizenship, place of birth,
native language), and prompts about {people} people that show whether such an edit changes what a language model
believes about *others*, by race, geographic origin and gender.""",
    "making": """Facts are what {source} recorded at the time of the build; `build.json` holds the rules, the
source and the digests of the files of edits, with which `seesaw-cf build` makes the same folder again.""",
    "limits": """The source records more about some people than about others: men, Europeans and North Americans, and
people whom Wikipedia knows. Who is missing from it is missing here. Ethnic groups are recorded for few people.""",
}


def endpoint_url(word: str) -> str:
    """Return the address of the endpoint that a word names, "" when it names something else."""
    return WIKIDATA_ENDPOINT if word == "wikidata" else word if "://" in word else ""


def open_source(word: str, asking: Asking, silent_attempts: int = 3) -> Source:
    """Return the source that a word names; all but the sample with a cache in front.

    Args:
        word: "sample", "wikidata", an address, a store's folder, or an RDF file.
        asking: How it is asked.
        silent_attempts: How often an endpoint is asked a query that it does not finish in time.

    Raises:
        SeesawError: The source does not exist, or cannot be read.
    """
    if word == SAMPLE:
        return store(*curated())
    source: Source
    if url := endpoint_url(word):
        knock = min(KNOCK, asking.timeout)
        source = EndpointSource(url, RequestPolicy(asking.contact, asking.timeout, 7, silent_attempts, knock=knock))
    elif not Path(word).exists():
        raise StorageError(
            f"source {word!r}: no such file or folder, and not {SAMPLE!r}, 'wikidata' or a URL. Check the name."
        )
    else:
        source = StoreSource(word)
    return CachedSource(source, asking.cache or cache_folder() / "replies", offline=asking.offline)


def bar(steps: Sequence[T], label: str) -> Iterable[T]:
    """Wrap steps in a progress bar that shows the time left; a single step has none."""
    return Bar(steps, desc=label, disable=len(steps) < 2 or no_bars(), smoothing=0.1)


def run_build(job: BuildJob, out: Path, asking: Asking | None = None, *, push: str = "", private: bool = False) -> str:
    """Make a dataset folder and, with `push`, publish it.

    Args:
        job: What to make.
        out: The folder; it appears under its name only when it is complete.
        asking: How the source is asked.
        push: ORG/NAME on the Hub; "" publishes nothing.
        private: A new repository is private.

    Returns:
        What was made, to print.

    Raises:
        SeesawError: A file, the source, the folder or the Hub cannot be used; the text says what to do.
    """
    if push:
        check_repo(push)
    text = _take_records(job, out) if job.records else _make(job, out, asking or Asking())
    if push:
        text += f"\n\n{push_dataset(out, push, private=private or None)}"
    return text


def _take_records(job: BuildJob, out: Path) -> str:
    """Write records as they are, and return the table of what is in them."""
    summary = import_files(job.records, out, skip_bad=job.skip_bad, version=job.version)
    configs = " ".join(f"--config {name}" for name in summary.files)
    lines = [markdown_for_terminal(summary.to_markdown()), "", *summary.left_out()]
    return "\n".join([*lines, "", f"Written to {out}. Use it with --data {out} {configs}."])


def _make(job: BuildJob, out: Path, asking: Asking) -> str:
    options, seeds, records = job.options(), read_seeds(job.edits), read_seeds(job.coupled)
    source = open_source(job.source, asking)
    facts = Facts(source, options, bar)
    lines: list[str] = []
    with atomic_folder(out) as folder:
        couples, counts = couples_of(source, facts, records) if records else ({}, Counter[str]())
        if job.coupled_only:
            build_coupled(folder, facts, couples, counts, hide_secrets(source.identity), job.version)
            skipped = {reason: number for reason, number in counts.items() if reason not in couples}
        else:
            couples = (sample_couples(source, facts) if job.is_sample else {}) | couples
            edits = choose_edits(facts, seeds)
            skipped = {**edits.skipped, **{key: number for key, number in counts.items() if key not in couples}}
            edits = dataclasses.replace(edits, skipped=skipped)
            statistics = build(folder, facts, edits, _about(job, source), couples)
            lines += [markdown_for_terminal(statistics.cross_subject()), ""]
            lines += [markdown_for_terminal(statistics.cross_property()), ""]
        dump_json(folder / "build.json", _manifest(job, facts, source, skipped), sort_keys=True)
    lines += [f"{config}: {len(rows):,} coupled edits" for config, rows in couples.items()]
    lines += [f"{number} records of the edit files make no edit: {why}" for why, number in sorted(skipped.items())]
    if isinstance(source, CachedSource):
        lines.append(f"{source.misses} queries asked, {source.hits} answered by kept replies")
    return "\n".join([*lines, f"\nWritten to {out}. Use it with --data {out}."])


def couples_of(source: Source, facts: Facts, cases: Sequence[Case]) -> tuple[dict[str, list[Coupled]], Counter[str]]:
    """Couple the records of each config.

    Args:
        source: Where claims and links come from.
        facts: The same, with the rules.
        cases: CounterFact (or SEESAW-CF) and zsRE records.

    Returns:
        Config -> its coupled edits, where there are any; and "config" -> rows, "config: reason" -> edits without
        couple.

    Raises:
        RecordError: No edit has a couple.
        SourceError: The source does not answer.
    """
    claims = RecordedClaims(source, facts)
    couples: dict[str, list[Coupled]] = {}
    counts: Counter[str] = Counter()
    for config, zsre in (("coupled_counterfact", False), ("coupled_zsre", True)):
        rows, skipped = couple(facts, claims, [case for case in cases if (case.record_format == "zsre") == zsre])
        counts.update({f"{config}: {reason}": number for reason, number in skipped.items()})
        couples |= {config: rows} if rows else {}
    if not couples:
        raise RecordError(
            f"no coupled edits: of {len(cases)} records none has a related entity in the source ({dict(counts)}). "
            "Check that the source holds the subjects and their links, and its language."
        )
    counts.update({config: len(rows) for config, rows in couples.items()})
    return couples, counts


def _about(job: BuildJob, source: Source) -> About:
    """Return the card's words; how the sample was made holds for a build by its own rules alone."""
    about = _SAMPLE if job.is_sample else About(_REBUILT)
    if not job.is_sample or job.options() != SAMPLE_OPTIONS or job.edits or job.coupled:
        name = f"`{SAMPLE if job.is_sample else hide_secrets(source.identity)}`"
        about = dataclasses.replace(
            about, words={**about.words, "making": _REBUILT["making"].replace("{source}", name)}
        )
    return dataclasses.replace(about, version=job.version)


def _manifest(job: BuildJob, facts: Facts, source: Source, skipped: Mapping[str, int]) -> JsonObject:
    """Return what made the folder; nothing in it depends on when or where it was made."""
    day = _SAMPLE.date if job.is_sample else source.latest[:10] if isinstance(source, CachedSource) else ""
    manifest: JsonObject = {
        "made_by": f"seesaw_cf {__version__}",
        "source": hide_secrets(source.identity),
        "options": {name: value for name, value in dataclasses.asdict(facts.options).items() if value != ()},
        "drawn": {id: dict(sorted(ways.items())) for id, ways in facts.draws.ways.items()},
        "edit_files": [
            {"option": f"--{option}", "name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for option in ("edits", "coupled")
            for path in getattr(job, option)
        ],
        "skipped": dict(sorted(skipped.items())),
    }
    return manifest | ({"date": day} if day else {})


def push_dataset(folder: Path, repo: str, *, private: bool | None = None) -> str:
    """Publish a built folder on the Hub in one commit, tagged with its version, and return how it is loaded.

    Args:
        folder: What `run_build` wrote.
        repo: ORG/NAME; made when it does not exist.
        private: Of a new repository.

    Raises:
        RecordError: The folder has no card with a version.
        StorageError: The Hub refuses or does not answer; the repository holds something else, or this version.
    """
    from huggingface_hub import DatasetCard, HfApi

    check_repo(repo)
    try:
        card = DatasetCard.load(folder / "README.md").data.to_dict()
        configs = {str(entry["config_name"]): str(entry["version"]) for entry in card["configs"]}
        first, version = next(iter(configs.items()))
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise RecordError(f"{folder}: no README.md of a built dataset ({error}). Build the folder first.") from error
    api = HfApi(library_name="seesaw_cf")
    with explained(repo):
        url = str(api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True))
        names = set(api.list_repo_files(repo, repo_type="dataset")) - {".gitattributes"}
        tags = {ref.name for ref in api.list_repo_refs(repo, repo_type="dataset").tags}
    if names and not names & {"build.json", "import.json"}:
        raise StorageError(
            f"{repo} exists and holds something else ({', '.join(sorted(names)[:5])}). Choose another name, or "
            "empty the repository on the Hub first."
        )
    if f"v{version}" in tags:
        raise StorageError(
            f"{repo} has version {version} already: published versions never change. Build with a higher --version."
        )
    with tempfile.TemporaryDirectory() as work, explained(repo):
        staged = Path(work) / "dataset"
        shutil.copytree(folder, staged, ignore=shutil.ignore_patterns(".*", "*.tmp"))
        text = (staged / "README.md").read_text(encoding="utf-8")
        write_text(staged / "README.md", published_card(text, repo, version))
        if declared := benchmark(card.get("pretty_name", repo), configs):
            write_text(staged / "eval.yaml", declared)
        commit = api.upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=staged,
            commit_message=f"Version {version}",
            delete_patterns=["data/**"],
        )
        api.create_tag(repo, repo_type="dataset", tag=f"v{version}", revision=commit.oid)
    return f'Version {version} is {url}. Use it with:\nload_dataset("{repo}", "{first}", revision="v{version}")'
