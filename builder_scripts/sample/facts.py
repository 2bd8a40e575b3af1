"""Renders the sample's tables of facts as N-Triples in the shape of a Wikidata dump.

For every fact there is the direct ("truthy") triple and the full statement with its reference, so that the same
queries run on the sample, on a Wikidata subset and on the live endpoint. The order and bytes of the output depend on
the tables only.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import write_text
from seesaw_cf.builder_scripts.source.sources import OWN, WIKIDATA, StoreSource, entity_iri

SAMPLE = Path(__file__).resolve().parent
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
# Names of the properties that the sample uses.
PROPERTIES = {
    "P17": "country",
    "P19": "place of birth",
    "P21": "sex or gender",
    "P27": "country of citizenship",
    "P25": "mother",
    "P26": "spouse",
    "P31": "instance of",
    "P40": "child",
    "P101": "field of work",
    "P103": "native language",
    "P106": "occupation",
    "P172": "ethnic group",
    "P184": "doctoral advisor",
    "P185": "doctoral student",
    "P451": "unmarried partner",
    "P569": "date of birth",
    "P570": "date of death",
    "P737": "influenced by",
    "P802": "student",
    "P1038": "relative",
    "P1066": "student of",
    "P1327": "professional or sports partner",
    "P3342": "significant person",
    "P3373": "sibling",
}
# Properties of links.tsv -> what the other person has in turn; "" = nothing.
_INVERSE = {
    "P25": "P40",
    "P184": "P185",
    "P737": "",
    "P1066": "P802",
    **{symmetric: symmetric for symmetric in ("P26", "P451", "P1038", "P1327", "P3342", "P3373")},
}
_PROVENANCE = re.compile(r"(P[0-9]+(?:,P[0-9]+)*):(\S.*)")
_YEAR = "http://www.w3.org/2001/XMLSchema#dateTime"

Rows = list[dict[str, str]]


def read_tsv(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read a tab-separated file with a header line; no quoting.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It is not UTF-8, its last line does not end, or a line has more or fewer cells than the header.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: byte {error.start} is not UTF-8 text. Save the table as UTF-8.") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    if lines.pop():
        raise RecordError(f"{path}: the last line does not end; the file may be cut off. Take it again.")
    head, *rows = [line.split("\t") for line in lines] or [[]]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(head):
            raise RecordError(f"{path}, line {number}: {len(row)} cells, expected {len(head)} as in the header.")
    return [dict(zip(head, row, strict=True)) for row in rows]


def full_id(id: str) -> str:
    """Return a QID as it is; "s:slug" as an IRI in the project's own namespace."""
    return OWN + id.removeprefix("s:") if id.startswith("s:") else id


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _label(id: str, text: str) -> str:
    page = f"{WIKIDATA}entity/{id}" if id in PROPERTIES else entity_iri(id)
    return f"<{page}> <http://www.w3.org/2000/01/rdf-schema#label> {_literal(text)}@en ."


def _direct(id: str, property_id: str, value: str) -> str:
    return f"<{entity_iri(id)}> <{entity_iri(property_id)}> {value} ."


def _statement(id: str, property_id: str, number: int, value: str, reference: str) -> Iterator[str]:
    """Yield the statement behind a direct triple: claim, value and reference."""
    name = id.removeprefix(OWN)
    statement = f"<{ROOT}statement/{name}-{property_id}-{number}>"
    yield f"<{entity_iri(id)}> <http://www.wikidata.org/prop/{property_id}> {statement} ."
    yield f"{statement} <http://www.wikidata.org/prop/statement/{property_id}> {value} ."
    yield f"{statement} <http://www.w3.org/ns/prov#wasDerivedFrom> <{ROOT}reference/{reference}> ."


def origins(row: dict[str, str]) -> dict[str, str]:
    """Return property -> source of its values, read from "P21,P27:text|P103:text".

    Args:
        row: Of people.tsv.

    Raises:
        RecordError: A part of the column "provenance" is not of this form.
    """
    texts: dict[str, str] = {}
    for part in row["provenance"].split("|") if row["provenance"] else ():
        match = _PROVENANCE.fullmatch(part)
        if match is None:
            raise RecordError(f"{row['name']}: provenance {part!r}, expected 'P21,P27:where from'. Correct people.tsv.")
        texts |= dict.fromkeys(match[1].split(","), match[2])
    return texts


def _four_digits(year: int) -> str:
    """Return a year as XML Schema writes it: at least four digits, which the sign of years before Christ precedes."""
    return f"{'-' * (year < 0)}{abs(year):04d}"


