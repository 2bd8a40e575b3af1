"""Runs in which nothing, or not everything, can be scored: said before an edit, in the table, never as NaN."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seesaw_cf.errors import PromptError, RecordError
from seesaw_cf.run.manifest import claim_folder
from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import HFScorer
from seesaw_cf.scoring.noise import measure_noise
from seesaw_cf.types import Case, Cloze, EditRequest, Entity
from tests.runner import small
from tests.scoring.test_unscored import by_words
from tests.tokenizer_styles import byte_level


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))


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
