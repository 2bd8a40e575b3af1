"""Mass editing: 1, 10, 100, ... facts edited together, what it does to the edits, to other people and to the model.

For each editor, mix of relations, dose and repeated sample: draw that many cases, edit them in one go, score, restore.
Every finished sample is a separate score table, so a killed run continues; samples do not depend on each other.

Source: MEMIT appendix D (editing score against the number of edits, for pairs of relations); D_d from SEESAW-CF 4.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import dump_json
from seesaw_cf.base.types import AttributePrompt, Case, Entity, JsonObject
from seesaw_cf.effects.dose import SAMPLE, health, sample_effects
from seesaw_cf.effects.success import KINDS
from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.run.edit_table import Candidates
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import DOSES, Job
from seesaw_cf.run.manifest import read_manifest
from seesaw_cf.run.questions import Question, questions
from seesaw_cf.run.units import Unit
from seesaw_cf.stats.simple import tolerance

PEOPLE, PANEL, ANSWERS = 5, 10, 12
"""Prompts about other people for each edit; of each relation: prompts for the entropy of answers, and their answers."""
_SEED = 0


@dataclass(frozen=True, slots=True)
class DosePlan:
    """What is sampled.

    Attributes:
        doses: Edits made together, at even numbers only for two relations. (default: 1, 10, 100, while facts last).
        repeats: Samples drawn for each dose.
        pairs: Two relations to mix, such as P27,P101, each also alone.
    """

    doses: tuple[int, ...] = ()
    repeats: int = 5
    pairs: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, job: Job) -> DosePlan:
        """Return the plan of a job."""
        return cls(job.doses, job.repeats, tuple(tuple(map(str.strip, pair.split(","))) for pair in job.pairs))


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the repeated samples of a dose: what is edited together; `overlap` as of `cells_of`."""

    mix: str
    dose: int
    overlap: float
    repeat: int

    @property
    def key(self) -> str:
        """Its name in the store."""
        return f"{self.mix}-{self.dose:06d}-{self.repeat:03d}"


def mixes_of(cases: Sequence[Case], plan: DosePlan) -> list[str]:
    """Return the sets of relations to edit: "P27", or "P27+P101" for a pair, each relation of a pair also alone.

    Raises:
        RecordError: A relation has no cases, or a dose or number of samples below 1.
    """
    counts = Counter(case.request.relation_id for case in cases)
    relations = [relation for pair in plan.pairs for relation in pair] or sorted(counts)
    missing = sorted(set(relations) - set(counts))
    if missing:
        raise RecordError(
            f"dose: no cases of relation {missing}; cases per relation: {dict(counts)}. See --pair and --data."
        )
    if alike := [pair for pair in plan.pairs if len(set(pair)) != 2]:
        raise RecordError(f"dose: {','.join(alike[0])} is no pair to mix. Give two relations, such as P27,P101.")
    if min((*plan.doses, plan.repeats)) < 1:
        raise RecordError(f"dose: doses {plan.doses} and {plan.repeats} repeats, expected numbers of at least 1.")
    return list(dict.fromkeys([*relations, *("+".join(pair) for pair in plan.pairs)]))


def cells_of(cases: Sequence[Case], plan: DosePlan) -> list[tuple[str, int, float]]:
    """Return what is sampled: mix, dose and the share of facts that two samples of it have in common, as expected.

    Raises:
        RecordError: See `mixes_of`; or a dose of more facts than there are.
    """
    counts = Counter(case.request.relation_id for case in cases)
    pools = {mix: [counts[relation] for relation in mix.split("+")] for mix in mixes_of(cases, plan)}
    most = {mix: len(pool) * min(pool) for mix, pool in pools.items()}
    small = min(most, key=most.__getitem__)
    if plan.doses and max(plan.doses) > most[small]:
        raise RecordError(
            f"dose: {max(plan.doses):,} facts edited together, and {small} has {most[small]:,}. Give a --dose of at "
            "most that, or --data with more."
        )
    cells = [
        (mix, dose, sum(dose / len(pool) / size for size in pool) / len(pool))
        for mix, pool in pools.items()
        for dose in sorted(set(plan.doses or DOSES))
        if dose <= most[small] and dose % len(pool) == 0
    ]
    if bare := sorted(set(pools) - {mix for mix, _, _ in cells}):
        raise RecordError(f"dose: {plan.doses} edits are never half of each of {bare[0]}. Give an even --dose, too.")
    return cells


