"""What a model knew, on three scales, and the locality gate: by hand and as laws."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.effects import group_effects, prompt_effects
from seesaw_cf.effects.accuracy import cross_property
from seesaw_cf.effects.answers import LEAST_LOCAL, answers, gold_odds, knowledge, locality, mark
from seesaw_cf.stats.clustered import clustered_mean
from seesaw_cf.stats.simple import proportion
from tests.effects.rows import estimate_groups, four, table

# Exact in binary, so that a common shift changes no difference.
CANDIDATES = st.lists(st.integers(-800, -8).map(lambda number: number / 8), min_size=2, max_size=12)


def first(n: int) -> Any:
    return np.arange(n) == 0


def logs(*probabilities: float) -> Any:
    return np.log(np.array(probabilities))


def test_rank_and_share_by_hand() -> None:
    # 0.5 is more than 0.3 and 0.1; its share is 0.5 / 0.9.
    found = knowledge(logs(0.5, 0.3, 0.1), first(3))
    assert found == {"n_candidates": 3, "true_rank": 1, "true_share": pytest.approx(5 / 9), "known": True}
    # 0.4 is more, and the tie with 0.2 counts against it: third; its share is 0.2 / 0.8.
    found = knowledge(logs(0.2, 0.2, 0.4), first(3))
    assert found == {"n_candidates": 3, "true_rank": 3, "true_share": pytest.approx(0.25), "known": False}


def test_candidates_without_a_score_are_left_out_and_nothing_is_said_without_a_comparison() -> None:
    nan = math.nan
    assert knowledge(np.array([-1.0, nan, -2.0]), first(3))["n_candidates"] == 2
    nothing = dict.fromkeys(("n_candidates", "true_rank", "true_share", "known"))
    assert knowledge(np.array([nan, -1.0]), first(2)) == nothing
    assert knowledge(np.array([-1.0, nan]), first(2)) == nothing
    assert knowledge(np.array([-1.0]), first(1)) == nothing


@given(CANDIDATES)
def test_shares_are_shares_and_follow_the_rank(values: list[float]) -> None:
    n = len(values)
    found = [knowledge(np.array(values), np.arange(n) == one) for one in range(n)]
    shares = [one["true_share"] for one in found]
    assert all(share is not None and 0 <= share <= 1 for share in shares)
    assert sum(share or 0.0 for share in shares) == pytest.approx(1.0)
    assert sum(one["known"] is True for one in found) <= 1
    for one in found:
        assert one["known"] is (one["true_rank"] == 1)
        assert 1 <= (one["true_rank"] or 0) <= n
        assert not one["known"] or one["true_share"] == max(share or 0.0 for share in shares)


Rows = Sequence[tuple[int, str, tuple[float, ...]]]
# Edit, person, and p(new), p(true) before and after.


def asked(rows: Rows, **rest: Any) -> pd.DataFrame:
    made = [
        row
        for number, (case, person, p) in enumerate(rows)
        for row in four(*map(math.log, p), case_id=case, prompt_id=number, subject_id=person, **rest)
    ]
    return prompt_effects(table(made))


def random_rows(n_edits: int = 8, n_people: int = 9, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    return [
        (edit, f"p{person}", tuple(rng.uniform(0.05, 0.45, 4)))
        for edit in range(n_edits)
        for person in rng.choice(2 * n_people, n_people, replace=False)
    ]


def test_share_has_the_inference_of_its_own_values() -> None:
    prompts = asked(random_rows())
    row = group_effects(prompts, axes=()).iloc[0]
    n = len(prompts)
    codes = {"edit": prompts["case_id"].to_numpy(), "person": pd.factorize(prompts["person"])[0]}
    odds = {phase: prompts[f"{phase}_new"] - prompts[f"{phase}_true"] for phase in ("pre", "post")}
    after, before = (1 / (1 + np.exp(-odds[phase].to_numpy(np.float64))) for phase in ("post", "pre"))
    values = after - before
    found = clustered_mean(values, [np.full(n, 1 / n)], codes)  # as many questions for each edit
    names = ("share", "share_low", "share_high", "share_stderr", "share_p", "share_df")
    expected = (found.value, found.low, found.high, found.stderr, found.p, found.df)
    assert tuple(row[name] for name in names) == pytest.approx(expected, rel=1e-9)
    again = estimate_groups(prompts, axes=()).iloc[0]
    assert tuple(again[name] for name in names) == pytest.approx(expected, rel=1e-9)


def property_rows(case: int, pre: tuple[float, ...], post: tuple[float, ...]) -> list[dict[str, Any]]:
    rest = {"case_id": case, "kind": "cross_property", "effect_relation": "P101", "role": "candidate"}
    return [
        rest | {"phase": phase, "target": name, "gold": name == "law", "logprob": math.log(p), "subject_id": f"Q{case}"}
        for phase, values in (("pre", pre), ("post", post))
        for name, p in zip(("law", "art", "sport"), values, strict=True)
    ]


def test_accuracy_on_three_scales_by_hand() -> None:
    """Case 1: share of the right answer 0.4 / 0.8 -> 0.1 / 0.8; case 2: 0.1 / 0.4 -> 0.2 / 0.4, right after only."""
    rows = property_rows(1, (0.4, 0.2, 0.2), (0.1, 0.6, 0.1)) + property_rows(2, (0.1, 0.2, 0.1), (0.2, 0.1, 0.1))
    found = cross_property(table(rows)).iloc[0]
    assert (found["pre"], found["post"], found["n_odds"]) == (0.5, 0.5, 2)
    assert found["share"] == pytest.approx(((0.125 - 0.5) + (0.5 - 0.25)) / 2)
    assert found["log_odds"] == pytest.approx((math.log(1 / 7) + math.log(3)) / 2)
    assert math.isnan(found["share_low"])
    odds = mark(answers(table(rows)))[["pre_odds", "post_odds"]].to_numpy()
    assert odds == pytest.approx(np.log([[1, 1 / 7], [1 / 3, 1]]))


@given(CANDIDATES, st.integers(-80, 0).map(lambda number: number / 8))
def test_a_common_factor_of_the_probabilities_changes_nothing(values: list[float], shift: float) -> None:
    one, other = (knowledge(np.array(values) + by, first(len(values))) for by in (0.0, shift))
    assert (one["true_rank"], one["known"]) == (other["true_rank"], other["known"])
    assert one["true_share"] == pytest.approx(other["true_share"], rel=1e-12)


@given(CANDIDATES, st.integers(0, 11))
def test_the_log_odds_are_those_of_the_share(values: list[float], one: int) -> None:
    true = np.arange(len(values)) == one % len(values)
    share = knowledge(np.array(values), true)["true_share"]
    assert share == pytest.approx(1 / (1 + math.exp(-gold_odds(np.array(values), true))), rel=1e-9)


Edit = list[tuple[bool, bool]]
"""(right before, right after) of each prompt about others."""


def scores(edits: list[Edit], kind: str = "neighborhood", holds: str = "target_true") -> pa.Table:
    logprobs = {True: (-2.0, -1.0), False: (-1.0, -2.0)}
    return table(
        row | {"editor": "ft"}
        for case, prompts in enumerate(edits)
        for number, (before, after) in enumerate(prompts)
        for row in four(*logprobs[before], *logprobs[after], case_id=case, kind=kind, prompt_id=number, holds=holds)
    )


@given(st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4), min_size=1, max_size=12))
def test_edits_are_counted_that_leave_half_of_the_right_answers(edits: list[Edit]) -> None:
    kept = [[after for before, after in prompts if before] for prompts in edits]
    shares = [sum(own) / len(own) for own in kept if own]
    counts = locality(scores(edits))
    if not shares:
        assert counts == {}
        return
    local = proportion(sum(share >= LEAST_LOCAL for share in shares), len(shares))
    every = [answers for prompts in edits for answers in prompts]
    assert counts["ft"].local == local
    assert counts["ft"].n_prompts == len(every)
    assert counts["ft"].before == pytest.approx(sum(before for before, _ in every) / len(every))
    assert counts["ft"].after == pytest.approx(sum(after for _, after in every) / len(every))


def test_without_neighbours_those_who_hold_the_old_answer_count() -> None:
    edits: list[Edit] = [[(True, False)]] * 8
    assert locality(scores(edits, "cross_subject"))["ft"].others == "people who hold the old answer"
    assert locality(scores(edits, "cross_subject", holds="target_new")) == {}
    assert locality(scores(edits, "efficacy")) == {}


def test_a_collapse_is_shown_or_it_is_none() -> None:
    """One of eight is below one half for certain, 95 % Wilson [0.02, 0.47]; two of eight are not, [0.07, 0.59]."""
    lost, left = [(True, False)] * 3, [(True, True)] * 3
    assert locality(scores([left] + [lost] * 7))["ft"].collapsed
    assert not locality(scores([left] * 2 + [lost] * 6))["ft"].collapsed
    assert not locality(scores([lost] * 3))["ft"].collapsed, "three edits show nothing"
