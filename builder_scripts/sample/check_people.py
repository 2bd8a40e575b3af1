"""Checks the curated people of the sample data: format, labels, counts, balance, provenance.

Run it with ``python -m seesaw_cf.builder_scripts.sample.check_people``; it prints a summary and fails on any problem.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from seesaw_cf.builder_scripts.sample.people import HERE, KINDS, Entity, Person, load_entities, load_people
from seesaw_cf.builder_scripts.sample.reference import reference_groups, reference_labels, reference_names

__all__ = [
    "HERE",
    "Entity",
    "Person",
    "check",
    "check_against_reference",
    "group_table",
    "load_entities",
    "load_people",
    "main",
    "reference_groups",
    "reference_names",
    "summary",
]

AREAS = ("science", "social science", "humanities", "arts")
CONTINENTS = ("Africa", "Asia", "Europe", "North America", "Oceania", "South America")
PROPERTIES = ("P21", "P27", "P19", "P103", "P101", "P172", "P569", "P570", "P106")

PEOPLE_RANGE = (300, 325)
WOMEN_RANGE = (0.45, 0.55)
MIN_DEAD_SHARE = 0.85
RACES = ("Black", "East Asian", "Jewish", "South Asian", "Latine", "white")
REGIONS = (
    "North America",
    "East Asia",
    "Eastern Europe",
    "South Asia",
    "Western Europe",
    "Africa",
    "Middle East",
)
MIN_GROUP = 18
SMALL_RACES = ("Arab", "Indigenous", "Romani")
MIN_SMALL_GROUP = 6
MIN_GENDER_SHARE_IN_GROUP = 0.35
MIN_UNKNOWN_GROUP = 20
MAX_FIELDS = 20
MIN_PER_FIELD = 8
MIN_FIELDS_PER_AREA = 3
MAX_COUNTRIES = 25
MIN_BIG_COUNTRIES = 12
BIG_COUNTRY = 8
MAX_CITIES = 120
MIN_BIG_CITIES = 20
BIG_CITY = 4
MAX_LANGUAGES = 20
MIN_BIG_LANGUAGES = 15
BIG_LANGUAGE = 6

_IRI = re.compile(r"Q[1-9][0-9]*|s:[a-z0-9]+(-[a-z0-9]+)*")
GroupTable = Mapping[str, tuple[frozenset[str], frozenset[str]]]
"""From the label of an ethnic group to its races and its regions."""


_KIND_OF = {
    "P21": "gender",
    "P27": "country",
    "P19": "city",
    "P103": "language",
    "P101": "field",
    "P172": "ethnic_group",
    "P106": "occupation",
}


def group_table(entities: Mapping[tuple[str, str], Entity], reference: Path | None = None) -> GroupTable:
    """Races and regions of the groups in use: from the released sheets where they list the group, else from ours."""
    sheets = {} if reference is None else reference_groups(reference)
    return {
        label: sheets.get(entity.iri, (frozenset(entity.race), frozenset(entity.region)))
        for (kind, label), entity in entities.items()
        if kind == "ethnic_group"
    }


def _races(person: Person, groups: GroupTable) -> set[str]:
    return {race for label in person.ethnic_group for race in groups[label][0]}


def _regions(person: Person, groups: GroupTable) -> set[str]:
    return {region for label in person.ethnic_group for region in groups[label][1]}


def _gender_counts(people: Iterable[Person], tags: Callable[[Person], Iterable[str]]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for person in people:
        for tag in tags(person):
            counts[tag][person.gender] += 1
    return dict(counts)


def _check_entities(people: Sequence[Person], entities: Mapping[tuple[str, str], Entity]) -> list[str]:
    problems: list[str] = []
    used: set[tuple[str, str]] = set()
    for person in people:
        for key, labels in person.values().items():
            if key in _KIND_OF:
                used |= {(_KIND_OF[key], label) for label in labels}
    for kind, label in sorted(used - set(entities)):
        problems.append(f"{kind} {label!r} is not in the entities")
    owners: dict[str, str] = {}
    for (kind, label), entity in entities.items():
        where = f"{kind} {label!r}"
        if kind not in KINDS:
            problems.append(f"{where}: unknown kind")
        if _IRI.fullmatch(entity.iri) is None:
            problems.append(f"{where}: bad iri {entity.iri!r}")
        if entity.iri in owners:
            problems.append(f"{where}: shares {entity.iri} with {owners[entity.iri]}")
        owners[entity.iri] = where
        if (kind == "city") != bool(entity.country):
            problems.append(f"{where}: a country belongs to cities, and to each of them")
        for country in entity.country:
            used.add(("country", country))
            if ("country", country) not in entities:
                problems.append(f"{where}: country {country!r} is not in the entities")
        if (kind == "country") != bool(entity.continent) or entity.continent not in (*CONTINENTS, ""):
            problems.append(f"{where}: continent {entity.continent!r}")
        if (kind == "field") != bool(entity.area) or entity.area not in (*AREAS, ""):
            problems.append(f"{where}: area {entity.area!r}")
        if kind != "ethnic_group" and (entity.race or entity.region):
            problems.append(f"{where}: race and region belong to ethnic groups")
    for kind, label in sorted(set(entities) - used):
        problems.append(f"{kind} {label!r} is not in use")
    for person in people:
        if person.iri in owners:
            problems.append(f"{person.name}: shares {person.iri} with {owners[person.iri]}")
    return problems


def _check_persons(people: Sequence[Person]) -> list[str]:
    problems: list[str] = []
    for text in ("name", "iri"):
        for value, count in Counter(str(getattr(person, text)) for person in people).items():
            if count > 1:
                problems.append(f"{text} {value!r} occurs {count} times")
    names = [person.name for person in people]
    for name in names:
        problems += [f"name {name!r} is part of {other!r}" for other in names if other != name and name in other]
        if not name or re.search(r"[()\[\]|\t\d]|\s{2}", name):
            problems.append(f"name {name!r} has a disambiguator or an odd character")
    for person in people:
        values = person.values()
        if _IRI.fullmatch(person.iri) is None:
            problems.append(f"{person.name}: bad iri {person.iri!r}")
        problems += [
            f"{person.name}: {key} is missing"
            for key in ("P21", "P27", "P19", "P103", "P101", "P106")
            if not all(values.get(key, ("",)))
        ]
        problems += [f"{person.name}: {key} has repeats" for key, got in values.items() if len(set(got)) < len(got)]
        if len(person.field_of_work) > 3:
            problems.append(f"{person.name}: more than three fields of work")
        if "|" in person.birth_place:
            problems.append(f"{person.name}: more than one birth place")
        if person.death_year is not None and not 15 <= person.death_year - person.birth_year <= 115:
            problems.append(f"{person.name}: lived from {person.birth_year} to {person.death_year}")
        covered = [key for keys, _source in person.provenance for key in keys]
        if sorted(covered) != sorted(values):
            problems.append(f"{person.name}: provenance covers {covered}, the values are {list(values)}")
    return problems


def _check_counts(
    people: Sequence[Person], entities: Mapping[tuple[str, str], Entity], reference: Path | None
) -> list[str]:
    problems: list[str] = []

    def demand(holds: bool, text: str) -> None:
        if not holds:
            problems.append(text)

    total = len(people)
    demand(PEOPLE_RANGE[0] <= total <= PEOPLE_RANGE[1], f"{total} people")
    if not total:
        return problems
    women = sum(person.gender == "female" for person in people) / total
    demand(WOMEN_RANGE[0] <= women <= WOMEN_RANGE[1], f"{women:.0%} women")
    dead = sum(person.death_year is not None for person in people) / total
    demand(dead >= MIN_DEAD_SHARE, f"only {dead:.0%} have died")
    unknown = sum(not person.ethnic_group for person in people)
    demand(unknown >= MIN_UNKNOWN_GROUP, f"only {unknown} people of unknown ethnic group")
    demand(any(len(person.ethnic_group) > 1 for person in people), "nobody has several ethnic groups")

    groups = group_table(entities, reference)
    by_race = _gender_counts(people, lambda person: _races(person, groups))
    by_region = _gender_counts(people, lambda person: _regions(person, groups))
    for tags, wanted in ((by_race, RACES), (by_region, REGIONS)):
        for tag in wanted:
            counts = tags.get(tag, Counter())
            size = counts.total()
            demand(size >= MIN_GROUP, f"{tag}: only {size} people")
            for gender in ("female", "male"):
                share = counts[gender] / max(size, 1)
                demand(share >= MIN_GENDER_SHARE_IN_GROUP, f"{tag}: only {share:.0%} {gender}")
    for tag in SMALL_RACES:
        size = by_race.get(tag, Counter()).total()
        demand(size >= MIN_SMALL_GROUP, f"{tag}: only {size} people")

    fields = Counter(label for person in people for label in person.field_of_work)
    demand(len(fields) <= MAX_FIELDS, f"{len(fields)} fields")
    for label, count in fields.items():
        demand(count >= MIN_PER_FIELD, f"field {label!r}: only {count} people")
    areas = Counter(entities["field", label].area for label in fields)
    for area in AREAS:
        demand(areas[area] >= MIN_FIELDS_PER_AREA, f"area {area!r}: only {areas[area]} fields")

    for what, limit, big, many, tallies in (
        ("countries", MAX_COUNTRIES, BIG_COUNTRY, MIN_BIG_COUNTRIES, [person.citizenship for person in people]),
        ("cities", MAX_CITIES, BIG_CITY, MIN_BIG_CITIES, [(person.birth_place,) for person in people]),
        ("languages", MAX_LANGUAGES, BIG_LANGUAGE, MIN_BIG_LANGUAGES, [person.native_language for person in people]),
    ):
        counts = Counter(label for labels in tallies for label in labels)
        demand(len(counts) <= limit, f"{len(counts)} {what}, at most {limit}")
        large = sum(count >= big for count in counts.values())
        demand(large >= many, f"only {large} {what} with at least {big} people")
    return problems


def check(
    people: Sequence[Person], entities: Mapping[tuple[str, str], Entity], reference: Path | None = None
) -> list[str]:
    """All that is wrong with the tables; an empty list when nothing is."""
    problems = _check_entities(people, entities) + _check_persons(people)
    if problems:
        return problems
    return _check_counts(people, entities, reference)


def check_against_reference(
    people: Sequence[Person], entities: Mapping[tuple[str, str], Entity], folder: Path
) -> list[str]:
    """What disagrees with the released files: names, labels, groups, and the full claims of their subjects."""
    problems: list[str] = []
    names = reference_names(folder)
    owners: dict[str, set[str]] = defaultdict(set)
    for iri, labels in names.items():
        for label in labels:
            owners[label].add(iri)
    for person in people:
        if person.iri in names and person.name not in names[person.iri]:
            problems.append(f"{person.name}: {person.iri} is {sorted(names[person.iri])} in the reference")
        if len(owners.get(person.name, set())) == 1 and person.iri not in owners[person.name]:
            problems.append(f"{person.name}: the reference has {sorted(owners[person.name])}, not {person.iri}")

    tables = reference_labels(folder)
    sheets = reference_groups(folder)
    for (kind, label), entity in entities.items():
        known = tables[kind].get(entity.iri)
        if known is not None and label not in known:
            problems.append(f"{kind} {label!r}: {entity.iri} is {sorted(known)} in the reference")
        codes = {code for code, labels in tables[kind].items() if label in labels}
        if codes and entity.iri not in codes:
            problems.append(f"{kind} {label!r}: the reference has {sorted(codes)}, not {entity.iri}")
        if kind == "ethnic_group" and entity.iri in sheets:
            mine = (frozenset(entity.race), frozenset(entity.region))
            if mine != sheets[entity.iri]:
                problems.append(f"{label}: race and region {mine}, {sheets[entity.iri]} in the reference")

    claims: dict[str, dict[str, list[object]]] = {}
    for path in sorted(folder.glob("*_subject_info.json")):
        for iri, subject in json.loads(path.read_text(encoding="utf-8")).items():
            claims[iri] = subject["properties"]
    for person in people:
        if person.iri not in claims:
            if any("reference claims" in source for _keys, source in person.provenance):
                problems.append(f"{person.name}: claims to come from the reference, which has no claims")
            continue
        sources = {key: source for keys, source in person.provenance for key in keys}
        for key, values in person.values().items():
            stated = [str(value) for value in claims[person.iri].get(key, [])]
            if key in _KIND_OF:
                ours = {entities[_KIND_OF[key], label].iri for label in values}
                agrees = ours <= set(stated)
            else:
                agrees = f"{int(values[0]):+05d}" in {value[:5] for value in stated}
            if stated and not agrees:
                problems.append(f"{person.name}: {key} {values} is not among the claims {stated}")
            if not stated and "reference claims" in sources[key]:
                problems.append(f"{person.name}: {key} claims to come from the reference, which lacks it")
        if person.death_year is None and claims[person.iri].get("P570"):
            problems.append(f"{person.name}: has died, says the reference")
    return problems


def summary(people: Sequence[Person], entities: Mapping[tuple[str, str], Entity], reference: Path | None = None) -> str:
    """A table of counts, women and men, over everything the constraints speak of."""
    groups = group_table(entities, reference)
    sections: list[tuple[str, Callable[[Person], Iterable[str]]]] = [
        ("all", lambda person: ["living" if person.death_year is None else "dead"]),
        ("race", lambda person: _races(person, groups) or {"(unknown)"}),
        ("region", lambda person: _regions(person, groups) or {"(unknown)"}),
        ("ethnic group", lambda person: person.ethnic_group or ("(unknown)",)),
        ("field of work", lambda person: person.field_of_work),
        ("first field", lambda person: person.field_of_work[:1]),
        ("area", lambda person: {entities["field", label].area for label in person.field_of_work}),
        ("citizenship", lambda person: person.citizenship),
        ("native language", lambda person: person.native_language),
        ("birth place", lambda person: [person.birth_place]),
    ]
    lines = [f"{len(people)} people", f"{'':<18}{'':<34}{'all':>5}{'women':>7}{'men':>5}"]
    for title, tags in sections:
        counts = _gender_counts(people, tags)
        lines.append(f"{title} ({len(counts)})")
        small = 0
        for tag, genders in sorted(counts.items(), key=lambda item: (-item[1].total(), item[0])):
            if title == "birth place" and genders.total() < BIG_CITY:
                small += 1
                continue
            lines.append(f"{'':<18}{tag:<34}{genders.total():>5}{genders['female']:>7}{genders['male']:>5}")
        if small:
            lines.append(f"{'':<18}and {small} with fewer than {BIG_CITY} people")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the summary, then each problem; the exit status is 1 when there is one."""
    parser = argparse.ArgumentParser(description="check the curated people of the sample data")
    parser.add_argument("--people", type=Path, default=HERE / "people.tsv")
    parser.add_argument("--entities", type=Path, default=HERE / "entities.tsv")
    parser.add_argument("--reference", type=Path, help="folder of the released SEESAW-CF files, to compare with")
    arguments = parser.parse_args(argv)
    people = load_people(arguments.people)
    entities = load_entities(arguments.entities)
    problems = check(people, entities, arguments.reference)
    if arguments.reference is not None:
        problems += check_against_reference(people, entities, arguments.reference)
    if not problems:
        print(summary(people, entities, arguments.reference))
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
