"""The facts of the package as a source, and the edits with a related entity that only they have.

`sample/*.tsv` become N-Triples in the shape of a Wikidata dump: for every fact the direct ("truthy") triple and the
full statement with its reference, so that the same queries run on the sample, on a Wikidata subset and on the live
endpoint. The order and bytes of the output depend on the tables only.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import read_text
from seesaw_cf.builder_scripts.cases import edit_case, with_neighbours
from seesaw_cf.builder_scripts.coupled import CoupledRow, couple
from seesaw_cf.builder_scripts.edits import generate, listed_values
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.builder_scripts.sparql import OWN, WIKIDATA, RecordedPerson, entity_iri
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import read_cases
from seesaw_cf.records.relations import RELATIONS

FOLDER = Path(__file__).resolve().parent / "sample"
ROOT = OWN.removesuffix("entity/")

# column of people.tsv -> (property, kind of entity; "" = the column holds a year)
COLUMNS: dict[str, tuple[str, str]] = {
    "gender": ("P21", "gender"),
    "citizenship": ("P27", "country"),
    "birth_place": ("P19", "city"),
    "native_language": ("P103", "language"),
    "field_of_work": ("P101", "field"),
    "ethnic_group": ("P172", "ethnic_group"),
    "birth_year": ("P569", ""),
    "death_year": ("P570", ""),
    "occupation": ("P106", "occupation"),
}
_YEAR = "http://www.w3.org/2001/XMLSchema#dateTime"

Row = dict[str, str]
Rows = list[Row]


def read_tsv(path: str | os.PathLike[str]) -> Rows:
    """Read a tab-separated file with a header line; no quoting."""
    head, *rows = [line.split("\t") for line in read_text(path).removesuffix("\n").split("\n")]
    return [dict(zip(head, row, strict=True)) for row in rows]


PROPERTIES = {row["id"]: row for row in read_tsv(FOLDER / "properties.tsv")}
"""Property of the sample -> its row: name, and for those of links.tsv what the other person has in turn."""


def curated() -> tuple[Rows, Rows, Rows]:
    """Return the rows of people.tsv, entities.tsv and links.tsv."""
    people, entities, links = (read_tsv(FOLDER / f"{name}.tsv") for name in ("people", "entities", "links"))
    return people, entities, links


def full_id(id: str) -> str:
    """Return a QID as it is; "s:slug" as an IRI in the project's own namespace."""
    return OWN + id.removeprefix("s:") if id.startswith("s:") else id


def origins(row: Row) -> dict[str, str]:
    """Return property -> source of its values, read from "P21,P27:text|P103:text", of a row of people.tsv."""
    parts = (part.split(":", 1) for part in filter(None, row["provenance"].split("|")))
    return {property_id: text for names, text in parts for property_id in names.split(",")}


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _label(iri: str, text: str) -> str:
    return f"<{iri}> <http://www.w3.org/2000/01/rdf-schema#label> {_literal(text)}@en ."


def _direct(id: str, property_id: str, value: str) -> str:
    return f"<{entity_iri(id)}> <{entity_iri(property_id)}> {value} ."


def _fact(id: str, property_id: str, number: int, value: str, reference: str) -> Iterator[str]:
    """Yield a direct triple and the statement behind it: claim, value and reference."""
    statement = f"<{ROOT}statement/{id.removeprefix(OWN)}-{property_id}-{number}>"
    yield _direct(id, property_id, value)
    yield f"<{entity_iri(id)}> <{WIKIDATA}prop/{property_id}> {statement} ."
    yield f"{statement} <{WIKIDATA}prop/statement/{property_id}> {value} ."
    yield f"{statement} <http://www.w3.org/ns/prov#wasDerivedFrom> <{ROOT}reference/{reference}> ."


def _person_lines(row: Row, ids: dict[tuple[str, str], str], references: dict[str, str]) -> Iterator[str]:
    id, origin = full_id(row["iri"]), origins(row)
    yield _label(entity_iri(id), row["name"])
    yield _direct(id, "P31", f"<{entity_iri('Q5')}>")
    for column, (property_id, kind) in COLUMNS.items():
        for number, cell in enumerate(filter(None, row[column].split("|")), start=1):
            year = "" if kind else f"{'-' * (int(cell) < 0)}{abs(int(cell)):04d}"
            value = f"<{entity_iri(ids[kind, cell])}>" if kind else f'"{year}-01-01T00:00:00Z"^^<{_YEAR}>'
            yield from _fact(id, property_id, number, value, references[origin[property_id]])


