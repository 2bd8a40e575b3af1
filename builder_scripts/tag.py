"""The whole of `tag`: read records, ask one source, attach groups, candidates and gold answers, write the dataset."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf import __version__
from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError, hide_secrets
from seesaw_cf.base.files import atomic_folder, dump_json, safe_name
from seesaw_cf.base.terminal import markdown_for_terminal
from seesaw_cf.base.types import Case
from seesaw_cf.builder_scripts.build import bar, endpoint_url, open_source
from seesaw_cf.builder_scripts.dataset import write_rows
from seesaw_cf.builder_scripts.jobs import Asking, TagJob
from seesaw_cf.builder_scripts.statistics import markdown, ordered
from seesaw_cf.builder_scripts.tag_people import LISTED, TAGS, People, PeopleSource, ask, attach, tag_row, tested
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import CASES, cases_to_table, read_cases
from seesaw_cf.records.card import write_card, write_config
from seesaw_cf.records.importing import config_files, write_open_ended


@dataclass(frozen=True, slots=True)
class CaseFile:
    """One file or config of cases.

    Attributes:
        cases: In their order.
        source: Name of the file, or of the config's folder.
        sha256: Of the file, or of the shards' bytes one after the other (hex).
    """

    cases: list[Case]
    source: str
    sha256: str


def read_records(paths: Iterable[str | os.PathLike[str]]) -> dict[str, CaseFile]:
    """Read the records of every file: config name -> records.

    Args:
        paths: JSON, JSON-lines or Parquet files of cases; a folder stands for the configs of cases in its `data/`, or
            for its `seesaw_cf_*.json` files.

    Raises:
        RecordError: A file is damaged, two would have the same name, or a folder holds no cases.
        StorageError: A file is missing.
    """
    files: dict[str, Path] = {}
    for path in map(check_path, paths):
        for name, file in (_configs(path) if (path / "data").is_dir() else config_files([path])).items():
            if name in files:
                raise RecordError(f"{file} and {files[name]} would both be config {name!r}. Rename one of them.")
            files[name] = file
    if not files:
        raise RecordError("no records were named. Name at least one file or folder.")
    return {name: CaseFile(read_cases(path), path.name, _digest(path)) for name, path in files.items()}


def _configs(folder: Path) -> dict[str, Path]:
    """Return the configs of a dataset folder that hold cases."""
    shards = {path.parent: path for path in sorted((folder / "data").glob("*/*.parquet"), reverse=True)}
    cases = [path for path, shard in shards.items() if set(CASES.names) <= set(pq.read_schema(shard).names)]
    if not cases:
        raise RecordError(f"{folder}: no config in its data/ holds cases. Give the folder that `build` made.")
    return {safe_name(path.name): path for path in sorted(cases)}


def _digest(path: Path) -> str:
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


FACTS_CONFIG = "tag_facts"  # beside the configs of cases
SUMMARY = "tags.json"
FACTS: pa.Schema = pa.schema(
    [(name, pa.string()) for name in ("person", "entity", "property", "value", "source", "time")]
)
_PEOPLE = 5000  # in one row group of the facts
_CARD = """# Tagged edit cases

One config per file of records, split `test`, one row per edit case, every prompt as the record has it. `open_ended`,
where there is one, has their open-ended prompts, one a row. Group tags,
candidates and gold answers were added from: {{ source }}. `{{ facts }}` holds every fact that they rest on, with its
source, property and time; `{{ summary }}` the counts below and the digests of records and source.

{{ coverage }}

