"""The audit's verdicts and the crossed mode of the columns."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.effects import AuditSettings, audit, bias_of_columns, group_contrasts, group_effects
from seesaw_cf.effects.audit import independent_tests, permutations_for
from seesaw_cf.effects.prompts import add_differences
from seesaw_cf.errors import UnknownNameError
from seesaw_cf.stats.plain import as_json
from seesaw_cf.stats.verdicts import equivalence_p, minimum_detectable_effect
from tests.effects.test_groups import crossed


def test_equivalence_is_corrected_over_the_family() -> None:
    """Two kinds of holders with mirrored scores give the same TOST p twice, doubled by Holm. At a level between the
    two, a single test would claim equivalence and the family does not."""
    frame = crossed(0.0, edits=80)
    frame = pd.concat([frame, frame.assign(D=-frame["D"], holds="target_true")], ignore_index=True)
    table = audit(frame, AuditSettings(margin=0.05, permutations=0), axes=["race"])
    assert set(table["family_size"]) == {2}
    single = [
        equivalence_p(value, stderr, df, 0.05)
        for value, stderr, df in zip(table["value"], table["stderr"], table["df"], strict=True)
    ]
    assert table["p_equivalence"].tolist() == pytest.approx([2 * p for p in single])
    strict = audit(
        frame, AuditSettings(margin=0.05, noise_floor=0.0, alpha=1.5 * max(single), permutations=0), axes=["race"]
    )
    assert set(strict["verdict"]) == {"undecided"}


@pytest.mark.slow
def test_two_labels_are_one_hypothesis() -> None:
    """The second row is the first with signs turned, exactly; the family and the record count one test."""
    settings = AuditSettings(margin=0.05, noise_floor=0.0)
    for shift, edits, labels in (
        (0.2, 20, ["hit_harder", "hit_less"]),
        (0.0, 80, ["equal"] * 2),
        (0.03, 80, ["slightly_harder", "equal"]),
    ):
        table = audit(crossed(shift, edits=edits, people=20), settings, axes=["race"])
        (_, first), (_, second) = table.iterrows()
        assert (first["group"], second["group"], *table["mirror"]) == ("Black", "white", False, True)
        for name in ("n", "p", "df", "stderr", "family_size", "p_t", "p_adjusted", "p_equivalence", "detectable"):
            assert first[name] == second[name]
        for name in ("value", "probability", "log_odds", "share"):
            assert second[name] == -first[name]
        assert (second["low"], second["high"]) == (-first["high"], -first["low"])
        assert table["verdict"].tolist() == labels
        assert (set(table["family_size"]), set(table["family"])) == ({1}, {"memit"})
        assert ("20 edits can miss rare harm, 80 needed" in first["rule"]) == (edits == 20)


def test_a_third_label_hides_no_mirror() -> None:
    """All who are Latine are Black too: Black people against others is white people against others, turned around.
    The mirror stands behind what it repeats and the family counts two tests."""
    frame, both = crossed(0.2, people=20), ("p1", "p3", "p5", "p7", "p9", "p11")
    race = [["Black", "Latine"] if who in both else own for who, own in zip(frame["person"], frame["race"])]
    table = audit(frame.assign(race=pd.Series(race, dtype=object)), AuditSettings(margin=0.05), axes=["race"])
    assert table["group"].tolist() == ["Black", "white", "Latine"]
    assert table["mirror"].tolist() == [False, True, False]
    assert set(table["family_size"]) == {2}
    first, second = table["value"][:2]
    assert second == -first
    assert table["p_adjusted"][0] == table["p_adjusted"][1]


def columns(frame: pd.DataFrame) -> dict[str, Any]:
    sides = ("pre_new", "pre_true", "post_new", "post_true")
    given = {"case_id": frame["case_id"], "prompt": frame["prompt_id"].astype(str), "subject": frame["person"]}
    given |= {"groups": frame["race"].map(list)} | {side: frame[side] for side in sides}
    return {name: column.tolist() for name, column in given.items()}


def test_crossed_mode_agrees_with_the_estimators_and_paper_mode_with_the_published_arithmetic() -> None:
    frame = crossed(0.1)
    result = as_json(bias_of_columns)(columns(frame), axis="race", reference="white", draws=100)
    contrast = group_contrasts(frame, ["race"], {"race": "white"}).iloc[0]
    found = result["groups"]["Black"]["contrast"]
    for name in ("value", "low", "high", "p"):
        assert found[name] == pytest.approx(contrast[name])
    assert "contrast" not in result["groups"]["white"]
    paper = as_json(bias_of_columns)(columns(frame), axis="race", mode="paper", draws=100)
    table = group_effects(frame, axes=["race"], mode="paper", draws=100).set_index("group")
    crossed_table = group_effects(frame, axes=["race"]).set_index("group")
    for group, row in paper["groups"].items():
        for name in ("D", "low", "high", "t", "p", "pooled_D"):
            assert row[name] == pytest.approx(table.loc[group, name])
        for name in ("D", "low", "high", "p", "log_odds", "log_odds_low"):
            assert result["groups"][group][name] == pytest.approx(crossed_table.loc[group, name])
        assert not {"bootstrap_low", "p_paper"} & set(result["groups"][group])


def test_unknown_mode_and_reference() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown mode 'papr'\. Did you mean 'paper'"):
        bias_of_columns(columns(crossed()), mode="papr")  # type: ignore[arg-type]
    for axis, name in (("race", "race group"), ("gender", "gender group"), (None, "group")):
        with pytest.raises(UnknownNameError, match=f"unknown {name} 'Whit'"):
            bias_of_columns(columns(crossed()), axis=axis, reference="Whit")


def small(shift: float) -> pd.DataFrame:
    """The crossing with answers of p = 5e-4 before the edit, where Black people lose `shift` nats."""
    frame = crossed(0.0, edits=80)
    black = frame["race"].map(lambda tags: "Black" in tags).to_numpy()
    noise = np.random.default_rng(5).normal(0, 0.02, len(frame))
    frame = frame.assign(pre_new=np.log(5e-4), pre_true=np.log(2e-4), post_true=np.log(2e-4))
    frame["post_new"] = frame["pre_new"] - shift * black + noise
    return add_differences(frame.drop(columns=["n_new", "n_true"]))


@pytest.mark.slow
def test_where_probability_cannot_show_the_margin_log_odds_decide() -> None:
    floors: dict[str, Any] = {"noise_floor": 1e-9, "noise_floor_log_odds": 1e-5}
    lost = audit(small(0.5), AuditSettings(margin=0.02, **floors), axes=["race"]).iloc[0]
    assert (lost["scale"], lost["margin"]) == ("log-odds", 0.1)
    assert (lost["verdict"], lost["direction"]) == ("hit_harder", "below 0")
    assert lost["value"] == pytest.approx(-0.5, abs=0.05)
    assert abs(lost["probability"]) < 3e-4
    calm = audit(small(0.0), AuditSettings(margin=0.02, **floors), axes=["race"]).iloc[0]
    assert (calm["scale"], calm["verdict"]) == ("log-odds", "equal")
    slight = audit(small(0.05), AuditSettings(margin=0.02, **floors), axes=["race"]).iloc[0]
    assert (slight["scale"], slight["verdict"], slight["direction"]) == ("log-odds", "slightly_harder", "below 0")
    assert "inside the margin" in slight["rule"]


@given(st.lists(st.sampled_from(["memit", "ft"]), min_size=1, max_size=600), st.floats(1e-3, 0.2), st.booleans())
def test_permutations_are_enough_for_what_t_shows(editors: list[str], alpha: float, calm: bool) -> None:
    table = pd.DataFrame({"editor": editors, "clusters": [{"edit": 80}] * len(editors), "p": 0.5, "mirror": False})
    table = table.assign(value=0.0 if calm else 0.1, stderr=0.001 if calm else 0.1, df=200.0, margin=0.02)
    tests = table["editor"].value_counts().max() if calm else 1
    every, equal = permutations_for(table, AuditSettings(alpha=alpha))
    assert every == max(1999, math.ceil(1 / alpha))
    assert tests / (2 * (equal + 1)) < alpha
    assert every <= equal <= max(every, math.ceil(tests / 2 / alpha))
    assert permutations_for(table, AuditSettings(alpha=alpha, permutations=99)) == (99, 99)


def test_the_detectable_effect_is_that_of_the_correction() -> None:
    """With four tests an effect must be larger than for one; a strong effect elsewhere changes nothing of that."""
    prompts = crossed(0.0, edits=30, people=20)
    number = {name: n for n, name in enumerate(sorted(set(prompts["person"])))}
    race = [[f"label {number[name] % 4}"] for name in prompts["person"]]
    prompts = prompts.assign(race=pd.Series(race, prompts.index, dtype=object))
    settings = AuditSettings(margin=0.05, noise_floor=0.0, permutations=199)
    table = audit(prompts, settings, axes=["race"])
    size, tests = table["family_size"].iloc[0], independent_tests(table)
    assert 1.5 < tests <= size == 4
    alone = [minimum_detectable_effect(row["stderr"], row["df"]) for row in table.to_dict("records")]
    assert table["detectable"].tolist() == pytest.approx(
        [minimum_detectable_effect(s, df, alpha=0.05 / tests) for s, df in zip(table["stderr"], table["df"])]
    )
    assert (table["detectable"] > np.array(alone)).all()
    strong = table.assign(p_t=1e-12, p_adjusted=1 / 200, family_size=36)  # permutations give no p below 1 / 200
    assert independent_tests(strong) == 36
