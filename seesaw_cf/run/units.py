"""What a run edits and asks: units, each a state of the model after a list of edits.

A batch can be looked at on the way: at checkpoints, the first 1, 10, 100, ... facts of an order of a relation or of two
relations in turn, for orders that are drawn again and again. Source: MEMIT appendix D (editing score against the number
of edits, for pairs of relations).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import dump_json
from seesaw_cf.base.types import AttributePrompt, Case, EditRequest, Entity, TableRow
from seesaw_cf.effects.dose import health, sample_effects
from seesaw_cf.effects.success import KINDS
from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.run.jobs import CHECKPOINTS, PROTOCOLS
from seesaw_cf.run.questions import PLAIN, CaseQuestions, Forms, Question, in_forms, questions
from seesaw_cf.run.store import ASKED_ONLY, Key, Shard

PROBES = -1
"""Case number of questions that belong to no edit."""
PEOPLE, PANEL, ANSWERS = 5, 10, 12
"""At checkpoints: prompts about other people for each edit; of each relation prompts for the entropy of answers, and
their answers."""
_OF_THE_EDIT = ("efficacy", "paraphrase", "neighborhood")
_SEED = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """A state of the model: the edits that lead to it, and what is asked before and after.

    Attributes:
        key: Names its shard.
        cases: The edits in their order.
        asked_only: Numbers of cases that the changed models were not edited for, as far as is known.
        ask: Returns the questions of a case.
        probes: Questions that belong to no edit.
        labels: Column -> value: what tells its rows from those of other units with the same cases.
        forms: In which forms it is asked.
    """

    key: str
    cases: tuple[Case, ...]
    asked_only: frozenset[int] = frozenset()
    ask: Callable[[Case], Iterable[Question]] = questions
    probes: tuple[Question, ...] = ()
    labels: TableRow = field(default_factory=dict)
    forms: Forms = field(default_factory=lambda: PLAIN)

    @property
    def all_cases(self) -> list[Case]:
        """The cases, and one for `probes`."""
        return [*self.cases, *([replace(self.cases[0], case_id=PROBES)] if self.probes else ())]

    def questions(self) -> CaseQuestions:
        """Return the cases with their questions, made anew each time: those of all units would fill the memory."""
        return [(case, self.questions_of(case)) for case in self.all_cases]

    def questions_of(self, case: Case) -> list[Question]:
        """Return the questions of one of `all_cases`."""
        left_out = _OF_THE_EDIT if case.case_id in self.asked_only else ()
        asked = self.probes if case.case_id == PROBES else (q for q in self.ask(case) if q.kind not in left_out)
        return in_forms(asked, self.forms)

    def status(self) -> dict[int, str]:
        """Return the status of each case for a model that was changed elsewhere."""
        return {case.case_id: ASKED_ONLY if case.case_id in self.asked_only else "ok" for case in self.cases}


class Block(NamedTuple):
    """Units that are edited and scored together: what a worker takes on at a time.

    Attributes:
        names: An editor, and the controls that take its edits; or a model changed elsewhere.
        units: The units.
    """

    names: tuple[str, ...]
    units: tuple[Unit, ...]


def units(cases: Sequence[Case], protocol: str) -> list[Unit]:
    """Cut cases into units.

    Args:
        cases: In the order they were read.
        protocol: "single": edit one fact, score every case about that edit, restore. "batch": all cases with the same
            edit and effect relation are edited together, as in the authors' code (PEER_FACTS: one batch per property
            file).

    Raises:
        UnknownNameError: Another protocol.
        RecordError: As `check_numbers`.
    """
    one_of("protocol", protocol, PROTOCOLS)
    check_numbers(cases)
    groups: dict[str | EditRequest, list[Case]] = {}
    for case in cases:
        groups.setdefault(_name(case) if protocol == "batch" else case.request, []).append(case)
    return [Unit(key if isinstance(key, str) else _number(*group), tuple(group)) for key, group in groups.items()]


def check_numbers(cases: Iterable[Case]) -> None:
    """Refuse cases of one number, also of different relations: tables tell cases apart by their numbers.

    Raises:
        RecordError: Two cases share a number.
    """
    repeated = [number for number, n in Counter(case.case_id for case in cases).items() if n > 1]
    if repeated:
        raise RecordError(
            f"{len(repeated)} case numbers occur twice, first {repeated[0]}; expected that every case of a run has a "
            "case_id of its own. Renumber the cases, or run their files or configs one at a time."
        )


def _name(case: Case) -> str:
    return "-".join(filter(None, (case.request.relation_id, case.effect_relation_id)))


def _number(first: Case, *others: Case) -> str:
    """Return the key of the cases of one edit; it counts the others, so that it differs from the first case's own."""
    return f"{_name(first)}-{first.case_id:08d}" + (f"-and-{len(others)}" if others else "")


# Checkpoints of a batch.


