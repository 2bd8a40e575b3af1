"""Laws that the effects obey whatever the data, and a recount of each by plain loops."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects import (
    accuracy_of_columns,
    bias_of_columns,
    edit_success,
    excess_over_control,
    group_contrasts,
    group_effects,
    toward_truth,
)
from seesaw_cf.effects.answers import gold_rank
from seesaw_cf.effects.means import UNKNOWN, members
from seesaw_cf.effects.prompts import SIDES, ScoreForm, add_differences, difference
from seesaw_cf.stats.plain import as_json
from tests.effects.rows import estimate_groups

few = settings(max_examples=8, deadline=None)
LOGPROBS = st.floats(-8, -0.01)
TAGS = st.lists(st.sampled_from(["white", "Black", "Asian"]), max_size=2, unique=True)


@st.composite
def tables(draw: st.DrawFn, cases: int = 8, people: int = 6) -> pd.DataFrame:
    """Prompts of people under edits, as `prompt_effects` gives them; some could not be scored."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tags = draw(st.lists(TAGS, min_size=people, max_size=people))
    pairs = [(e, s) for e in range(cases) for s in range(people) if rng.random() < 0.8]
    rows = pd.DataFrame(pairs, columns=["case_id", "person"])
    for side in ("pre_new", "pre_true", "post_new", "post_true"):
        rows[side] = -rng.exponential(1.5, len(rows))
    rows["status"] = np.where(rng.random(len(rows)) < 0.9, "ok", "too long")
    rows["race"] = [tags[person] for person in rows["person"]]
    rows["person"] = "Q" + rows["person"].astype(str)
    rows = rows.assign(editor="ft", edit_relation="P27", kind="cross_subject", holds="target_new", gender=None)
    rows["prompt_id"] = rows.groupby("case_id").cumcount()
    rows["region"] = [[] for _ in range(len(rows))]
    return add_differences(rows)


def by_group(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["axis"] == "race"].set_index("group")


def recount(rows: pd.DataFrame, group: str) -> float:
    """D of a group: the mean over edits of the mean over prompts, in a loop."""
    means = []
    for case in sorted(set(rows["case_id"])):
        own = [
            math.exp(r.post_new) - math.exp(r.post_true) - math.exp(r.pre_new) + math.exp(r.pre_true)
            for r in rows[rows["case_id"] == case].itertuples()
            if r.status == "ok" and (group in r.race or (group == UNKNOWN and not r.race))
        ]
        if own:
            means.append(sum(own) / len(own))
    return sum(means) / len(means) if means else math.nan


@few
@given(tables(), st.randoms(use_true_random=False))
def test_names_and_order_carry_no_information_and_a_loop_counts_the_same(rows: pd.DataFrame, shuffle: Any) -> None:
    # group effects are recounted by a loop
    found = by_group(group_effects(rows, axes=["race"]))
    for group, row in found.iterrows():
        assert row["D"] == pytest.approx(recount(rows, str(group)), abs=1e-12, nan_ok=True)
        assert row["n_prompts"] + row["n_unscored"] == len(members(rows["race"].tolist())[str(group)])
    # the order of rows does not matter
    order = list(range(len(rows)))
    shuffle.shuffle(order)
    other = rows.iloc[order].reset_index(drop=True)
    pd.testing.assert_frame_equal(group_effects(rows, axes=["race"]), group_effects(other, axes=["race"]))
    # names of people edits and groups carry no information
    renamed = rows.assign(
        person="x" + rows["person"],
        case_id=rows["case_id"] + 1000,
        race=rows["race"].map(lambda tags: [{"white": "a", "Black": "b", "Asian": "c"}[tag] for tag in tags]),
    )
    one = by_group(group_effects(rows, axes=["race"])).rename(index={"white": "a", "Black": "b", "Asian": "c"})
    other = by_group(group_effects(renamed, axes=["race"]))
    numbers = ["D", "low", "high", "p", "n_prompts", "n_subjects", "n_cases"]
    pd.testing.assert_frame_equal(one.sort_index()[numbers], other.sort_index()[numbers])


