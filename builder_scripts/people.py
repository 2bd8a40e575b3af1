"""People and names out of a source: fetched in bounded batches, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from seesaw_cf.base.types import Entity
from seesaw_cf.builder_scripts.draws import Draws, PropertyValues, SampleRequest
from seesaw_cf.builder_scripts.jobs import BuildOptions
from seesaw_cf.builder_scripts.sources import BATCH, Progress, Source, silent
from seesaw_cf.builder_scripts.sparql import WIKIDATA, Binding, Parameter, entity_id
from seesaw_cf.records import groups
from seesaw_cf.records.relations import RELATIONS

# (relation, value, gender): whose holders; gender "" = everybody who is neither male nor female.
Holder = tuple[str, str, str]

MALE, FEMALE, HUMAN = "Q6581097", "Q6581072", "Q5"
PAGE = 5000  # rows of one page
MARGIN = 25  # holders fetched beyond the limit, to make up for the edit's subject and people who hold both values
OLDEST_LIVING = 1915  # who was born before and has no date of death is not taken to be alive

SITELINKS = "http://wikiba.se/ontology#sitelinks"
_NOT_VALUES = ("P31", "P569", "P570", SITELINKS)  # read otherwise
_ABOUT = ("P106", "P172")  # read beside the relations: occupation, ethnic group
_UNFIT = re.compile(r"^Q\d+$|\([^)]*\)$")  # a bare identifier, or a disambiguator in the name
_YEAR = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class RecordedPerson:
    """What a source records about one person.

    Attributes:
        entity: Identifier and label.
        values: Property -> identifiers, sorted; properties without a usable value are left out.
        gender, race, region: Group tags; see `seesaw_cf.records.groups`.
        living: False with a recorded death (date known or not), True without one when born in 1915 or later, else None.
        sitelinks: Number of Wikipedia and sister pages, None when the source does not say.
    """

    entity: Entity
    values: Mapping[str, tuple[str, ...]]
    gender: tuple[str, ...]
    race: tuple[str, ...]
    region: tuple[str, ...]
    living: bool | None
    sitelinks: int | None

    @property
    def id(self) -> str:
        """The identifier; "" for a person known by name only."""
        return self.entity.id or ""

    def holds(self, relation_id: str) -> tuple[str, ...]:
        """Return the values of one property, sorted; none is an empty tuple."""
        return self.values.get(relation_id, ())


def _living(rows: Mapping[str, Sequence[str]]) -> bool | None:
    if rows.get("P570"):
        return False
    years = [int(match[0]) for date in rows.get("P569", ()) if (match := _YEAR.match(date))]
    return True if years and min(years) >= OLDEST_LIVING else None


def by_person(rows: Iterable[Binding]) -> dict[str, dict[str, list[str]]]:
    """Return the answer to `queries/facts.rq` as person -> property -> values, for people with recorded facts."""
    people: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        values = people.setdefault(entity_id(row["person"]), {}).setdefault(entity_id(row["property"]), [])
        values.append(entity_id(row["value"]))
    return people


def person_of(entity: Entity, rows: Mapping[str, Sequence[str]]) -> RecordedPerson:
    """Return a person and the tags that recorded facts give.

    Args:
        entity: Who.
        rows: Property -> values, as in `by_person`.
    """
    listed = {name: values for name, values in rows.items() if name not in _NOT_VALUES}
    recorded = {name: tuple(sorted({value for value in row if value[:2] != "_:"})) for name, row in listed.items()}
    race, region = groups.tags(recorded.get("P172", ()))
    sitelinks = rows.get(SITELINKS)
    return RecordedPerson(
        entity,
        {name: cells for name, cells in recorded.items() if cells},
        groups.gender_tags(recorded.get("P21", ())),
        race,
        region,
        _living(rows),
        int(sitelinks[0]) if sitelinks else None,
    )


def _is(person: RecordedPerson, gender: str) -> bool:
    """Return whether a person is of a gender, or of none of the two when it is ""."""
    recorded = set(person.holds("P21"))
    return gender in recorded if gender else bool(recorded) and recorded.isdisjoint((MALE, FEMALE))


def _pages(ids: list[str]) -> list[str]:
    """Return where names stand: a property's on its page, not at the predicate that "P27" stands for."""
    return [f"{WIKIDATA}entity/{id}" if id.startswith("P") else id for id in ids]


