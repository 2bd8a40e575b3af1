"""Drawing a graph out of a model: all identities side by side, each reproducible alone, killable and resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.public import checked
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.versions import versions
from seesaw_cf.generation.types import Ask, Completion, Generator, Sampling
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.store import Store
from seesaw_cf.texts.graph.folder import Crawl, Facts, Stored, load_unit, read_crawl, save_unit, write_tables
from seesaw_cf.texts.graph.identities import Identity
from seesaw_cf.texts.graph.settings import CrawlSettings
from seesaw_cf.texts.graph.tables import COMPLETIONS
from seesaw_cf.texts.graph.templates import Triple
from seesaw_cf.texts.graph.unit import Asking, IdentityCrawl

_SAVE_SECONDS = 5.0
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a manifest records of the model that is asked.

    Attributes:
        model: Facts about the model; its name when None.
        delta: Facts about the edit that is applied; None without one.
    """

    model: Facts | None = None
    delta: Facts | None = None


@checked
def crawl_identities(
    generator: Generator,
    identities: Sequence[Identity],
    settings: CrawlSettings,
    folder: Path,
    *,
    facts: ModelFacts | None = None,
    batch: int = 256,
    progress: bool = False,
) -> Crawl:
    """Crawl a graph into `folder`; an interrupted crawl in it is continued and ends with the same triples.

    Every ask has its seed (identity, run, step, try). What was written is kept with its ask; continuing is
    asking again with the stored answers at hand, so that nothing is asked twice. Faults (no text) of unfinished
    identities are asked again.

    Args:
        generator: The model.
        identities: Groups to ask about.
        settings: How.
        folder: The crawl folder; new, or of the same crawl.
        facts: What the manifest records of the model; its name when None.
        batch: Most asks given to the generator at a time.
        progress: Show a bar.

    Returns:
        The finished crawl.

    Raises:
        RunFolderError: The folder belongs to another crawl.
        RecordError: An identity is there twice.
        StorageError: The disk is full; finished work stays.
    """
    names = [identity.name for identity in identities]
    if len(set(names)) < len(names):
        raise RecordError(f"identities {names}: a name is there twice. Give each once.")
    manifest = _manifest(generator, identities, settings, facts or ModelFacts())
    store = Store(folder, manifest, COMPLETIONS, "completions")
    store.claim()
    units = [IdentityCrawl(identity, run, settings) for run in range(settings.runs) for identity in identities]
    stored = {_key(unit): load_unit(store, unit) for unit in units}
    total = settings.triples * len(units)
    with (
        Bar[object](total=total, desc="triples", unit="triple", disable=not progress) as bar,
        _saving(store, units) as save,
    ):
        ask = _Asker(generator, stored, batch)

        def after() -> None:
            save()
            bar.update(sum(len(unit.triples) for unit in units) - bar.n)

        _together([(unit, unit.start()) for unit in units], ask, after)
        _together([(unit, unit.expand(_others(unit, units))) for unit in units], ask, after)
    write_tables(folder, units, generator.name)
    return read_crawl(folder)


def _key(unit: IdentityCrawl) -> _Key:
    return unit.identity.name, unit.run


def _manifest(
    generator: Generator, identities: Sequence[Identity], settings: CrawlSettings, facts: ModelFacts
) -> RunManifest:
    return RunManifest(
        model=dict(facts.model or {"id": generator.name}),
        editors={"delta": dict(facts.delta)} if facts.delta else {},
        data={"identities": [[row.name, row.kind] for row in identities]},
        protocol="stereotype graph",
        seed=settings.seed,
        settings=asdict(settings),
        versions=versions(),
    )


def _others(unit: IdentityCrawl, units: Sequence[IdentityCrawl]) -> list[Triple]:
    """Return the start triples of the other identities of the class in the same run, before anything is expanded."""
    return [
        triple
        for other in units
        if other.run == unit.run and other.identity.kind == unit.identity.kind and other is not unit
        for triple in other.triples
    ]


class _Asker:
    """Answers from what is stored, and asks the generator for the rest."""

    def __init__(self, generator: Generator, stored: Mapping[_Key, Stored], batch: int) -> None:
        self.generator, self.stored, self.batch = generator, stored, batch

    def __call__(self, keys: Sequence[_Key], asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        answers = [self.stored[key].get((ask.seed, _text(ask))) for key, ask in zip(keys, asks, strict=True)]
        open_ = [number for number, answer in enumerate(answers) if answer is None]
        for first in range(0, len(open_), self.batch):
            part = open_[first : first + self.batch]
            for number, completion in zip(part, self._generate([asks[n] for n in part], sampling), strict=True):
                answers[number] = completion
        return [answer for answer in answers if answer is not None]

    def _generate(self, asks: list[Ask], sampling: Sampling) -> list[Completion]:
        """Return one completion per ask; a back end that gives another number leaves faults, not shifted answers."""
        answers = self.generator.generate(asks, sampling)
        if len(answers) == len(asks):
            return answers
        why = f"the back end gave {len(answers)} completions for {len(asks)} asks"
        return [Completion("", finish="", status=why)] * len(asks)


def _text(ask: Ask) -> str:
    return ask.prompt if isinstance(ask.prompt, str) else ask.prompt[-1].content


def _together(rows: Sequence[tuple[IdentityCrawl, Asking]], ask: _Asker, after: Callable[[], None]) -> None:
    """Run all units in lockstep: one batch of everything they want next, until none wants anything."""
    requests = {number: asks for number, (_, asking) in enumerate(rows) if (asks := next(asking, None)) is not None}
    while requests:
        flat = [(number, request) for number, asks in requests.items() for request in asks]
        settings = rows[flat[0][0]][0].settings
        keys = [_key(rows[number][0]) for number, _ in flat]
        answers = iter(ask(keys, [request for _, request in flat], settings.sampling))
        following = {}
        for number, asks in requests.items():
            try:
                following[number] = rows[number][1].send([next(answers) for _ in asks])
            except StopIteration:
                continue
        requests = following
        after()


@contextmanager
def _saving(store: Store, units: Sequence[IdentityCrawl]) -> Iterator[Callable[[], None]]:
    """Write what is new at most every few seconds, and at the end, also after an exception."""
    saved: dict[_Key, tuple[int, str]] = {}
    last = time.monotonic()

    def save(now: bool = False) -> None:
        nonlocal last
        if not now and time.monotonic() - last < _SAVE_SECONDS:
            return
        for unit in units:
            if saved.get(_key(unit)) != (len(unit.rows), unit.status):
                save_unit(store, unit)
                saved[_key(unit)] = (len(unit.rows), unit.status)
        last = time.monotonic()

    try:
        yield save
    finally:
        save(now=True)
