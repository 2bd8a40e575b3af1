"""Scores before any edit: found by every run that asks the same, and shared between the workers of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import TrieScorer
from seesaw_cf.scoring.pre_scores import blocks
from seesaw_cf.types import Cloze, ClozeScore
from tests.runner import small
from tests.tokenizer_styles import byte_level


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("seesaw_cf.run.runner.blocks", partial(blocks, size=10))


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
    assert len(first.parts) > 2
    expected = first.before
    assert len(scored.asked) == len(first.parts)
    assert scored.scorer.counts.forwards > 0
    assert again.before == expected
    assert idle.asked == []
    assert idle.scorer.counts.forwards == 0
    other, busy = _make(tmp_path / "c", threads=2)  # what can change rounding is not shared
    assert other.before.keys() == expected.keys()
    assert len(busy.asked) == len(first.parts)


def test_each_worker_begins_with_its_own_blocks_and_scores_what_the_others_have_not(tmp_path: Path) -> None:
    alone, _ = _make(tmp_path / "alone", block=2)
    alone.do_open()
    (tmp_path / "cache").rename(tmp_path / "cache.alone")
    starts = [part[0] for part in alone.parts]
    last, late = _make(tmp_path / "shared", block=2)
    last.do_open(1, 2)  # the other worker never comes
    assert late.asked[: len(starts)] == [*starts[1::2], *starts[::2]]
    files = sorted(path.name for path in (tmp_path / "cache.alone" / "pre").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "cache" / "pre").iterdir())
    for name in files:
        assert (tmp_path / "cache" / "pre" / name).read_bytes() == (
            tmp_path / "cache.alone" / "pre" / name
        ).read_bytes()
    alone.merge()
    last.merge()
    for table in ("scores.parquet", "edits.parquet"):
        assert (tmp_path / "alone" / table).read_bytes() == (tmp_path / "shared" / table).read_bytes()


def test_workers_at_the_same_time_score_each_block_once(tmp_path: Path) -> None:
    """The first shares done, each worker finds the other's blocks."""
    (one, first), (two, second) = (_make(tmp_path / "run") for _ in range(2))
    one.score_before(one.parts[0::2])
    two.score_before(two.parts[1::2])
    assert one.before == two.before
    assert len(first.asked) + len(second.asked) == len(one.parts)
