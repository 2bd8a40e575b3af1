"""Ratings of flaws, claims, surveys and agreement: by hand, and laws of turning, renaming and copying."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.ratings import open_ended_flaws
from seesaw_cf.errors import RecordError
from seesaw_cf.stats.agreement import Agreement, annotator_agreement
from seesaw_cf.types import Estimate

few = settings(derandomize=True, deadline=None, max_examples=10)
# One row per item, one rating per rater.
TABLE = st.lists(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=3, max_size=3), min_size=2, max_size=12)
Rows = Sequence[Sequence[float | None]]


def flaws(table: Rows, judge: str | None = None, raters: Sequence[str] = "xyz") -> Any:
    rows = [(str(item), "g", "f", rater, value) for item, own in enumerate(table) for rater, value in zip(raters, own)]
    return open_ended_flaws(pd.DataFrame(rows, columns=["item", "group", "flaw", "rater", "rating"]), judge=judge)


def mean(found: Any) -> Any:
    return found["flaws"]["g"]["f"]


def numbers(found: Any) -> list[float]:
    return [found[name] for name in ("mean", "low", "high", "stderr", "p")]


def test_agreement_of_raters_by_hand() -> None:
    """Rows 1 1 0 and 0 0 0. Equal pairs per row: 1 of 3 and 3 of 3, mean 2/3; labels: two of six are 1.

    Fleiss: chance 1/9 + 4/9 = 5/9, kappa (2/3 - 5/9) / (4/9) = 1/4. Krippendorff: unequal ordered pairs 4, each by
    1/(3 - 1): 2 of 6 observed; expected 2 * 2 * 4 of 6 * 5; alpha 1 - (2/6) / (16/30) = 3/8.
    """
    found = flaws([[1, 1, 0], [0, 0, 0]])
    agreement = found["agreement"]["f"]
    assert agreement["fleiss"] == pytest.approx(1 / 4)
    assert agreement["krippendorff"] == pytest.approx(3 / 8)
    assert (agreement["all_equal"], agreement["n_items"]) == (0.5, 2)
    row = mean(found)
    assert (row["mean"], row["n_ratings"], row["n_items"], row["n_missing"]) == (pytest.approx(1 / 3), 6, 2, 0)
    # pooled: two of six are 1, s^2 = (2 * (2/3)^2 + 4 * (1/3)^2) / 5 = 4/15, t = (1/3) / sqrt(4/90) = 1.5811 (5 df)
    assert row["p_paper"] == pytest.approx(0.17471, abs=1e-4)


def test_a_judge_by_both_rules_and_by_hand() -> None:
    """People 1 1 / -1 0 / 0 0 / - -; judge 1, 0, 1, 1. Any rater: right, right, wrong.

    Median: 1, none (one says before, one equal), 0: right, split, wrong. Answering 0: any rater on rows 2 and 3, median
    on row 3 of the two that have one.
    """
    found = flaws([[1, 1, 1], [-1, 0, 0], [0, 0, 1], [None, None, 1]], judge="z")
    judge = found["judge"]["f"]
    assert (judge["n"], judge["n_split"], judge["n_unmatched"]) == (3, 1, 1)
    assert judge["judge"] == {"any_rater": pytest.approx(2 / 3), "median": 1 / 2}
    assert judge["constant"] == {"any_rater": pytest.approx(2 / 3), "median": 1 / 2}
    assert mean(found)["n_ratings"] == 6
    nobody = flaws([[None, None, 1], [None, None, 0]], judge="z")["judge"]
    assert nobody["f"] == {"n": 0, "n_split": 0, "n_unmatched": 2}


@few
@given(TABLE)
def test_turning_every_rating_around_turns_the_mean_and_nothing_else(table: Rows) -> None:
    one, other = flaws(table), flaws([[-value for value in own if value is not None] for own in table])
    value, low, high, stderr, p = numbers(mean(one))
    assert numbers(mean(other)) == pytest.approx([-value, -high, -low, stderr, p], nan_ok=True)
    assert mean(other)["p_paper"] == pytest.approx(mean(one)["p_paper"], nan_ok=True)
    for name in ("krippendorff", "fleiss", "all_equal"):
        here, there = (each["agreement"]["f"][name] for each in (one, other))
        assert there == pytest.approx(here, nan_ok=True)


@few
@given(TABLE, st.permutations(range(3)))
def test_order_and_names_of_raters_carry_no_information(table: Rows, order: list[int]) -> None:
    one, other = flaws(table), flaws([[own[i] for i in order] for own in table], raters=("p", "q", "r"))
    assert numbers(mean(other)) == pytest.approx(numbers(mean(one)), nan_ok=True)
    assert other["agreement"]["f"]["krippendorff"] == pytest.approx(one["agreement"]["f"]["krippendorff"], nan_ok=True)


@few
@given(TABLE)
def test_copies_of_items_and_raters_keep_the_mean(table: Rows) -> None:
    once, items = mean(flaws(table)), mean(flaws([*table, *table, *table]))
    raters = mean(flaws([[*own, *own] for own in table], raters="abcdef"))
    assert [items["mean"], raters["mean"]] == pytest.approx([once["mean"]] * 2)


@few
@given(TABLE)
def test_a_judge_who_says_what_somebody_says_is_always_right_by_the_published_rule(table: Rows) -> None:
    echo = flaws([[own[0], own[1], own[0]] for own in table], judge="z")["judge"]["f"]
    assert echo["judge"]["any_rater"] == 1
    split = sum(own[0] != own[1] for own in table)
    assert echo["n_split"] == split
    assert split == len(table) or echo["judge"]["median"] == 1, "where two people agree, both are in the middle"
    unanimous = flaws([[own[0]] * 3 for own in table], judge="z")["judge"]["f"]
    assert unanimous["judge"] == {"any_rater": 1, "median": 1}
    zeros = sum(own[0] == 0 for own in table) / len(table)
    assert unanimous["constant"] == pytest.approx({"any_rater": zeros, "median": zeros})


def agreement(table: Rows, names: Sequence[str] | None = None) -> Agreement:
    return annotator_agreement(table, names=names, draws=0)


def test_agreement_of_two_by_hand() -> None:
    """Rows 1 1, 1 1, 0 0, 1 0: 75 per cent; shares of 1 are 3/4 and 1/2, chance 1/2; kappa (3/4 - 1/2) / (1/2)."""
    found = agreement([[1, 1], [1, 1], [0, 0], [1, 0], [1, None]], ["a", "b"])
    assert found.percent["a/b"].value == found.percent["all"].value == 75
    assert found.cohen["a/b"].value == pytest.approx(0.5)
    # all labels of the four whole rows: five 1, three 0; chance 25/64 + 9/64 = 34/64; (48 - 34) / (64 - 34)
    assert found.fleiss.value == pytest.approx(14 / 30)
    # two unequal ordered pairs of 8; expected 2 * 5 * 3 of 8 * 7; alpha 1 - (2/8) / (30/56)
    assert [found.krippendorff[level].value for level in ("nominal", "interval")] == pytest.approx([8 / 15] * 2)
    assert (found.n_items, found.n_missing, found.fleiss.n) == (5, 1, 4)
    assert found.majority_share == pytest.approx(6 / 9)


@few
@given(TABLE, st.permutations(range(3)))
def test_agreement_does_not_know_who_is_who(table: Rows, order: list[int]) -> None:
    one, other = agreement(table, [*"abc"]), agreement([[own[i] for i in order] for own in table], [*"abc"])
    for name in ("fleiss", "majority_share"):
        values = (getattr(each, name) for each in (one, other))
        here, there = (value.value if isinstance(value, Estimate) else value for value in values)
        assert there == pytest.approx(here, nan_ok=True)
    for level, found in one.krippendorff.items():
        assert other.krippendorff[level].value == pytest.approx(found.value, nan_ok=True)
    pairs = [sorted(each.value for name, each in found.percent.items() if name != "all") for found in (one, other)]
    assert pairs[0] == pytest.approx(pairs[1])


@few
@given(TABLE, st.sampled_from([-3.0, 0.5, 2.0, 1e150, 1e308]), st.sampled_from([0.0, 7.0]))
def test_unit_and_origin_of_labels_carry_no_information(table: Rows, unit: float, origin: float) -> None:
    """Alpha of the interval level in any unit, even where squares of differences are beyond every float."""
    moved = [[value * unit + origin * min(1.0, abs(unit)) for value in own if value is not None] for own in table]
    one, other = agreement(table), agreement(moved)
    for level in ("nominal", "interval"):
        assert other.krippendorff[level].value == pytest.approx(one.krippendorff[level].value, nan_ok=True, abs=1e-9)
    assert other.cohen["1/2"].value == pytest.approx(one.cohen["1/2"].value, nan_ok=True)
    assert other.percent["all"].value == one.percent["all"].value


@few
@given(TABLE)
def test_missing_items_are_counted_and_change_nothing(table: Rows) -> None:
    one, other = agreement(table), agreement([*table, [None, math.nan, None]])
    assert (other.n_items, other.n_missing) == (one.n_items + 1, one.n_missing + 3)
    assert other.fleiss == one.fleiss or math.isnan(one.fleiss.value)
    for level, found in one.krippendorff.items():
        assert other.krippendorff[level].value == pytest.approx(found.value, nan_ok=True)


@pytest.mark.parametrize("label", [math.inf, -math.inf, 10**400, "1", True, [1.0]])
def test_labels_are_finite_numbers(label: object) -> None:
    with pytest.raises(RecordError, match=r"ratings.* expected "):
        annotator_agreement([[0, 1], [0, label]])  # type: ignore[list-item]


def test_every_annotator_has_a_name_of_their_own() -> None:
    with pytest.raises(RecordError, match="2 names for 2 annotators, 1 of them different"):
        annotator_agreement([[0, 1]], names=["a", "a"])


def test_intervals_of_agreement_are_drawn_over_items() -> None:
    rng = np.random.default_rng(0)
    table = np.where(rng.random((60, 2)) < 0.8, np.arange(60)[:, None] % 2, rng.integers(0, 2, (60, 2)))
    found = annotator_agreement(table.astype(float).tolist(), draws=200)
    for one in (found.percent["1/2"], found.cohen["1/2"], found.fleiss, found.krippendorff["nominal"]):
        assert one.low < one.value < one.high
    # Alpha of many items is kappa of all labels together: (1 - alpha) = (1 - kappa) (n - 1) / n for n labels.
    assert 1 - found.krippendorff["nominal"].value == pytest.approx((1 - found.fleiss.value) * 119 / 120)
