"""Regard, attack scores and what scorers add: by hand, and laws of swapping, shifting and copying."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.regard import REGARDS, IdentityScores, attack_summary, overall_regard, prefix_effect, scorer_bias
from seesaw_cf.errors import RecordError
from seesaw_cf.types import Estimate

few = settings(derandomize=True, deadline=None, max_examples=8)
LABELLED = st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from([*REGARDS, None])), min_size=2, max_size=25)
# 64ths: sums, halves and differences of them are exact.
SCORED = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 32).map(lambda n: n / 64)), min_size=2, max_size=20)


def regard(rows: Sequence[tuple[str, str | None]], draws: int = 30) -> dict[str, IdentityScores]:
    names, found = zip(*rows, strict=True)
    return dict(overall_regard(names, found, draws=draws).identities)


def attack(rows: Sequence[tuple[str, float]], draws: int = 30) -> dict[str, IdentityScores]:
    names, found = zip(*rows, strict=True)
    return dict(attack_summary(names, found, draws=draws).identities)


def close(one: Estimate, other: Estimate, names: Sequence[str] = ("value", "low", "high")) -> bool:
    found, expected = ([getattr(each, name) for name in names] for each in (one, other))
    return found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def turned(one: Estimate) -> Estimate:
    return Estimate(-one.value, -one.high, -one.low, one.stderr, one.p)


SWAP = {"positive": "negative", "negative": "positive"}


@few
@given(LABELLED)
def test_swapping_good_and_bad_turns_every_number_around(rows: list[tuple[str, str | None]]) -> None:
    found, swapped = regard(rows), regard([(name, SWAP.get(label or "", label)) for name, label in rows])
    for name, one in found.items():
        other = swapped[name]
        assert close(other.mean, turned(one.mean), ("value", "low", "high", "stderr"))
        assert close(other.more["overall"], turned(one.more["overall"]))
        assert close(other.contrast.estimate, turned(one.contrast.estimate), ("value", "low", "high", "p"))
        assert (other.counts["n_positive"], other.counts["n_neutral"]) == (
            one.counts["n_negative"],
            one.counts["n_neutral"],
        )


@few
@given(LABELLED)
def test_neutral_and_other_count_alike_in_the_mean(rows: list[tuple[str, str | None]]) -> None:
    one_kind = [(name, "neutral" if label == "other" else label) for name, label in rows]
    for name, one in regard(rows).items():
        other = regard(one_kind)[name]
        assert close(other.mean, one.mean)
        assert other.counts["n_neutral"] == one.counts["n_neutral"] + one.counts["n_other"]


@few
@given(LABELLED)
def test_overall_is_the_mean_times_the_number_and_the_labels_add_up(rows: list[tuple[str, str | None]]) -> None:
    for name, one in regard(rows).items():
        assert sum(one.counts.values()) == one.mean.n
        assert one.mean.n + one.n_unscored == sum(own == name for own, _ in rows)
        if one.mean.n:
            assert one.more["overall"].value == pytest.approx(one.mean.value * one.mean.n)


@few
@given(LABELLED, st.integers(1, 5))
def test_statements_without_a_score_are_counted_and_change_nothing(
    rows: list[tuple[str, str | None]], more: int
) -> None:
    names = sorted({name for name, _ in rows})
    found, padded = regard(rows), regard([*rows, *((name, "") for name in names for _ in range(more))])
    for name, one in found.items():
        assert padded[name].n_unscored == one.n_unscored + more
        assert close(padded[name].mean, one.mean)
        assert close(padded[name].contrast.estimate, one.contrast.estimate, ("value", "p"))


@few
@given(LABELLED)
def test_copies_inside_a_cluster_are_no_evidence(rows: list[tuple[str, str | None]]) -> None:
    names, labels = (list(column) for column in zip(*rows, strict=True))
    runs = [number % 4 for number in range(len(rows))]
    once = overall_regard(names, labels, runs, draws=30).identities
    often = overall_regard(names * 3, labels * 3, runs * 3, draws=30).identities
    for name, one in once.items():
        assert close(often[name].mean, one.mean, ("value", "low", "high", "stderr"))
        assert close(often[name].contrast.estimate, one.contrast.estimate, ("value", "low", "high", "p"))
        assert often[name].mean.clusters == one.mean.clusters
        assert often[name].more["overall"].value == 3 * one.more["overall"].value


def test_two_identities_are_each_others_rest() -> None:
    """Holm over two equal p-values doubles them."""
    rows = [("A", ("positive", "neutral")[n % 2]) for n in range(12)]
    rows += [("B", ("negative", "neutral")[n % 3 > 0]) for n in range(12)]
    found = regard(rows)
    a, b = found["A"].contrast, found["B"].contrast
    # A: 6 of 12 positive, 0.5. B: 4 of 12 negative, -1/3.
    assert a.estimate.value == pytest.approx(0.5 + 1 / 3)
    assert b.estimate.value == pytest.approx(-a.estimate.value)
    assert b.estimate.p == pytest.approx(a.estimate.p)
    assert a.p_adjusted == b.p_adjusted == pytest.approx(min(1.0, 2 * a.estimate.p))


@few
@given(SCORED)
def test_a_constant_shifts_scores_and_no_difference(rows: list[tuple[str, float]]) -> None:
    found, moved = attack(rows), attack([(name, score + 0.25) for name, score in rows])
    for name, one in found.items():
        other = moved[name]
        for here, there in ((one.mean, other.mean), *((one.more[q], other.more[q]) for q in ("q25", "median", "q75"))):
            shifted = Estimate(here.value + 0.25, here.low + 0.25, here.high + 0.25)
            assert close(there, shifted)
        assert close(other.more["iqr"], one.more["iqr"])
        assert close(other.contrast.estimate, one.contrast.estimate, ("value", "low", "high"))


@few
@given(SCORED)
def test_half_the_scores_are_half_of_every_number(rows: list[tuple[str, float]]) -> None:
    found, halved = attack(rows), attack([(name, score / 2) for name, score in rows])
    for name, one in found.items():
        pairs = [(one.mean, halved[name].mean), *((one.more[q], halved[name].more[q]) for q in one.more)]
        for here, there in pairs:
            assert close(there, Estimate(here.value / 2, here.low / 2, here.high / 2))


@few
@given(SCORED)
def test_quantiles_of_the_complement_are_the_complements(rows: list[tuple[str, float]]) -> None:
    found, other = attack(rows), attack([(name, 1 - score) for name, score in rows])
    for name, one in found.items():
        for here, there in (("q25", "q75"), ("median", "median"), ("q75", "q25")):
            assert other[name].more[there].value == pytest.approx(1 - one.more[here].value)
        assert other[name].more["iqr"].value == pytest.approx(one.more["iqr"].value)


def test_prefix_effect_by_hand() -> None:
    kind = ["r"] * 5 + ["g"] * 2
    identity = ["A", "B", "A", "B", "A", "C", "C"]
    found = prefix_effect(
        kind, identity, [0.3, 0.4, 0.1, 0.2, None, 0.5, 0.7], [True, True, False, False, True, True, True]
    )
    row = found["r"]
    assert (row.mean_with, row.mean_without) == pytest.approx((0.35, 0.15))
    assert (row.n_with, row.n_without, row.n_unscored) == (2, 2, 1)
    assert row.difference.estimate.value == pytest.approx(0.2)
    # {.3, .4} above {.1, .2}: one of the 6 orders, two-sided 2/6; the only tested class of its family
    assert row.rank.estimate.p == row.rank.p_adjusted == pytest.approx(1 / 3)
    alone = found["g"]
    assert alone.mean_with == pytest.approx(0.6)
    assert alone.n_without == 0
    assert alone.difference.estimate.note == "one side is empty"
    assert math.isnan(alone.mean_without)


def test_prefixes_swapped_turn_the_difference_around() -> None:
    scores = [((7 * n) % 24) / 24 for n in range(24)]
    kind, identity, prefixed = ["r"] * 24, [f"p{n % 8}" for n in range(24)], [n % 3 == 0 for n in range(24)]
    one = prefix_effect(kind, identity, scores, prefixed)["r"]
    other = prefix_effect(kind, identity, scores, [not p for p in prefixed])["r"]
    assert close(other.difference.estimate, turned(one.difference.estimate), ("value", "low", "high", "p"))
    assert other.rank.estimate.p == pytest.approx(one.rank.estimate.p)
    assert (other.mean_with, other.n_with) == (one.mean_without, one.n_without)


def test_scorer_bias_by_hand_and_turned() -> None:
    identity, content = ["A"] * 6 + ["B"] * 6, [*range(6)] * 2
    change = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.0, 0.1, -0.1, 0.0, 0.1, -0.1]
    found = scorer_bias(identity, content, change)
    a, b = found["A"], found["B"]
    assert (a.estimate.value, b.estimate.value) == pytest.approx((0.2, 0.0))
    # each sentence once: the error is s / sqrt(6), s of .1 .2 .3 .1 .2 .3 = sqrt(.04 / 5)
    assert a.estimate.stderr == pytest.approx(math.sqrt(0.04 / 5 / 6))
    assert b.estimate.p == b.p_adjusted == pytest.approx(1.0)
    assert a.p_adjusted == pytest.approx(2 * a.estimate.p)
    other = scorer_bias(identity, content, [-each for each in change])["A"].estimate
    assert close(other, turned(a.estimate), ("value", "low", "high", "p"))


def test_columns_of_another_kind_are_named() -> None:
    with pytest.raises(RecordError, match="lengths"):
        prefix_effect(["r"], ["A"], [0.1, 0.2], [True])
    with pytest.raises(RecordError, match=r"cluster\[1\] is None, expected a whole number"):
        overall_regard(["A", "B"], ["positive", "other"], np.array([1, None], dtype=object))  # type: ignore[arg-type]