def run_dose(job: Job, out: Path, *, progress: bool = True) -> Path:
    """Run every sample that is not done yet, and write `scores.parquet`, `edits.parquet` and `dose.json`.

    Args:
        job: Model, editors, data and doses; `job.limit` bounds the pool of cases.
        out: The run folder; an interrupted run in it is continued.
        progress: Show a progress bar.

    Returns:
        The file with all samples, for `seesaw_cf.effects.dose.read_curves`.

    Raises:
        SeesawError: A name, file or record that cannot be used, or a folder of another run.
    """
    plan = DosePlan.of(job)
    run = make_run(job, out, progress=progress)
    cells = cells_of(run.cases, plan)
    plan = replace(plan, doses=tuple(sorted({dose for _, dose, _ in cells})))
    settings = {**asdict(plan), "people": PEOPLE, "panel": PANEL, "answers": ANSWERS, "block": 1}
    samples = [Sample(*cell, repeat) for cell in cells for repeat in range(plan.repeats)]
    probes = {mix: (*_panel_questions(run.cases, mix), *_text_questions()) for mix, _, _ in cells}
    run = replace(
        run,
        plan=[
            Unit(
                sample.key,
                tuple(draw_cases(run.cases, sample)),
                ask=_choose_questions,
                probes=probes[sample.mix],
                labels={name: getattr(sample, name) for name in SAMPLE.names},
            )
            for sample in samples
        ],
        manifest=replace(run.manifest, protocol="dose", settings=settings),
        candidates=Candidates(),
        columns=SAMPLE,
    )
    run.announce()
    run.complete()
    nats, _ = tolerance(read_manifest(out))
    baseline: JsonObject = {}
    rows = []
    for editor in run.editors:
        for sample in samples:
            shard = run.store.read((editor, sample.key))
            baseline.setdefault(sample.mix, health(shard.table, "pre"))
            effects = sample_effects(shard.table, shard.facts["edits"], nats)
            rows.append({"editor": editor, **asdict(sample), **effects})
    dump_json(out / "dose.json", {"baseline": baseline, "units": rows}, allow_nan=False)
    return out / "dose.json"


def draw_cases(cases: Sequence[Case], sample: Sample) -> list[Case]:
    """Return the same sample for every editor: half of each relation of a pair, numbered by their place in the pool."""
    relations = sample.mix.split("+")
    rng = np.random.default_rng([_SEED, sample.dose, sample.repeat])
    chosen: list[Case] = []
    for relation in relations:
        pool = [(i, case) for i, case in enumerate(cases) if case.request.relation_id == relation]
        picked = (pool[i] for i in sorted(rng.permutation(len(pool))[: sample.dose // len(relations)]))
        chosen += [replace(case, case_id=i) for i, case in picked]
    return chosen


def _choose_questions(case: Case) -> list[Question]:
    """Return the questions of a case, with at most `PEOPLE` about other people: holders of the new target, as D asks
    for, and people with an unknown answer."""
    every = [q for q in questions(case) if q.kind in KINDS or q.kind == "cross_subject"]
    people = sorted({q.prompt_id for q in every if q.kind == "cross_subject" and q.prompt.holds != "target_true"})
    rng = np.random.default_rng([_SEED, case.case_id])
    drawn = set(rng.permutation(people)[:PEOPLE].tolist())
    return [q for q in every if q.kind != "cross_subject" or q.prompt_id in drawn]


def _panel_questions(cases: Sequence[Case], mix: str) -> list[Question]:
    """Return fixed prompts about other people, each with the answers that are compared on it."""
    panel: dict[AttributePrompt, list[str]] = {}
    for relation in mix.split("+"):
        own = [case for case in cases if case.request.relation_id == relation]
        targets = Counter(t.label for case in own for t in (case.request.target_true, case.request.target_new))
        answers = sorted(sorted(targets), key=lambda label: -targets[label])[:ANSWERS]
        prompts = {prompt.text: prompt for case in own for prompt in case.attribute_prompts}
        names = sorted(prompts)
        rng = np.random.default_rng([_SEED, len(names)])
        panel |= {prompts[names[place]]: answers for place in rng.permutation(len(names))[:PANEL]}
    return [
        Question("panel", number, prompt, answer, "candidate")
        for number, (prompt, answers) in enumerate(panel.items())
        for answer in answers
    ]


def _text_questions() -> list[Question]:
    """Return fixed texts as questions: each is scored after its first word."""
    parts = [line.strip().partition(" ") for line in sample_corpus(20, seed=0)]
    nobody = Entity(None, "")
    return [
        Question("text", number, AttributePrompt(first, nobody), rest, "candidate")
        for number, (first, _, rest) in enumerate(parts)
        if rest
    ]
