"""Contrasts, controls, holders, distribution changes and the noise floor."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seesaw_cf.effects.estimands import excess_over_control, group_contrasts, toward_truth
from seesaw_cf.effects.means import sort_prompts
from seesaw_cf.errors import UnknownNameError
from tests.effects.test_groups import prompts


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
    assert excess["status"].value_counts().to_dict() == {
        "ok": len(frame) - 2,
        "control: pre_new: not finite": 1,
        "control: missing": 1,
    }
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
    found = sort_prompts(frame)
    pd.testing.assert_frame_equal(found, expected)
    assert sort_prompts(expected) is expected or missing
