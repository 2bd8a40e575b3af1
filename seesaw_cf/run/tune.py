"""Finding an editor's settings for a model, on edits that are not evaluated.

Settings are drawn without replacement from a declared space and tried on a few edits; the best of them, and the preset,
are tried again on more. Every finished trial is a separate shard, so a killed search continues where it was.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypedDict, cast

import numpy as np
import pyarrow as pa

from seesaw_cf.base.errors import EditError, PromptError, RecordError
from seesaw_cf.base.files import dump_json
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.tables import SCORES
from seesaw_cf.base.types import Case, Estimate, TableRow
from seesaw_cf.editors.locate.config import with_settings
from seesaw_cf.editors.spaces import SPACES, search_space
from seesaw_cf.effects.prompts import prompt_effects
from seesaw_cf.effects.success import KINDS, harmonic_mean, success_of_scores
from seesaw_cf.effects.texts import ngram_entropy
from seesaw_cf.generation import Ask, HFGenerator, Sampling
from seesaw_cf.models.architectures import transformer_blocks
from seesaw_cf.models.editor import Editor, Settings
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.run.edits import edit_units, score_before, score_edits
from seesaw_cf.run.explain import announce
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job, TunePlan
from seesaw_cf.run.questions import Question, pair_scores, questions, score_table
from seesaw_cf.run.runner import Run
from seesaw_cf.run.store import Store
from seesaw_cf.run.tuned import PROVENANCE

OBJECTIVE = (
    "harmonic mean of efficacy (shares of edits that take, refused ones do not), paraphrases that take, neighbourhood "
    "prompts that were right before and stay right, and fluency (n-gram entropy of texts after the edit over that "
    "before, at most 1)"
)
SETTINGS = "settings.json"
"""The file of a finished search that `--editor-config` takes."""
Part = Literal["efficacy", "paraphrase", "neighborhood", "fluency"]
PARTS: tuple[Part, ...] = ("efficacy", "paraphrase", "neighborhood", "fluency")
_NUMBERS: Mapping[Part, str] = {"efficacy": "ES", "paraphrase": "PS", "neighborhood": "NS"}


class ScorePart(TypedDict):
    """A part of the objective; None without a number."""

    value: float | None
    low: float | None
    high: float | None
    n: int


class TrialFacts(TypedDict):
    """What a trial made: edits, case -> status, entropy (before, after) of each text."""

    n: int
    status: dict[str, str]
    fluency: list[list[float]]


class TrialRow(TypedDict):
    """A trial in one round: the settings by their number, edits, score, the parts, reason -> edits refused."""

    round: str
    trial: int
    n: int
    score: float
    efficacy: ScorePart
    paraphrase: ScorePart
    neighborhood: ScorePart
    fluency: ScorePart
    refused: dict[str, int]


def draw_trials(space: Mapping[str, Sequence[object]], count: int, seed: int) -> list[Settings]:
    """Draw the settings of every trial: first none (the preset), then distinct points of the space in a seeded order.

    Args:
        space: Setting -> values.
        count: Trials, the preset among them; the space may have fewer points.
        seed: Of the draw.
    """
    sizes = [len(values) for values in space.values()]
    points = math.prod(sizes)
    chosen = np.random.default_rng(seed).choice(points, min(count - 1, points), replace=False)
    places = [np.unravel_index(int(point), sizes) for point in chosen]
    return [{}, *({name: space[name][int(i)] for name, i in zip(space, place, strict=True)} for place in places)]


def draw_edits(cases: Sequence[Case], count: int, seed: int) -> list[Case]:
    """Draw edits of different people in a seeded order, of each person the one with the relation rarest so far.

    Args:
        cases: Where they come from.
        count: How many; there may be fewer people.
        seed: Of the order. A smaller count gives the first ones of a larger.
    """
    people: dict[str, list[Case]] = {}
    for case in cases:
        people.setdefault(case.request.subject, []).append(case)
    names = sorted(people)
    seen: Counter[str] = Counter()
    drawn = []
    for i in np.random.default_rng(seed).permutation(len(names))[:count]:
        case = min(people[names[i]], key=lambda candidate: (seen[candidate.request.relation_id], candidate.case_id))
        seen[case.request.relation_id] += 1
        drawn.append(case)
    return drawn


def run_tune(job: Job, plan: TunePlan, out: Path, *, progress: bool = True) -> Path:
    """Search, and write `tune.json` (every trial) and `settings.json` (the best, with its provenance).

    Args:
        job: Model, one editor and data. None of the people in the drawn edits may be evaluated with the settings
            that are found: `seesaw-cf run` refuses them by the provenance.
        plan: What is searched.
        out: Folder of the search; an interrupted one in it is continued.
        progress: Show a progress bar.

    Returns:
        The file with all trials, for `seesaw_cf.report.tune`.

    Raises:
        SeesawError: A name, file, record or setting that cannot be used, or a folder of another search.
    """
    if len(job.editors) != 1 or job.controls:
        raise RecordError(f"tune: editors {[*job.editors, *job.controls]}, expected one editor and no control.")
    (name,) = job.editors
    if not (name in SPACES if plan.space is None else plan.space):
        raise RecordError(
            f"tune: no search space is declared for {name!r}, only for {', '.join(SPACES)}. Give one with --space."
        )
    run = make_run(job, out, progress=progress)
    ((name, editor),) = run.editors.items()
    blocks = transformer_blocks(run.model)
    space = plan.space if plan.space is not None else search_space(name, len(blocks or ()))
    people = len({case.request.subject for case in run.cases})
    if people < (most := max(plan.first_edits, plan.final_edits)):
        raise RecordError(
            f"tune: {most:,} edits of different people, and the records have {people:,}. Give --first-edits and "
            "--final-edits of at most that, or --data with more."
        )
    trials = draw_trials(space, plan.trials, plan.seed)
    configs = [with_settings(editor.config, settings) for settings in trials]  # a value of a wrong type is said now
    settings = json.loads(json.dumps(asdict(plan) | {"space": space}))
    store = Store(out, replace(run.manifest, protocol="tune", settings=settings), SCORES)
    store.claim()
    announce([*run.manifest.notes, *run.notes])
    search = _Search(run, store, plan, [replace(editor, config=config) for config in configs])  # type: ignore[type-var]
    first = search.round("first", range(len(trials)), plan.first_edits, progress)
    best = [row["trial"] for row in sorted(first, key=_rank)[: plan.finalists]]
    final = search.round("final", sorted({0, *best}), plan.final_edits, progress)
    return _write(search, space, trials, first + final, min(final, key=_rank))


def _rank(row: TrialRow) -> tuple[float, float, int]:
    """Return a key that sorts the best first: by score, then efficacy, then trial number; the preset is number 0."""
    return -(row["score"] or 0.0), -(row["efficacy"]["value"] or 0.0), row["trial"]


@dataclass(frozen=True)
class _Search:
    run: Run
    store: Store
    plan: TunePlan
    editors: Sequence[Editor]

    def round(self, name: str, numbers: Iterable[int], count: int, progress: bool) -> list[TrialRow]:
        """Return the row of every trial of a round, running those that are not there yet."""
        cases = draw_edits(self.run.cases, count, self.plan.seed)
        rows = []
        for number in Bar([*numbers], f"{name} round: edit, score, write", unit="trial", disable=not progress):
            key = (name, f"{number:04d}")
            if not self.store.has(key):
                self._try(key, self.editors[number], cases)
            table, facts = self.store.read(key)
            rows.append(_trial_row(name, number, table, cast(TrialFacts, facts)))
        return rows

    def _try(self, key: tuple[str, str], editor: Editor, cases: Sequence[Case]) -> None:
        run = self.run
        rows_of = [(case, _choose_questions(case)) for case in cases]
        before = score_before(run.scorer, (q for _, qs in rows_of for q in qs))
        try:
            fitted = editor.fit(run.model, run.tokenizer)
        except (EditError, PromptError) as error:
            refused = {str(case.case_id): f"refused: {error}" for case in cases}
            self.store.write(key, score_table("trial", []), status=refused, n=len(cases), fluency=[])
            return
        edits = edit_units(run.model, run.tokenizer, fitted, [[case] for case in cases])
        outcomes = score_edits(run.model, run.scorer, edits, [[row] for row in rows_of], before, run.hashes)
        pairs = zip(rows_of, outcomes, strict=True)
        rows = [row for asked, outcome in pairs for row in pair_scores([asked], before, outcome.scores)]
        status = {str(case): text for edit in edits for case, text in edit.status.items()}
        deltas = [(case, edit.delta) for case, edit in zip(cases, edits, strict=True)][: self.plan.texts]
        fluency = self._fluency([(case, delta) for case, delta in deltas if delta is not None])
        self.store.write(key, score_table("trial", rows), status=status, n=len(cases), fluency=fluency)

    def _fluency(self, edits: Sequence[tuple[Case, WeightDelta]]) -> list[list[float]]:
        """Return (before, after) entropy in bits of a text about each edit's subject; too short texts are left out."""
        writer = HFGenerator(self.run.model, self.run.tokenizer)
        sampling = Sampling(max_new_tokens=self.plan.new_tokens)
        asks = [Ask((*case.generation_prompts, case.request.subject)[0], self.plan.seed) for case, _ in edits]
        after = writer.generate_each([(delta, [ask]) for (_, delta), ask in zip(edits, asks, strict=True)], sampling)
        texts = zip(writer.generate(asks, sampling), (own[0] for own in after), strict=True)
        pairs = [[_entropy(old.text), _entropy(new.text)] for old, new in texts]
        return [pair for pair in pairs if math.isfinite(sum(pair)) and pair[0] > 0]


