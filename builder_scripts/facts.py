"""Everything that the builder asks of a source, each answer kept: names, people, samples of the holders of a value.

What takes an endpoint long is to look at all of a million holders and to sort them. So one with a time limit is first
asked how many statements there are, which its index knows, and the sort is for values with few. Of larger ones a range
of hashes is asked after the other, until there are enough people: that is the beginning of the same order, so these are
the same people.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from seesaw_cf.base.types import Entity
from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.sources import BATCH, Source, bar
from seesaw_cf.builder_scripts.sparql import (
    FEMALE,
    MALE,
    NOT_VALUES,
    WIKIDATA,
    Parameter,
    RecordedPerson,
    SourceTimeout,
    by_person,
    entity_id,
    entity_iri,
    is_identifier,
    is_name,
    person_of,
)
from seesaw_cf.records import groups
from seesaw_cf.records.relations import RELATIONS

# (relation, value, gender): whose holders; gender "" = everybody who is neither male nor female.
Holder = tuple[str, str, str]
# A property and its values; none for any.
PropertyValues = tuple[str, tuple[str, ...]]
Places = Mapping[str, Parameter]
Held = Mapping[str, Sequence[str]]
"""What an entity says about others: property -> values, as identifiers."""
Fits = Callable[[RecordedPerson], bool]

HUMAN = "Q5"
CLAIMED = 50  # entities in one query about their claims: some have hundreds
PAGE = 5000  # rows of one page
MARGIN = 25  # holders fetched beyond the limit, to make up for the edit's subject and people who hold both values
VALUES = 200  # values of a relation without a packaged list
WHOLE = 20_000  # statements; more are not sorted by an endpoint
HASHES = 1 << 16  # ranges are told apart by four hexadecimal digits
UNKNOWN = 16  # width of the first range where the number of statements is not known
SPARE = 4  # times as many statements as people wanted in the first range: some are not human, or of another gender
GROWTH = 4  # of the next range
SLICES = 60  # ranges at most

_ABOUT = ("P106", "P172")  # read beside the relations: occupation, ethnic group
_UNFIT = re.compile(r"^Q\d+$|\([^)]*\)$")  # a bare identifier, or a disambiguator in the name


def _pages(ids: list[str]) -> list[str]:
    """Return where names stand: a property's on its page, not at the predicate that "P27" stands for."""
    return [f"{WIKIDATA}entity/{id}" if id.startswith("P") else id for id in ids]