class Facts:
    """A source seen through what the builder asks: labels, people, holders of a value. Every answer is kept."""

    def __init__(self, source: Source, options: BuildOptions, progress: Progress = silent):
        """Remember the source and the rules; nothing is asked yet.

        Args:
            source: Who is asked.
            options: The rules.
            progress: Shows how far long lists of queries are.
        """
        self.options = options
        self.progress = progress
        self.draws = Draws(source, options.seed)
        self._source = source
        self._people: dict[str, RecordedPerson] = {}
        self._humans: set[str] = set()
        self._labels: dict[str, str] = {}
        self._holders: dict[Holder, list[str]] = {}
        self._present: dict[tuple[str, str], list[str]] = {}

    def labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Return names of entities and properties, in the order given; those without one in the language are left out.

        The language's own label wins over Wikidata's "mul" (one label for all languages).
        """
        ids = list(ids)
        language = self.options.language
        unknown = (id for id in ids if id not in self._labels)
        for row, _ in self._source.gather("labels", "entities", unknown, {"language": language}, fill=_pages):
            id = entity_id(row["entity"])
            if row["language"] == language or id not in self._labels:
                self._labels[id] = row["label"]
        return {id: self._labels[id] for id in ids if id in self._labels}

    def people(self, ids: Iterable[str]) -> list[RecordedPerson]:
        """Return what is recorded about people, in the order given; people without a usable name are left out."""
        ids = list(ids)
        unknown = {id for id in ids if id not in self._people}
        listed = {"listed": [*RELATIONS, *_ABOUT, *_NOT_VALUES]}
        rows = self._source.gather("facts", "people", unknown, listed, progress=self.progress, label="people")
        recorded = by_person(row for row, _ in rows)
        self._humans |= {id for id, values in recorded.items() if HUMAN in values.get("P31", ())}
        for id, label in self.labels(unknown).items():
            if not _UNFIT.search(label):
                self._people[id] = person_of(Entity(id, label), recorded.get(id, {}))
        return [self._people[id] for id in ids if id in self._people]

    def holders(self, relation_id: str, value: str, gender: str) -> list[str]:
        """Return identifiers of a uniform sample of the people who hold a value, in an order fixed by the seed.

        Args:
            relation_id: Property id.
            value: Identifier of the value.
            gender: Identifier of a gender, or "" for all people neither male nor female.

        Returns:
            At most 25 identifiers more than the larger of `per_gender` and `true_per_gender`; fewer means these are
            all, or all that the source found in time.
        """
        key = (relation_id, value, gender)
        if key not in self._holders:
            options = self.options
            grouped = bool(relation_id == "P21" and options.grouped_gender and gender)
            self._holders[key] = self._drawn(
                ("grouped_holders" if grouped else "holders") if gender else "other_holders",
                {"property": relation_id, "value": value} | ({"gender": gender} if gender else {}),
                ("P172", ()) if grouped else (relation_id, (value,)),
                max(options.per_gender, options.true_per_gender) + MARGIN,
                lambda p: value in p.holds(relation_id) and _is(p, gender) and bool(not grouped or p.holds("P172")),
            )
        return self._holders[key]

    def _drawn(
        self,
        query: str,
        parameters: Mapping[str, Parameter],
        scanned: PropertyValues,
        limit: int,
        fits: Callable[[RecordedPerson], bool],
    ) -> list[str]:
        """Return a sample of named humans; see `SampleRequest`."""
        options = self.options
        rules: Mapping[str, Parameter] = {"language": options.language, "seed": options.seed, "limit": limit}

        def fit(ids: Sequence[str]) -> list[str]:
            return [person.id for person in self.people(ids) if person.id in self._humans and fits(person)]

        relation_id = str(parameters["property"])
        return self.draws.sample(SampleRequest(relation_id, query, {**parameters, **rules}, scanned, limit, fit))

    def prefetch(self, holders: Iterable[Holder]) -> None:
        """Ask for holders and what is recorded about them, in as few queries as possible."""
        keys = sorted(set(holders))
        ids_of_holders = [self.holders(*key) for key in self.progress(keys, "holders of a value")]
        self.people(id for ids in ids_of_holders for id in ids)

    def subjects(
        self, relation_id: str, also: str, values: Iterable[str], gender: str, limit: int
    ) -> list[RecordedPerson]:
        """Draw a uniform sample of people of one gender with a listed value of a property and any value of another."""
        listed = sorted(values)
        ids = self._drawn(
            "subjects",
            {"property": relation_id, "also": also, "values": listed, "gender": gender},
            # Nearly everybody has a gender, few have what is asked for beside it.
            (also, ()) if relation_id == "P21" else (relation_id, tuple(listed)),
            limit,
            lambda p: _is(p, gender) and bool(p.holds(also)) and not set(listed).isdisjoint(p.holds(relation_id)),
        )
        return self.people(ids)

    def present(self, relation_id: str, values: Collection[str]) -> list[str]:
        """Return those of some values that anything holds and that have a name, sorted by name then identifier."""
        key = (relation_id, str(sorted(values)))
        if key not in self._present:
            rows = self._source.gather("present", "values", values, {"property": relation_id})
            self._present[key] = self._by_name(entity_id(row["value"]) for row, _ in rows)
        return self._present[key]

    def common(self, relation_id: str) -> list[str]:
        """Return the most held values of a relation, at most 200, those with a name, sorted by name then identifier."""
        key = (relation_id, "")
        if key not in self._present:
            self._present[key] = self._by_name(self.draws.common(relation_id))
        return self._present[key]

    def _by_name(self, ids: Iterable[str]) -> list[str]:
        names = self.labels(ids)
        return sorted(names, key=lambda id: (names[id], id))

    def references(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return person -> titles of the references behind their statements, sorted; none is an empty tuple."""
        titles: dict[str, list[str]] = {id: [] for id in ids}
        for row, _ in self._source.gather("references", "people", titles):
            titles[entity_id(row["person"])].append(row["source"])
        return {id: tuple(sorted(texts)) for id, texts in titles.items()}

    def named(self, labels: Iterable[str]) -> dict[str, list[str]]:
        """Return label -> identifiers of the humans of that name; a label that cannot be looked up has none."""
        people = self.linked("link", labels, BATCH, "person")
        return {label: sorted(set(ids)) for label, ids in people.items()}

    def linked(self, query: str, labels: Iterable[str], size: int, variable: str) -> dict[str, list[str]]:
        """Return label -> identifiers in the order of a query's answers; a label that cannot be looked up has none.

        Args:
            query: Name of a query file with a place `names`.
            labels: Names in the language, or in Wikidata's "mul".
            size: Labels in one query.
            variable: Of the query, that holds the entity.
        """
        ids: dict[str, list[str]] = {label: [] for label in labels}
        usable = [label for label in ids if label.strip() and label.isprintable() and "\\" not in label]
        tags = dict.fromkeys((self.options.language, "mul"))

        def tagged(batch: list[str]) -> list[str]:
            return [f"{label}@{tag}" for label in batch for tag in tags]

        rows = self._source.gather(
            query, "names", usable, size=size, fill=tagged, progress=self.progress, label="names"
        )
        for row, _ in rows:
            ids[row["label"]].append(entity_id(row[variable]))
        return ids

    def everyone(self) -> list[RecordedPerson]:
        """Return all people in a small store, asked for page by page."""
        ids: list[str] = []
        while True:
            rows = self._source.select("everyone", language=self.options.language, limit=PAGE, offset=len(ids))
            ids += [entity_id(row["person"]) for row in rows]
            if len(rows) < PAGE:
                return self.people(ids)
