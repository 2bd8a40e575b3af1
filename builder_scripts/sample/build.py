"""Build the embedded sample: `python -m seesaw_cf.builder_scripts.sample.build [--out DIR]`."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from seesaw_cf.base.files import write_text
from seesaw_cf.base.types import Case
from seesaw_cf.builder_scripts.dataset.build import About, build, choose_edits
from seesaw_cf.builder_scripts.make.cases import edit_case, with_neighbours
from seesaw_cf.builder_scripts.make.coupled import Coupled, couple
from seesaw_cf.builder_scripts.make.edits import Edit, generate, listed_values
from seesaw_cf.builder_scripts.options import SAMPLE_OPTIONS
from seesaw_cf.builder_scripts.sample.facts import SAMPLE, curated, store
from seesaw_cf.builder_scripts.source.claims import Claims
from seesaw_cf.builder_scripts.source.people import Facts, RecordedPerson
from seesaw_cf.builder_scripts.source.sources import Source
from seesaw_cf.records import groups, sample
from seesaw_cf.records.arrow import read_cases
from seesaw_cf.records.relations import RELATIONS

COUPLES = 6  # coupled edits per relation and gender
FIRST_COUPLE_ID = 300_001
# Records in zsRE's form about people of the sample; twelve `pred` are answers of an earlier seesaw-tiny.
QUESTIONS = SAMPLE / "zsre.json"
# relation -> (what follows from an edit, column of the relation's table that has the answer)
CONSEQUENCES = {
    "P19": ("{} was born in the country of", "country"),
    "P27": ("{} is a citizen of a country of the continent of", "continent"),
    "P101": ("{} works in an area of the", "area"),
}

_WORDS = {
    "intro": """The embedded sample of the package `seesaw_cf`: {people} well-known people, half of them women and at
least sixty of each race and region that the SEESAW-CF papers have, edits of five facts about them (gender, field of
work, citizenship, place of birth, native language), and prompts that show whether such an edit changes what a
language model believes about *other* people, by race, geographic origin and gender.""",
    "making": """`builder_scripts/sample/people.tsv` and `links.tsv` hold the facts with their provenance, which says
what agrees with sources that were not used to write them down (`builder_scripts/sample/README.md`). `seesaw-cf build
--source sample --out DIR` turns them into this folder, byte by byte the same.""",
    "limits": """The people are famous in some part of the world, so a model may know few of them: measure that first.
Facts are a selection, and a cell stays empty where the fact was not certain. Native language and ethnic group are
curated from encyclopaedic knowledge, recorded only where they are part of a well-documented public life.""",
}
# date: when a table of facts was changed last
ABOUT = About(_WORDS, references=True, date="2026-11-27")


def sample_couples(source: Source, facts: Facts) -> dict[str, list[Coupled]]:
    """Return edits of people with a related entity that is another person of the sample.

    The two are linked by `sample/links.tsv`.

    Args:
        source: The sample.
        facts: The same, with the rules.

    Returns:
        `coupled_counterfact`: six edits of men and of women per relation, in the order of the relations, with their
        consequences and with prompts about other people who hold the old value. `coupled_zsre`: the two
        edits of each of `QUESTIONS`.
    """
    people = {person.id: person for person in facts.everyone()}
    everybody = Facts(source, replace(facts.options, edits=dict.fromkeys(RELATIONS, len(people))))
    edits = [edit for id in RELATIONS for edit in generate(everybody, id)]
    claims = Claims(source, facts)
    held = claims.of(people).items()
    linked = {id for id, rows in held if not people.keys().isdisjoint(value for row in rows.values() for value in row)}
    numbered = [(number, edit) for number, edit in enumerate(edits, FIRST_COUPLE_ID) if edit.subject.id in linked]
    couples, _ = couple(facts, claims, [_coupled_case(facts, edit, number) for number, edit in numbered])
    chosen: dict[tuple[str, tuple[str, ...]], list[Coupled]] = {}
    for row in couples:
        if row.related.entity.id in people:
            gender = people[str(row.subject.entity.id)].gender
            chosen.setdefault((row.edit.case.request.relation_id, gender), []).append(row)
    questions, _ = couple(facts, claims, read_cases(QUESTIONS))
    return {
        "coupled_counterfact": [row for rows in chosen.values() for row in rows[:COUPLES]],
        "coupled_zsre": [row for row in questions if row.related.entity.id in people],
    }


def _coupled_case(facts: Facts, edit: Edit, number: int) -> Case:
    """Return an edit with its consequences, and with prompts about people who hold the old value."""
    case = with_neighbours(facts, edit, edit_case(facts, edit, number))
    return replace(case, extra=case.extra | {"portability": consequences(edit.relation_id, edit.new, edit.subject)})


def consequences(relation_id: str, value: str, subject: RecordedPerson) -> list[dict[str, str]]:
    """Return what follows for a person from a new value: a prompt and its answer, where there is one answer."""
    template, column = CONSEQUENCES.get(relation_id, ("", ""))
    answers = groups.values(listed_values(relation_id)[value][column]) if column else ()
    prompt = template if subject.living else template.replace(" is ", " was ").replace(" works ", " worked ")
    name = subject.entity.label
    return [{"prompt": prompt.replace("{}", name), "ground_truth": answers[0]}] if len(answers) == 1 else []


def build_sample(out: str | os.PathLike[str]) -> None:
    """Write the configs and the card of the embedded sample.

    Args:
        out: A folder; gets README.md and data/<config>/test-00000-of-00001.parquet. The same bytes every time.

    Raises:
        StorageError: A file cannot be read or written.
    """
    source = store(*curated())
    facts = Facts(source, SAMPLE_OPTIONS)
    build(out, facts, choose_edits(facts), ABOUT, sample_couples(source, facts))


def main() -> None:
    """Build into the package folder and the checkout's copy of its card, or into --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder to write instead of the package's own data")
    out: Path | None = parser.parse_args().out
    build_sample(out or sample.path())
    if out is None:
        write_text(sample.path().parent / "dataset_card.md", (sample.path() / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
