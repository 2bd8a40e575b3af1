"""Tag records: read sources, attach groups, candidates and gold answers, write the dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from seesaw_cf import __version__
from seesaw_cf.builder_scripts.dataset.shards import write_rows
from seesaw_cf.builder_scripts.tag.ask import People, ask
from seesaw_cf.builder_scripts.tag.attach import attach
from seesaw_cf.builder_scripts.tag.coverage import Coverage
from seesaw_cf.builder_scripts.tag.known import FACTS, TagSource
from seesaw_cf.builder_scripts.tag.records import CaseFile
from seesaw_cf.errors import RecordError
from seesaw_cf.io.files import write_text
from seesaw_cf.records.arrow import cases_to_table
from seesaw_cf.records.card import write_card, write_config

FACTS_CONFIG = "tag_facts"  # beside the configs of cases
SUMMARY = "tags.json"
_PEOPLE = 5000  # in one row group of the facts
_BODY = """# Tagged edit cases

One config per file of records, split `test`, one row per edit case, every prompt as the record has it. Group tags,
candidates and gold answers were added from: {sources}. `{facts}` holds every fact that they rest on, with its source,
property and time; `{summary}` the counts below and the digests of records and sources.

{coverage}

Tags follow the papers' categories. They say what is recorded about people; none is taken from a name, several are
allowed, and what was not found is unknown. Where sources differ, the groups of all of them are kept.
"""


def tag_records(out: str | os.PathLike[str], records: Mapping[str, CaseFile], sources: Sequence[TagSource]) -> Coverage:
    """Write tagged records, the facts behind the tags, a card and the counts into a folder.

    Args:
        out: The folder; make it with `seesaw_cf.io.files.atomic_folder` when other programs read it.
        records: Config name -> records.
        sources: Asked in this order.

    Returns:
        The counts.

    Raises:
        RecordError: No record identifies a person, a source knows none of them, or a config is named like the facts.
        SourceError: A source does not answer.
        StorageError: The disk is full.
    """
    if FACTS_CONFIG in records:
        raise RecordError(f"{records[FACTS_CONFIG].source}: config {FACTS_CONFIG!r} is taken by the facts. Rename it.")
    identities = [source.identity for source in sources]
    if twice := [source.name for source in sources if identities.count(source.identity) > 1]:
        raise RecordError(f"--from: {' and '.join(twice)} are the same source, expected each once. Leave one out.")
    everything = [case for case_file in records.values() for case in case_file.cases]
    people, coverage = ask(sources, everything), Coverage()
    tagged = iter(attach(everything, people, coverage))
    for name, case_file in records.items():
        write_config(out, name, {"test": cases_to_table([next(tagged) for _ in case_file.cases])})
    write_rows(out, FACTS_CONFIG, _facts(people), FACTS)
    about = {name: f"{len(case_file.cases)} cases of {case_file.source}, tagged" for name, case_file in records.items()}
    about[FACTS_CONFIG] = "what the sources say about the people of the records"
    names = ", ".join(source.name for source in sources)
    body = _BODY.format(sources=names, facts=FACTS_CONFIG, summary=SUMMARY, coverage=coverage.to_markdown())
    write_card(out, about, body=body, metadata={"pretty_name": "Tagged edit cases", "language": ["en"]})
    write_text(Path(out) / SUMMARY, _summary(records, sources, coverage))
    return coverage


def _facts(people: People) -> Iterator[pa.Table]:
    """Tables of schema `FACTS`: source after source, person after person."""
    for source, people_of_source in people.records.items():
        ids = sorted(people_of_source)
        for start in range(0, len(ids), _PEOPLE):
            rows = [
                (id, fact.entity, fact.property, fact.value, source.name, fact.reference, fact.time)
                for id in ids[start : start + _PEOPLE]
                for fact in people_of_source[id].facts
            ]
            yield pa.Table.from_pylist([dict(zip(FACTS.names, row)) for row in rows], FACTS)


def _summary(records: Mapping[str, CaseFile], sources: Iterable[TagSource], coverage: Coverage) -> str:
    facts = {
        "made_by": f"seesaw_cf {__version__}",
        "sources": [{"name": source.name, "identity": source.identity} for source in sources],
        "records": {
            name: {"source": case_file.source, "sha256": case_file.sha256, "cases": len(case_file.cases)}
            for name, case_file in records.items()
        },
        **coverage.numbers(),
    }
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
