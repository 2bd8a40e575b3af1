"""Ratings of flaws and agreement of raters: by hand, laws of turning, renaming and copying; Table 6."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seesaw_cf.effects.ratings import open_ended_flaws
from seesaw_cf.errors import RecordError
from seesaw_cf.stats.agreement import Agreement, annotator_agreement
from seesaw_cf.stats.plain import as_json
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
@given(TABLE, st.permutations(range(3)))
def test_signs_order_and_copies_of_ratings(table: Rows, order: list[int]) -> None:
    # turning every rating around turns the mean and nothing else
    one, other = flaws(table), flaws([[-value for value in own if value is not None] for own in table])
    value, low, high, stderr, p = numbers(mean(one))
    assert numbers(mean(other)) == pytest.approx([-value, -high, -low, stderr, p], nan_ok=True)
    assert mean(other)["p_paper"] == pytest.approx(mean(one)["p_paper"], nan_ok=True)
    for name in ("krippendorff", "fleiss", "all_equal"):
        here, there = (each["agreement"]["f"][name] for each in (one, other))
        assert there == pytest.approx(here, nan_ok=True)
    # order and names of raters carry no information
    one, other = flaws(table), flaws([[own[i] for i in order] for own in table], raters=("p", "q", "r"))
    assert numbers(mean(other)) == pytest.approx(numbers(mean(one)), nan_ok=True)
    assert other["agreement"]["f"]["krippendorff"] == pytest.approx(one["agreement"]["f"]["krippendorff"], nan_ok=True)
    # copies of items and raters keep the mean
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


# PEER_FACTS B5: sums over the ratings of all 300 rows
SUMS = {
    "work": [-16, 7, 6, -2, -1, 1, -10],
    "gender": [-3, 154, -1, -4, 7, -3, -4],
    "citizenship": [-3, 1, 21, 55, 15, 19, 4],
}


def rated(rng: np.random.Generator, raters: int, edits: int, samples: int = 5) -> Any:
    """The mean rating where nothing changed, but edits, raters and pairs have inclinations of their own."""
    shape = (edits, samples, raters)
    score = rng.normal(0, 0.7, (edits, 1, 1)) + rng.normal(0, 0.5, raters) + rng.normal(0, 0.5, (edits, samples, 1))
    score = score + rng.normal(0, 0.7, shape)
    rating = np.sign(score) * (np.abs(score) > 0.6)
    edit, sample, rater = (place.ravel().astype(str).tolist() for place in np.indices(shape))
    item = [f"{one}/{other}" for one, other in zip(edit, sample)]
    rows = {"item": item, "group": ["x"] * len(item), "flaw": ["x"] * len(item), "rater": rater, "edit": edit}
    found: Any = open_ended_flaws(rows | {"rating": rating.ravel()})
    return found["flaws"]["x"]["x"]


def test_mean_and_clustered_error_by_hand() -> None:
    first = [1.0, 0, 0, 1, 0, -1, 0, 1]
    row = mean(flaws([[value] * 5 for value in first], raters="ABCDE"))
    assert (row["mean"], row["n_ratings"], row["n_items"]) == (pytest.approx(0.25), 40, 8)
    # Of 5 equal raters there is no variance: what is left is that over 8 edits.
    assert row["stderr"] ** 2 / np.var(first) == pytest.approx(1 / 7)
    assert row["p_paper"] < row["p"]
    assert row["note"] == "edits not given: pairs of one edit count as independent"


@pytest.mark.parametrize(
    ("raters", "edits", "note"), [(3, 15, "too few raters: 3,"), (6, 3, "too few edits: 3,"), (6, 15, "")]
)
def test_no_interval_below_five_edits_or_raters(raters: int, edits: int, note: str) -> None:
    found = rated(np.random.default_rng(0), raters, edits)
    assert found["note"].startswith(note)
    assert bool(found["note"]) is math.isnan(found["low"]) is bool(note)


@pytest.mark.slow
def test_edits_and_raters_of_their_own_make_no_effect() -> None:
    """15 edits of five samples, six biased raters: one test in twenty errs; by pairs alone, nearly one in three."""
    rng = np.random.default_rng(0)
    assert sum(rated(rng, 6, 15)["p"] < 0.05 for _ in range(100)) <= stats.binom.ppf(1 - 1e-5, 100, 0.07)


def test_table_6_formula_on_all_public_rows(reference: Callable[..., Path]) -> None:
    long = []
    for name in ("a1", "a2", "a3"):
        frame = pd.read_csv(reference("annotators", f"{name}.csv"))
        flaws = list(frame.columns[6:13])
        melted = frame.assign(item=[str(i) for i in range(len(frame))]).melt(["item", "props"], flaws)
        long.append(melted.assign(rater=name, rating=2 * (melted["value"].fillna(1.5) - 1.5)))  # blank = equal
    rows = pd.concat(long)
    rows = rows.drop(columns="value").rename(columns={"props": "group", "variable": "flaw"})
    result = as_json(open_ended_flaws)(rows)["flaws"]
    for folder, name in {"P101_P21": "work", "P21_P101": "gender", "P27_P21": "citizenship"}.items():
        assert [round(result[folder][flaw]["mean"] * 300) for flaw in flaws] == SUMS[name]
        assert all(result[folder][flaw]["n_ratings"] == 300 for flaw in flaws)
    # starred in the papers: sexism after gender edits, xenophobia after citizenship edits; three raters are too few
    for row in (result["P21_P101"]["Sexism"], result["P27_P21"]["Xenophobia"]):
        assert row["p_paper"] < 0.001
        assert row["p"] is None