Tags follow the papers' categories. They say what is recorded about people; none is taken from a name, several are
allowed, and what was not found is unknown.
"""


def run_tag(job: TagJob, out: Path, asking: Asking | None = None) -> str:
    """Write tagged records, the facts behind the tags, a card and the counts into a folder; return what to print.

    Args:
        job: The records and the source.
        out: The folder; it appears under its name only when it is complete.
        asking: How the source is asked.

    Raises:
        RecordError: No record identifies a person, the source knows none of them, or a config is named like the facts.
        SourceError: The source does not answer.
        StorageError: A file is missing, or the disk is full.
    """
    records = read_records(job.records)
    if FACTS_CONFIG in records:
        raise RecordError(f"{records[FACTS_CONFIG].source}: config {FACTS_CONFIG!r} is taken by the facts. Rename it.")
    name = hide_secrets(endpoint_url(job.source) or Path(job.source).name)
    opened = open_source(job.source, asking or Asking(), silent_attempts=2)
    source = PeopleSource(name, opened, job.language, bar)
    everything = [case for case_file in records.values() for case in case_file.cases]
    with atomic_folder(out) as folder:
        people = ask(source, everything)
        cases, outcomes = attach(everything, people)
        coverage = coverage_of(people, everything, cases, outcomes)
        text = coverage_text(name, coverage)
        rest = iter(cases)
        tagged = {config: [next(rest) for _ in case_file.cases] for config, case_file in records.items()}
        for config, rows in tagged.items():
            write_config(folder, config, {"test": cases_to_table(rows)})
        about = {config: f"{len(file.cases)} cases of {file.source}, tagged" for config, file in records.items()}
        about |= write_open_ended(folder, tagged)
        about[FACTS_CONFIG] = "what the source says about the people of the records"
        write_rows(folder, FACTS_CONFIG, _facts(people, name), FACTS)
        metadata = {"pretty_name": "Tagged edit cases", "language": ["en"]}
        texts = {"source": name, "facts": FACTS_CONFIG, "summary": SUMMARY, "coverage": text}
        write_card(folder, about, template=_CARD, metadata=metadata, **texts)
        digests = {
            config: {"source": file.source, "sha256": file.sha256, "cases": len(file.cases)}
            for config, file in records.items()
        }
        made = {
            "made_by": f"seesaw_cf {__version__}",
            "source": {"name": name, "identity": hide_secrets(source.identity)},
        }
        dump_json(folder / SUMMARY, made | {"records": digests, "coverage": coverage}, ensure_ascii=False)
    configs = " ".join(f"--config {config}" for config in records)
    return (
        f"{markdown_for_terminal(text)}\n\nWritten to {out}: the facts in config {FACTS_CONFIG}, these counts in "
        f"{SUMMARY}.\nUse it with --data {out} {configs}."
    )


def coverage_of(
    people: People, before: Sequence[Case], cases: Sequence[Case], outcomes: Counter[str]
) -> dict[str, Any]:
    """Count what tagging found and what it did not.

    Args:
        people: What the source says.
        before, cases: Before and after they were tagged.
        outcomes: See `attach`.
    """
    rows = [row for case in cases for row in tested(case)]
    asked = {row.subject.id for case in before for row in tested(case)}
    persons = {row.subject.id: row for row in rows if row.subject.id and row.subject.id in asked}
    found = {id: people.records[id] for id in persons if id in people.records}
    tagged, prompts = (Counter(tag for row in some for tag in tag_row(row)) for some in (persons.values(), rows))
    return {
        "people": len(persons),
        "found": len(found),
        "merged": sum(record.person.id != id for id, record in found.items()),
        "prompts": len(rows),
        "prompts_without_id": sum(not row.subject.id for row in rows),
        "tags": {tag: {"people": tagged[tag], "prompts": prompts[tag]} for tag in TAGS},
        "groups": {tag: Counter(name for row in persons.values() for name in getattr(row, tag)) for tag in LISTED},
        "pairs": dict(sorted(outcomes.items())),
    }


def coverage_text(source: str, coverage: Mapping[str, Any]) -> str:
    """Return the tables of `coverage_of` to print and to put on a card; `source` is the name of the source."""
    n_people, found = coverage["people"], coverage["found"]
    rows = [
        [tag, number["people"], n_people - number["people"], f"{number['prompts']:,} of {coverage['prompts']:,}"]
        for tag, number in coverage["tags"].items()
    ]
    parts = [
        markdown(["Tag", f"People who have it (n = {n_people:,})", "Unknown", "Prompts with it"], rows),
        f"Of {n_people:,} identified people {source} knows {found:,}; nothing is recorded about {n_people - found:,} "
        f"(deleted, or never there), {coverage['merged']:,} were merged into another identifier, which was asked "
        f"instead. {coverage['prompts_without_id']:,} prompts are about somebody without identifier: unknown, as no "
        "tag is taken from a name.",
    ]
    for tag, counts in coverage["groups"].items():
        members = [[name, counts[name]] for name in ordered(tag, set(counts))]
        unknown = [groups.UNKNOWN, n_people - coverage["tags"][tag]["people"]]
        parts += [markdown([tag.capitalize(), "People"], [*members, unknown])] if counts else []
    if coverage["pairs"]:
        parts.append(markdown(["Answers about the watched property", "Records"], coverage["pairs"].items()))
    return "\n\n".join(parts)


def _facts(people: People, source: str) -> Iterator[pa.Table]:
    """Yield tables of schema `FACTS`, person after person."""
    ids = sorted(people.records)
    for start in range(0, len(ids), _PEOPLE):
        rows = [
            {"person": id, "source": source} | asdict(fact)
            for id in ids[start : start + _PEOPLE]
            for fact in people.records[id].facts
        ]
        yield pa.Table.from_pylist(rows, FACTS)
