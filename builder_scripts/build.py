"""The whole of `build`: open the source, draw and make the cases, write the folder, publish it."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seesaw_cf import __version__
from seesaw_cf.base.errors import RecordError, StorageError, hide_secrets
from seesaw_cf.base.files import atomic_folder, cache_folder, dump_json, write_text
from seesaw_cf.base.hub import check_repo, explained
from seesaw_cf.base.terminal import markdown_for_terminal
from seesaw_cf.base.types import Case, JsonObject
from seesaw_cf.builder_scripts import SAMPLE, SAMPLE_OPTIONS, Asking, BuildJob
from seesaw_cf.builder_scripts.card import benchmark, published_card
from seesaw_cf.builder_scripts.coupled import CoupledRow, couple
from seesaw_cf.builder_scripts.dataset import build, build_coupled, choose_edits
from seesaw_cf.builder_scripts.edits import read_seeds
from seesaw_cf.builder_scripts.embedded import curated, sample_couples, store
from seesaw_cf.builder_scripts.endpoint import WIKIDATA_ENDPOINT, EndpointSource
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import CachedSource, Source, StoreSource
from seesaw_cf.records.importing import import_files

SAMPLE_DATE = "2026-11-27"  # when a table of the sample's facts was changed last


def endpoint_url(word: str) -> str:
    """Return the address of the endpoint that a word names, "" when it names something else."""
    return WIKIDATA_ENDPOINT if word == "wikidata" else word if "://" in word else ""


def open_source(word: str, asking: Asking) -> Source:
    """Return the source that a word names; all but the sample with a cache in front.

    Args:
        word: "sample", "wikidata", an address, a store's folder, or an RDF file.
        asking: How it is asked.

    Raises:
        SeesawError: The source does not exist, or cannot be read.
    """
    if word == SAMPLE:
        return store(*curated())
    url = endpoint_url(word)
    if not url and not Path(word).exists():
        raise StorageError(f"source {word!r}: no such file or folder, and not {SAMPLE!r}, 'wikidata' or a URL.")
    source = EndpointSource(url, asking) if url else StoreSource(word)
    return CachedSource(source, asking.cache or cache_folder() / "replies", offline=asking.offline)


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
    return f"{text}\n\n{push_dataset(out, push, private=private or None)}" if push else text


def _take_records(job: BuildJob, out: Path) -> str:
    """Write records as they are, and return the table of what is in them."""
    summary = import_files(job.records, out, skip_bad=job.skip_bad, version=job.version)
    configs = " ".join(f"--config {name}" for name in summary.files)
    lines = [markdown_for_terminal(summary.to_markdown()), "", *summary.left_out()]
    return "\n".join([*lines, "", f"Written to {out}. Use it with --data {out} {configs}."])


def _make(job: BuildJob, out: Path, asking: Asking) -> str:
    options, seeds, records = job.options(), read_seeds(job.edits), read_seeds(job.coupled)
    source = open_source(job.source, asking)
    facts, identity, sample = Facts(source, options), hide_secrets(source.identity), job.source == SAMPLE
    lines: list[str] = []
    with atomic_folder(out) as folder:
        couples, counts = couples_of(facts, records) if records else ({}, Counter[str]())
        skipped = {reason: number for reason, number in counts.items() if reason not in couples}
        if job.coupled_only:
            build_coupled(folder, facts, couples, counts, source=identity, version=job.version)
        else:
            couples = (sample_couples(facts) if sample else {}) | couples
            edits = choose_edits(facts, seeds)
            skipped = {**edits.skipped, **skipped}
            edits = dataclasses.replace(edits, skipped=skipped)
            # How the sample was made holds for a build by its own rules alone.
            own = sample and options == SAMPLE_OPTIONS and not job.edits and not job.coupled
            name = "" if own else SAMPLE if sample else identity
            statistics = build(folder, facts, edits, couples, source=name, sample=sample, version=job.version)
            for table in (statistics.cross_subject(), statistics.cross_property()):
                lines += [markdown_for_terminal(table), ""]
        dump_json(folder / "build.json", _manifest(job, facts, skipped), sort_keys=True)
    lines += [f"{config}: {len(rows):,} coupled edits" for config, rows in couples.items()]
    lines += [f"{number} records of the edit files make no edit: {why}" for why, number in sorted(skipped.items())]
    if isinstance(source, CachedSource):
        lines.append(f"{source.misses} queries asked, {source.hits} answered by kept replies")
    return "\n".join([*lines, f"\nWritten to {out}. Use it with --data {out}."])


def couples_of(facts: Facts, cases: Sequence[Case]) -> tuple[dict[str, list[CoupledRow]], Counter[str]]:
    """Couple the records of each config.

    Args:
        facts: Where names, claims and links come from, with the rules.
        cases: CounterFact (or SEESAW-CF) and zsRE records.

    Returns:
        Config -> its coupled edits, where there are any; and "config" -> rows, "config: reason" -> edits without
        couple.

    Raises:
        RecordError: No edit has a couple.
        SourceError: The source does not answer.
    """
    couples, counts = dict[str, list[CoupledRow]](), Counter[str]()
    for config, zsre in (("coupled_counterfact", False), ("coupled_zsre", True)):
        rows, skipped = couple(facts, [case for case in cases if (case.record_format == "zsre") == zsre])
        counts.update({f"{config}: {reason}": number for reason, number in skipped.items()})
        couples |= {config: rows} if rows else {}
    if not couples:
        raise RecordError(f"no coupled edits: none of {len(cases)} records has a related entity here ({dict(counts)}).")
    return couples, counts + Counter({config: len(rows) for config, rows in couples.items()})


def _manifest(job: BuildJob, facts: Facts, skipped: Mapping[str, int]) -> JsonObject:
    """Return what made the folder; nothing in it depends on when or where it was made."""
    source = facts.source
    day = SAMPLE_DATE if job.source == SAMPLE else source.latest[:10] if isinstance(source, CachedSource) else ""
    manifest: JsonObject = {
        "made_by": f"seesaw_cf {__version__}",
        "source": hide_secrets(source.identity),
        "options": {name: value for name, value in dataclasses.asdict(facts.options).items() if value != ()},
        "drawn": facts.ways,
        "edit_files": [
            {"option": f"--{option}", "name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for option in ("edits", "coupled")
            for path in getattr(job, option)
        ],
        "skipped": skipped,
    }
    return manifest | ({"date": day} if day else {})


def push_dataset(folder: Path, repo: str, *, private: bool | None = None) -> str:
    """Publish a built folder on the Hub in one commit, tagged with its version, and return how it is loaded.

    Args:
        folder: What `run_build` wrote.
        repo: ORG/NAME; made when it does not exist.
        private: Of a new repository.

    Raises:
        StorageError: The Hub refuses or does not answer; the repository holds something else, or this version.
    """
    from huggingface_hub import DatasetCard, HfApi

    card = DatasetCard.load(folder / "README.md").data.to_dict()
    configs = {str(entry["config_name"]): str(entry["version"]) for entry in card["configs"]}
    first, version = next(iter(configs.items()))
    api = HfApi(library_name="seesaw_cf")
    with explained(repo):
        url = str(api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True))
        names = set(api.list_repo_files(repo, repo_type="dataset")) - {".gitattributes"}
        tags = {ref.name for ref in api.list_repo_refs(repo, repo_type="dataset").tags}
    if names and not names & {"build.json", "import.json"}:
        some = ", ".join(sorted(names)[:5])
        raise StorageError(f"{repo} exists and holds something else ({some}). Choose another name, or empty it first.")
    if f"v{version}" in tags:
        raise StorageError(f"{repo} has version {version} already: published versions never change. Raise --version.")
    with tempfile.TemporaryDirectory() as work, explained(repo):
        staged = Path(work) / "dataset"
        shutil.copytree(folder, staged, ignore=shutil.ignore_patterns(".*", "*.tmp"))
        text = (staged / "README.md").read_text(encoding="utf-8")
        write_text(staged / "README.md", published_card(text, repo, version))
        if declared := benchmark(card.get("pretty_name", repo), configs):
            write_text(staged / "eval.yaml", declared)
        place: dict[str, Any] = {"repo_id": repo, "repo_type": "dataset"}
        about = f"Version {version}"
        commit = api.upload_folder(folder_path=staged, commit_message=about, delete_patterns=["data/**"], **place)
        api.create_tag(tag=f"v{version}", revision=commit.oid, **place)
    return f'Version {version} is {url}. Use it with:\nload_dataset("{repo}", "{first}", revision="v{version}")'
