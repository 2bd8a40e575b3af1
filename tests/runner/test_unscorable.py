"""Runs in which nothing, or not everything, can be scored, and zero that is zero: said in the table, never as NaN."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import PromptError, RecordError
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.run.edits import Outcome, score_edits
from seesaw_cf.run.manifest import claim_folder
from seesaw_cf.run.questions import questions
from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import HFScorer
from seesaw_cf.scoring.noise import measure_noise
from seesaw_cf.stats.simple import above
from seesaw_cf.types import Case, Cloze, ClozeScore, EditRequest, Entity
from tests.runner import small
from tests.scoring.test_unscored import by_words
from tests.tokenizer_styles import byte_level


def _run(out: Path, tokenizer: Any, cases: list[Case], **config: Any) -> Run:
    model = small.model()
    model.config.update(config)
    editors, made = {"nudge": small.Nudge()}, small.manifest(model)
    return Run(model, tokenizer, HFScorer(model, tokenizer), editors, cases, made, out, progress=False)


def test_a_run_that_can_score_nothing_ends_before_the_first_edit(tmp_path: Path) -> None:
    run = _run(tmp_path / "run", byte_level(bos=False), small.cases(), max_position_embeddings=2)
    message = r"none of the \d+ questions can be scored.*another model. First: .* model's context holds 2\..*shorten"
    with pytest.raises(PromptError, match=message):
        run.complete()
    assert not (tmp_path / "run" / "shards").exists()


def test_answers_with_the_same_tokens_have_a_status_before_and_after(tmp_path: Path) -> None:
    same, other = (Entity(None, "Malmö"), Entity(None, "malmo")), (Entity(None, "London"), Entity(None, "Paris"))
    requests = [EditRequest("{} was born in", name, "P19", *pair) for name, pair in (("Ada", same), ("London", other))]
    _run(tmp_path / "run", by_words(), [Case(*pair) for pair in enumerate(requests)]).complete()
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    statuses = {(row["target"], row["phase"]): row["status"].partition(" to this")[0] for row in rows}
    marks = {"Malmö": "the answer 'malmo'", "malmo": "the answer 'Malmö'"}
    assert statuses == {
        (target, phase): marks.get(target, "ok")
        for target in ("Malmö", "malmo", "London", "Paris")
        for phase in ("pre", "post")
    }
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()
    assert [row["new_post"] is None for row in edits] == [True, False]


def test_noise_of_nothing_is_null_and_a_manifest_holds_no_nan(tmp_path: Path) -> None:
    model = small.model()
    noise = measure_noise(HFScorer(model, byte_level(bos=False)), [Cloze(" ", "London")])
    assert math.isnan(noise.p99)
    assert json.loads(json.dumps(noise.record(), allow_nan=False))["p99"] is None
    claim_folder(tmp_path / "run", small.manifest(model, machine={"noise": noise.record()}))
    with pytest.raises(
        RecordError, match=r"manifest.json: a setting or measure of this run is not finite .*Correct it"
    ):
        claim_folder(tmp_path / "other", small.manifest(model, machine={"noise": {"p99": math.nan}}))


class _Never:
    """A scorer that must not be asked."""

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        raise AssertionError(f"{len(clozes)} clozes of an edit that changes nothing were scored")


_ROWS, _COLUMNS = small.model().get_parameter(small.PARAMETER).shape
NOTHING = {
    "no updates": WeightDelta(),
    "dense": WeightDelta({small.PARAMETER: torch.zeros(_ROWS, _COLUMNS)}),
    "left": WeightDelta({small.PARAMETER: LowRank(torch.zeros(_ROWS, 1), torch.ones(1, _COLUMNS))}),
    "right": WeightDelta({small.PARAMETER: LowRank(torch.ones(_ROWS, 1), torch.zeros(1, _COLUMNS))}),
}


class _Nothing(small.Nudge):
    def edit(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> WeightDelta:
        return NOTHING["left"]


@pytest.mark.parametrize("delta", NOTHING.values(), ids=NOTHING)
def test_an_edit_that_changes_nothing_is_not_scored(delta: WeightDelta) -> None:
    case = small.cases()[0]
    before = {q.cloze: ClozeScore(-0.1 * i - 1, 1, False, "ok") for i, q in enumerate(questions(case))}
    edits = [Outcome({case.case_id: "zero delta"}, delta, 0.0)]
    (outcome,) = score_edits(small.model(), _Never(), edits, [[*before]], before, {})
    assert outcome.scores == before
    assert outcome.norm == 0


@pytest.mark.parametrize("protocol", ["single", "batch"])
def test_after_an_edit_of_norm_zero_every_score_is_the_one_from_before(tmp_path: Path, protocol: str) -> None:
    small.run(tmp_path / "run", {"none": _Nothing()}, editors={"none": {}}, protocol=protocol)
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pandas()
    pre, post = (rows[rows["phase"] == phase]["logprob"].to_numpy() for phase in ("pre", "post"))
    assert np.array_equal(pre, post)
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()
    assert {(row["status"], row["raised"], row["delta_norm"]) for row in edits} == {("zero delta", False, 0.0)}


@pytest.mark.slow
def test_raised_and_success_are_judged_by_the_noise_of_the_run(tmp_path: Path) -> None:
    small.run(tmp_path / "run")
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()
    assert {row["raised"] for row in edits} == {True, False}
    largest = max(row["new_post"] - row["new_pre"] for row in edits)
    file = tmp_path / "run" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["machine"]["noise"] = {"max": largest}  # twice that is the limit
    file.write_text(json.dumps(manifest))
    small.run(tmp_path / "run")
    again = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()
    assert {row["raised"] for row in again} == {False}


_logprobs = st.floats(-50, 0)


@given(a=_logprobs, b=_logprobs, nats=st.floats(0, 1))
def test_of_two_scores_one_is_above_or_they_are_within_the_noise(a: float, b: float, nats: float) -> None:
    assert above(a, b, nats) + above(b, a, nats) == (abs(a - b) > nats)
    assert not above(a, a, nats)
    assert not above(math.nan, b, nats)
    assert not above(a, math.nan, nats)
