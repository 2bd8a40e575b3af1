"""Scores before any edit: found by every run that asks the same, and shared between the workers of one run."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.errors import PromptError
from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import TrieScorer
from seesaw_cf.scoring.pre_scores import blocks
from seesaw_cf.types import Cloze, ClozeScore
from tests.runner import small
from tests.tokenizer_styles import byte_level


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seesaw_cf.run.edits.blocks", partial(blocks, size=10))


@dataclass(frozen=True)
class Watched:
    """Scores, and remembers the first cloze of each block it was asked."""

    scorer: TrieScorer
    asked: list[Cloze] = field(default_factory=list)

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        self.asked.append(clozes[0])
        return self.scorer.score(clozes)


def _make(out: Path, editor: str = "nudge", block: int | None = None, **scoring: Any) -> tuple[Run, Watched]:
    model, tokenizer = small.model(), byte_level(bos=False)
    scorer = Watched(TrieScorer(model, tokenizer))
    scoring = {**scorer.scorer.describe(), "threads": 1, **scoring}
    manifest = small.manifest(model, editors={editor: {}}, settings={"block": block}, scoring=scoring)
    return Run(model, tokenizer, scorer, {editor: small.Nudge()}, small.cases(), manifest, out, progress=False), scorer


def test_another_editor_and_another_block_size_find_the_scores_of_the_first_run(tmp_path: Path) -> None:
    first, scored = _make(tmp_path / "a", block=8)
    again, idle = _make(tmp_path / "b", editor="another", block=1)
    parts = first.before.parts(first.units)
    assert len(parts) > 2
    expected = first.before.of(first.units)
    assert len(scored.asked) == len(parts)
    assert scored.scorer.counts.forwards > 0
    assert again.before.of(again.units) == expected
    assert idle.asked == []
    assert idle.scorer.counts.forwards == 0
    other, busy = _make(tmp_path / "c", threads=2)  # what can change rounding is not shared
    assert other.before.of(other.units).scores.keys() == expected.scores.keys()
    assert len(busy.asked) == len(parts)
    for file in (tmp_path / "cache" / "pre").glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:50])
    mended, busy = _make(tmp_path / "d", block=8)
    assert mended.before.of(mended.units) == expected
    assert len(busy.asked) == len(parts), "what is damaged is made again"


def test_workers_at_the_same_time_score_each_block_once(tmp_path: Path) -> None:
    (one, first), (two, second) = (_make(tmp_path / "run") for _ in range(2))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda run: run.before.of(run.units), (one, two)))
    assert found[0] == found[1]
    assert len(first.asked) + len(second.asked) == len(one.before.parts(one.units))


def test_of_a_run_of_many_questions_one_block_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = _make(tmp_path / "whole", block=2)
    every = whole.before.of(whole.units)
    monkeypatch.setattr("seesaw_cf.run.edits.MOST_IN_MEMORY", 150)
    run, _ = _make(tmp_path / "run", block=2)
    assert len(run.blocks) == 5
    for block in run.blocks:
        scores = run.before.of(block.units).scores
        asked = {q.cloze for unit in block.units for _, qs in unit.questions() for q in qs}
        cases = (case for unit in block.units for case in unit.cases)
        assert scores.keys() == asked | {cloze for case in cases for cloze in run.candidates.clozes(case)}
        logprobs = {cloze: score.logprob for cloze, score in scores.items()}
        assert logprobs == pytest.approx({cloze: every.scores[cloze].logprob for cloze in scores}, abs=1e-4)


def _in_parts(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> Run:
    """Return a run whose questions do not fit into memory, with a cache of its own."""
    monkeypatch.setattr("seesaw_cf.run.edits.MOST_IN_MEMORY", 150)
    monkeypatch.setenv("SEESAW_CF_CACHE", str(folder / name / "cache"))
    run, _ = _make(folder / name, block=2)
    run.store.claim()
    return run


@pytest.mark.slow
def test_parts_give_the_same_bytes_in_any_order_of_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _in_parts(monkeypatch, tmp_path, "alone").do_open()
    backwards = _in_parts(monkeypatch, tmp_path, "backwards")
    for block in backwards.blocks[::-1]:
        backwards.do(block)
    begun = _in_parts(monkeypatch, tmp_path, "begun")
    begun.do(begun.blocks[3])
    made = {}
    for name in ("alone", "backwards", "begun"):
        run = _in_parts(monkeypatch, tmp_path, name)
        run.do_open()
        run.merge()
        made[name] = [(tmp_path / name / table).read_bytes() for table in ("scores.parquet", "edits.parquet")]
    assert all(tables == made["alone"] for tables in made.values())


def test_a_later_block_without_a_score_does_not_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _in_parts(monkeypatch, tmp_path, "run")
    none = ClozeScore(math.nan, 0, False, "too long")
    monkeypatch.setattr(type(run.scorer), "score", lambda _, clozes: [none] * len(clozes))
    assert {score.status for score in run.before.of(run.blocks[-1].units).scores.values()} == {"too long"}
    with pytest.raises(PromptError, match=r"none of the \d+ questions can be scored"):
        run.before.of(run.blocks[0].units)
