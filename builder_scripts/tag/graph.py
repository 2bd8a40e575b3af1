"""Facts out of a SPARQL endpoint or store, in bounded queries: smaller ones where the endpoint ends the large ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from seesaw_cf.base.types import Entity
from seesaw_cf.builder_scripts.options import BuildOptions
from seesaw_cf.builder_scripts.source.draws import BATCH
from seesaw_cf.builder_scripts.source.people import SITELINKS, Facts, Progress, batches, by_person, person_of, silent
from seesaw_cf.builder_scripts.source.replies import CachedSource
from seesaw_cf.builder_scripts.source.sources import Binding, Source, SourceError, SourceTimeout, entity_id, query, rows
from seesaw_cf.builder_scripts.tag.ask import Fact, SourceRecord, TagSource

FEW = 10  # people in one query, once the endpoint did not finish a query about `BATCH` of them
# What the tags are made of; P31, which every item has, tells who is there at all.
_TAGGED = ("P21", "P31", "P172", "P569", "P570", SITELINKS)


class GraphSource(TagSource):
    """Source of people from facts in Wikidata's shape."""

    def __init__(self, name: str, source: Source, language: str = "en", progress: Progress = silent):
        """Remember who is asked; nothing is asked yet.

        Args:
            name: As it is called in tables and messages.
            source: An endpoint or store.
            language: Of the names that people are looked up by.
            progress: Shows how far long lists of queries are.
        """
        self.name, self.identity = name, source.identity
        self._source, self._progress = source, progress
        self._facts = Facts(source, BuildOptions(language=language), progress)
        self._size = BATCH

    def people(self, ids: Collection[str], properties: Sequence[str] = ()) -> dict[str, SourceRecord]:
        """See `TagSource`; merged identifiers are followed.

        Raises:
            SourceError: The source refuses, or does not finish even a query about a few people in time.
        """
        records = self._recorded(ids, properties)
        merged = self._select("redirects", [id for id in ids if id not in records])
        moved = {entity_id(row["person"]): entity_id(row["target"]) for row, _ in merged}
        new = self._recorded(set(moved.values()), properties)
        return records | {id: new[target] for id, target in moved.items() if target in new}

    def named(self, labels: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """See `TagSource`."""
        return self._facts.named(labels)

    def _recorded(self, ids: Collection[str], properties: Sequence[str]) -> dict[str, SourceRecord]:
        listed = [*_TAGGED, *(name for name in properties if name not in _TAGGED)]
        answers = self._select("facts", ids, listed=listed)
        facts: dict[str, list[Fact]] = defaultdict(list)
        for row, time in answers:
            id, name = entity_id(row["person"]), entity_id(row["property"])
            property_name = name if name != SITELINKS else "sitelinks"
            facts[id].append(Fact(id, property_name, entity_id(row["value"]), time=time))
        recorded = by_person(row for row, _ in answers)
        return {
            id: SourceRecord(person_of(Entity(id, ""), values), tuple(facts[id])) for id, values in recorded.items()
        }

    def _select(self, name: str, ids: Collection[str], **more: Sequence[str]) -> list[tuple[Binding, str]]:
        """Return the rows of a query about any number of people, each with the time of its reply."""
        parts = self._progress(batches(ids), f"{name} from {self.name}")
        return [row for part in parts for few in batches(part, self._size) for row in self._ask(name, few, **more)]

    def _ask(self, name: str, ids: list[str], **more: Sequence[str]) -> list[tuple[Binding, str]]:
        text = query(name, {"people": ids, **more})
        reply = self._few(text, len(ids)) if len(ids) <= FEW else self._source.within_time(text)
        if reply is None:
            self._size = FEW
            return [row for few in batches(ids, FEW) for row in self._ask(name, few, **more)]
        time = self._source.time_of(text) if isinstance(self._source, CachedSource) else ""
        return [(row, time) for row in rows(reply)]

    def _few(self, text: str, people: int) -> bytes:
        """Return the reply to a query that cannot be made smaller."""
        try:
            return self._source.ask(text)
        except SourceTimeout as error:
            raise SourceError(
                f"{self.name} did not finish any form of the question in time; the last was about {people} people and "
                f"needs no search: {error}"
            ) from error
