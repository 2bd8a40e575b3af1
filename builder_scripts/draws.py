"""Samples of the people who hold a value, in ways that an endpoint with a time limit finishes.

What takes an endpoint long is to look at all of a million holders and to sort them. So it is first asked how many
statements there are, which its index knows, and the sort is for values with few. Of larger ones a range of hashes is
asked after the other, until there are enough people: that is the beginning of the same order, so these are the same
people.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from seesaw_cf.builder_scripts.sources import BATCH, Source
from seesaw_cf.builder_scripts.sparql import Binding, Parameter, SourceTimeout, entity_id, entity_iri

VALUES = 200  # values of a relation without a packaged list
WHOLE = 20_000  # statements; more are not sorted by an endpoint
HASHES = 1 << 16  # ranges are told apart by four hexadecimal digits
UNKNOWN = 16  # width of the first range where the number of statements is not known
SPARE = 4  # times as many statements as people wanted in the first range: some are not human, or of another gender
GROWTH = 4  # of the next range
SLICES = 60  # ranges at most

# way -> what it means; the words are those of the card and of build.json
WAYS = {
    "whole": "all holders in the order of a hash of seed and identifier, the first of them",
    "slices": "the same order, a range of hashes after the other, as far as the source finished it in time: the same "
    "people, or the first of them",
}


PropertyValues = tuple[str, tuple[str, ...]]
"""A property and its values; none for any."""


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """The people that a sample is drawn from.

    Attributes:
        relation_id: The relation that it is for.
        query: Name of the query file that sorts all people.
        parameters: Its parameters.
        scanned: What all people of the sample have.
        limit: People at most.
        fit: Those of some identifiers who are wanted, in the order given.
    """

    relation_id: str
    query: str
    parameters: Mapping[str, Parameter]
    scanned: PropertyValues
    limit: int
    fit: Callable[[Sequence[str]], list[str]]


class Draws:
    """Draw samples from a source, and remember which way each was drawn.

    Attributes:
        limited: The source may not finish a query.
        ways: Relation -> way of `WAYS` -> number of samples.
    """

    def __init__(self, source: Source, seed: int):
        """Remember who is asked, and the seed of the order."""
        self.limited = source.limited
        self.ways: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._source, self._seed = source, seed

    def sample(self, request: SampleRequest) -> list[str]:
        """Return the identifiers of a sample, in an order fixed by the seed.

        Raises:
            SourceTimeout: The source finishes neither way in time.
        """
        for draw in (self._whole, self._slices):
            drawn = draw(request)
            if drawn is not None:
                way, ids = drawn
                self.ways[request.relation_id].update([way])
                return ids[: request.limit]
        raise self._gave_up(request.scanned)

    def common(self, relation_id: str) -> list[str]:
        """Return the most held values of a property, at most 200.

        Raises:
            SourceTimeout: The source does not count them in time.
        """
        rows = self._source.try_select("values", property=relation_id, limit=VALUES)
        if rows is None:
            raise self._gave_up((relation_id, ()))
        return [entity_id(row["value"]) for row in rows]

    def _whole(self, request: SampleRequest) -> tuple[str, list[str]] | None:
        size = self._size(request.scanned) if self.limited else 0
        if size is None or size > WHOLE:
            return None
        rows = self._source.try_select(request.query, **request.parameters)
        return None if rows is None else ("whole", [entity_id(row["person"]) for row in rows])

    def _slices(self, request: SampleRequest) -> tuple[str, list[str]] | None:
        """Draw from ranges of hashes, each wider than the one before as long as the source finishes them."""
        size = self._size(request.scanned)
        width = UNKNOWN if size is None else min(HASHES, SPARE * request.limit * HASHES // max(size, 1) + 1)
        ids: list[str] = []
        start, growth = 0, GROWTH
        for _ in range(SLICES):
            rows = self._slice(request.scanned, start, start + width)
            if rows is not None:
                ids += self._fitting(request, rows)
                start, width = start + width, width * growth
            elif start == 0:
                return None
            else:
                width, growth = max(1, width // GROWTH), 1
            if start >= HASHES or len(ids) >= request.limit:
                break
        return "slices", ids

    def _slice(self, scanned: PropertyValues, start: int, end: int) -> list[Binding] | None:
        last = f"{end:04x}" if end < HASHES else "g"
        return self._source.try_select(
            "slice", property=scanned[0], held=scanned[1], seed=self._seed, first=f"{start:04x}", last=last
        )

    def _fitting(self, request: SampleRequest, rows: Iterable[Binding]) -> list[str]:
        """Return the wanted people of a range, in the order of the hashes; no more are looked up than needed."""
        people: list[str] = []
        ids = self._ordered(entity_id(row["person"]) for row in rows)
        for start in range(0, len(ids), BATCH):
            if len(people) < request.limit:
                people += request.fit(ids[start : start + BATCH])
        return people

    def _size(self, scanned: PropertyValues) -> int | None:
        """Return how many statements there are; None when the source does not count them in time."""
        rows = self._source.try_select("size", property=scanned[0], held=scanned[1])
        return int(rows[0]["statements"]) if rows else None

    def _ordered(self, ids: Iterable[str]) -> list[str]:
        """Sort identifiers in the order of the queries: by SHA-256 of "SEED IRI"."""
        return sorted(ids, key=lambda id: hashlib.sha256(f"{self._seed} {entity_iri(id)}".encode()).hexdigest())

    def _gave_up(self, scanned: PropertyValues) -> SourceTimeout:
        return SourceTimeout(
            f"{self._source.identity} did not finish any form of the question in time who has {scanned[0]} "
            f"{' '.join(scanned[1][:3]) or 'of any value'}. Give it longer (--timeout), or use another "
            "endpoint or a dump."
        )
