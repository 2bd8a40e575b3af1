"""Shared work is done once, a dead worker stops no other, and threads with one model get what they get alone."""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import torch

from seesaw_cf.editors import FT, FTConfig
from seesaw_cf.models.weights import applied, parameter_hashes
from seesaw_cf.run.questions import questions
from seesaw_cf.scoring import HFScorer
from seesaw_cf.scoring.edited_scorer import EditedScorer
from seesaw_cf.scoring.pre_scores import blocks, pre_scores
from seesaw_cf.scoring.trie_scorer import TrieScorer
from seesaw_cf.types import Cloze, ClozeScore
from tests.fakes import tiny_model
from tests.runner import small
from tests.scoring.holder import SHARED
from tests.tokenizer_styles import byte_level


@pytest.mark.slow(20)
@pytest.mark.parametrize("kind", SHARED)
def test_a_worker_that_is_killed_in_the_middle_stops_no_other(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "alone"))
    alone = SHARED[kind](tiny_model("llama"))
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "shared"))
    held = tmp_path / "held"
    with ThreadPoolExecutor(1) as pool:
        holder = subprocess.Popen([sys.executable, "-m", "tests.scoring.holder", kind, str(held)], env={**os.environ})
        try:
            _until(held.exists)
            caplog.clear()
            shared = pool.submit(SHARED[kind], tiny_model("llama"))
            _until(lambda: "another process" in caplog.text)
            assert not shared.done()
        finally:
            holder.kill()
            holder.wait()
        assert torch.equal(shared.result(timeout=60), alone)


def _until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@dataclass(frozen=True)
class Slow:
    """Scores its first block when the other worker has scored all others."""

    gate: threading.Event
    last: int
    asked: list[int] = field(default_factory=list)
    first: bool = True

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        self.asked.append(int(clozes[0].target))
        if self.first:
            self.gate.wait(timeout=60)
        elif len(self.asked) == self.last:
            self.gate.set()
        return [ClozeScore(-float(cloze.target), 1, True) for cloze in clozes]


def test_each_worker_scores_the_blocks_that_no_other_is_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path))
    parts, gate = blocks((Cloze("a", str(number)) for number in range(6)), 1), threading.Event()
    slow, quick = Slow(gate, 5), Slow(gate, 5, first=False)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(lambda: list(pre_scores(slow, parts, {})))
        _until(lambda: slow.asked)
        other = pool.submit(lambda: list(pre_scores(quick, parts, {})))
        tables = [
            {cloze: score for part in worker.result() for cloze, score in part.items()} for worker in (one, other)
        ]
    assert tables[0] == tables[1]
    assert (slow.asked, quick.asked) == ([0], [1, 2, 3, 4, 5])
    assert {file.suffix for file in (tmp_path / "pre").iterdir()} == {".parquet"}


@pytest.mark.slow
def test_threads_that_score_and_edit_with_one_model_do_not_see_each_other() -> None:
    model, tokenizer = small.model(), byte_level(bos=False)
    cases = small.cases()
    clozes = [q.cloze for case in cases for q in questions(case)]
    editor = FT(FTConfig(layers=(0,), steps=3))
    delta = editor.edit(model, tokenizer, [cases[0].request])

    def edited() -> list[Cloze | ClozeScore]:
        return [score for part in EditedScorer(TrieScorer(model, tokenizer)).score([(delta, clozes)]) for score in part]

    def norm() -> list[float]:
        made = editor.edit(model, tokenizer, [cases[0].request])
        return [float(made.dense(name).norm()) for name in made.updates]

    jobs: list[Callable[[], Sequence[object]]] = [
        partial(HFScorer(model, tokenizer).score, clozes),
        partial(TrieScorer(model, tokenizer).score, clozes),
        edited,
        norm,
    ] * 3
    before = parameter_hashes(model)
    alone = [job() for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: job(), jobs))
    assert together == alone
    assert parameter_hashes(model) == before
    assert all("forward" not in vars(part) for part in model.modules())


@pytest.mark.slow
def test_an_edit_is_made_on_the_weights_before_another_threads_edit() -> None:
    """The second thread starts inside the block of the first and waits for its end."""
    model, tokenizer, (case, *_) = small.model(), byte_level(bos=False), small.cases()
    editor = FT(FTConfig(layers=(0,), steps=3))
    alone = editor.edit(model, tokenizer, [case.request])
    with ThreadPoolExecutor(1) as pool:
        with applied(model, alone):
            later = pool.submit(editor.edit, model, tokenizer, [case.request])
            assert not wait([later], timeout=0.5).done
        made = later.result()
    assert made.meta["losses"] == alone.meta["losses"]