@few
@given(tables())
def test_swapping_both_answers_turns_every_effect_around(rows: pd.DataFrame) -> None:
    names = {f"{phase}_{side}": f"{phase}_{other}" for phase in ("pre", "post") for side, other in
             (("new", "true"), ("true", "new"))}  # fmt: skip
    sides = [*names]
    swapped = add_differences(rows.drop(columns=["D", "D_pre", "D_post"]).assign(
        **{name: rows[names[name]] for name in sides}))  # fmt: skip
    one, other = (by_group(group_effects(table, axes=["race"])) for table in (rows, swapped))
    for name in ("D", "log_odds", "D_pre", "D_post"):
        np.testing.assert_allclose(other[name], -one[name], atol=1e-12)
    np.testing.assert_allclose(other["low"], -one["high"], atol=1e-9)
    np.testing.assert_allclose(other["p"], one["p"], atol=1e-9)


@few
@given(tables())
def test_contrasts_are_antisymmetric_and_blind_to_what_an_edit_does_to_everybody(rows: pd.DataFrame) -> None:
    alone = rows[rows["race"].map(len) == 1].reset_index(drop=True)
    there = {tag for tags, status in zip(alone["race"], alone["status"]) for tag in tags if status == "ok"}
    if not {"white", "Black"} <= there:
        return
    first, second = (
        group_contrasts(alone, ["race"], {"race": reference}).set_index("group")["value"]
        for reference in ("white", "Black")
    )
    assert first["Black"] == pytest.approx(-second["white"], abs=1e-12, nan_ok=True)
    moved = alone.assign(D=alone["D"] + 0.1 * alone["case_id"])
    again = group_contrasts(moved, ["race"], {"race": "white"}).set_index("group")["value"]
    assert again["Black"] == pytest.approx(first["Black"], abs=1e-9, nan_ok=True)


@given(LOGPROBS, LOGPROBS, st.integers(1, 5))
def test_confidence_is_antisymmetric_bounded_and_the_same_in_all_forms_for_one_token(
    new: float, true: float, tokens: int
) -> None:
    for score in get_args(ScoreForm):
        one = difference(new, true, score, tokens, tokens)
        assert one == -difference(true, new, score, tokens, tokens)
        assert np.sign(one) == np.sign(new - true)
        assert score == "log_odds" or abs(one) <= 1
    assert difference(new, true, "normalised", 1, 1) == difference(new, true)


@given(st.lists(LOGPROBS, min_size=1, max_size=6, unique=True), st.data())
def test_rank_of_gold_falls_as_its_score_rises(scores: list[float], data: st.DataObject) -> None:
    gold = np.zeros(len(scores), bool)
    gold[data.draw(st.integers(0, len(scores) - 1))] = True
    values = np.array(scores)
    rank = gold_rank(values, gold, 0.0)
    assert rank == 1 + sum(v >= values[gold][0] for v in values[~gold])
    assert gold_rank(np.where(gold, values + 1, values), gold, 0.0) <= rank
    assert gold_rank(np.append(values, values.max() + 1), np.append(gold, False), 0.0) == rank + 1


def accuracy(answers: Sequence[tuple[bool, bool]]) -> Any:
    """Cases whose gold answer wins before, and after, as said."""
    n = len(answers)
    pre, post = ([[-1.0, -2.0] if right else [-2.0, -1.0] for right in side] for side in zip(*answers))
    rows: dict[str, Any] = {"case_id": [*range(n)], "edit_relation": ["P27"] * n, "effect_relation": ["P21"] * n}
    rows |= {"prompt": ["x"] * n, "candidates": [["a", "b"]] * n, "gold": [["a"]] * n, "pre": pre, "post": post}
    return as_json(accuracy_of_columns)(rows)["pairs"]["P27/P21"]


