"""What a LEME run asks of its judge is known before it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError
from seesaw_cf.generation.types import Ask, Completion, Sampling
from seesaw_cf.texts.annotate.annotate import annotate
from seesaw_cf.texts.job import JudgeCost, LemeJob
from seesaw_cf.texts.rate.by_name import find_annotator, judge_rater
from seesaw_cf.texts.rate.survey import survey
from seesaw_cf.texts.run import judge_questions
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.write.claims import claim_pairs

from ..people.studies import write_run


class Asked:
    """A judge that counts how often it is asked."""

    name = "j"

    def __init__(self) -> None:
        self.calls = 0

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        self.calls += len(asks)
        return [Completion("3" if sampling.max_new_tokens == 64 else "Label: supports\nEvidence: none") for _ in asks]


def job(folder: Path, **more: Any) -> LemeJob:
    own = LemeJob("m", data=str(folder / "records.parquet"), judge="j", judge_url="http://127.0.0.1:9/v1")
    how: dict[str, Any] = {"annotator": "llm", "samples": 1, "max_new_tokens": 50, **more}
    return replace(own, **how)


def test_as_many_questions_are_planned_as_are_asked(tmp_path: Path) -> None:
    run = RunTexts(write_run(tmp_path / "run"))
    samples, asked = judge_questions(job(run.folder), run.folder)
    assert samples == len(run.samples) == 8
    judge = Asked()
    survey(run.samples, judge_rater(job(run.folder), judge))
    assert len(asked[64]) == judge.calls > 8 * 7
    annotator = find_annotator(job(run.folder), judge)
    assert annotator is not None
    annotate(claim_pairs(run.passages, run.records), annotator)
    assert len(asked[64]) + len(asked[160]) == judge.calls
    assert all("Statement:" in prompt for prompt in asked[64])
    samples, shipped = judge_questions(job(run.folder, annotator="lexical"), run.folder)
    assert (list(shipped), samples) == ([64], 8)


def test_texts_that_are_not_written_are_taken_at_full_length(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    samples, asked = judge_questions(job(folder), tmp_path / "nothing")
    assert samples == 8, "four cases, before and after one edit"
    shorter = judge_questions(job(folder, max_new_tokens=10), tmp_path / "nothing")[1]
    longest = max(map(len, asked[64])), max(map(len, shorter[64]))
    assert longest[0] - longest[1] == 2 * 40 * 4, "two passages of 40 tokens more, four bytes each"
    assert judge_questions(job(folder, samples=3, editors=("memit", "ft")), tmp_path / "nothing")[0] == 4 * 3 * 3


def test_the_command_says_the_cost_and_asks_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run")
    words = ["leme", "run", "--data", str(folder / "records.parquet"), "--config", "coupled_counterfact", "--plan"]
    words += ["--samples", "1", "--max-new-tokens", "20", "--out", str(tmp_path / "long")]
    assert main(words) == 1
    assert "no judge is named, and nothing else costs. Give --judge" in capsys.readouterr().err
    words += ["--judge", "j", "--judge-url", "http://127.0.0.1:9/v1"]
    assert main([*words, "--price-in", "1", "--price-out", "2", "--judge-tries", "2"]) == 0
    said = capsys.readouterr().out
    assert "8 pairs of passages (not written yet, taken at full length), 72 calls," in said
    assert "tokens written. Nothing was asked." in said
    assert "if every reply had to be asked for 2 times" in said
    assert not (tmp_path / "long").exists()


def test_costs_add_up() -> None:
    one = JudgeCost(2, 10, 20, 0.5, 1.0)
    assert one + JudgeCost(1, 1, 1, 0.25, 0.5) == JudgeCost(3, 11, 21, 0.75, 1.5)
    assert one + JudgeCost(1, 1, 1) == JudgeCost(3, 11, 21)


def test_without_coupled_records_there_is_nothing_to_rate(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="has no coupled records"):
        judge_questions(job(tmp_path, data="sample-small", configs=("open_ended",), limit=2), tmp_path)
