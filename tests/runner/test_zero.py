"""Zero is zero, and rounding is neither a success nor a failure."""

from __future__ import annotations

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

from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.run.edits import Outcome, score_edits
from seesaw_cf.run.questions import questions
from seesaw_cf.run.units import Unit
from seesaw_cf.stats.simple import above
from seesaw_cf.types import Cloze, ClozeScore, EditRequest
from tests.runner import small


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
    (outcome,) = score_edits(small.model(), _Never(), edits, [Unit("P19", (case,))], before, {})
    assert outcome.scores == before
    assert outcome.norm == 0


@pytest.mark.parametrize("protocol", ["single", "batch"])
def test_after_an_edit_of_norm_zero_every_score_is_the_one_from_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    small.run(tmp_path / "run", {"none": _Nothing()}, editors={"none": {}}, protocol=protocol)
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pandas()
    pre, post = (rows[rows["phase"] == phase]["logprob"].to_numpy() for phase in ("pre", "post"))
    assert np.array_equal(pre, post)
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()
    assert {(row["status"], row["raised"], row["delta_norm"]) for row in edits} == {("zero delta", False, 0.0)}


@pytest.mark.slow
def test_raised_and_success_are_judged_by_the_noise_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
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