@few
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_accuracy_is_counted_and_its_change_turns_around_with_time(answers: list[tuple[bool, bool]]) -> None:
    found, back = accuracy(answers), accuracy([(post, pre) for pre, post in answers])
    right = [sum(side) for side in zip(*answers)]
    assert [found["pre"], found["post"]] == [pytest.approx(n / len(answers)) for n in right]
    assert found["change"] == pytest.approx(float(Fraction(right[1] - right[0], len(answers))))
    assert [found["lost"], found["gained"]] == [back["gained"], back["lost"]]
    assert back["change"] == pytest.approx(-found["change"])
    assert back["p"] == found["p"]
    assert found["pre_low"] <= found["pre"] <= found["pre_high"]


@few
@given(st.lists(st.tuples(st.integers(1, 5), LOGPROBS, LOGPROBS), min_size=1, max_size=20))
def test_success_is_recounted_by_a_loop(rows: list[tuple[int, float, float]]) -> None:
    none = [None] * len(rows)
    case, new, true = zip(*rows)
    sides = {"pre_new": none, "pre_true": none, "post_new": new, "post_true": true}
    others = {"tokens_right": none, "tokens_kept": none, "n_tokens": none, "generated": none}
    columns = {"case_id": case, "test": ["rewrite"] * len(rows)} | sides | others
    found = as_json(edit_success)(columns, nats=0.0)["counterfact"]["ES"]
    shares = [[n > t for c, n, t in rows if c == one] for one in sorted(set(case))]
    assert found["value"] == pytest.approx(float(np.mean([np.mean(own) for own in shares])))
    assert (found["n_prompts"], found["n_cases"]) == (len(rows), len(shares))
    worse = as_json(edit_success)(columns | {"post_true": [0.0] * len(rows)}, nats=0.0)["counterfact"]["ES"]
    assert worse["value"] == 0


@few
@given(tables())
def test_columns_copies_and_excess(rows: pd.DataFrame) -> None:
    # columns and table say the same
    columns = rows[["case_id", *SIDES]].where(rows["status"] == "ok").assign(case_id=rows["case_id"])
    columns = columns.assign(prompt=rows["prompt_id"].astype(str), subject=rows["person"], groups=rows["race"])
    found, table = as_json(bias_of_columns)(columns), by_group(group_effects(rows, axes=["race"]))
    for group, row in found["groups"].items():
        for name in ("D", "low", "high", "p", "pooled_D", "n_prompts", "n_unscored"):
            value = math.nan if row[name] is None else row[name]
            assert value == pytest.approx(table.loc[group, name], nan_ok=True), name
    # copies of whole edits and people keep the estimate and halve its variance at most
    copy = rows.assign(case_id=rows["case_id"] + 1000, person="x" + rows["person"])
    one = by_group(estimate_groups(rows, axes=["race"]) if (rows["status"] == "ok").any() else pd.DataFrame())
    both = by_group(estimate_groups(pd.concat([rows, copy], ignore_index=True), axes=["race"]))
    for group, row in one.iterrows():
        twice = both.loc[str(group)]
        assert twice["value"] == pytest.approx(row["value"], abs=1e-12)
        assert twice["n"] == 2 * row["n"]
        if math.isfinite(row["stderr"]):
            assert 0 < twice["stderr"] < row["stderr"]
    # excess over itself is nothing and truth turned twice is the same
    both = pd.concat([rows, rows.assign(editor="identity")], ignore_index=True)
    excess = excess_over_control(both, "identity")
    assert (excess.loc[excess["status"] == "ok", ["D", "log_odds", "D_post"]] == 0).all(axis=None)
    mixed = rows.assign(holds=np.where(rows["case_id"] % 2, "target_true", "target_new"))
    pd.testing.assert_frame_equal(toward_truth(toward_truth(mixed)), mixed)
    assert (toward_truth(mixed)["D"].abs().fillna(0) == mixed["D"].abs().fillna(0)).all()
