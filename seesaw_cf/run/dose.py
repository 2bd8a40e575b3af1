"""Mass editing: 1, 10, 100, ... facts edited together, what it does to the edits, to other people and to the model.

For each editor, mix of relations, dose and repeated sample: draw that many cases, edit them in one go, score, restore.
Every finished sample is a separate score table, so a killed run continues; samples do not depend on each other.

Source: MEMIT appendix D (editing score against the number of edits, for pairs of relations); D_d from SEESAW-CF 4.1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import dump_json
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.tables import SCORES
from seesaw_cf.base.types import AttributePrompt, Case, Cloze, ClozeScore, Entity, JsonObject, TableRow
from seesaw_cf.effects.dose import SAMPLE, health, sample_effects
from seesaw_cf.effects.success import KINDS
from seesaw_cf.run.edit_table import EDITS, write_edits
from seesaw_cf.run.edits import edit_units, score_before, score_edits
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import DOSES, DosePlan, Job
from seesaw_cf.run.manifest import read_manifest
from seesaw_cf.run.questions import Question, pair_scores, questions, score_table
from seesaw_cf.run.runner import Run
from seesaw_cf.run.store import Store
from seesaw_cf.stats.simple import tolerance


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the repeated samples of a dose: what one score table is of; `overlap` as of `cells_of`."""

    editor: str
    mix: str
    dose: int
    repeat: int
    overlap: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """Its name in the store."""
        return self.editor, f"{self.mix}-{self.dose:06d}-{self.repeat:03d}"

    @property
    def labels(self) -> TableRow:
        """What tells its rows from those of other samples."""
        return {name: getattr(self, name) for name in SAMPLE.names}


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
    if alike := [pair for pair in plan.pairs if len(set(pair)) < 2]:
        raise RecordError(f"dose: {','.join(alike[0])} is no pair to mix. Give two relations, such as P27,P101.")
    if min((*plan.doses, plan.repeats, plan.people, plan.panel), default=0) < 1:
        raise RecordError(
            f"dose: doses {plan.doses}, {plan.repeats} repeats, {plan.people} people, panel of {plan.panel}; all must "
            "be at least 1."
        )
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


def run_dose(job: Job, plan: DosePlan, out: Path, *, progress: bool = True) -> Path:
    """Run every sample that is not done yet, and write `scores.parquet`, `edits.parquet` and `dose.json`.

    Args:
        job: Model, editors and data; `job.limit` bounds the pool of cases.
        plan: What is sampled.
        out: The run folder; an interrupted run in it is continued.
        progress: Show a progress bar.

    Returns:
        The file with all samples, for `seesaw_cf.effects.dose.read_curves`.

    Raises:
        SeesawError: A name, file or record that cannot be used, or a folder of another run.
    """
    run = make_run(replace(job, protocol="batch"), out, progress=progress)
    cells = cells_of(run.cases, plan)
    plan = replace(plan, doses=tuple(sorted({dose for _, dose, _ in cells})))
    settings = json.loads(json.dumps(asdict(plan)))
    store = Store(out, replace(run.manifest, protocol="dose", settings=settings), _with_sample(SCORES))
    store.claim()
    run.announce()
    samples = [
        Sample(editor, mix, dose, repeat, overlap)
        for editor in run.editors
        for mix, dose, overlap in cells
        for repeat in range(plan.repeats)
    ]
    probes: dict[str, _Probes] = {}
    for sample in Bar(samples, "edit together, score, restore", unit="sample", disable=not progress):
        if not store.has(sample.key):
            if sample.mix not in probes:
                asked = _probe_questions(_panel(run.cases, sample.mix, plan), plan.texts)
                probes[sample.mix] = _Probes(asked, score_before(run.scorer, asked))
            _run_sample(run, store, sample, plan, probes[sample.mix])
    return _finish(store, samples)


def _with_sample(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, *SAMPLE])


def _finish(store: Store, samples: Sequence[Sample]) -> Path:
    """Merge the tables, and say of every sample what it did."""
    out, (nats, _) = store.folder, tolerance(read_manifest(store.folder))
    facts = store.merge([sample.key for sample in samples], "scores.parquet")
    edits = [row | sample.labels for sample, fact in zip(samples, facts, strict=True) for row in fact["edits"]]
    write_edits(out / "edits.parquet", edits, nats, _with_sample(EDITS))
    baseline: JsonObject = {}
    rows = []
    for sample, fact in zip(samples, facts, strict=True):
        table = store.read(sample.key).table
        baseline.setdefault(sample.mix, health(table, "pre"))
        rows.append(asdict(sample) | sample_effects(table, fact["edits"], nats))
    dump_json(out / "dose.json", {"baseline": baseline, "units": rows}, allow_nan=False)
    return out / "dose.json"


