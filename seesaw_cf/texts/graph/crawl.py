"""Draw a graph out of a model: all identities side by side, each reproducible alone, killable and resumable.

Source: "I'm not racist but...", section 2 (start predicates), Table 1 (expansion), Table 2 (prepended texts).
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import checked
from seesaw_cf.base.files import safe_name
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.system import versions
from seesaw_cf.base.text import seed_of
from seesaw_cf.generation import types
from seesaw_cf.generation.types import Ask, Completion, Message
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.store import Key, Store
from seesaw_cf.texts.graph.folder import COMPLETED, COMPLETIONS, PROTOCOL, CompletionRow, Crawl, read_crawl
from seesaw_cf.texts.graph.identities import Identity, Triple, draw_examples, question
from seesaw_cf.texts.graph.settings import KEPT, CrawlSettings, verdict

Asking = Generator[list[Ask], list[Completion], None]
"""What a unit asks, round by round; it is sent the completions, so that many units share a batch."""
Answer = Callable[[Sequence[Key], Sequence[Ask]], list[Completion]]
"""Names of units and what they ask -> what is written."""
_SAVE_SECONDS = 5.0
_SYSTEM = (
    "You complete texts. Answer with nothing but the words that come next, in one line, in the form of the examples "
    "when there are any."
)


class _Step(NamedTuple):
    step: int
    attempt: int
    strategy: str
    predicate: str | None
    prompt: str
    seed: int


@dataclass(slots=True, eq=False)
class IdentityCrawl:
    """The crawl of one identity in one run: which asks it makes, which answers it keeps.

    Attributes:
        identity, run, settings: What is crawled.
        triples: In the order of steps.
        rows: One row of `COMPLETIONS` per ask.
        status: "complete", "budget spent", "gave up" or "" while it is crawled.
    """

    identity: Identity
    run: int
    settings: CrawlSettings
    triples: list[Triple] = field(default_factory=list)
    rows: list[CompletionRow] = field(default_factory=list)
    status: str = ""
    _keys: set[tuple[str, str]] = field(default_factory=set)
    _without_triple: int = 0
    _next_step: int = 0

    @property
    def key(self) -> Key:
        """Name of the unit's file, with a digest: names may differ in characters that no file name has."""
        digest = hashlib.sha256(self.identity.name.encode()).hexdigest()[:8]
        return (f"{safe_name(self.identity.name)}-{digest}-{self.run}",)

    def start(self) -> Asking:
        """Complete the template with every start predicate."""
        steps = len(self.settings.predicates) * self.settings.starts
        yield from self._round(min(steps, self.settings.triples), self._start_step)

    def expand(self, others: Sequence[Triple]) -> Asking:
        """Ask questions until there are enough triples, the budget is spent or the model gives nothing.

        Args:
            others: Start triples of the other identities of the class in this run: they alone are shared, so that an
                identity depends on nothing else and can be crawled again alone.

        Deviates: the paper draws examples from everything generated so far.
        """
        while not self._stopped(others):
            pool = [*others, *self.triples]
            width = min(self.settings.width, self.settings.triples - len(self.triples))
            yield from self._round(width, partial(self._question_step, pool))

    def _stopped(self, others: Sequence[Triple]) -> bool:
        if len(self.triples) >= self.settings.triples:
            self.status = "complete"
        elif len(self.rows) >= self.settings.most_asks:
            self.status = "budget spent"
        elif self._without_triple >= self.settings.patience or not (self.triples or others):
            self.status = "gave up"
        return bool(self.status)

    def _round(self, width: int, plan: Callable[[int, int], _Step]) -> Asking:
        pending = list(range(self._next_step, self._next_step + width))
        self._next_step += width
        for attempt in range(self.settings.tries):
            room = max(0, self.settings.most_asks - len(self.rows))
            steps = [plan(step, attempt) for step in pending[:room]]
            if not steps:
                break
            answers = yield [Ask(self._turns(step.prompt), step.seed) for step in steps]
            pending = [step.step for step, answer in zip(steps, answers, strict=True) if not self._keep(step, answer)]
        self._without_triple = self._without_triple + width if len(pending) == width else 0

    def _keep(self, step: _Step, answer: Completion) -> bool:
        settings = self.settings
        why, predicate, thing = verdict(answer, step.predicate, settings.refusals, settings.max_words)
        key = predicate.casefold(), thing.casefold()
        if why == KEPT and key in self._keys:
            why = "repeat"
        if why == KEPT:
            self._keys.add(key)
            self.triples.append(Triple(self.identity, predicate, thing))
        place = {"kind": self.identity.kind, "identity": self.identity.name, "run": self.run}
        columns = {"verdict": why, "found_predicate": predicate, "found_object": thing}
        self.rows.append(cast(CompletionRow, place | step._asdict() | asdict(answer) | columns))
        return why == KEPT

    def _start_step(self, step: int, attempt: int) -> _Step:
        predicate = self.settings.predicates[step % len(self.settings.predicates)]
        prompt = f"{self.identity.subject(self.settings.prefix_start)} {predicate}"
        return _Step(step, attempt, "start", predicate, prompt, self._seed(step, attempt))

    def _question_step(self, pool: Sequence[Triple], step: int, attempt: int) -> _Step:
        seed = self._seed(step, attempt)
        rng = random.Random(seed)
        free = rng.random() < self.settings.choose_predicate
        own = sorted({t.predicate for t in self.triples}) or sorted({t.predicate for t in pool})
        predicate = None if free else rng.choice(own or list(self.settings.predicates))
        examples = draw_examples(pool, self.settings.examples, predicate, rng, self.identity)
        prompt = question(self.identity, predicate, examples, self.settings.prefix_expand)
        return _Step(step, attempt, "predicate" if free else "object", predicate, prompt, seed)

    def _seed(self, step: int, attempt: int) -> int:
        return seed_of(self.settings.seed, self.identity.name, self.run, step, attempt, bits=31, joined="\x1f")

    def _turns(self, prompt: str) -> str | tuple[Message, ...]:
        return (Message("system", _SYSTEM), Message("user", prompt)) if self.settings.chat else prompt


