"""Agreement figures against the libraries, and Table 21 on the public ratings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError
from seesaw_cf.stats.agreement import LEVELS, Coefficient, Kind, agreement, agreement_interval, annotator_agreement
from seesaw_cf.stats.plain import as_json

FLAWS = ["Anglo-centrism", "Sexism", "Religious Injection", "Xenophobia", "Classism", "Racism"]
FLAWS += ["Injection of Conservatism"]
# PEER_FACTS B5: percent agreement on all 300 rows (the papers' 252 cannot be recovered)
TABLE21 = {
    "A1/A2": [75.0, 89.0, 91.7, 86.7, 95.0, 94.7, 89.3],
    "A1/A3": [73.3, 83.0, 92.3, 90.0, 92.7, 95.3, 90.0],
    "A2/A3": [82.0, 81.0, 95.7, 88.3, 93.3, 96.3, 95.3],
    "all": [66.0, 77.0, 90.0, 82.7, 90.7, 93.3, 87.3],
}
ALPHA = [0.17, 0.52, 0.36, 0.21, 0.28, 0.22, 0.10]


@pytest.mark.parametrize("seed", range(5))
def test_random_ratings_agree_with_the_libraries(seed: int) -> None:
    krippendorff = pytest.importorskip("krippendorff", reason="krippendorff is not installed")
    rater = pytest.importorskip(
        "statsmodels.stats.inter_rater", reason="statsmodels.stats.inter_rater is not installed"
    )
    rng = np.random.default_rng(seed)
    truth = rng.integers(-1, 2, 60)
    table = np.where(rng.random((60, 3)) < 0.7, truth[:, None], rng.integers(-1, 2, (60, 3))).astype(float)
    assert agreement("fleiss", table) == pytest.approx(rater.fleiss_kappa(rater.aggregate_raters(table)[0]))
    cross = pd.crosstab(table[:, 0], table[:, 1]).reindex(index=[-1, 0, 1], columns=[-1, 0, 1], fill_value=0)
    assert agreement("cohen", table) == pytest.approx(rater.cohens_kappa(cross.to_numpy()).kappa)
    table[rng.random(table.shape) < 0.2] = np.nan
    for level in LEVELS:
        expected = krippendorff.alpha(reliability_data=table.T, level_of_measurement=level)
        assert agreement(level, table) == pytest.approx(expected)


@st.composite
def tables(draw: st.DrawFn) -> list[list[float]]:
    """Two to eight items with two to four annotators each, some labels missing."""
    width = draw(st.integers(2, 4))
    label = st.sampled_from([float("nan"), -1.0, 0.0, 1.0, 3.0])
    return draw(st.lists(st.lists(label, min_size=width, max_size=width), min_size=2, max_size=8))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(("cohen", "fleiss", *LEVELS)))
def test_an_influence_is_what_leaving_an_item_out_does(rows: list[list[float]], kind: Kind) -> None:
    table = np.array(rows)
    coefficient = Coefficient(kind, np.unique(table[~np.isnan(table)]))
    parts = coefficient.parts(table)
    whole, without = agreement(kind, table), agreement(kind, table[1:])
    assert coefficient.of(parts) == pytest.approx(whole, nan_ok=True, abs=1e-9)
    moved = (len(table) - 1) * (whole - without)
    assert coefficient.influences(parts)[0] == pytest.approx(moved, nan_ok=True, abs=1e-6)


def test_items_of_one_group_count_once() -> None:
    rows: list[list[float | None]] = [[0.0, 0], [1, 1], [0, 1], [1, 0], [1, 1], [0, 0]]
    once = annotator_agreement(rows, seed=3)
    twice = annotator_agreement([row for row in rows for _ in range(2)], groups=[n for n in range(6) for _ in "ab"])
    apart = annotator_agreement([row for row in rows for _ in range(2)])
    for name, one, grouped, free in (
        ("percent", once.percent["all"], twice.percent["all"], apart.percent["all"]),
        ("kappa", once.cohen["1/2"], twice.cohen["1/2"], apart.cohen["1/2"]),
    ):
        assert (grouped.high - grouped.low) == pytest.approx(one.high - one.low, rel=0.05), name
        assert (free.high - free.low) < 0.85 * (grouped.high - grouped.low), name
    assert twice.percent["all"].n == 12


def test_where_no_interval_can_be_right_none_is_claimed() -> None:
    one_label = annotator_agreement([[0, 0]] * 40).krippendorff["nominal"]
    assert np.isnan([one_label.value, one_label.low]).all()
    assert one_label.note == "no two different ratings"
    one_item = annotator_agreement([[0, 0]] * 40 + [[0, 1]]).krippendorff["nominal"]
    assert np.isfinite(one_item.value)
    assert np.isnan([one_item.low, one_item.high]).all()
    assert one_item.note == "1 with another label than the commonest: too few"
    full = annotator_agreement([[0, 0]] * 20 + [[1, 1]] * 20)
    assert full.krippendorff["nominal"].value == full.krippendorff["nominal"].high == 1
    assert 0.5 < full.krippendorff["nominal"].low < 0.95
    assert full.percent["all"].high == 100
    assert 85 < full.percent["all"].low < 95
    without = annotator_agreement([[0, 0], [1, 1], [0, 1]] * 5, draws=0)
    for figure in (without.percent["all"], without.fleiss):
        assert np.isnan([figure.low, figure.high]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("common", "level", "shape", "alpha"),
    [
        ((0.9, 0.1), "nominal", (30, 2), 0.2),
        ((0.5, 0.5), "nominal", (12, 5), 0.2),
        ((0.1, 0.2, 0.4, 0.2, 0.1), "ordinal", (30, 2), 0.8),
    ],
)
def test_intervals_hold_the_alpha_that_items_were_made_with(
    common: tuple[float, ...], level: Kind, shape: tuple[int, int], alpha: float
) -> None:
    """A rater gives an item's own label with probability sqrt(alpha), else one by chance."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(120):
        own, by_chance = rng.choice(len(common), (shape[0], 1), p=common), rng.choice(len(common), shape, p=common)
        table = np.where(rng.random(shape) < alpha**0.5, own, by_chance).astype(np.float64)
        coefficient = Coefficient(level, np.unique(table))
        found = agreement_interval(table, np.arange(len(table)), coefficient, 1000, 0)
        held += [] if found.note else [found.low <= alpha <= found.high]
    assert len(held) > 108
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize("groups", [["a"] * 8, ["a", "b", "c", "d"] * 2])
def test_few_edits_have_no_interval(groups: list[str]) -> None:
    rows = [[1, 1], [1, 0], [0, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 0]]
    found = annotator_agreement(rows, groups=groups, draws=50)
    for one in (found.cohen["1/2"], found.fleiss, found.krippendorff["ordinal"], found.percent["all"]):
        assert np.isfinite(one.value)
        assert np.isnan([one.low, one.high]).all()
        assert one.note.startswith("too few")
    assert found.fleiss.note == f"too few items or groups ({len(set(groups))})"
    # Of five edits only four were rated by both.
    missing = annotator_agreement([*rows, [1, None]], groups=[*"abcdabcd", "e"], draws=50)
    assert missing.krippendorff["nominal"].note == "too few items or groups (4)"
    assert np.isfinite(annotator_agreement([*rows, [1, 0]], groups=[*"abcdabcd", "e"], draws=50).fleiss.low)


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ([[1], [1, 2]], {}, r"items have \[1, 2\] labels"),
        ([[0, 0], [1, 2]], {"scale": [-1, 0, 1]}, r"1 labels outside the scale .*first: 2 of annotator 2 on item 1"),
        ([[0, 0]], {"names": ["x"]}, "1 names for 2 annotators"),
        ([[0, 0]] * 6, {"groups": ["a", "b"]}, "6 items and 2 group codes"),
    ],
)
def test_bad_ratings(rows: list[list[float]], more: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        as_json(annotator_agreement)(rows, **more)


def test_table_21_on_all_public_rows(reference: Callable[..., Path]) -> None:
    raters = [pd.read_csv(reference("annotators", f"a{i}.csv")) for i in (1, 2, 3)]
    for place, flaw in enumerate(FLAWS):
        rows = np.array([frame[flaw].fillna(1.5) for frame in raters]).T.tolist()  # blank = equal, as published
        found = as_json(annotator_agreement)(rows, names=["A1", "A2", "A3"], scale=[1, 1.5, 2], draws=0)
        for pair, percents in TABLE21.items():
            assert round(found["percent"][pair]["value"], 1) == percents[place], (flaw, pair)
        assert round(found["krippendorff"]["nominal"]["value"], 2) == ALPHA[place], flaw