def draw_cases(cases: Sequence[Case], sample: Sample, plan: DosePlan) -> list[Case]:
    """Return the same sample for every editor: half of each relation of a pair, numbered by their place in the pool."""
    relations = sample.mix.split("+")
    rng = np.random.default_rng([plan.seed, sample.dose, sample.repeat])
    chosen: list[Case] = []
    for relation in relations:
        pool = [(i, case) for i, case in enumerate(cases) if case.request.relation_id == relation]
        picked = (pool[i] for i in sorted(rng.permutation(len(pool))[: sample.dose // len(relations)]))
        chosen += [replace(case, case_id=i) for i, case in picked]
    return chosen


def _choose_questions(case: Case, plan: DosePlan) -> list[Question]:
    """Return the questions of a case, with at most `plan.people` about other people: holders of the new target, as D
    asks for, and people with an unknown answer."""
    every = [q for q in questions(case) if q.kind in KINDS or q.kind == "cross_subject"]
    people = sorted({q.prompt_id for q in every if q.kind == "cross_subject" and q.prompt.holds != "target_true"})
    rng = np.random.default_rng([plan.seed, case.case_id])
    drawn = set(rng.permutation(people)[: plan.people].tolist())
    return [q for q in every if q.kind != "cross_subject" or q.prompt_id in drawn]


def _panel(cases: Sequence[Case], mix: str, plan: DosePlan) -> dict[AttributePrompt, list[str]]:
    """Return fixed prompts about other people with the answers that are compared on them."""
    panel: dict[AttributePrompt, list[str]] = {}
    for relation in mix.split("+"):
        own = [case for case in cases if case.request.relation_id == relation]
        targets = Counter(t.label for case in own for t in (case.request.target_true, case.request.target_new))
        answers = sorted(sorted(targets), key=lambda label: -targets[label])[: plan.candidates]
        prompts = {prompt.text: prompt for case in own for prompt in case.attribute_prompts}
        names = sorted(prompts)
        rng = np.random.default_rng([plan.seed, len(names)])
        for i in rng.permutation(len(names))[: plan.panel]:
            panel[prompts[names[i]]] = answers
    return panel


def _probe_questions(panel: Mapping[AttributePrompt, Sequence[str]], texts: Sequence[str]) -> list[Question]:
    """Return the panel and the fixed texts as questions; a text is scored after its first word."""
    probes = [Question("panel", i, p, t, "candidate") for i, (p, ts) in enumerate(panel.items()) for t in ts]
    for number, line in enumerate(texts):
        first, _, rest = line.strip().partition(" ")
        if rest:
            probes.append(Question("text", number, AttributePrompt(first, Entity(None, "")), rest, "candidate"))
    return probes


@dataclass(frozen=True, slots=True)
class _Probes:
    """Questions that every sample of a mix is asked, with their scores before any edit."""

    questions: list[Question]
    before: dict[Cloze, ClozeScore]


def _run_sample(run: Run, store: Store, sample: Sample, plan: DosePlan, probes: _Probes) -> None:
    """Edit a sample together, score it and write its shard; the probes have the case number -1."""
    cases = draw_cases(run.cases, sample, plan)
    unit = [(case, _choose_questions(case, plan)) for case in cases]
    everything = [*unit, (replace(cases[0], case_id=-1), probes.questions)]
    before = score_before(run.scorer, (q for _, qs in unit for q in qs)) | probes.before
    edits = edit_units(run.model, run.tokenizer, run.fit(sample.editor), [cases])
    (outcome,) = score_edits(run.model, run.scorer, edits, [everything], before, run.hashes)
    table = score_table(sample.editor, pair_scores(everything, before, outcome.scores))
    for field in SAMPLE:
        table = table.append_column(field, pa.array([sample.labels[field.name]] * table.num_rows, field.type))
    store.write(sample.key, table, edits=outcome.edit_rows(sample.editor, unit, before))