def _facts(row: dict[str, str], ids: dict[tuple[str, str], str]) -> Iterator[tuple[str, int, str]]:
    """Yield (property, number, value term) of every value in a person's row."""
    for column, (property_id, kind) in COLUMNS.items():
        for number, cell in enumerate(filter(None, row[column].split("|")), start=1):
            if not kind:
                yield property_id, number, f'"{_four_digits(int(cell))}-01-01T00:00:00Z"^^<{_YEAR}>'
            elif (kind, cell) in ids:
                yield property_id, number, f"<{entity_iri(ids[kind, cell])}>"
            else:
                raise RecordError(f"{row['name']}: {column} {cell!r} is not a {kind} of entities.tsv. Add it there.")


def _entity_lines(entities: Iterable[dict[str, str]], ids: dict[tuple[str, str], str]) -> Iterator[str]:
    for row in entities:
        id = full_id(row["iri"])
        yield _label(id, row["label"])
        for country in filter(None, row["country"].split("|")):
            yield _direct(id, "P17", f"<{entity_iri(ids['country', country])}>")


def _person_lines(row: dict[str, str], ids: dict[tuple[str, str], str], references: dict[str, str]) -> Iterator[str]:
    id = full_id(row["iri"])
    origin = origins(row)
    yield _label(id, row["name"])
    yield _direct(id, "P31", f"<{entity_iri('Q5')}>")
    for property_id, number, value in _facts(row, ids):
        if property_id not in origin:
            raise RecordError(f"{row['name']}: {property_id} has no provenance. Name its origin in people.tsv.")
        yield _direct(id, property_id, value)
        yield from _statement(id, property_id, number, value, references[origin[property_id]])


def _link_lines(
    links: Sequence[dict[str, str]], people: Iterable[dict[str, str]], references: dict[str, str]
) -> Iterator[str]:
    """Yield the triples of links between people, seen from both sides."""
    ids, counts = {row["name"]: full_id(row["iri"]) for row in people}, Counter[tuple[str, str]]()
    for row in links:
        name, property_id, other = row["name"], row["property"], row["other"]
        if property_id not in _INVERSE or not {name, other} <= set(ids) or name == other:
            raise RecordError(
                f"links.tsv: {name!r} {property_id} {other!r}, expected one of {', '.join(_INVERSE)} between two "
                "people of people.tsv. Correct the row."
            )
        for side, held, value in ((name, property_id, other), (other, _INVERSE[property_id], name)):
            if held:
                counts[side, held] += 1
                iri = f"<{entity_iri(ids[value])}>"
                yield _direct(ids[side], held, iri)
                yield from _statement(ids[side], held, counts[side, held], iri, references[row["provenance"]])


def render(
    people: Iterable[dict[str, str]], entities: Iterable[dict[str, str]], links: Iterable[dict[str, str]] = ()
) -> str:
    """Render facts as N-Triples.

    Args:
        people: Rows of people.tsv.
        entities: Rows of entities.tsv.
        links: Rows of links.tsv.

    Returns:
        Sorted lines, one triple each.

    Raises:
        RecordError: A value or linked person is not known, a fact has no provenance, or an identifier is malformed.
    """
    people, entities, links = list(people), list(entities), list(links)
    ids = {(row["kind"], row["label"]): full_id(row["iri"]) for row in entities}
    texts = {text for row in people for text in origins(row).values()}
    texts |= {row["provenance"] for row in links}
    references = {text: str(number) for number, text in enumerate(sorted(texts), start=1)}
    lines = {
        f"<{ROOT}reference/{number}> <{entity_iri('P1476').replace('prop/direct', 'prop/reference')}> "
        f"{_literal(text)}@en ."
        for text, number in references.items()
    }
    lines.update(_entity_lines(entities, ids))
    lines.update(_label(id, label) for id, label in PROPERTIES.items())
    for row in people:
        lines.update(_person_lines(row, ids, references))
    lines.update(_link_lines(links, people, references))
    return "\n".join(sorted(lines)) + "\n"


def store(
    people: Iterable[dict[str, str]], entities: Iterable[dict[str, str]], links: Iterable[dict[str, str]] = ()
) -> StoreSource:
    """Return rows of the tables as a store of their N-Triples; arguments and errors as those of `render`."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "facts.nt"
        write_text(file, render(people, entities, links))
        return StoreSource([file])


def curated() -> tuple[Rows, Rows, Rows]:
    """Return the rows of people.tsv, entities.tsv and links.tsv."""
    people, entities, links = (read_tsv(SAMPLE / f"{name}.tsv") for name in ("people", "entities", "links"))
    return people, entities, links
