"""Which answers a true target is ranked among before an edit, and what the table of edits then says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from seesaw_cf.run.questions import MOST_CANDIDATES, candidates_of
from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Case, Cloze, EditRequest, Entity
from tests.runner import small
from tests.tokenizer_styles import byte_level


def case(number: int, true: str, new: str, subject: str = "", relation: str = "P19") -> Case:
    request = EditRequest("{} was born in", subject or f"S{number}", relation, Entity(None, new), Entity(None, true))
    return Case(number, request)


def test_every_target_of_the_relation_is_a_candidate_the_own_ones_first() -> None:
    found = candidates_of([case(1, "Paris", "Rome"), case(2, "Oslo", "Paris"), case(3, "law", "art", relation="P101")])
    assert found.of(case(1, "Paris", "Rome")) == ("Paris", "Rome", "Oslo")
    assert found.of(case(3, "law", "art", relation="P101")) == ("law", "art")
    assert found.clozes(case(1, "Paris", "Rome"))[2] == Cloze("S1 was born in", "Oslo")


def test_what_is_also_true_of_the_subject_is_no_competitor() -> None:
    records = [
        case(1, "Paris", "Rome", "Ada"),
        case(2, "Oslo", "Rome", "Ada"),
        replace(case(3, "x", "y", "Ada", "P27"), effect_relation_id="P19", candidates=("Bonn", "Kyiv"), gold=("Bonn",)),
        case(4, "Riga", "Rome", "Bob"),
    ]
    assert set(candidates_of(records).of(records[0])) == {"Paris", "Rome", "Kyiv", "Riga"}
    assert set(candidates_of(records).of(records[3])) == {"Riga", "Rome", "Paris", "Oslo", "Bonn", "Kyiv"}


def test_there_are_never_more_than_stated_and_the_seed_draws_them() -> None:
    records = [case(number, f"T{number:03d}", f"N{number:03d}") for number in range(40)]
    one, same, other = (candidates_of(records, seed).of(records[0]) for seed in (0, 0, 1))
    assert len(one) == len(set(one)) == MOST_CANDIDATES
    assert one[:2] == ("T000", "N000")
    assert one == same != other
    assert candidates_of(reversed(records)).of(records[0]) == one


@pytest.mark.slow
def test_a_run_scores_the_candidates_before_the_edit(tmp_path: Path) -> None:
    base, tokenizer, made = small.model(), byte_level(bos=False), small.cases()
    extra = [case(100 + number, f"City {number}", "London") for number in range(3)]
    found = candidates_of([*made, *extra])
    run = Run(
        base, tokenizer, HFScorer(base, tokenizer), {"nudge": small.Nudge()}, made, small.manifest(base), tmp_path,
        progress=False, candidates=found,
    )  # fmt: skip
    run.complete()
    rows = pq.read_table(tmp_path / "edits.parquet").to_pylist()
    for row, asked in zip(rows, made, strict=True):
        scores = HFScorer(base, tokenizer).score(found.clozes(asked))
        logprobs = np.array([score.logprob for score in scores])
        assert row["candidates"] == list(found.of(asked))
        assert row["candidates_pre"] == pytest.approx(logprobs.tolist(), abs=1e-4)
        assert row["n_candidates"] == len(logprobs) == (5 if asked.request.relation_id == "P19" else 2)
        assert row["candidates_pre"][:2] == pytest.approx([row["true_pre"], row["new_pre"]], abs=0)
        assert row["true_rank"] == 1 + int((logprobs[1:] >= logprobs[0]).sum())
        assert row["true_share"] == pytest.approx(math.exp(logprobs[0]) / np.exp(logprobs).sum(), rel=1e-3)
        assert row["known"] is (row["true_rank"] == 1)
    scored = pq.read_table(tmp_path / "scores.parquet")["target"].to_pylist()
    assert not {name for name in scored if name.startswith("City")}, "candidates are not asked after the edit"