def _entropy(text: str) -> float:
    """Return the weighted entropy of MEMIT appendix C.2 in bits."""
    return 2 / 3 * ngram_entropy(text, 2) + 4 / 3 * ngram_entropy(text, 3)


def _choose_questions(case: Case) -> list[Question]:
    """Choose edit, paraphrases and neighbourhood; without the last, also other people who hold the old target."""
    every = list(questions(case))
    selected = [q for q in every if q.kind in KINDS]
    if any(q.kind == "neighborhood" for q in selected):
        return selected
    others = [q for q in every if q.kind == "cross_subject" and q.prompt.holds == "target_true"]
    return selected + [q._replace(kind="neighborhood") for q in others[:20]]


def _trial_row(name: str, number: int, table: pa.Table, facts: TrialFacts) -> TrialRow:
    """Return the parts of the objective with n and interval, None without a number, and the score."""
    n, status = facts["n"], facts["status"]
    edited = [text for text in status.values() if text in ("ok", "zero delta")]
    parts: dict[str, ScorePart] = {part: {"value": None, "low": None, "high": None, "n": 0} for part in PARTS}
    if table.num_rows:
        numbers = success_of_scores(_known_neighbours(table))["trial"].numbers["counterfact"]
        parts |= {part: _part(numbers[short]) for part, short in _NUMBERS.items()}
    ratios = [min(1.0, after / before) for before, after in facts["fluency"]]
    if ratios:
        parts["fluency"] = {"value": float(np.mean(ratios)), "low": None, "high": None, "n": len(ratios)}
    share = len(edited) / n
    efficacy = (parts["efficacy"]["value"] or 0.0) * share
    others = [parts[part]["value"] for part in PARTS[1:]]
    values = [efficacy, *(value for value in others if value is not None)]
    refused = dict(Counter(text for text in status.values() if text not in ("ok", "zero delta")))
    row: TableRow = {"round": name, "trial": number, "n": n, "score": harmonic_mean(values), **parts}
    return cast(TrialRow, row | {"refused": refused})


