"""D per group, contrasts and controls: by hand and as laws; cells of several models, seeds and bad requests."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from seesaw_cf.effects import ALL, UNKNOWN, group_effects, prompt_effects
from seesaw_cf.effects.estimands import excess_over_control, group_contrasts, toward_truth
from seesaw_cf.effects.means import members, sort_prompts
from seesaw_cf.errors import RecordError, UnknownNameError
from tests.effects.rows import four, table


def prompts(rows: list[tuple[int, str, list[str], float]]) -> pd.DataFrame:
    """Prompts with a given D: (case, person, race tags, D)."""
    score_rows = []
    for number, (case, person, race, d) in enumerate(rows):
        scores = np.log([0.5, 0.25, 0.5 + d, 0.25])
        score_rows += four(*scores, case_id=case, prompt_id=number, subject_id=person, race=race)
    return prompt_effects(table(score_rows))


WORKED = [
    (1, "a", ["white"], 0.10),
    (1, "b", ["white"], 0.30),
    (2, "c", ["white", "Black"], -0.20),
    (3, "a", ["Black"], 0.05),
    (3, "d", [], 0.00),
]


def by_group(frame: pd.DataFrame, axis: str = "race") -> dict[str, dict[str, Any]]:
    rows = frame[frame["axis"] == axis].set_index("group").to_dict("index")
    return {str(group): {str(k): v for k, v in row.items()} for group, row in rows.items()}


def test_case_means_pooled_means_and_counts() -> None:
    groups = by_group(group_effects(prompts(WORKED), axes=["race"], mode="paper", draws=50))
    # white: case 1 mean 0.2, case 2 mean -0.2 -> 0; pooled (0.1 + 0.3 - 0.2) / 3
    assert groups["white"]["D"] == pytest.approx(0.0)
    assert groups["white"]["pooled_D"] == pytest.approx(0.2 / 3)
    assert [groups["white"][n] for n in ("n_prompts", "n_subjects", "n_cases")] == [3, 3, 2]
    # Black: cases 2 (-0.2) and 3 (0.05) -> -0.075; the person with two tags counts in both groups
    assert groups["Black"]["D"] == pytest.approx(-0.075)
    assert groups["Black"]["D_pre"] == pytest.approx(0.25)
    assert list(groups) == ["Black", "white", UNKNOWN]
    assert groups[UNKNOWN]["note"] == "fewer than two cases"
    assert math.isnan(groups[UNKNOWN]["low"])


def test_overall_row_and_t_test_over_cases() -> None:
    row = by_group(group_effects(prompts(WORKED), axes=[], mode="paper", draws=0), ALL)[ALL]
    means = [0.2, -0.2, 0.025]
    assert row["D"] == pytest.approx(np.mean(means))
    assert row["p"] == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert row["n_subjects"] == 4


def test_interval_is_seeded_and_blind_to_row_order() -> None:
    frame = prompts(
        [(case, f"p{case % 7}", ["white"] if case % 3 else ["Black"], 0.01 * case - 0.2) for case in range(40)]
    )
    shuffled = frame.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(group_effects(frame), group_effects(shuffled))
    one, two = (group_effects(rows, mode="paper", seed=5) for rows in (frame, shuffled))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(group_effects(frame, mode="paper", seed=6))
    white = by_group(one)["white"]
    assert white["low"] < white["D"] < white["high"]
    # the bootstrap standard error of a mean of independent values is s / sqrt(n)
    overall = by_group(one, ALL)[ALL]
    values = 0.01 * np.arange(40) - 0.2
    assert overall["stderr"] == pytest.approx(values.std() / math.sqrt(40), rel=0.1)


def test_bad_requests() -> None:
    frame = prompts(WORKED)
    with pytest.raises(UnknownNameError, match=r"unknown axis 'rase'\. Did you mean 'race'"):
        group_effects(frame, axes=["rase"])
    with pytest.raises(RecordError, match=r"no prompts about people with holds='target_true'.*\{'target_new': 5\}"):
        group_effects(frame, holds="target_true")


def test_members_count_repeated_tags_once() -> None:
    groups = members([["white", "white"], None, ["Jewish", "white"], [""]])
    assert {name: rows.tolist() for name, rows in groups.items()} == {"Jewish": [2], "white": [0, 2], UNKNOWN: [1, 3]}


def crossed(shift: float = 0.0, edits: int = 20, people: int = 12, seed: int = 0) -> pd.DataFrame:
    """Edits x people; Black people lose `shift`; each edit moves everybody."""
    rng = np.random.default_rng(seed)
    edit, person = rng.normal(0, 0.05, edits), rng.normal(0, 0.02, people)
    rows = []
    for e in range(edits):
        for s in range(people):
            race = ["Black"] if s % 2 else ["white"]
            rows.append((e, f"p{s}", race, float(edit[e] + person[s] - shift * (s % 2) + rng.normal(0, 0.01))))
    return prompts(rows)


def test_contrast_is_the_mean_difference_within_edits() -> None:
    frame = crossed(0.2)
    row = group_contrasts(frame, ["race"], {"race": "white"}).iloc[0]
    black = frame[frame["race"].map(lambda tags: "Black" in tags)].groupby("case_id")["D"].mean()
    white = frame[frame["race"].map(lambda tags: "white" in tags)].groupby("case_id")["D"].mean()
    assert row["value"] == pytest.approx((black - white).mean())
    assert row["value"] == pytest.approx(-0.2, abs=0.03)
    assert row["p"] < 0.001
    assert row["clusters"] == {"edit": 20, "person": 12}
    others = group_contrasts(frame, ["race"]).set_index("group")["value"]
    assert others["Black"] == pytest.approx(-others["white"])


def test_editors_asked_alike_have_the_rows_that_each_has_alone() -> None:
    """Two were asked the same, one missed a prompt, one was asked about people of other groups."""
    frames = [crossed(0.1, seed=seed).assign(editor=f"editor {seed}") for seed in range(3)]
    frames[1] = frames[1].assign(edit_relation="P27")
    moved = frames[2].assign(editor="moved", race=frames[2]["race"].to_numpy()[::-1])
    rows = [frames[0].assign(editor="twin", D=frames[0]["D"] * 2), *frames[:2], frames[2].iloc[1:], moved]
    parts = [group_contrasts(frame, ["race"]) for frame in rows]
    expected = pd.concat(parts).sort_values(["editor", "relation"], kind="stable", ignore_index=True)
    together = pd.concat(rows).sample(frac=1, random_state=0)
    found = group_contrasts(together, ["race"])
    found = found[found["relation"] != "all"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9)
    assert not expected["value"].isna().any()


def test_groups_never_seen_together_have_no_contrast() -> None:
    frame = prompts([(1, "a", ["white"], 0.1), (2, "b", ["Black"], 0.1)])
    row = group_contrasts(frame, ["race"], {"race": "white"}).iloc[0]
    assert row["note"] == "no edit was scored on both groups"
    with pytest.raises(UnknownNameError, match=r"unknown race group 'White'\. Did you mean 'white'"):
        group_contrasts(frame, ["race"], {"race": "White"})


def test_excess_over_control_subtracts_prompt_by_prompt() -> None:
    frame = crossed(0.2)
    control = frame.assign(editor="identity", D=frame["D"] - 0.05)
    control.loc[0, "status"] = "pre_new: not finite"
    excess = excess_over_control(pd.concat([frame, control.iloc[:-1]], ignore_index=True), "identity")
    assert excess["editor"].unique().tolist() == ["memit - identity"]
    reasons = {"control: pre_new: not finite": 1, "control: missing": 1}
    assert excess["status"].value_counts().to_dict() == {"ok": len(frame) - 2} | reasons
    assert excess.loc[excess["status"] == "ok", "D"].to_numpy() == pytest.approx(0.05)
    with pytest.raises(UnknownNameError, match="unknown control editor 'identiti'"):
        excess_over_control(frame, "identiti")


def test_toward_truth_turns_holders_of_the_old_target_around() -> None:
    frame = crossed().assign(holds="target_true")
    assert toward_truth(frame)["D"].to_numpy() == pytest.approx(-frame["D"].to_numpy())
    assert toward_truth(crossed())["D"].to_numpy() == pytest.approx(crossed()["D"].to_numpy())


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", "c"]), st.integers(0, 1)), max_size=12),
    kind=st.sampled_from(["str", "object", "category"]),
    missing=st.booleans(),
)
@example(rows=[(0, "c", 0), (0, "a", 0)], kind="category", missing=True)
def test_rows_in_order_are_the_same_object_and_others_are_sorted(
    rows: list[tuple[int, str, int]], kind: str, missing: bool
) -> None:
    keys = ["case_id", "person", "prompt_id"]
    frame = pd.DataFrame(rows, columns=keys).assign(at=range(len(rows)))
    person = [None if missing and name == "c" else name for name in frame["person"]]
    frame["person"] = pd.Series(person, dtype=object).astype(kind)  # type: ignore[call-overload]
    expected = frame.sort_values(keys, kind="stable")
    pd.testing.assert_frame_equal(sort_prompts(frame), expected)
    assert sort_prompts(expected) is expected or missing