@checked
def crawl_identities(
    generator: types.Generator,
    identities: Sequence[Identity],
    settings: CrawlSettings,
    folder: Path,
    *,
    model: Mapping[str, object] | None = None,
    delta: Mapping[str, object] | None = None,
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
        model: Facts about the model for the manifest; its name when None.
        delta: Facts about the edit that is applied; None without one.
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
    manifest = RunManifest(
        model=dict(model or {"id": generator.name}),
        editors={"delta": dict(delta)} if delta else {},
        data={"identities": [[row.name, row.kind] for row in identities]},
        protocol=PROTOCOL,
        seed=settings.seed,
        settings=asdict(settings),
        versions=versions(),
    )
    store = Store(folder, manifest, COMPLETIONS, "completions")
    store.claim()
    units = [IdentityCrawl(identity, run, settings) for run in range(settings.runs) for identity in identities]
    answer = _answers(generator, store, units, batch)
    saved: dict[Key, tuple[int, str]] = {}
    last = time.monotonic()

    def save(seconds: float = _SAVE_SECONDS) -> None:
        nonlocal last
        bar.update(sum(len(unit.triples) for unit in units) - bar.n)
        if time.monotonic() - last < seconds:
            return
        for unit in units:
            if saved.get(unit.key) != (len(unit.rows), unit.status):
                store.write(unit.key, pa.Table.from_pylist(unit.rows, COMPLETIONS), status=unit.status)
                saved[unit.key] = len(unit.rows), unit.status
        last = time.monotonic()

    with Bar[object](total=settings.triples * len(units), desc="triples", unit="triple", disable=not progress) as bar:
        try:
            _together([(unit, unit.start()) for unit in units], answer, save)
            _together([(unit, unit.expand(_others(unit, units))) for unit in units], answer, save)
        finally:
            save(0)
    store.merge([unit.key for unit in units], COMPLETED)
    return read_crawl(folder)


def _others(unit: IdentityCrawl, units: Sequence[IdentityCrawl]) -> list[Triple]:
    """Return the start triples of the other identities of the class in the same run, before anything is expanded."""
    return [
        triple
        for other in units
        if other.run == unit.run and other.identity.kind == unit.identity.kind and other is not unit
        for triple in other.triples
    ]


def _answers(generator: types.Generator, store: Store, units: Sequence[IdentityCrawl], batch: int) -> Answer:
    """Return a function that answers from what is stored, and asks the generator for the rest."""
    stored = {unit.key: _stored(store, unit.key) for unit in units}

    def ask(asks: list[Ask]) -> list[Completion]:
        answers = generator.generate(asks, units[0].settings.sampling)
        if len(answers) == len(asks):
            return answers
        why = f"the back end gave {len(answers)} completions for {len(asks)} asks"
        return [Completion("", finish="", status=why)] * len(asks)  # faults, not shifted answers

    def answer(keys: Sequence[Key], asks: Sequence[Ask]) -> list[Completion]:
        known = [stored[key].get((own.seed, _text(own))) for key, own in zip(keys, asks, strict=True)]
        missing = [own for own, completion in zip(asks, known, strict=True) if completion is None]
        parts = (missing[first : first + batch] for first in range(0, len(missing), batch))
        written = iter([completion for part in parts for completion in ask(part)])
        return [completion or next(written) for completion in known]

    return answer


def _stored(store: Store, key: Key) -> dict[tuple[int, str], Completion]:
    """Return the answers to a unit in an earlier, interrupted crawl; faults only when it had finished."""
    if not store.has(key):
        return {}
    table, facts = store.read(key)
    return {
        (row["seed"], row["prompt"]): Completion(
            row["text"], row["finish"], row["status"], row["prompt_tokens"], row["new_tokens"]
        )
        for row in table.to_pylist()
        if row["status"] == "ok" or facts["status"] in ("complete", "budget spent")
    }


def _text(ask: Ask) -> str:
    return ask.prompt if isinstance(ask.prompt, str) else ask.prompt[-1].content


def _together(rows: Sequence[tuple[IdentityCrawl, Asking]], answer: Answer, after: Callable[[], None]) -> None:
    """Run all units in lockstep: one batch of everything they want next, until none wants anything."""
    requests = {number: asks for number, (_, asking) in enumerate(rows) if (asks := next(asking, None)) is not None}
    while requests:
        flat = [(rows[number][0].key, request) for number, asks in requests.items() for request in asks]
        answers = iter(answer([key for key, _ in flat], [request for _, request in flat]))
        following = {}
        for number, asks in requests.items():
            try:
                following[number] = rows[number][1].send([next(answers) for _ in asks])
            except StopIteration:
                continue
        requests = following
        after()