def _link_lines(links: Iterable[Row], people: Iterable[Row], references: dict[str, str]) -> Iterator[str]:
    """Yield the triples of links between people, seen from both sides."""
    ids, counts = {row["name"]: full_id(row["iri"]) for row in people}, Counter[tuple[str, str]]()
    for row in links:
        name, property_id, other = row["name"], row["property"], row["other"]
        for side, held, value in ((name, property_id, other), (other, PROPERTIES[property_id]["inverse"], name)):
            if held:
                counts[side, held] += 1
                iri = f"<{entity_iri(ids[value])}>"
                yield from _fact(ids[side], held, counts[side, held], iri, references[row["provenance"]])


def render(people: Rows, entities: Rows, links: Sequence[Row] = ()) -> str:
    """Render rows of people.tsv, entities.tsv and links.tsv as N-Triples: sorted lines, one triple each."""
    ids = {(row["kind"], row["label"]): full_id(row["iri"]) for row in entities}
    texts = {text for row in people for text in origins(row).values()} | {row["provenance"] for row in links}
    references = {text: str(number) for number, text in enumerate(sorted(texts), start=1)}
    title = f"{WIKIDATA}prop/reference/P1476"
    lines = {f"<{ROOT}reference/{number}> <{title}> {_literal(text)}@en ." for text, number in references.items()}
    lines.update(_label(f"{WIKIDATA}entity/{id}", row["label"]) for id, row in PROPERTIES.items())
    for row in entities:
        lines.add(_label(entity_iri(full_id(row["iri"])), row["label"]))
        for country in filter(None, row["country"].split("|")):
            lines.add(_direct(full_id(row["iri"]), "P17", f"<{entity_iri(ids['country', country])}>"))
    for row in people:
        lines.update(_person_lines(row, ids, references))
    lines.update(_link_lines(links, people, references))
    return "\n".join(sorted(lines)) + "\n"


def store(people: Rows, entities: Rows, links: Sequence[Row] = ()) -> StoreSource:
    """Return rows of the tables as a store of their N-Triples; arguments as those of `render`."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "facts.nt"
        write_text(file, render(people, entities, links))
        return StoreSource(file)


# Edits of people of the sample whose related entity is another of them.

COUPLES = 6  # coupled edits per relation and gender
FIRST_COUPLE_ID = 300_001
# Records in zsRE's form about people of the sample; twelve `pred` are answers of an earlier seesaw-tiny.
QUESTIONS = FOLDER / "zsre.json"
# relation -> (what follows from an edit, column of the relation's table that has the answer)
CONSEQUENCES = {
    "P19": ("{} was born in the country of", "country"),
    "P27": ("{} is a citizen of a country of the continent of", "continent"),
    "P101": ("{} works in an area of the", "area"),
}


def sample_couples(facts: Facts) -> dict[str, list[CoupledRow]]:
    """Return edits of people with a related entity that is another person of the sample.

    The two are linked by `sample/links.tsv`.

    Args:
        facts: The sample, with the rules.

    Returns:
        `coupled_counterfact`: six edits of men and of women per relation, in the order of the relations, with their
        consequences and with prompts about other people who hold the old value. `coupled_zsre`: the two
        edits of each of `QUESTIONS`.
    """
    people = {person.id: person for person in facts.everyone()}
    everybody = Facts(facts.source, replace(facts.options, edits=dict.fromkeys(RELATIONS, len(people))))
    edits = (edit for id in RELATIONS for edit in generate(everybody, id))
    held = facts.claims(people)
    cases = []
    for number, edit in enumerate(edits, FIRST_COUPLE_ID):
        if any(value in people for values in held[edit.subject.id].values() for value in values):
            case = with_neighbours(facts, edit, edit_case(facts, edit, number))
            follows = consequences(edit.relation_id, edit.new, edit.subject)
            cases.append(replace(case, extra=case.extra | {"portability": follows}))
    chosen: defaultdict[tuple[str, tuple[str, ...]], list[CoupledRow]] = defaultdict(list)
    for row in couple(facts, cases)[0]:
        if row["related_entity"]["entity"]["id"] in people:
            gender = people[row["subject_entity"]["entity"]["id"]].gender
            chosen[row["requested_rewrite"]["relation_id"], gender].append(row)
    questions = couple(facts, read_cases(QUESTIONS))[0]
    return {
        "coupled_counterfact": [row for rows in chosen.values() for row in rows[:COUPLES]],
        "coupled_zsre": [row for row in questions if row["related_entity"]["entity"]["id"] in people],
    }


def consequences(relation_id: str, value: str, subject: RecordedPerson) -> list[dict[str, str]]:
    """Return what follows for a person from a new value: a prompt and its answer, where there is one answer."""
    template, column = CONSEQUENCES.get(relation_id, ("", ""))
    answers = groups.values(listed_values(relation_id)[value][column]) if column else ()
    prompt = template if subject.living else template.replace(" is ", " was ").replace(" works ", " worked ")
    name = subject.entity.label
    return [{"prompt": prompt.replace("{}", name), "ground_truth": answers[0]}] if len(answers) == 1 else []
