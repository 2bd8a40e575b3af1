"""Mass editing: 1, 10, 100, ... facts edited together, what it does to the edits, to other people and to the model.

For each editor, mix of relations, dose and repeated sample: draw that many cases, edit them in one go, score, restore.
Every finished unit is a file, so a killed run continues; units do not depend on each other.

Source: MEMIT appendix D (editing score against the number of edits, for pairs of relations); D_d from SEESAW-CF 4.1.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from seesaw_cf.effects.success import harmonic_mean
from seesaw_cf.errors import RecordError, RunFolderError
from seesaw_cf.explain import announce
from seesaw_cf.files import safe_name, write_text
from seesaw_cf.job import Job, make_run
from seesaw_cf.manifest import RunManifest, claim_folder, read_manifest
from seesaw_cf.outcome import edit_units, score_edits
from seesaw_cf.questions import Question, questions
from seesaw_cf.runner import Run
from seesaw_cf.tolerance import above, tolerance
from seesaw_cf.types import AttributePrompt, Case, Cloze, ClozeScore, Entity

__all__ = ["DosePlan", "mixes_of", "run_dose"]

Scores = Mapping[Cloze, ClozeScore]


@dataclass(frozen=True, slots=True)
class DosePlan:
    """What is sampled and asked.

    Attributes:
        doses: Numbers of edits made together; with two relations, half of each.
        repeats: Samples drawn for each dose.
        pairs: Pairs of relations that are mixed, beside each of their relations alone; none: every relation alone.
        people: Prompts about other people for each edit, drawn with the seed.
        panel: Prompts whose answers' entropy is watched, for each relation.
        candidates: Answers compared on the panel, for each relation: the most frequent targets.
        seed: Of every draw.
        texts: Fixed texts whose perplexity is watched.
    """

    doses: tuple[int, ...] = (1, 10, 100)
    repeats: int = 5
    pairs: tuple[tuple[str, str], ...] = ()
    people: int = 5
    panel: int = 10
    candidates: int = 12
    seed: int = 0
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Unit:
    editor: str
    mix: str
    dose: int
    repeat: int

    @property
    def file(self) -> str:
        return safe_name(f"{self.editor}-{self.mix}-{self.dose:06d}-{self.repeat:03d}") + ".json"


def mixes_of(cases: Sequence[Case], plan: DosePlan) -> list[str]:
    """The sets of relations that are edited: "P27", or "P27+P101" for a pair, each relation of a pair also alone.

    Raises:
        RecordError: A relation has no cases, or a dose or number of samples below 1.
    """
    counts = Counter(case.request.relation_id for case in cases)
    wanted = [relation for pair in plan.pairs for relation in pair] or sorted(counts)
    missing = sorted(set(wanted) - set(counts))
    if missing:
        raise RecordError(
            f"dose: no cases of relation {missing}; cases per relation: {dict(counts)}. See --pair and --data."
        )
    if min((*plan.doses, plan.repeats, plan.people, plan.panel), default=0) < 1:
        raise RecordError(
            f"dose: doses {plan.doses}, {plan.repeats} repeats, {plan.people} people, panel of {plan.panel}; all must "
            "be at least 1."
        )
    return list(dict.fromkeys([*wanted, *("+".join(pair) for pair in plan.pairs)]))


def run_dose(job: Job, plan: DosePlan, out: Path, *, progress: bool = True) -> Path:
    """Runs every unit that is not done yet and writes `dose.json`.

    Args:
        job: Model, editors and data; `job.limit` bounds the pool of cases.
        plan: What is sampled.
        out: The run folder; an interrupted run in it is continued.
        progress: Show a progress bar.

    Returns:
        The file with all units, for `seesaw_cf.effects.dose.read_curves`.

    Raises:
        SeesawError: A name, file or record that cannot be used, or a folder of another run.
    """
    run = make_run(replace(job, protocol="batch"), out, progress=progress)
    mixes = mixes_of(run.cases, plan)
    settings = json.loads(json.dumps(asdict(plan)))
    manifest = replace(run.manifest, protocol="dose", scoring={**run.manifest.scoring, "dose": settings})
    claim_folder(out, manifest)
    announce([*run.manifest.notes, *run.notes])
    nats, _ = tolerance(read_manifest(out))
    panels = {mix: _panel(run.cases, mix, plan) for mix in mixes}
    baseline = _baseline(run, plan, panels, out, manifest)
    units = [
        _Unit(editor, mix, dose, repeat)
        for editor in run.editors
        for mix in mixes
        for dose in plan.doses
        for repeat in range(plan.repeats)
    ]
    fitted: dict[str, Any] = {}
    for unit in tqdm(units, "edit together, score, restore", unit="sample", disable=not progress):
        file = out / "units" / unit.file
        if not file.exists():
            if unit.editor not in fitted:
                fitted[unit.editor] = run.editors[unit.editor].fit(run.model, run.tokenizer)
            row = _do(run, fitted[unit.editor], unit, plan, panels[unit.mix], baseline[unit.mix], nats)
            write_text(file, json.dumps({"run": manifest.identity} | row, allow_nan=False) + "\n")
    rows = [_read(out / "units" / unit.file, manifest) for unit in units]
    write_text(out / "dose.json", json.dumps({"baseline": baseline, "units": rows}, indent=1, allow_nan=False) + "\n")
    return out / "dose.json"


def _read(file: Path, manifest: RunManifest) -> dict[str, Any]:
    try:
        row: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{file} is damaged ({error}). Delete it and run the same command again.") from error
    if row.pop("run", None) != manifest.identity:
        raise RunFolderError(f"{file} belongs to another run. Choose a new folder with --out.")
    return row


def _draw(cases: Sequence[Case], unit: _Unit, plan: DosePlan) -> list[Case]:
    """The same sample for every editor; half of each relation of a pair, numbered by their place in the pool."""
    relations = unit.mix.split("+")
    rng = np.random.default_rng([plan.seed, unit.dose, unit.repeat])
    chosen: list[Case] = []
    for relation in relations:
        pool = [(i, case) for i, case in enumerate(cases) if case.request.relation_id == relation]
        count = min(len(pool), max(1, unit.dose // len(relations)))
        picked = (pool[i] for i in sorted(rng.permutation(len(pool))[:count]))
        chosen += [replace(case, case_id=i) for i, case in picked]
    return chosen


def _asked(case: Case, plan: DosePlan) -> list[Question]:
    """The questions of a case, with at most `plan.people` about other people."""
    every = list(questions(case))
    people = sorted({q.prompt_id for q in every if q.kind == "cross_subject"})
    rng = np.random.default_rng([plan.seed, case.case_id])
    kept = set(rng.permutation(people)[: plan.people].tolist())
    return [q for q in every if q.kind in _SUCCESS or (q.kind == "cross_subject" and q.prompt_id in kept)]


_SUCCESS = {"efficacy": "ES", "paraphrase": "PS", "neighborhood": "NS"}


def _panel(cases: Sequence[Case], mix: str, plan: DosePlan) -> dict[AttributePrompt, list[str]]:
    """Fixed prompts about other people with the answers compared on them."""
    found: dict[AttributePrompt, list[str]] = {}
    for relation in mix.split("+"):
        own = [case for case in cases if case.request.relation_id == relation]
        targets = Counter(t.label for case in own for t in (case.request.target_true, case.request.target_new))
        answers = sorted(sorted(targets), key=lambda label: -targets[label])[: plan.candidates]
        prompts = {prompt.text: prompt for case in own for prompt in case.attribute_prompts}
        names = sorted(prompts)
        rng = np.random.default_rng([plan.seed, len(names)])
        for i in rng.permutation(len(names))[: plan.panel]:
            found[prompts[names[i]]] = answers
    return found


def _watched(panel: Mapping[AttributePrompt, Sequence[str]], texts: Sequence[str]) -> list[Question]:
    """The panel and the fixed texts as questions; a text is scored after its first word."""
    asked = [Question("panel", i, p, t, "candidate") for i, (p, ts) in enumerate(panel.items()) for t in ts]
    for number, line in enumerate(texts):
        first, _, rest = line.strip().partition(" ")
        if rest:
            asked.append(Question("text", number, AttributePrompt(first, Entity(None, "")), rest, "candidate"))
    return asked


def _health(
    panel: Mapping[AttributePrompt, Sequence[str]], watched: Sequence[Question], scores: Scores
) -> dict[str, Any]:
    """Perplexity of the texts and entropy (nats) of the answers given to the panel."""
    texts = [scores[q.cloze] for q in watched if q.kind == "text" and scores[q.cloze].status == "ok"]
    tokens = sum(score.n_tokens for score in texts)
    mean = -sum(score.logprob for score in texts) / tokens if tokens else math.nan
    picked = []
    for prompt, answers in panel.items():
        found = [scores[Cloze(prompt.text, answer)] for answer in answers]
        if found and all(score.status == "ok" for score in found):
            picked.append(answers[int(np.argmax([score.logprob / score.n_tokens for score in found]))])
    shares = np.array(list(Counter(picked).values())) / max(1, len(picked))
    entropy = float(-(shares * np.log(shares)).sum()) + 0.0 if picked else math.nan
    return {"perplexity": _number(math.exp(min(mean, 700)) if tokens else math.nan), "entropy": _number(entropy)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _baseline(
    run: Run,
    plan: DosePlan,
    panels: Mapping[str, Mapping[AttributePrompt, Sequence[str]]],
    out: Path,
    manifest: RunManifest,
) -> dict[str, Any]:
    file = out / "baseline.json"
    if file.exists():
        return _read(file, manifest)
    found: dict[str, Any] = {}
    for mix, panel in panels.items():
        watched = _watched(panel, plan.texts)
        clozes = list(dict.fromkeys(q.cloze for q in watched))
        found[mix] = _health(panel, watched, dict(zip(clozes, run.scorer.score(clozes), strict=True)))
    write_text(file, json.dumps({"run": manifest.identity} | found, allow_nan=False) + "\n")
    return found


def _do(
    run: Run,
    editor: Any,
    unit: _Unit,
    plan: DosePlan,
    panel: Mapping[AttributePrompt, Sequence[str]],
    health: Mapping[str, Any],
    nats: float,
) -> dict[str, Any]:
    """One sample: edited together, scored, measured; `health` is the unedited model's, `nats` rounding."""
    cases = _draw(run.cases, unit, plan)
    asked = [(case, _asked(case, plan)) for case in cases]
    watched = _watched(panel, plan.texts)
    clozes = list(dict.fromkeys(q.cloze for _, qs in asked for q in qs))
    before = dict(zip(clozes, run.scorer.score(clozes), strict=True))
    (edited,) = edit_units(run.model, run.tokenizer, editor, [cases])
    # An edit that changes nothing is not scored, so its health is that of the unedited model.
    everything = asked if edited.zero else [*asked, (replace(cases[0], case_id=-1), watched)]
    (outcome,) = score_edits(run.model, run.scorer, [edited], [everything], before, run.hashes)
    made = {case_id for case_id, status in edited.status.items() if status in ("ok", "zero delta")}
    refused = [case for case in cases if case.case_id not in made]
    kept = [(case, qs) for case, qs in asked if case.case_id in made]
    row: dict[str, Any] = asdict(unit) | {"n_edits": len(kept), "n_refused": len(refused)}
    row["n_zero"] = len(kept) if edited.zero else 0
    row["refused"] = sorted({edited.status[case.case_id][:200] for case in refused})
    shares = {name: [_share(qs, kind, outcome.scores, nats) for _, qs in kept] for kind, name in _SUCCESS.items()}
    success = {name: _mean(values) for name, values in shares.items()}
    row |= {name: _number(value) for name, value in success.items()}
    row["S"] = _number(harmonic_mean(list(success.values())))
    differences = [_differences(qs, before, outcome.scores) for _, qs in kept]
    row["D"] = _number(_mean([_mean(list(one.values())) for one in differences]))
    row["n_people"] = sum(map(len, differences))
    row["D_by"] = _by_group([qs for _, qs in kept], differences)
    return row | (dict(health) if edited.zero else _health(panel, watched, outcome.scores))


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else math.nan


