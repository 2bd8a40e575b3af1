"""Demographic groups: the papers' tables of ethnic groups, genders, fields of work, countries and cities.

The tables are data (`seesaw_cf/data/tables/*.csv`), each row with its provenance. Categories follow the papers so that
numbers can be compared; they describe what is recorded about people, never what a name looks like. Several tags per
person are allowed, and "unknown" is a value: an empty tuple here, the word `UNKNOWN` in tables that need a label.

Source: SEESAW-CF section 3.2, Appendix E, Tables 8-18.
Deviates: the two published group sheets are merged and "black" is folded into "Black"; where they disagree the group is
unknown; genders other than male and female keep their own tag instead of being dropped.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from seesaw_cf.base.checks import one_of

TABLES = Path(__file__).parents[1] / "data" / "tables"
UNKNOWN = "unknown"

# Appendix E's list, then the two that only the published sheets have ("South Asian" is in every result table too).
RACES: tuple[str, ...] = (
    "white", "Black", "Jewish", "East Asian", "Southeast Asian", "North Asian", "Central Asian", "Latine", "Indigenous",
    "Romani", "multiracial", "South Asian", "Arab",
)  # fmt: skip

# Appendix E's list; the sheets add none.
REGIONS: tuple[str, ...] = (
    "Western Europe", "Eastern Europe", "North America", "Caribbean", "Oceania", "East Asia", "South Asia",
    "Central America", "Southeast Asia", "North Asia", "Central Asia", "Middle East", "Africa", "South America",
)  # fmt: skip

# The groups that Tables 9-15 report, in their order.
AXES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gender": ("men", "women"),
        "race": ("Black", "East Asian", "Jewish", "South Asian", "Latine", "white"),
        "region": (
            "North America", "East Asia", "Eastern Europe", "South Asia", "Western Europe", "Africa", "Middle East",
        ),
    }
)  # fmt: skip


@cache
def table(name: str) -> Mapping[str, Mapping[str, str]]:
    """Read one of the packaged tables.

    Args:
        name: "ethnic_groups" (columns label, race, region), "genders" (label, tags), "fields_of_work" (label, area),
            "countries" (label, continent), "cities" (label, country, continent) or "languages" (label); all also have
            id and provenance.

    Returns:
        Identifier -> row, in the file's order; read-only. Cells with several values join them with "|".

    Raises:
        UnknownNameError: No table has that name.
    """
    files = {file.stem: file for file in TABLES.glob("*.csv")}
    with files[one_of("table", name, files)].open(encoding="utf-8", newline="") as file:
        return MappingProxyType({row["id"]: MappingProxyType(row) for row in csv.DictReader(file)})


def values(cell: str) -> tuple[str, ...]:
    """Return the values of a cell: split at "|", none for an empty cell."""
    return tuple(cell.split("|")) if cell else ()


def _collect(table_name: str, column: str, ids: Iterable[str], missing: str = "") -> tuple[str, ...]:
    rows = table(table_name)
    cells = (rows[id][column] if id in rows else missing for id in ids)
    return tuple(sorted({value for cell in cells for value in values(cell)}))


def tags(ethnic_group_ids: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the race and region tags of a person from the recorded ethnic groups (Wikidata P172).

    Args:
        ethnic_group_ids: Identifiers; groups outside the table add nothing.

    Returns:
        `(race, region)`, each sorted, without repeats, empty when unknown.

    Deviates: a person with two groups of one race has that tag once; the reference code counted it twice.
    """
    ids = tuple(ethnic_group_ids)
    return _collect("ethnic_groups", "race", ids), _collect("ethnic_groups", "region", ids)


def gender_tags(gender_ids: Iterable[str]) -> tuple[str, ...]:
    """Return gender tags from recorded genders (Wikidata P21), named as in the papers' tables: "men", "women".

    Args:
        gender_ids: Identifiers. Genders other than male and female keep their own tag; trans men and women have both
            ("men", "trans men"); a gender outside the table is tagged "other".

    Returns:
        Sorted tags without repeats, empty when no gender is recorded.
    """
    return _collect("genders", "tags", gender_ids, missing="other")


def members(axis: str) -> tuple[str, ...]:
    """Return the groups that the papers report for an axis, in their order.

    Raises:
        UnknownNameError: The axis is not "gender", "race" or "region".
    """
    return AXES[one_of("axis", axis, AXES)]
