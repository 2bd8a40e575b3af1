"""Tasks of inspect_ai: questions in both orders, log-probabilities as answers, clustered errors, logs for compare."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seesaw_cf.errors import RecordError
from seesaw_cf.logs import CompareSettings, compare_logs, read_log
from seesaw_cf.stats import case_weights, clustered_mean

pytest.importorskip("inspect_ai", reason="needs the extra harness: pip install 'seesaw_cf[harness]'")

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from inspect_ai.scorer import SampleScore, Score

from seesaw_cf.harnesses.inspect_tasks import clustered, cross_property, cross_subject

pytestmark = pytest.mark.filterwarnings("ignore")  # of inspect_ai's own dependencies
Beliefs = Callable[[str, str], float]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Streams that inspect_ai leaves open are closed here, where what they warn of is left out."""
    yield
    gc.collect()


def _output(tops: Mapping[str, float]) -> ModelOutput:
    """One token with the log-probabilities of the likeliest ones; none where `tops` is empty."""
    best = max(tops, key=tops.__getitem__, default="The")
    listed = [TopLogprob(token=token, logprob=value) for token, value in tops.items()]
    content = [Logprob(token=best, logprob=tops[best], top_logprobs=listed)] if tops else []
    choice = ChatCompletionChoice(message=ChatMessageAssistant(content=best), logprobs=Logprobs(content=content))
    # Without a usage inspect_ai counts tokens with an encoder that it downloads.
    return ModelOutput(model="mock", choices=[choice], usage=ModelUsage(input_tokens=1, output_tokens=1))


def _parts(asked: str) -> tuple[str, dict[str, str]]:
    """The sentence of a question, and letter -> answer."""
    sentence, *lines = asked.split("\n\n")[1].split("\n")
    return sentence, dict(line.split(". ", 1) for line in lines)


def _model(beliefs: Beliefs, letter: float = 0.0) -> Any:
    """A model whose log-odds for an answer are `beliefs` of the sentence, and that likes the letter A by `letter`."""

    def answer(messages: list[Any], *_: object) -> ModelOutput:
        sentence, answers = _parts(messages[-1].text)
        values = {f" {name}": beliefs(sentence, text) + letter * (name == "A") for name, text in answers.items()}
        total = math.log(sum(map(math.exp, values.values())))
        return _output({token: value - total for token, value in values.items()} | {"The": -9.0})

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def _run(task: Task, model: Any, folder: Path) -> EvalLog:
    [log] = evaluate(task, model=model, log_dir=str(folder), display="none", log_format="eval")
    assert log.status == "success"
    return read_eval_log(log.location)


def _score(log: EvalLog, name: str) -> Any:
    assert log.results is not None
    return next(score for score in log.results.scores if score.name == name)


def _number(sentence: str, answer: str) -> float:
    return (sum(map(ord, sentence)) * 7 + sum(map(ord, answer)) * 13) % 50 / 25


def test_a_liking_for_a_letter_cancels(tmp_path: Path) -> None:
    logs = [
        _run(cross_subject(limit=1, people=6), _model(_number, letter), tmp_path / str(letter)) for letter in (0.0, 3.0)
    ]
    means = [_score(log, "margin").metrics["mean"].value for log in logs]
    assert means[0] == pytest.approx(means[1], abs=1e-9)
    assert abs(means[0]) > 1e-3


@pytest.mark.parametrize("task", [partial(cross_subject, limit=8, people=3), partial(cross_property, limit=8)])
def test_a_log_has_margins_groups_and_clustered_errors(task: Callable[[], Task], tmp_path: Path) -> None:
    log = _run(task(), _model(_number), tmp_path)
    rows = []
    for sample in log.samples or ():
        sentence, answers = _parts(str(sample.input))
        beliefs = {letter: _number(sentence, text) for letter, text in answers.items()}
        own = beliefs.pop(str(sample.target))
        scores = sample.scores or {}
        assert scores["margin"].value == pytest.approx(own - max(beliefs.values()))
        assert (scores["likeliest"].value == "C") is (own >= max(beliefs.values())) or own == max(beliefs.values())
        rows.append((scores["margin"].value, sample.metadata["edit"], sample.metadata["person"]))
        assert {"gender", "race", "region", "relation"} <= sample.metadata.keys()
    values = np.array([row[0] for row in rows])
    codes = {
        name: np.unique([row[n] for row in rows], return_inverse=True)[1] for n, name in ((1, "edit"), (2, "person"))
    }
    weights = case_weights(np.arange(len(rows)), np.ones(len(rows), bool))
    expected = clustered_mean(values, [weights], {name: own.astype(np.intp) for name, own in codes.items()})
    metrics = {name: found.value for name, found in _score(log, "margin").metrics.items()}
    assert metrics["mean"] == pytest.approx(expected.value)
    assert (metrics["stderr"], metrics["low"]) == pytest.approx((expected.stderr, expected.low), nan_ok=True)
    assert metrics["n"] == len(rows) == len(log.eval.dataset.sample_ids or ())


def test_a_letter_that_is_no_likely_token_is_unscored(tmp_path: Path) -> None:
    model = get_model("mockllm/model", custom_outputs=lambda *_: _output({"The": -0.1, "A": -3.0}), memoize=False)
    log = _run(cross_subject(limit=1, people=2), model, tmp_path)
    assert (_score(log, "margin").scored_samples, _score(log, "likeliest").unscored_samples) == (0, 0)
    assert {sample.scores["likeliest"].answer for sample in log.samples or () if sample.scores} == {"A"}
    nothing = get_model("mockllm/model", custom_outputs=lambda *_: _output({}), memoize=False)
    scores = [sample.scores or {} for sample in _run(cross_property(limit=1), nothing, tmp_path).samples or ()]
    assert {score["likeliest"].value for score in scores} == {"N"}


def test_compare_pairs_two_logs_by_question_and_knows_groups_and_persons(tmp_path: Path) -> None:
    task = cross_subject(limit=1, people=40)
    women = [sample for sample in task.dataset if sample.metadata and sample.metadata["gender"] == "women"]
    touched = {_parts(str(sample.input))[0] for sample in women}
    new = _parts(str(women[0].input))[1][str(women[0].target)]

    def changed(sentence: str, answer: str) -> float:
        return _number(sentence, answer) + 2 * (sentence in touched and answer == new)

    for name, beliefs in (("base", _number), ("new", changed)):
        _run(task, _model(beliefs), tmp_path / name)
    assert len(read_log(tmp_path / "base").items) == len(task.dataset)
    settings = CompareSettings(metrics=("margin",), permutations=0)
    comparison = compare_logs(tmp_path / "base", tmp_path / "new", settings)
    assert comparison.counts["paired"].tolist() == [len(task.dataset)]
    rows = comparison.differences[comparison.differences["metric"] == "margin"]
    whole = rows[rows["group"] == ""].iloc[0]
    people = {sample.metadata["person"] for sample in task.dataset if sample.metadata}
    assert (whole["value"], whole["clusters"]) == (pytest.approx(2 * len(women) / len(task.dataset)), len(people))
    assert "gender" in set(rows["field"])


def test_the_metric_says_nothing_of_nothing() -> None:
    compute: Any = clustered()
    assert compute([])["n"] == 0
    assert math.isnan(compute([SampleScore(score=Score(value=math.nan))])["mean"])


def test_records_that_ask_no_such_question_are_refused() -> None:
    with pytest.raises(RecordError, match="cross_property: the records of 'sample' ask no such question"):
        cross_property(config="cross_subject")