def _sides(qs: Sequence[Question], kind: str, scores: Scores) -> dict[int, tuple[float, float]]:
    """Prompt number -> log p of the new and of the true target; prompts without both are left out."""
    found: dict[int, dict[str, float]] = {}
    for q in qs:
        if q.kind == kind and scores[q.cloze].status == "ok":
            found.setdefault(q.prompt_id, {})[q.role] = scores[q.cloze].logprob
    return {n: (pair["target_new"], pair["target_true"]) for n, pair in found.items() if len(pair) == 2}


def _share(qs: Sequence[Question], kind: str, scores: Scores, nats: float) -> float:
    """Share of a case's prompts with the wanted target ahead by more than rounding (`nats`): the new one, in the
    neighbourhood the true one."""
    sides = _sides(qs, kind, scores)
    wins = [bool(above(*(pair[::-1] if kind == "neighborhood" else pair), nats)) for pair in sides.values()]
    return sum(wins) / len(wins) if wins else math.nan


def _differences(qs: Sequence[Question], before: Scores, after: Scores) -> dict[int, float]:
    """D_d of every prompt about another person."""
    pre, post = (_sides(qs, "cross_subject", scores) for scores in (before, after))
    d = [{n: math.exp(new) - math.exp(true) for n, (new, true) in sides.items()} for sides in (pre, post)]
    return {n: d[1][n] - d[0][n] for n in d[0] if n in d[1]}


def _by_group(asked: Sequence[Sequence[Question]], differences: Sequence[Mapping[int, float]]) -> dict[str, Any]:
    """Axis -> group -> mean D_d over prompts and their number."""
    found: dict[str, dict[str, list[float]]] = {axis: {} for axis in ("gender", "race", "region")}
    for qs, of_case in zip(asked, differences):
        prompts = {q.prompt_id: q.prompt for q in qs if q.kind == "cross_subject"}
        for number, value in of_case.items():
            for axis, groups in found.items():
                for group in getattr(prompts[number], axis) or ("unknown",):
                    groups.setdefault(group, []).append(value)
    return {axis: {g: {"D": _mean(v), "n": len(v)} for g, v in sorted(gs.items())} for axis, gs in found.items()}
