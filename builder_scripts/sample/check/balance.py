"""Whether the curated people are many enough, half women, and of every group, field, country and language."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from seesaw_cf.builder_scripts.sample.check.reference import reference_groups
from seesaw_cf.builder_scripts.sample.people import CuratedPerson, LabelledValue
from seesaw_cf.records.groups import AREAS, AXES

PEOPLE_RANGE = (300, 325)
WOMEN_RANGE = (0.45, 0.55)
MIN_DEAD_SHARE = 0.85
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

# Label of an ethnic group -> its races and its regions.
GroupTable = Mapping[str, tuple[frozenset[str], frozenset[str]]]
Entities = Mapping[tuple[str, str], LabelledValue]
Demand = tuple[bool, str]  # whether it is met, and what is wrong when it is not


def group_table(entities: Entities, reference: Path | None = None) -> GroupTable:
    """Races and regions of the groups in use: from the released sheets where they list the group, else from ours."""
    sheets = {} if reference is None else reference_groups(reference)
    return {
        label: sheets.get(entity.iri, (frozenset(entity.race), frozenset(entity.region)))
        for (kind, label), entity in entities.items()
        if kind == "ethnic_group"
    }


def _races(person: CuratedPerson, groups: GroupTable) -> set[str]:
    return {race for label in person.ethnic_group for race in groups[label][0]}


def _regions(person: CuratedPerson, groups: GroupTable) -> set[str]:
    return {region for label in person.ethnic_group for region in groups[label][1]}


def _gender_counts(
    people: Iterable[CuratedPerson], tags: Callable[[CuratedPerson], Iterable[str]]
) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for person in people:
        for tag in tags(person):
            counts[tag][person.gender] += 1
    return dict(counts)


def _whole(people: Sequence[CuratedPerson]) -> Iterator[Demand]:
    """Yield what is asked of all people together."""
    total = len(people)
    yield PEOPLE_RANGE[0] <= total <= PEOPLE_RANGE[1], f"{total} people"
    women = sum(person.gender == "female" for person in people) / total
    yield WOMEN_RANGE[0] <= women <= WOMEN_RANGE[1], f"{women:.0%} women"
    dead = sum(person.death_year is not None for person in people) / total
    yield dead >= MIN_DEAD_SHARE, f"only {dead:.0%} have died"
    unknown = sum(not person.ethnic_group for person in people)
    yield unknown >= MIN_UNKNOWN_GROUP, f"only {unknown} people of unknown ethnic group"
    yield any(len(person.ethnic_group) > 1 for person in people), "nobody has several ethnic groups"


def _groups(people: Sequence[CuratedPerson], groups: GroupTable) -> Iterator[Demand]:
    """Yield what is asked of every reported race and region."""
    by_race = _gender_counts(people, lambda person: _races(person, groups))
    by_region = _gender_counts(people, lambda person: _regions(person, groups))
    for tags, reported in ((by_race, AXES["race"]), (by_region, AXES["region"])):
        for tag in reported:
            counts = tags.get(tag, Counter())
            size = counts.total()
            yield size >= MIN_GROUP, f"{tag}: only {size} people"
            for gender in ("female", "male"):
                share = counts[gender] / max(size, 1)
                yield share >= MIN_GENDER_SHARE_IN_GROUP, f"{tag}: only {share:.0%} {gender}"
    for tag in SMALL_RACES:
        size = by_race.get(tag, Counter()).total()
        yield size >= MIN_SMALL_GROUP, f"{tag}: only {size} people"


def _fields(people: Sequence[CuratedPerson], entities: Entities) -> Iterator[Demand]:
    """Yield what is asked of fields of work and their areas."""
    fields = Counter(label for person in people for label in person.field_of_work)
    yield len(fields) <= MAX_FIELDS, f"{len(fields)} fields"
    for label, count in fields.items():
        yield count >= MIN_PER_FIELD, f"field {label!r}: only {count} people"
    areas = Counter(entities["field", label].area for label in fields)
    for area in AREAS:
        yield areas[area] >= MIN_FIELDS_PER_AREA, f"area {area!r}: only {areas[area]} fields"


def _values(people: Sequence[CuratedPerson]) -> Iterator[Demand]:
    """Yield what is asked of the other relations: not too many values, and enough that several people hold."""
    for what, limit, big, many, held in (
        ("countries", MAX_COUNTRIES, BIG_COUNTRY, MIN_BIG_COUNTRIES, [person.citizenship for person in people]),
        ("cities", MAX_CITIES, BIG_CITY, MIN_BIG_CITIES, [(person.birth_place,) for person in people]),
        ("languages", MAX_LANGUAGES, BIG_LANGUAGE, MIN_BIG_LANGUAGES, [person.native_language for person in people]),
    ):
        counts = Counter(label for labels in held for label in labels)
        yield len(counts) <= limit, f"{len(counts)} {what}, at most {limit}"
        large = sum(count >= big for count in counts.values())
        yield large >= many, f"only {large} {what} with at least {big} people"


def check_balance(people: Sequence[CuratedPerson], entities: Entities, reference: Path | None = None) -> list[str]:
    """Return what is wrong with the numbers of people; an empty list when nothing is.

    Args:
        people: Of the table.
        entities: All values that they have; see `load_entities`.
        reference: Folder of the released files, its ethnic-group sheets win over the table's.
    """
    if not people:
        return ["0 people"]
    groups = group_table(entities, reference)
    demands = (*_whole(people), *_groups(people, groups), *_fields(people, entities), *_values(people))
    return [text for met, text in demands if not met]


def summary(people: Sequence[CuratedPerson], entities: Entities, reference: Path | None = None) -> str:
    """Return a table of counts, women and men, over everything the constraints speak of."""
    groups = group_table(entities, reference)
    sections: list[tuple[str, Callable[[CuratedPerson], Iterable[str]]]] = [
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