def checkpoint_units(
    cases: Sequence[Case], counts: Sequence[int], orders: int, pairs: Sequence[Sequence[str]]
) -> list[Unit]:
    """Return the states after the first facts of each drawn order of a relation, or of a pair of relations.

    Args:
        cases: What is drawn from; a unit numbers its cases by their places here.
        counts: Numbers of edits, of two relations half of each; () = `CHECKPOINTS`, while facts last.
        orders: How many orders are drawn.
        pairs: Two relations to mix, each also alone; () = every relation alone.

    Raises:
        RecordError: A relation has no cases, or a number of edits is more than there are or odd for a pair.
    """
    pools: dict[str, list[Case]] = defaultdict(list)
    for number, case in enumerate(cases):
        pools[case.request.relation_id].append(replace(case, case_id=number))
    relations = [relation for pair in pairs for relation in pair] or sorted(pools)
    if missing := sorted(set(relations) - set(pools)):
        there = {relation: len(pool) for relation, pool in pools.items()}
        raise RecordError(f"batch: no cases of relation {missing}; cases per relation: {there}. See --pair and --data.")
    mixes = {"+".join(mix): mix for mix in [*((relation,) for relation in relations), *pairs]}
    most = {name: len(mix) * min(len(pools[relation]) for relation in mix) for name, mix in mixes.items()}
    small = min(most, key=most.__getitem__)
    if counts and max(counts) > most[small]:
        raise RecordError(
            f"batch: {max(counts):,} facts edited together, and {small} has {most[small]:,}. Give --checkpoints of at "
            "most that, or --data with more."
        )
    planned = []
    for name, mix in mixes.items():
        tried = sorted({*counts} or CHECKPOINTS)
        fit = [count for count in tried if count <= most[name] and count % len(mix) == 0]
        if not fit:
            numbers = ", ".join(f"{count:,}" for count in tried)
            raise RecordError(
                f"batch: --checkpoints are {numbers}, expected an even number for the pair {name}, half of each "
                f"relation, of at most {most[name]:,} edits."
            )
        probes = probes_of(pools[relation] for relation in mix)
        for count in fit:
            share = count // len(mix)
            overlap = sum(share / len(pools[relation]) for relation in mix) / len(mix)
            for order in range(orders):
                own = [case for relation in mix for case in _order(pools[relation], order)[:share]]
                labels = {"mix": name, "checkpoint": count, "order": order, "overlap": overlap}
                key = f"{name}-{count:06d}-{order:03d}"
                planned.append(Unit(key, tuple(own), ask=_fewer_people, probes=probes, labels=labels))
    return planned


State = tuple[TableRow, TableRow]
"""See `state_effects`."""


def write_doses(
    file: Path, editors: Iterable[str], planned: Sequence[Unit], shards: Mapping[str, Mapping[Key, State]]
) -> None:
    """Write what became of every state of a plan, for `seesaw_cf.effects.dose.read_curves`.

    Args:
        file: `dose.json` of the run.
        editors: All of the run.
        planned: Its states.
        shards: Form, the first one first -> `state_effects` of each state of each editor, or nothing.
    """
    before, rows = dict[str, TableRow](), []
    for (form, own), editor, unit in product(shards.items(), editors, planned):
        if own:
            was, found = own[editor, unit.key]
            before.setdefault(str(unit.labels["mix"]), was)  # of the first form, in which texts are read
            rows.append({"editor": editor, **unit.labels, "form": form, **found})
    dump_json(file, {"baseline": before, "units": rows}, allow_nan=False)


def state_effects(shard: Shard, nats: float, people: bool) -> State:
    """Return how well the model worked before a state of a plan, and what became of that.

    Args:
        shard: Rows of the state in one form.
        nats: See `sample_effects`.
        people: Also of other people; the curves of a sequence are made by the report.
    """
    table, facts = shard
    table = table if people else table.filter(pc.field("kind").isin([*KINDS, "panel", "text"]))
    made = [row for row in facts["edits"] if row["status"] != ASKED_ONLY]
    return dict(health(table, "pre")), {"norm": facts.get("norm"), **sample_effects(table, made, nats)}


def _order(pool: Sequence[Case], order: int) -> list[Case]:
    """Return the facts of a relation in an order, the same for every editor."""
    return [pool[place] for place in np.random.default_rng([_SEED, order]).permutation(len(pool))]


def _fewer_people(case: Case) -> list[Question]:
    """Return the questions of a case, with at most `PEOPLE` about other people: holders of the new target, as D asks
    for, and people with an unknown answer."""
    every = [q for q in questions(case) if q.kind in KINDS or q.kind == "cross_subject"]
    people = sorted({q.prompt_id for q in every if q.kind == "cross_subject" and q.prompt.holds != "target_true"})
    drawn = set(np.random.default_rng([_SEED, case.case_id]).permutation(people)[:PEOPLE].tolist())
    return [q for q in every if q.kind != "cross_subject" or q.prompt_id in drawn]


def probes_of(pools: Iterable[Sequence[Case]]) -> tuple[Question, ...]:
    """Return what is asked of every state alike: people of the relations with the commonest answers, and texts."""
    panel = enumerate((prompt, _answers(pool)) for pool in pools for prompt in _people(pool))
    asked = [Question("panel", n, own, answer, "candidate") for n, (own, answers) in panel for answer in answers]
    texts = enumerate(line.strip().partition(" ") for line in sample_corpus(20, seed=0))  # scored after the first word
    nobody = Entity(None, "")
    read = [Question("text", n, AttributePrompt(a, nobody), b, "candidate") for n, (a, _, b) in texts if b]
    return (*asked, *read)


def _people(pool: Sequence[Case]) -> list[AttributePrompt]:
    prompts = {prompt.text: prompt for case in pool for prompt in case.attribute_prompts}
    names = sorted(prompts)
    places = np.random.default_rng([_SEED, len(names)]).permutation(len(names))[:PANEL]
    return [prompts[names[place]] for place in places]


def _answers(pool: Sequence[Case]) -> list[str]:
    targets = Counter(t.label for case in pool for t in (case.request.target_true, case.request.target_new))
    return sorted(sorted(targets), key=lambda label: -targets[label])[:ANSWERS]
