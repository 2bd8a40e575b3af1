"""`seesaw-cf study --plan`: how large a study must be, and what each of its cells costs; no run is started."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import RecordError, UnknownNameError
from seesaw_cf.base.types import Case, Cloze, JsonObject, TableRow
from seesaw_cf.editors.control_names import split_control
from seesaw_cf.effects.audit import HOLDERS
from seesaw_cf.effects.groups import AXES, UNKNOWN, members
from seesaw_cf.effects.needed import run_components
from seesaw_cf.models.editor import Editor, HasMoments, WrapsEditor
from seesaw_cf.run.job import load_named
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.preflight import disk_bytes, moment_bytes
from seesaw_cf.run.prepare import Prepared, prepare
from seesaw_cf.run.questions import MOST_IN_MEMORY, count_questions, questions, sample_clozes
from seesaw_cf.run.units import units
from seesaw_cf.run.workers import local_device
from seesaw_cf.scoring import Scorer, make_scorer
from seesaw_cf.scoring.encode import encode_many
from seesaw_cf.scoring.layout import unique_nodes
from seesaw_cf.scoring.pre_scores import blocks
from seesaw_cf.stats import Components, Design, plan
from seesaw_cf.study.cells import StudyCell, cells_of, chosen, is_finished, job_of
from seesaw_cf.study.declared import Study

# Edits and people that a study needs to find effects as large as its declared margin.

_GROUP = 5  # people; a smaller group is not planned for


def sizes_of(records: str, cases: Sequence[Case], study: Study, out: Path) -> Iterator[TableRow]:
    """Yield how many edits of one relation and people the declared margin needs, per axis, and how many there are.

    Args:
        records: The name of the record set.
        cases: Its cases.
        study: What was declared.
        out: The study's folder; a finished cell there gives the spread of effects.

    Yields:
        Rows, one for each axis on which two groups have five people.
    """
    held = [(case, p) for case in cases for p in case.attribute_prompts if p.holds == "target_new"]
    if not held:
        return
    people = {(p.subject.id or p.subject.label): p for _, p in held}
    pairs = {(case.case_id, p.subject.id or p.subject.label) for case, p in held}
    edits = len({case.case_id for case, _ in held})
    relations = pd.Series([case.request.relation_id for case in cases if case.attribute_prompts]).value_counts()
    per_edit, per_person = max(1, round(len(pairs) / edits)), max(1.0, len(pairs) / len(people))
    sizes: dict[str, dict[str, int]] = {}
    for axis in AXES:
        tags = members([getattr(p, axis) for p in people.values()])
        groups = {name: len(rows) for name, rows in tags.items() if name != UNKNOWN and len(rows) >= _GROUP}
        if len(groups) > 1:
            sizes[axis] = groups
    contrasts = sum(len(groups) - (len(groups) == 2) for groups in sizes.values())  # of two, one mirrors the other
    holders = {p.holds for case in cases for p in case.attribute_prompts} & {*HOLDERS}
    tests = contrasts * (len(relations) + (len(relations) > 1)) * len(holders)  # pooled over relations, and in each
    for axis, groups in sizes.items():
        group = sorted(groups, key=lambda name: (groups[name], name))[(len(groups) - 1) // 2]
        share = groups[group] / len(people)
        spread, source = _spread(records, axis, group, study, out)
        design, declared = Design(per_edit, per_person, share), study.audit
        need = plan(declared.margin, spread, design, tests=tests, alpha=declared.alpha)
        yield {
            "records": records,
            "axis": axis,
            "group": group,
            "share": share,
            "tests": tests,
            "edits_needed": need.edits if need.reachable else None,
            "people_needed": need.people if need.reachable else None,
            "edits_there": int(relations.min()),
            "most_edits": int(relations.max()),
            "people_there": len(people),
            "spread": source,
        }


def _spread(records: str, axis: str, group: str, study: Study, out: Path) -> tuple[Components, str]:
    """Return standard deviations from the first finished cell on these records with enough, else the simulation's."""
    for cell in cells_of(study):
        if cell.parts[1] == records and cell.parts[2] == "single" and is_finished(cell, out):
            try:
                return run_components(cell.folder(out), axis=axis, group=group)[0], cell.name
            except (RecordError, UnknownNameError):
                continue
    return Components(), "the simulation's"


_PROBE = 256  # clozes that are scored to measure the rate of a model
_SECONDS = 2.0  # the probe is repeated for about so long
_TEXTS = 200  # of a corpus, to know how long its texts are
# What an edit costs at most, in tokens sent through the model: operations counted for docs/cost.md on a model where no
# edit stops early, divided by 2 x parameters.
_TOKENS_PER_EDIT = {"ft": 240, "lora": 600, "rome": 3600, "memit": 1050, "emmet": 1050, "alphaedit": 1050, "mend": 14}


