"""What judging will cost is known before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import write_table
from seesaw_cf.cli import main
from seesaw_cf.texts.flaws.judge import JudgeOptions, judge_pairs, judge_questions
from seesaw_cf.texts.job import JudgeCost, estimated_tokens, judge_cost

from .flaw_samples import pair, passages
from .test_wording import Echo


@given(st.integers(1, 6), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([(), ("sexism", "religion")]))
def test_as_many_calls_are_planned_as_are_made(number: int, swap: float, flaws: tuple[str, ...]) -> None:
    pairs, judge = [pair(at) for at in range(number)], Echo()
    how = JudgeOptions(flaws)
    judged = judge_pairs(pairs, judge, how, swap=swap)
    assert len(judge_questions(pairs, how, swap)) == len(judge.asked) == judged.counts["judgements"]
    assert judged.table.num_rows == number * (len(flaws) or 7)


def test_money_is_tokens_times_prices() -> None:
    assert judge_cost(["abcd", "abcde"], estimated_tokens, 10) == JudgeCost(2, 3, 20)
    found = judge_cost(["a" * 4000] * 1000, estimated_tokens, 100, tries=3, price_in=2.0, price_out=10.0)
    assert (found.prompt_tokens, found.new_tokens) == (1_000_000, 100_000)
    assert (found.money, found.most) == (3.0, 9.0)
    assert judge_cost(["abcd"], len, 1, price_out=1e6).money == 1.0
    assert estimated_tokens("") == 0


def test_the_command_says_it_and_asks_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"case_id": case, "phase": phase} for case in range(5) for phase in ("pre", "post")]
    write_table(tmp_path / "passages.parquet", passages(*rows))
    words = [
        "flaws",
        "judge",
        str(tmp_path / "passages.parquet"),
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
    ]
    words += ["--out", str(tmp_path / "judged"), "--sample", "2", "--swap", "0", "--flaws", "sexism", "--plan"]
    assert main([*words, "--price-in", "1", "--price-out", "2"]) == 0
    said = capsys.readouterr().out
    assert "2 pairs, 2 calls," in said
    assert "(one token for every four bytes), at most\n320 tokens written. Nothing was asked." in said
    assert "if every reply had to be asked for 3 times" in said
    assert not (tmp_path / "judged").exists()
