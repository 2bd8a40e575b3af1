"""Builds the embedded sample: `python -m seesaw_cf.builder_scripts.sample.build [--out DIR]`."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from seesaw_cf.builder_scripts.dataset.build import About, build, choose_edits
from seesaw_cf.builder_scripts.make.cases import edit_case
from seesaw_cf.builder_scripts.make.coupled import Coupled, couple
from seesaw_cf.builder_scripts.make.edits import generate
from seesaw_cf.builder_scripts.options import SAMPLE_OPTIONS
from seesaw_cf.builder_scripts.sample.facts import SAMPLE
from seesaw_cf.builder_scripts.source.claims import Claims
from seesaw_cf.builder_scripts.source.people import Facts
from seesaw_cf.builder_scripts.source.sources import Source, StoreSource
from seesaw_cf.io.files import write_text
from seesaw_cf.records import sample
from seesaw_cf.records.relations import RELATIONS

__all__ = ["ABOUT", "build_sample", "main", "sample_couples"]

COUPLES = 5  # coupled edits per relation and gender
FIRST_COUPLE_ID = 300_001

_WORDS = {
    "intro": """The embedded sample of the package `seesaw_cf`: {people} well-known people, edits of five facts about
them (gender, field of work, citizenship, place of birth, native language), and prompts that show whether such an edit
changes what a language model believes about *other* people, by race, geographic origin and gender.""",
    "making": """`builder_scripts/sample/people.tsv` and `links.tsv` hold the facts with their provenance, `facts.py`
renders them as N-Triples in Wikidata's shape, and `seesaw-cf build --source sample --out DIR` turns these into this
folder, byte by byte the same.""",
    "limits": """{people} people are enough to test a pipeline and to see an effect, not to publish one: several groups
have fewer than twenty members. People in the sample are famous, and mostly dead. Native language and ethnic group are
curated from encyclopaedic knowledge, recorded only where they are part of a well-documented public life.""",
}
ABOUT = About(_WORDS, version="1.0.0", references=True)


def sample_couples(source: Source, facts: Facts) -> list[Coupled]:
    """Edits of people whose related entity is another person of the sample, linked to them by `sample/links.tsv`.

    Args:
        source: The sample.
        facts: The same, with the rules.

    Returns:
        At most five edits of men and five of women per relation, in the order of the relations.
    """
    people = {person.id: person for person in facts.everyone()}
    everybody = replace(facts.options, edits=dict.fromkeys(RELATIONS, len(people)))
    edits = [edit for id in RELATIONS for edit in generate(Facts(source, everybody), id)]
    claims = Claims(source, facts)
    held = claims.of(people).items()
    linked = {id for id, rows in held if not people.keys().isdisjoint(value for row in rows.values() for value in row)}
    numbered = [(number, edit) for number, edit in enumerate(edits, FIRST_COUPLE_ID) if edit.subject.id in linked]
    found, _ = couple(facts, claims, [edit_case(facts, edit, number) for number, edit in numbered])
    groups: dict[tuple[str, tuple[str, ...]], list[Coupled]] = {}
    for row in found:
        if row.related.entity.id in people:
            gender = people[str(row.subject.entity.id)].gender
            groups.setdefault((row.edit.case.request.relation_id, gender), []).append(row)
    return [row for rows in groups.values() for row in rows[:COUPLES]]


def build_sample(out: str | os.PathLike[str]) -> None:
    """Writes the six configs and the card of the embedded sample.

    Args:
        out: A folder; gets README.md and data/<config>/test-00000-of-00001.parquet. The same bytes every time.

    Raises:
        StorageError: A file cannot be read or written.
    """
    source = StoreSource([SAMPLE / "sample.nt"])
    facts = Facts(source, SAMPLE_OPTIONS)
    build(out, facts, choose_edits(facts), ABOUT, sample_couples(source, facts))


def main() -> None:
    """Builds into the package folder and its copy of the card beside it, or into --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder to write instead of the package's own data")
    out: Path | None = parser.parse_args().out
    build_sample(out or sample.path())
    if out is None:
        write_text(sample.path().parent / "dataset_card.md", (sample.path() / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