@dataclass(frozen=True, slots=True)
class Rate:
    """What a model's probe measured.

    Attributes:
        model: Its name in the study.
        tokens, seconds: Tokens fed in a repetition, and the fastest repetition.
        clozes: How many were scored in each.
        scorer, device, threads: How.
    """

    model: str
    tokens: int
    seconds: float
    clozes: int
    scorer: str
    device: str
    threads: int

    @property
    def per_second(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds

    def __str__(self) -> str:
        return (
            f"{self.model}: {self.per_second:,.0f} tokens a second, measured by scoring {self.clozes} of the study's "
            f"own clozes ({self.tokens:,} tokens) with {self.scorer} on {self.device}, {self.threads} threads; the "
            f"fastest repetition took {self.seconds:.3g} s"
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """What a cell costs, controls included.

    Attributes:
        cell: Its name.
        state: "finished", or "open".
        edits: Edits that are made: cases, or one per relation in a batch; times editor and controls.
        prompts: Questions scored after edits.
        tokens: Fed to score before and after, no prefix twice; what another cell scores before is counted there.
        editing: What the edits themselves cost at most, in tokens sent through the model (docs/cost.md).
        texts: Tokens of the pass over a corpus for second moments, once for a model.
        flops: 2 x parameters x all of these tokens.
        memory: Bytes of the weights and of the sums of second moments.
        disk: Bytes written.
        hours: All tokens at the measured rate.
    """

    cell: str
    state: str
    edits: int
    prompts: int
    tokens: int
    editing: int
    texts: int
    flops: float
    memory: int
    disk: int
    hours: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """The plan of a study.

    Attributes:
        sizes: One row per record set and axis: edits and people needed for the declared margin, and there.
        costs: Of each cell.
        rates: What was measured, per model.
        notes: What is not counted, in sentences.
    """

    sizes: pd.DataFrame
    costs: Sequence[Cost]
    rates: Sequence[Rate]
    notes: Sequence[str]


def plan_folder(out: Path) -> Path:
    """Return where the plan of a study in `out` is written: next to it, for a plan is not yet a study."""
    return out.parent / f"{out.name or 'study'}-plan"


def forecast(study: Study, out: Path, only: Sequence[str] = ()) -> Forecast:
    """Plan a study; each model is loaded once and measured for some seconds, no edit is made.

    Args:
        study: What was declared.
        out: Its folder; a finished cell there gives the spread of effects.
        only: Names of cells; all when empty.

    Raises:
        SeesawError: A run would refuse the same input.
    """
    cells = chosen(cells_of(study), only)
    costs: list[Cost] = []
    rates = []
    cases: dict[str, Sequence[Case]] = {}
    for name in dict.fromkeys(cell.parts[0] for cell in cells):
        own = [cell for cell in cells if cell.parts[0] == name]
        jobs = {cell.name: job_of(cell, study, plan_folder(out)) for cell in own}
        ready = {cell.name: (jobs[cell.name], prepare(jobs[cell.name], cell.folder(out))) for cell in own}
        cases |= {cell.parts[1]: ready[cell.name][1].cases for cell in own}
        rate, cell_costs = _model_costs(name, own, ready, out)
        rates.append(rate)
        costs += cell_costs
    sizes = [row for records, record_cases in cases.items() for row in sizes_of(records, record_cases, study, out)]
    return Forecast(pd.DataFrame(sizes), costs, rates, _notes(study))


def _model_costs(
    name: str, cells: Sequence[StudyCell], ready: Mapping[str, tuple[Job, Prepared]], out: Path
) -> tuple[Rate, list[Cost]]:
    """Return the rate of a model and the costs of its cells, with what they share counted in the first."""
    job = ready[cells[0].name][0]
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    model, tokenizer = load_named(job, local_device(job.device), progress=False)
    scorer, facts = make_scorer(model, tokenizer, job.scorer, job.max_tokens)
    every = [case for _, prepared in ready.values() for case in prepared.cases]
    rate = _measure_rate(name, scorer, tokenizer, sample_clozes(every, _PROBE, job.seed), facts)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    weights = sum(parameter.nbytes for parameter in model.parameters())
    scored, summed, costs = set[str](), False, []
    for cell in cells:
        job, prepared = ready[cell.name]
        editors = prepared.editors or prepared.make(model)
        plan_of_cell = prepared.plan(job, cell.folder(out))
        sums, _ = moment_bytes(plan_of_cell)
        texts = 0 if summed or not sums else _corpus_tokens(tokenizer, prepared, editors, model)
        summed |= bool(sums)
        records = cell.parts[1]
        before = 0 if records in scored else _tokens_before(tokenizer, prepared.cases)
        scored.add(records)
        edit_units = units(prepared.cases, job.protocol)
        after = sum(_count_tokens(tokenizer, _clozes_of(unit.cases)) for unit in edit_units)
        editing = sum(_editing_tokens(name, len({case.request for case in prepared.cases})) for name in editors)
        tokens = before + after * len(editors)
        total = tokens + editing + texts
        state = "finished" if is_finished(cell, out) else "open"
        costs.append(
            Cost(
                cell.name,
                state,
                len(edit_units) * len(editors),
                sum(map(count_questions, prepared.cases)) * len(editors),
                tokens,
                editing,
                texts,
                2.0 * parameters * total,
                weights + sums,
                disk_bytes(plan_of_cell),
                0.0 if state == "finished" else total / rate.per_second / 3600,
            )
        )
    return rate, costs


def _measure_rate(
    name: str, scorer: Scorer, tokenizer: PreTrainedTokenizerBase, clozes: Sequence[Cloze], facts: JsonObject
) -> Rate:
    """Score the same clozes again and again for some seconds; the first time, when things are set up, is left out."""
    tokens = _count_tokens(tokenizer, clozes)
    scorer.score(clozes)
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while best == float("inf") or time.perf_counter() < end:
        start = time.perf_counter()
        scorer.score(clozes)
        best = min(best, time.perf_counter() - start)
    return Rate(name, tokens, best, len(clozes), str(facts["scorer"]), str(facts["device"]), torch.get_num_threads())


def _tokens_before(tokenizer: PreTrainedTokenizerBase, cases: Sequence[Case]) -> int:
    """Return the tokens that are scored before any edit, as a run cuts cases into spans and these into blocks."""
    asked = itertools.accumulate(map(count_questions, cases), initial=0)
    tokens = 0
    for _, own in itertools.groupby(zip(cases, asked), key=lambda pair: pair[1] // MOST_IN_MEMORY):
        tokens += sum(_count_tokens(tokenizer, part) for part in blocks(_clozes_of([case for case, _ in own])))
    return tokens


def _clozes_of(cases: Sequence[Case]) -> set[Cloze]:
    return {question.cloze for case in cases for question in questions(case)}


def _count_tokens(tokenizer: PreTrainedTokenizerBase, clozes: Sequence[Cloze] | set[Cloze]) -> int:
    """Count the tokens that have to be fed when no prefix is fed twice."""
    return unique_nodes(encode_many(tokenizer, sorted(clozes)).asked)


def _editing_tokens(name: str, cases: int) -> int:
    """Return what all edits cost at most, in tokens; 0 for a random control, which takes the edits of its editor."""
    kind, wrapped = split_control(name)
    return 0 if kind == "random" else cases * _TOKENS_PER_EDIT.get(wrapped or name, 0)


def _corpus_tokens(
    tokenizer: PreTrainedTokenizerBase, ready: Prepared, editors: Mapping[str, Editor], model: PreTrainedModel
) -> int:
    """Estimate the tokens of the texts for second moments, from the mean length of some."""
    if ready.corpus is None:
        return 0
    methods = [editor.inner or editor if isinstance(editor, WrapsEditor) else editor for editor in editors.values()]
    configs = [method.config for method in methods]
    sizes = [getattr(config, "sample_size", 0) for config in configs if isinstance(config, HasMoments)]
    most = getattr(model.config, "max_position_embeddings", None)
    step = max(1, len(ready.corpus) // _TEXTS)
    some = [ready.corpus[number] for number in range(0, len(ready.corpus), step)][:_TEXTS]
    lengths = [min(len(ids), most or len(ids)) for ids in tokenizer(some)["input_ids"]]
    return int(np.mean(lengths) * min(len(ready.corpus), max(sizes, default=0)))


def _notes(study: Study) -> list[str]:
    sentences = [
        "Tokens to score are a lower bound where a model cannot be fed tries; editing is an upper bound, since edits "
        "stop when they have taken. Second moments that are cached cost nothing."
    ]
    if "mend" in study.editors:
        sentences.append("mend: the training of its network is not counted.")
    if "ike" in study.editors:
        sentences.append("ike: its demonstrations, which stand before every prompt, are not counted.")
    return sentences
