"""The second embedded sample: 192 people with a QID each, out of the complete claims that SEESAW-CF released.

`python -m benchmarks.sample_claims FOLDER` in a checkout writes `claims.tsv`. Names and identifiers of people are those
of the released files. The names of values are those of the packaged tables.
"""

from __future__ import annotations

from seesaw_cf.builder_scripts.sample.facts import COLUMNS, SAMPLE, read_tsv, store
from seesaw_cf.builder_scripts.source.sources import StoreSource
from seesaw_cf.records import groups

CLAIMS = SAMPLE / "claims.tsv"
ORIGIN = "reference claims of the released SEESAW-CF subject files"

# kind of value -> packaged table
TABLES = {
    "gender": "genders",
    "ethnic_group": "ethnic_groups",
    "field": "fields_of_work",
    "country": "countries",
    "city": "cities",
    "language": "languages",
}


def value_ids() -> dict[tuple[str, str], str]:
    """Return (kind, label) -> id of the packaged tables and curated occupations; the first where two share a label."""
    rows = [(kind, row["label"], row["id"]) for kind, name in TABLES.items() for row in groups.table(name).values()]
    curated = read_tsv(SAMPLE / "entities.tsv")
    rows += [("occupation", row["label"], row["iri"]) for row in curated if row["kind"] == "occupation"]
    return {(kind, label): id for kind, label, id in reversed(rows) if label}


def claims_source() -> StoreSource:
    """Return the sample's facts as a store, in the shape of a Wikidata dump: direct triples, statements and references.

    Raises:
        RecordError: A value is not among the known ones, or a fact has no provenance.
    """
    people = read_tsv(CLAIMS)
    cells = [(kind, row[column]) for row in people for column, (_, kind) in COLUMNS.items()]
    used = {(kind, label) for kind, cell in cells for label in cell.split("|")}
    values = [
        {"kind": kind, "label": label, "iri": id, "country": ""}
        for (kind, label), id in value_ids().items()
        if (kind, label) in used
    ]
    return store(people, values)