def _known_neighbours(table: pa.Table) -> pa.Table:
    """Drop neighbourhood prompts where the true target was not the likelier one before: nothing there can stay."""
    effects = prompt_effects(table, kind="neighborhood", score="log_odds")
    right = effects[effects["D_pre"] < 0]
    pairs = set(zip(right["case_id"], right["prompt_id"], strict=True))
    keys = zip(*(table[name].to_pylist() for name in ("kind", "case_id", "prompt_id")), strict=True)
    return table.filter(pa.array([kind != "neighborhood" or (case, prompt) in pairs for kind, case, prompt in keys]))


def _part(estimate: Estimate) -> ScorePart:
    value, low, high = (
        None if math.isnan(number) else number for number in (estimate.value, estimate.low, estimate.high)
    )
    return {"value": value, "low": low, "high": high, "n": estimate.n}


def _write(
    search: _Search,
    space: Mapping[str, Sequence[object]],
    trials: Sequence[Settings],
    rows: Sequence[TrialRow],
    best: TrialRow,
) -> Path:
    """Write the trials, and the settings of the best with what they were found on."""
    run, plan, out = search.run, search.plan, search.store.folder
    (name,) = run.editors
    config = asdict(search.editors[best["trial"]].config)
    settings = {setting: config[setting] for setting in sorted({*space, "layers"}) if setting in config}
    drawn = draw_edits(run.cases, max(plan.first_edits, plan.final_edits), plan.seed)
    provenance = {
        "made_by": "seesaw-cf tune",
        "model": dict(run.manifest.model),
        "data": dict(run.manifest.data),
        "plan": asdict(plan) | {"space": space},
        "objective": OBJECTIVE,
        "best": dict(best),
        "preset": next(row for row in rows if row["round"] == "final" and row["trial"] == 0),
        "versions": run.manifest.versions,
        "subjects": sorted(case.request.subject for case in drawn),
    }
    shown_trials = [{"settings": dict(trials[row["trial"]])} | row for row in rows]
    everything = {"editor": name, "settings": settings, "trials": shown_trials, **provenance}
    dump_json(out / "tune.json", everything, allow_nan=False)
    dump_json(out / SETTINGS, {name: settings, PROVENANCE: {name: provenance}}, allow_nan=False)
    return out / "tune.json"
