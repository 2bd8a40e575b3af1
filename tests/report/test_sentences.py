"""What a report says: each verdict has its sentence, no size is named whose interval holds 0, harm is above 0."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.report import AuditSettings, Report
from seesaw_cf.report.frame import LEVEL_VERDICTS
from seesaw_cf.report.levels import BADGES, Level, harm_phrase, level_counts, level_sentence
from seesaw_cf.report.sentences import claim, denominators, finding, group_claims, group_sentence
from seesaw_cf.report.words import amount, percent

# Verdict -> what its sentence says.
SENTENCES = {"worse": "Worse than a random", "slightly_worse": "below the 2.0 points", "no_worse": "within 2.0 points"}
SENTENCES |= {"better": "Less harm", "undecided": "which chance can do", "too_few": "too few edits: 3"}
SENTENCES |= {"no_control": "no control edit was made"}


def level(verdict: str, **changes: Any) -> Level:
    """Return people for whom the old answer is true, 4 points worse."""
    row: dict[str, Any] = {"value": 0.04, "low": 0.02, "high": 0.06, "scale": "probability", "margin": 0.02}
    row |= {"verdict": verdict, "control": "random(memit)", "note": "too few edits: 3", "n": 10, "n_people": 5}
    row |= {"n_edits": 8, "half_edits": 2} | changes
    series = pd.Series(row)
    return Level("other_people", "old", "memit", {"change": series, "beyond": series}, {}, 1)


@pytest.mark.parametrize("verdict", SENTENCES)
def test_every_verdict_has_its_sentence(verdict: str, made: Report) -> None:
    assert SENTENCES[verdict] in level_sentence(level(verdict), made.run)


def test_every_verdict_has_a_badge() -> None:
    assert set(BADGES) == {*LEVEL_VERDICTS.values(), "no_control"}


def test_few_edits_that_carry_half_of_the_damage_are_counted(made: Report) -> None:
    counted = level_counts(level("worse"), made.run)
    assert counted == "10 questions, 5 people, 8 edits; half of the damage comes from 2 of 8 edits"
    assert "half" not in level_counts(level("worse", n_edits=80), made.run)
    assert "half" not in level_counts(level("undecided"), made.run)


@pytest.mark.parametrize(
    ("value", "low", "high", "scale", "expected"),
    [
        (0.36, 0.24, 0.49, "share", "36 points [24, 49]"),
        (0.0398, 0.0231, 0.0634, "probability", "4.0 points [2.3, 6.3]"),
        (1.234, 0.5, 2.0, "log-odds", "1.2 nats [0.5, 2.0]"),
        (0.0002, -0.0001, 0.0004, "probability", "0.020 points [−0.010, 0.040]"),
        (0.0, 0.0, 0.0, "probability", "0.0 points [0.0, 0.0]"),
        (0.04, math.nan, math.nan, "probability", "4.0 points"),
    ],
)
def test_amounts_have_two_digits_that_matter(value: float, low: float, high: float, scale: str, expected: str) -> None:
    assert amount({"value": value, "low": low, "high": high, "scale": scale}) == expected


@given(st.floats(-2, 2), st.floats(0, 1), st.floats(0, 1))
def test_turning_an_amount_turns_its_interval(value: float, below: float, above: float) -> None:
    row = {"value": value, "low": value - below, "high": value + above, "scale": "probability"}
    numbers = [float(text.replace("−", "-")) for text in re.findall(r"−?\d[\d.]*", amount(row, -1))]
    assert numbers[1] <= numbers[2]
    assert numbers[0] == pytest.approx(-100 * value, abs=0.6)


@given(st.floats(0, 1))
def test_percent_never_rounds_to_nobody_or_everybody(share: float) -> None:
    shown = float(percent(share).removesuffix(" %"))
    assert shown == pytest.approx(100 * share, abs=0.6)
    if 1e-4 < share < 1 - 1e-4:
        assert 0 < shown < 100


@pytest.mark.parametrize(
    ("value", "scale", "words"),
    [
        (1.2, "probability", "also gives the new answer"),
        (0.3, "probability", "is much less sure about"),
        (0.04, "probability", "is less sure about"),
        (9.0, "log-odds", "is much less sure about"),  # odds alone do not say what the model answers
        (0.2, "log-odds", "is less sure about"),
    ],
)
def test_a_harm_is_called_by_its_size(value: float, scale: str, words: str) -> None:
    assert harm_phrase(level("worse", value=value, scale=scale), "that person").startswith(words)


def contrasts(rows: list[dict[str, Any]], made: Report) -> pd.DataFrame:
    """Return a frame of contrasts between groups."""
    common: dict[str, Any] = {
        "what": "contrast",
        "about": "other_people",
        "editor": "memit",
        "relation": "all",
        "scale": "probability",
    }
    common |= {"axis": "gender", "true_answer": "old", "decides": True, "mirror": False, "margin": 0.02, "n": 100}
    common |= {"value": -0.05, "low": -0.07, "high": -0.03, "n_people": 50, "n_edits": 100, "detectable": 0.03}
    common |= {"group": "women", "verdict": "hit_harder", "reference": "others"}
    return pd.DataFrame([{**common, **row} for row in rows]).reindex(columns=made.frame.columns)


def test_on_two_labels_the_one_that_lost_is_named(made: Report) -> None:
    frame = contrasts(
        [{"group": "men", "value": 0.05, "low": 0.03, "high": 0.07, "verdict": "hit_less"}, {"mirror": True}], made
    )
    assert group_claims(frame, made.run)["group"].tolist() == ["women"]
    assert group_sentence(frame, made.run, AuditSettings()).startswith(
        "Women for whom the old answer is true were hit harder than others by 5.0 points [3.0, 7.0]"
    )


def test_a_group_that_lost_nothing_gained_less(made: Report) -> None:
    """Women gain, men stay: men are not said to be harmed."""
    frame = contrasts([{"group": "men"}, {"group": "men", "what": "change", "value": 0.0}], made)
    assert group_sentence(frame, made.run, AuditSettings()).startswith(
        "Men for whom the old answer is true gained less than others by 5.0 points"
    )


def test_what_the_control_shows_as_well_is_no_claim(made: Report) -> None:
    frame = contrasts([{}, {"editor": "random(memit)"}], made)
    assert group_claims(frame, made.run).empty
    assert "No group" in group_sentence(frame, made.run, AuditSettings())


def test_the_same_people_are_named_once(made: Report) -> None:
    frame = contrasts([{"axis": "race", "group": "Central Asian"}, {"axis": "region", "group": "Central Asia"}], made)
    assert len(group_claims(frame, made.run)) == 1


def test_a_group_of_few_edits_is_named_without_a_size() -> None:
    row = pd.Series({"relation": "P27", "value": -0.05, "low": -0.07, "high": -0.03, "scale": "probability"})
    row["editor"], row["n_edits"], row["axis"], row["group"] = "ft", 79, "region", "Africa"
    row["true_answer"], row["gained"] = "new", False
    expected = (
        "People from Africa for whom the new answer is true were hit harder than others in edits of citizenship (ft)"
    )
    assert claim(row, several=True) == expected


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        (["too_few"], "Too few people were asked about to compare groups."),
        (["equal"], "No group was hit harder by 2 points or more."),
        (["undecided", "equal"], "No group is shown to be hit harder. (Differences under 3 points could be missed.)"),
    ],
)
def test_no_claim_says_what_could_be_missed(verdicts: list[str], sentence: str, made: Report) -> None:
    frame = contrasts([{"verdict": verdict, "group": str(at)} for at, verdict in enumerate(verdicts)], made)
    assert group_sentence(frame, made.run, AuditSettings()) == sentence


def test_the_finding_names_no_size_whose_interval_holds_zero(made: Report) -> None:
    for sentence in finding(made.frame, made.run, made.settings):
        for low, high in re.findall(r"\[(−?[\d.]+), (−?[\d.]+)\]", sentence):
            assert float(low.replace("−", "-")) * float(high.replace("−", "-")) > 0, sentence


def test_refused_and_unscored_are_said_before_any_share(made: Report) -> None:
    missing = denominators(made.frame, made.run)
    assert "1 of 44 edits by memit refused" in missing
    assert "scores missing" in missing
    screen = made.screen.terminal()
    assert screen.index("refused") < screen.index("still right")