class Facts:
    """A source seen through what the builder asks: labels, people, holders of a value. Every answer is kept.

    Attributes:
        source: Who is asked.
        options: The rules.
        ways: Relation -> "whole" or "slices" -> number of samples that were drawn in this way.
    """

    def __init__(self, source: Source, options: BuildOptions):
        """Remember the source and the rules; nothing is asked yet."""
        self.source, self.options = source, options
        self.genders = (MALE, FEMALE, "") if options.other_genders else (MALE, FEMALE)  # "": of none of the two
        self.ways: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._people: dict[str, RecordedPerson] = {}
        self._humans: set[str] = set()
        self._labels: dict[str, str] = {}
        self._claims: dict[str, dict[str, list[str]]] = {}
        self._holders: dict[Holder, list[str]] = {}
        self._values: dict[tuple[str, str], list[str]] = {}

    def labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Return names of entities and properties, in the order given; those without one in the language are left out.

        The language's own label wins over Wikidata's "mul" (one label for all languages).
        """
        ids, language = list(ids), self.options.language
        unknown = [id for id in ids if id not in self._labels]
        for row in self.source.gather("labels", "entities", unknown, fill=_pages, language=language):
            id = entity_id(row["entity"])
            if row["language"] == language or id not in self._labels:
                self._labels[id] = row["label"]
        return {id: self._labels[id] for id in ids if id in self._labels}

    def people(self, ids: Iterable[str]) -> list[RecordedPerson]:
        """Return what is recorded about people, in the order given; people without a usable name are left out."""
        ids = list(ids)
        unknown = {id for id in ids if id not in self._people}
        listed = [*RELATIONS, *_ABOUT, *NOT_VALUES]
        recorded = by_person(self.source.gather("facts", "people", unknown, listed=listed))
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
            options, grouped = self.options, bool(relation_id == "P21" and self.options.grouped_gender and gender)
            self._holders[key] = self._sample(
                ("grouped_holders" if grouped else "holders") if gender else "other_holders",
                {"property": relation_id, "value": value} | ({"gender": gender} if gender else {}),
                ("P172", ()) if grouped else (relation_id, (value,)),
                max(options.per_gender, options.true_per_gender) + MARGIN,
                lambda p: value in p.holds(relation_id) and p.is_of(gender) and bool(not grouped or p.holds("P172")),
            )
        return self._holders[key]

    def subjects(self, relation_id: str, also: str, listed: list[str], gender: str, limit: int) -> list[RecordedPerson]:
        """Draw a uniform sample of people of one gender with a listed value of a property and any value of another."""
        listed = sorted(listed)
        ids = self._sample(
            "subjects",
            {"property": relation_id, "also": also, "values": listed, "gender": gender},
            # Nearly everybody has a gender, few have what is asked for beside it.
            (also, ()) if relation_id == "P21" else (relation_id, tuple(listed)),
            limit,
            lambda p: p.is_of(gender) and bool(p.holds(also)) and not set(listed).isdisjoint(p.holds(relation_id)),
        )
        return self.people(ids)

    def _sample(self, query: str, places: Places, scanned: PropertyValues, limit: int, fits: Fits) -> list[str]:
        """Return identifiers of named humans, in the order of a hash of seed and identifier.

        Args:
            query: Name of the query file that sorts all people.
            places: Its places, but for those of the rules.
            scanned: What all people of the sample have.
            limit: People at most.
            fits: Whether a person is one of them.

        Raises:
            SourceTimeout: The source finishes neither way in time.
        """
        rules: Places = {"language": self.options.language, "seed": self.options.seed, "limit": limit}
        size, rows = self._size(scanned) if self.source.limited else 0, None
        if size is not None and size <= WHOLE:
            rows = self.source.try_select(query, **places, **rules)
        self.ways[str(places["property"])]["whole" if rows is not None else "slices"] += 1
        ids = self._slices(scanned, size, limit, fits) if rows is None else [entity_id(row["person"]) for row in rows]
        return ids[:limit]

    def _slices(self, scanned: PropertyValues, size: int | None, limit: int, fits: Fits) -> list[str]:
        """Draw from ranges of hashes, each wider than the one before as long as the source finishes them."""
        width = UNKNOWN if size is None else min(HASHES, SPARE * limit * HASHES // max(size, 1) + 1)
        ids: list[str] = []
        start, growth = 0, GROWTH
        for _ in range(SLICES):
            end = start + width
            last = f"{end:04x}" if end < HASHES else "g"
            place: Places = {"first": f"{start:04x}", "last": last, "seed": self.options.seed}
            rows = self.source.try_select("slice", property=scanned[0], held=scanned[1], **place)
            if rows is not None:
                ids += self._fitting((entity_id(row["person"]) for row in rows), limit, fits)
                start, width = end, width * growth
            elif start == 0:
                raise self._gave_up(scanned)
            else:
                width, growth = max(1, width // GROWTH), 1
            if start >= HASHES or len(ids) >= limit:
                break
        return ids

    def _fitting(self, ids: Iterable[str], limit: int, fits: Fits) -> list[str]:
        """Return the wanted people of a range, in the order of the hashes; no more are looked up than needed."""
        seed = self.options.seed
        ordered = sorted(ids, key=lambda id: hashlib.sha256(f"{seed} {entity_iri(id)}".encode()).hexdigest())
        fit: list[str] = []
        for start in range(0, len(ordered), BATCH):
            if len(fit) < limit:
                people = self.people(ordered[start : start + BATCH])
                fit += [person.id for person in people if person.id in self._humans and fits(person)]
        return fit

    def _size(self, scanned: PropertyValues) -> int | None:
        """Return how many statements there are; None when the source does not count them in time."""
        rows = self.source.try_select("size", property=scanned[0], held=scanned[1])
        return int(rows[0]["statements"]) if rows else None

    def _gave_up(self, scanned: PropertyValues) -> SourceTimeout:
        values = " ".join(scanned[1][:3]) or "of any value"
        about = f"{self.source.identity} did not finish any form of the question in time who has {scanned[0]} {values}"
        return SourceTimeout(f"{about}. Give it longer (--timeout), or use another endpoint or a dump.")

    def prefetch(self, holders: Iterable[Holder]) -> None:
        """Ask for holders and what is recorded about them, in as few queries as possible."""
        ids_of_holders = [self.holders(*key) for key in bar(sorted(set(holders)), "holders of a value")]
        self.people(id for ids in ids_of_holders for id in ids)

    def values(self, relation_id: str, listed: Collection[str] = ()) -> list[str]:
        """Return values of a relation that have a name, sorted by name then identifier.

        Those of a list that anything holds; without a list the most held ones, at most 200.

        Raises:
            SourceTimeout: The source does not count them in time.
        """
        key = (relation_id, str(sorted(listed)))
        if key not in self._values:
            held = self.source.gather("present", "values", listed, property=relation_id)
            rows = list(held) if listed else self.source.try_select("values", property=relation_id, limit=VALUES)
            if rows is None:
                raise self._gave_up((relation_id, ()))
            names = self.labels(entity_id(row["value"]) for row in rows)
            self._values[key] = sorted(names, key=lambda id: (names[id], id))
        return self._values[key]

    def claims(self, ids: Iterable[str]) -> dict[str, Held]:
        """Return entity -> property -> entities that it names; excluded properties are left out.

        Which properties say something about the item or Wikimedia pages instead of the thing is decided by identifier
        (`data/tables/excluded_properties.csv`), not by words in their labels.
        """
        ids, excluded = list(ids), groups.table("excluded_properties")
        unknown = {id for id in ids if id not in self._claims}
        self._claims |= {id: {} for id in unknown}
        for row in self.source.gather("claims", "entities", unknown, CLAIMED):
            name, value = entity_id(row["property"]), entity_id(row["value"])
            if name not in excluded and is_identifier(value):
                self._claims[entity_id(row["entity"])].setdefault(name, []).append(value)
        return {id: self._claims[id] for id in ids}

    def references(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return person -> titles of the references behind their statements, sorted; none is an empty tuple."""
        titles: dict[str, list[str]] = {id: [] for id in ids}
        for row in self.source.gather("references", "people", titles):
            titles[entity_id(row["person"])].append(row["source"])
        return {id: tuple(sorted(texts)) for id, texts in titles.items()}

    def named(self, labels: Iterable[str]) -> dict[str, list[str]]:
        """Return label -> identifiers of the humans of that name; a label that cannot be looked up has none."""
        return {label: sorted(set(ids)) for label, ids in self.linked("link", labels, BATCH, "person").items()}

    def linked(self, query: str, labels: Iterable[str], size: int, variable: str) -> dict[str, list[str]]:
        """Return label -> identifiers in the order of a query's answers; a label that cannot be looked up has none.

        Args:
            query: Name of a query file with a place `names`.
            labels: Names in the language, or in Wikidata's "mul".
            size: Labels in one query.
            variable: Of the query, that holds the entity.
        """
        ids: dict[str, list[str]] = {label: [] for label in labels}
        tags = dict.fromkeys((self.options.language, "mul"))

        def tagged(batch: list[str]) -> list[str]:
            return [f"{label}@{tag}" for label in batch for tag in tags]

        for row in self.source.gather(query, "names", filter(is_name, ids), size, tagged):
            ids[row["label"]].append(entity_id(row[variable]))
        return ids

    def everyone(self) -> list[RecordedPerson]:
        """Return all people in a small store, asked for page by page."""
        ids: list[str] = []
        places: Places = {"language": self.options.language, "limit": PAGE}
        while rows := self.source.select("everyone", offset=len(ids), **places):
            ids += [entity_id(row["person"]) for row in rows]
        return self.people(ids)
