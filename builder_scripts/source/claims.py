"""Entities of all kinds, not only people: found by name, with their statements about other entities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seesaw_cf.builder_scripts.source.people import Facts
from seesaw_cf.builder_scripts.source.sources import Source, entity_id, is_identifier
from seesaw_cf.records import groups

NAMES = 50  # labels in one query: some have a hundred namesakes
ENTITIES = 50  # entities in one query: some have hundreds of claims


@dataclass(frozen=True, slots=True)
class Coupling:
    """A related entity.

    Attributes:
        id: Its identifier.
        links: Number of pairs (link to the subject, link to the target), as the paper's query counts.
    """

    id: str
    links: int


class Claims:
    """Claims, names and couplings of entities, each asked once."""

    def __init__(self, source: Source, facts: Facts):
        """Remember who is asked.

        Args:
            source: The source behind `facts`.
            facts: Knows labels, and the rules (language).
        """
        self._source, self._facts = source, facts
        self._claims: dict[str, dict[str, list[str]]] = {}

    def named(self, labels: Iterable[str]) -> dict[str, list[str]]:
        """Return label -> identifiers of the entities of that name, the best known (most sitelinks) first."""
        entities = self._facts.linked("named", labels, NAMES, "entity")
        return {label: list(dict.fromkeys(ids)) for label, ids in entities.items()}

    def couplings(self, pairs: Sequence[tuple[str, str]], limit: int) -> dict[tuple[str, str], list[Coupling]]:
        """Return (subject, target) -> entities linked with both, most links first.

        Args:
            pairs: Identifiers.
            limit: At most this many for each pair.
        """
        couplings = {}
        for subject, target in self._facts.progress(sorted(set(pairs)), "related entities"):
            rows = self._source.select(
                "coupled", subject=subject, target=target, language=self._facts.options.language, limit=limit
            )
            couplings[subject, target] = [Coupling(entity_id(row["item"]), int(row["links"])) for row in rows]
        return couplings

    def of(self, ids: Iterable[str]) -> dict[str, Mapping[str, Sequence[str]]]:
        """Return entity -> property -> entities that it names; excluded properties are left out.

        Which properties say something about the item or Wikimedia pages instead of the thing is decided by identifier
        (`data/tables/excluded_properties.csv`), not by words in their labels.
        """
        ids = list(ids)
        excluded = groups.table("excluded_properties")
        unknown = sorted({id for id in ids if id not in self._claims})
        progress = self._facts.progress
        rows = self._source.gather("claims", "entities", unknown, size=ENTITIES, progress=progress, label="claims")
        claims: dict[str, dict[str, list[str]]] = {id: {} for id in unknown}
        for row, _ in rows:
            name, value = entity_id(row["property"]), entity_id(row["value"])
            if name not in excluded and is_identifier(value):
                claims[entity_id(row["entity"])].setdefault(name, []).append(value)
        self._claims |= claims
        return {id: self._claims[id] for id in ids}
