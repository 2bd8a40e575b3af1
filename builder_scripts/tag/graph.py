"""Facts out of a SPARQL endpoint or store, in bounded queries: smaller ones where the endpoint ends the large ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from seesaw_cf.base.types import Entity
from seesaw_cf.builder_scripts.options import BuildOptions
from seesaw_cf.builder_scripts.source.people import SITELINKS, Facts, by_person, person_of
from seesaw_cf.builder_scripts.source.sources import Binding, Parameter, Progress, Source, entity_id, silent
from seesaw_cf.builder_scripts.tag.ask import Fact, SourceRecord, TagSource

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

    def people(self, ids: Collection[str], properties: Sequence[str] = ()) -> dict[str, SourceRecord]:
        """See `TagSource`; merged identifiers are followed.

        Raises:
            SourceError: The source refuses, or does not finish even a query about one person in time.
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

    def _select(self, name: str, ids: Collection[str], **more: Parameter) -> list[tuple[Binding, str]]:
        """Return the rows of a query about any number of people, each with the time of its reply."""
        label = f"{name} from {self.name}"
        return list(self._source.gather(name, "people", ids, more, progress=self._progress, label=label))
