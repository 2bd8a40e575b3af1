"""Adjusted contrasts: what they take out, what they leave, and what they refuse."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from benchmarks.adjusted import PARTS, Labels, Part, invented
from benchmarks.report_level import sparse
from seesaw_cf.effects import AuditSettings, audit
from seesaw_cf.effects.adjusted import ESTIMANDS
from seesaw_cf.effects.groups import ALL
from seesaw_cf.errors import UnknownNameError
from seesaw_cf.report.audit import adjusted_contrasts
from seesaw_cf.stats import case_weights
from seesaw_cf.stats.adjustment import adjust_parts, precision_parts, residuals

SETTINGS = AuditSettings(permutations=99, noise_floor=0.0, noise_floor_log_odds=0.0)
decide = partial(audit, settings=SETTINGS, axes=["gender", "race"], holds=["target_new"])


def prompts(fame: str = "own", seed: int = 0) -> pd.DataFrame:
    """61 people under 20 edits, without any effect; what is known of their fame is said by name."""
    frame = sparse(np.random.default_rng(seed)).assign(edit_relation=ALL)
    number = frame["person"].str[1:].astype(int)
    women = np.array([tags == ["women"] for tags in frame["gender"]])
    laws: dict[str, pd.Series] = {
        "own": 3 + number % 7,
        "half": (3 + number % 7).where(number < 30),
        "none": pd.Series(np.nan, frame.index),
        "constant": number * 0 + 5,
        "gender": pd.Series(np.where(women, 40, 4)),
    }
    return frame.assign(sitelinks=laws[fame], held_share_pre=0.6, known=(number % 3 == 0).astype("boolean"))


def women_of(table: pd.DataFrame) -> pd.Series:
    return table[table["group"] == "women"].iloc[0]


def test_an_adjusted_contrast_is_the_groups_coefficient_in_a_regression() -> None:
    rng = np.random.default_rng(1)
    case, x = np.repeat(np.arange(12), 15), rng.normal(size=(180, 2))
    member = rng.random(180) < 0.4
    y = (0.7 * x[:, :1] - 0.3 * x[:, 1:] + 0.2 * member[:, None] + rng.normal(size=(180, 1))) + case[:, None]
    parts = [case_weights(case, side) for side in (member, ~member)]
    adjusted = adjust_parts(parts, y, x, case)
    weight = np.sqrt(parts[0] + parts[1])[:, None]
    levels = np.eye(24)[
        2 * case + member
    ]  # an edit's two sides have levels of their own; their differences are averaged
    fitted = np.linalg.lstsq(weight * np.column_stack([levels, x]), weight * y, rcond=None)[0][:24, 0]
    value = (adjusted.parts[0] - adjusted.parts[1]) @ y
    assert value[0] == pytest.approx((fitted[1::2] - fitted[::2]).mean(), abs=1e-9)
    assert [part.sum() for part in adjusted.parts] == pytest.approx([1, 1])
    assert (adjusted.parts[0] - adjusted.parts[1]) @ x == pytest.approx(np.zeros(2), abs=1e-12)
    assert (adjusted.parts[0] - adjusted.parts[1]) @ adjusted.values == pytest.approx(value)
    left, again = (residuals(values, x, case) for values in (y, y + 3 * x[:, :1] + case[:, None]))
    means = [np.bincount(case, values[:, 0])[case] / 15 for values in (left, again)]
    assert left[:, 0] - means[0] == pytest.approx(again[:, 0] - means[1])


def test_a_covariate_that_is_alike_on_both_sides_changes_no_contrast() -> None:
    case, member = np.repeat(np.arange(8), 10), np.tile([True, False], 40)
    x = np.repeat(np.random.default_rng(2).normal(size=(40, 1)), 2, axis=0)
    y = np.random.default_rng(3).normal(size=(80, 1)) + 2 * x
    parts = [case_weights(case, side) for side in (member, ~member)]
    adjusted = adjust_parts(parts, y, x, case)
    assert (adjusted.parts[0] - adjusted.parts[1]) @ y == pytest.approx((parts[0] - parts[1]) @ y)
    assert adjusted.values.std() < y.std()


def test_precise_edits_weigh_more_and_equal_ones_alike() -> None:
    case, person = np.array([0, 0, 1, 1, 1, 1]), np.arange(6)
    member = np.array([True, False, True, True, False, False])
    parts = [case_weights(case, side) for side in (member, ~member)]
    first, second = precision_parts(parts, case, person)
    assert first == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3, 0, 0])
    assert second == pytest.approx([0, 1 / 3, 0, 0, 1 / 3, 1 / 3])


@pytest.mark.slow
def test_only_fame_acts_and_no_group_is_named() -> None:
    raw_named, named, labels = 0, 0, Labels(prompts())
    part = Part(shift=1.5, fame=-0.1)
    for draw in range(12):
        made = invented(prompts(), part, ("gender", "women"), np.random.default_rng([7, draw]))
        raw, adjusted = (labels.report(made, name, 99, draw) for name in (None, "fame"))
        raw_named += bool((raw["p_adjusted"] < 0.05).any())
        named += bool((adjusted["p_adjusted"] < 0.05).any())
    assert raw_named >= 6
    assert named <= 2


def test_the_benchmark_measures_what_a_report_does() -> None:
    made = invented(prompts(), PARTS["fame"], ("gender", "women"), np.random.default_rng(5)).assign(likelier_pre=0.5)
    own = Labels(made).report(made, "fame", 99, 0)
    table = decide(made, estimand="fame")
    table = table[~table["mirror"]].reset_index(drop=True)
    assert own["value"].tolist() == pytest.approx(table["value"].tolist(), abs=1e-12)
    assert own["p_adjusted"].tolist() == pytest.approx(table["p_adjusted"].tolist(), nan_ok=True)


@pytest.mark.parametrize("name", ESTIMANDS)
def test_the_order_of_rows_changes_nothing(name: str) -> None:
    frame = prompts().assign(held_share_pre=lambda f: 0.3 + 0.05 * (f["person"].str[1:].astype(int) % 11))
    turned = frame.sample(frac=1, random_state=4)
    first, second = (decide(rows, estimand=name)[["group", "value", "p", "p_adjusted"]] for rows in (frame, turned))
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.slow
def test_people_without_sitelinks_are_left_out_of_both_numbers_and_counted() -> None:
    table = adjusted_contrasts(prompts("half"), ["fame"], decide)
    row = women_of(table)
    assert (row["n_people"], row["n_left_out"], row["left_out"]) == (61, 31, "no sitelinks are recorded")
    whole = women_of(adjusted_contrasts(prompts(), ["fame"], decide))
    assert (whole["n_left_out"], whole["left_out"]) == (0, "")
    assert row["raw"] != pytest.approx(whole["raw"])
    assert row["clusters"]["person"] == 30


@pytest.mark.parametrize(
    ("fame", "reason"),
    [
        ("none", "no sitelinks are recorded"),
        ("constant", "the covariate does not vary within edits: nothing to adjust for"),
        ("gender", "the covariate differs only between the two sides: no data tell them apart"),
    ],
)
def test_what_cannot_be_adjusted_says_why(fame: str, reason: str) -> None:
    row = women_of(adjusted_contrasts(prompts(fame), ["fame"], decide))
    assert (row["verdict"], row["note"]) == ("not testable", reason)
    assert np.isfinite(row["raw"])
    assert np.isnan([row["value"], row["low"], row["p_adjusted"]]).all()


def test_none_is_made_unless_asked_for_and_names_are_checked() -> None:
    assert not len(adjusted_contrasts(prompts(), [], decide).columns)
    with pytest.raises(UnknownNameError, match="Did you mean 'fame'"):
        AuditSettings(estimands=("fam",))
