"""Tasks of inspect_ai: what a model believes about other people, and about other facts of one person.

A model is asked for one letter, and its log-probabilities of the letters are the answer. So any model can be asked
that gives its likeliest tokens. Logs of a model before and after a change are compared by `seesaw-cf compare`.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer, value_to_float
from inspect_ai.solver import TaskState, generate

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.types import AttributePrompt, Case
from seesaw_cf.records.load import load_cases
from seesaw_cf.stats import case_weights, clustered_mean

VERSION = 1
"""Of both tasks: a change of prompts or scores makes a new one."""
CHOICES = 4
"""Most answers of a question of `cross_property`."""
_TOP = 20  # the most that providers give
_ASK = "Complete the sentence. Answer with one letter only.\n\n{}\n{}\n\nAnswer:"


@task
def cross_subject(
    data: str = "sample", config: str = "cross_subject", limit: int | None = None, people: int = 20
) -> Task:
    """Ask about other people: of two answers, the new and the true one of an edit, which is likelier?

    Args:
        data: Anything that `load_cases` takes; "sample" comes with the package, and is pinned with it.
        config: Of the data.
        limit: Most edits; None = all.
        people: Most questions about other people of an edit, drawn by the edit's name.
    """
    cases = load_cases(data, config)[:limit]
    return _task("cross_subject", [sample for case in cases for sample in _of_people(case, people)], data)


@task
def cross_property(data: str = "sample", config: str = "cross_property", limit: int | None = None) -> Task:
    """Ask about other facts about the subject of an edit: which of up to four answers is likeliest?

    Args:
        data, config, limit: See `cross_subject`.
    """
    cases = load_cases(data, config)[:limit]
    return _task("cross_property", [sample for case in cases for sample in _of_properties(case)], data)


def _task(name: str, samples: Sequence[Sample], data: str) -> Task:
    if not samples:
        raise RecordError(f"{name}: the records of {data!r} ask no such question. Choose another config.")
    return Task(
        dataset=MemoryDataset(list(samples), name=name),
        solver=generate(),
        scorer=[likeliest(), margin()],
        # No temperature: what is written does not count, and some providers refuse 0.
        config=GenerateConfig(logprobs=True, top_logprobs=_TOP, max_tokens=1),
        version=VERSION,
        metadata={"data": data},
    )


def _of_people(case: Case, people: int) -> Iterator[Sample]:
    """Yield the questions about other people; margins are of the new answer, whoever holds it."""
    request = case.request
    answers = (request.target_new.label, request.target_true.label)
    rng = np.random.default_rng(seed_of(request.text, case.case_id))
    for number in sorted(rng.permutation(len(case.attribute_prompts))[:people]):
        prompt = case.attribute_prompts[number]
        if all(map(str.strip, answers)):
            yield from _both_orders(case, number, prompt, answers, {"holds": prompt.holds or "unknown"})


def _of_properties(case: Case) -> Iterator[Sample]:
    """Yield the questions about other facts, each with one right answer and others that the seed of its name draws."""
    for number, prompt in enumerate(case.effect_prompts):
        wrong = [answer for answer in case.candidates if answer not in case.gold]
        rng = np.random.default_rng(seed_of(prompt.text, case.case_id))
        drawn = [wrong[place] for place in rng.permutation(len(wrong))[: CHOICES - 1]]
        if case.gold and drawn:
            yield from _both_orders(case, number, prompt, (case.gold[0], *drawn), {})


def _both_orders(
    case: Case, number: int, prompt: AttributePrompt, answers: Sequence[str], facts: Mapping[str, str]
) -> Iterator[Sample]:
    """Yield a question in two orders, in which a liking for a letter cancels; `answers[0]` is scored."""
    request = case.request
    relation = "-".join(filter(None, (request.relation_id, case.effect_relation_id)))
    tags = {axis: "|".join(getattr(prompt, axis)) or "unknown" for axis in ("gender", "race", "region")}
    person = prompt.subject.id or prompt.subject.label or prompt.text
    about = {"edit": f"{relation}-{case.case_id}", "person": person, "cluster": person}
    for order, listed in (("first", list(answers)), ("last", list(answers[::-1]))):
        lines = "\n".join(f"{letter}. {answer}" for letter, answer in zip(string.ascii_uppercase, listed))
        yield Sample(
            input=_ASK.format(prompt.text, lines),
            target=string.ascii_uppercase[listed.index(answers[0])],
            choices=listed,
            id=f"{about['edit']}-{number}-{order}",
            metadata={**about, "relation": relation, **tags, **facts},
        )


@metric
def clustered(clusters: Sequence[str] = ("edit", "person")) -> Metric:
    """Average scores, with a 95 % interval whose errors are clustered: see `seesaw_cf.stats.clustered_mean`.

    Args:
        clusters: Metadata of samples that name what they share; several dimensions cross.

    Returns:
        mean, stderr, low, high and n. An interval is NaN below five effective clusters.
    """
    number = value_to_float()

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        values = np.array([number(score.score.value) for score in scores], np.float64)
        there = [score for score, value in zip(scores, values) if math.isfinite(value)]
        if not there:
            return dict.fromkeys(("mean", "stderr", "low", "high"), math.nan) | {"n": 0.0}
        values = values[np.isfinite(values)]
        names = {name: [str((score.sample_metadata or {}).get(name)) for score in there] for name in clusters}
        codes = {name: np.unique(own, return_inverse=True)[1].astype(np.intp) for name, own in names.items()}
        weights = case_weights(np.arange(len(there)), np.ones(len(there), dtype=bool))
        mean = clustered_mean(values, [weights], codes)
        return {"mean": mean.value, "stderr": mean.stderr, "low": mean.low, "high": mean.high, "n": float(mean.n)}

    return compute


def letter_logprobs(state: TaskState) -> list[float]:
    """Return the log-probability of each choice's letter as the first token, nats; -inf where it is no likely one."""
    letters = string.ascii_uppercase[: len(state.choices)]
    sums = dict.fromkeys(letters, -math.inf)
    logprobs = state.output.choices[0].logprobs if state.output.choices else None
    for token in (logprobs.content[0].top_logprobs or []) if logprobs and logprobs.content else []:
        if (letter := token.token.strip(" .):\n▁Ġ")) in sums:
            sums[letter] = float(np.logaddexp(sums[letter], token.logprob))
    return [sums[letter] for letter in letters]


@scorer(metrics=[clustered()])
def margin() -> Scorer:
    """Return log p of the letter of the scored answer minus that of the best other one, nats.

    NaN, which inspect counts as unscored, where a letter is not among the likeliest tokens.
    """

    async def score(state: TaskState, target: Target) -> Score:
        values = letter_logprobs(state)
        own = values.pop(string.ascii_uppercase.index(target.text))
        there = math.isfinite(own) and math.isfinite(max(values))
        return Score(value=own - max(values) if there else math.nan)

    return score


@scorer(metrics=[clustered()])
def likeliest() -> Scorer:
    """Return whether the scored answer's letter is the likeliest one: C or I; N where no letter is a likely token."""

    async def score(state: TaskState, target: Target) -> Score:
        values = letter_logprobs(state)
        if max(values) == -math.inf:
            return Score(value="N", answer="", explanation=state.output.completion)
        answer = string.ascii_uppercase[values.index(max(values))]
        return Score(value="C" if answer == target.text else "I", answer=answer)

    return score
