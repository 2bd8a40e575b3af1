"""Adds the sample's groups, fields, countries, cities and languages to the packaged tables; rows already there stay."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from seesaw_cf.base.files import atomic_path
from seesaw_cf.builder_scripts.sample.facts import SAMPLE, full_id, read_tsv
from seesaw_cf.records import groups

PROVENANCE = "embedded sample"

# kind in entities.tsv -> table
KINDS = {
    "ethnic_group": "ethnic_groups",
    "field": "fields_of_work",
    "country": "countries",
    "city": "cities",
    "language": "languages",
}


def published(name: str) -> list[Mapping[str, str]]:
    """Return the rows of a table that do not come from the sample."""
    return [row for row in groups.table(name).values() if row["provenance"] != PROVENANCE]


def missing(entities: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return the sample's rows that are missing in each table.

    Args:
        entities: Rows of entities.tsv.

    Returns:
        Table name -> rows with the table's columns; a city's continents are those of its countries.
    """
    continents = {row["label"]: row["continent"] for row in entities if row["kind"] == "country"}
    ids = {name: {row["id"] for row in published(name)} for name in KINDS.values()}
    rows: dict[str, list[dict[str, str]]] = {name: [] for name in KINDS.values()}
    for row in entities:
        name, id = KINDS.get(row["kind"]), full_id(row["iri"])
        if name is None or id in ids[name]:
            continue
        if row["kind"] == "city":
            row = row | {"continent": "|".join(sorted({continents[c] for c in groups.values(row["country"])}))}
        columns = next(iter(groups.table(name).values())).keys()
        rows[name].append({column: (row | {"id": id, "provenance": PROVENANCE})[column] for column in columns})
    return rows


def main() -> None:
    """Write the sample's rows behind the published ones, in the order of entities.tsv."""
    for name, rows in missing(read_tsv(SAMPLE / "entities.tsv")).items():
        published_rows = published(name)
        with atomic_path(groups.TABLES / f"{name}.csv") as path, path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(published_rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows([*published_rows, *rows])


if __name__ == "__main__":
    main()
