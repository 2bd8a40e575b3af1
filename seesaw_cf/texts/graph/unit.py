"""One identity in one run: which asks it makes, which answers it keeps. It asks nothing itself: it yields its asks and
is sent the completions, so that many units share a batch and a stored crawl is replayed by answering from the disk."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import cast

from seesaw_cf.base.seeds import seed_of
from seesaw_cf.generation.types import Ask, Completion, Message
from seesaw_cf.texts.graph.identities import Identity
from seesaw_cf.texts.graph.settings import KEPT, CrawlSettings, verdict
from seesaw_cf.texts.graph.tables import CompletionRow
from seesaw_cf.texts.graph.templates import Triple, draw_examples, question, start

Asking = Generator[list[Ask], list[Completion], None]
_SYSTEM = (
    "You complete texts. Answer with nothing but the words that come next, in one line, in the form of the examples "
    "when there are any."
)


@dataclass(frozen=True, slots=True)
class _UnitPlan:
    step: int
    attempt: int
    strategy: str
    predicate: str | None
    prompt: str
    seed: int


@dataclass(slots=True)
class IdentityCrawl:
    """The crawl of one identity in one run.

    Attributes:
        identity, run, settings: What is crawled.
        triples: What was found, in the order of steps.
        rows: One row of `COMPLETIONS` per ask.
        status: "complete", "budget spent", "gave up: ..." or "" while it is crawled.
        abandoned: Steps that had no triple after all tries.
    """

    identity: Identity
    run: int
    settings: CrawlSettings
    triples: list[Triple] = field(default_factory=list)
    rows: list[CompletionRow] = field(default_factory=list)
    status: str = ""
    abandoned: int = 0
    _keys: set[tuple[str, str]] = field(default_factory=set)
    _without_triple: int = 0
    _next_step: int = 0

    def start(self) -> Asking:
        """Complete the template with every start predicate."""
        steps = len(self.settings.predicates) * self.settings.starts
        yield from self._round(min(steps, self.settings.triples), self._start_plan)

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
            yield from self._round(width, partial(self._question_plan, pool))

    def _stopped(self, others: Sequence[Triple]) -> bool:
        if len(self.triples) >= self.settings.triples:
            self.status = "complete"
        elif len(self.rows) >= self.settings.most_asks:
            self.status = "budget spent"
        elif self._without_triple >= self.settings.patience or not (self.triples or others):
            last = self.rows[-1]["verdict"] if self.rows else "nothing asked"
            self.status = f"gave up: {self._without_triple} steps in a row without a triple, last: {last}"
        return bool(self.status)

    def _round(self, width: int, plan: Callable[[int, int], _UnitPlan]) -> Asking:
        pending = list(range(self._next_step, self._next_step + width))
        self._next_step += width
        for attempt in range(self.settings.tries):
            room = max(0, self.settings.most_asks - len(self.rows))
            plans = [plan(step, attempt) for step in pending[:room]]
            if not plans:
                break
            answers = yield [Ask(self._turns(p.prompt), p.seed) for p in plans]
            pending = [p.step for p, answer in zip(plans, answers, strict=True) if not self._keep(p, answer)]
        self.abandoned += len(pending)
        self._without_triple = self._without_triple + width if len(pending) == width else 0

    def _keep(self, plan: _UnitPlan, answer: Completion) -> bool:
        settings = self.settings
        why, predicate, thing = verdict(answer, plan.predicate, settings.refusals, settings.max_words)
        triple = Triple(self.identity, predicate, thing)
        if why == KEPT and triple.key in self._keys:
            why = "repeat"
        if why == KEPT:
            self._keys.add(triple.key)
            self.triples.append(triple)
        place = {"kind": self.identity.kind, "identity": self.identity.name, "run": self.run}
        columns = {"verdict": why, "found_predicate": predicate, "found_object": thing}
        self.rows.append(cast(CompletionRow, place | asdict(plan) | asdict(answer) | columns))
        return why == KEPT

    def _start_plan(self, step: int, attempt: int) -> _UnitPlan:
        predicate = self.settings.predicates[step % len(self.settings.predicates)]
        prompt = start(self.identity, predicate, self.settings.prefix_start)
        return _UnitPlan(step, attempt, "start", predicate, prompt, self._seed(step, attempt))

    def _question_plan(self, pool: Sequence[Triple], step: int, attempt: int) -> _UnitPlan:
        seed = self._seed(step, attempt)
        rng = random.Random(seed)
        free = rng.random() < self.settings.choose_predicate
        own = sorted({t.predicate for t in self.triples}) or sorted({t.predicate for t in pool})
        predicate = None if free else rng.choice(own or list(self.settings.predicates))
        examples = draw_examples(pool, self.settings.examples, predicate, rng, self.identity)
        prompt = question(self.identity, predicate, examples, self.settings.prefix_expand)
        return _UnitPlan(step, attempt, "predicate" if free else "object", predicate, prompt, seed)

    def _seed(self, step: int, attempt: int) -> int:
        return seed_of(self.settings.seed, self.identity.name, self.run, step, attempt, bits=31, joined="\x1f")

    def _turns(self, prompt: str) -> str | tuple[Message, ...]:
        return (Message("system", _SYSTEM), Message("user", prompt)) if self.settings.chat else prompt
