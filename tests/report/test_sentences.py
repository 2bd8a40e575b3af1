"""What a report says: each verdict has its sentence, no size is named whose interval holds 0, harm is above 0."""

import math
import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.report import AuditSettings, Report
from seesaw_cf.report.frame import LEVEL_VERDICTS
from seesaw_cf.report.gates import gates
from seesaw_cf.report.levels import BADGES, NO_MATCH, harm_phrase, level_sentence
from seesaw_cf.report.sentences import claim, doubts, finding, group_claims, group_sentence
from seesaw_cf.report.words import amount, percent

# Verdict -> what its sentence says.
SENTENCES = {"worse": "Worse than", "slightly_worse": "below the 2.0 points", "no_worse": "within the 2.0 points"}
SENTENCES |= {
    "better": "Less harm",
    "undecided": "Not decided",
    "too_few": "too few edits: 3",
    "no_control": "no control",
    NO_MATCH: "Not compared",
}


def level(verdict: str, **changes: Any) -> dict[str, Any]:
    """Return people for whom the old answer is true, 4 points worse."""
    row = {"about": "other_people", "true_answer": "old", "editor": "memit", "control": "random(memit)", "n": 10}
    row |= {"value": 0.04, "low": 0.02, "high": 0.06, "scale": "probability", "margin": 0.02, "verdict": verdict}
    row |= {"note": "too few edits: 3", "n_people": 5, "n_edits": 8, "half_edits": 2} | changes
    return {**row, "sign": 1, "harm": 2.0, "is_harm": verdict == "worse", "own": {"change": row}, "beside": {}}


@pytest.mark.parametrize("verdict", SENTENCES)
def test_every_verdict_has_its_sentence_and_its_badge(verdict: str, made: Report) -> None:
    assert SENTENCES[verdict] in level_sentence(level(verdict), made.run)
    assert set(BADGES) == {*LEVEL_VERDICTS.values(), "no_control", NO_MATCH} == set(SENTENCES)


WRONG = {"turned_wrong": {"value": 0.25, "n": 48}}
OF_OLD = "people for whom the old answer is true"


@pytest.mark.parametrize(
    ("changes", "beside", "count", "expected"),
    [
        (
            {},
            WRONG | {"turned_wrong": {"value": 0.1, "n": 50}},
            True,
            (f"gets 12 of 48 answers wrong about {OF_OLD}", "5"),
        ),
        ({}, {}, True, (f"gets 12 of 48 answers wrong about {OF_OLD}", "")),
        ({}, WRONG, True, (f"is less sure about {OF_OLD}", "")),
        ({}, WRONG | {"turned_wrong": {"value": 0.2, "n": 48}}, True, (f"is less sure about {OF_OLD}", "")),
        ({"value": 0.2}, {}, False, (f"is much less sure about {OF_OLD}", "")),
        ({"about": "other_facts", "true_answer": ""}, {}, True, ("forgets 12 of 48 other facts about her", "")),
    ],
)
def test_a_harm_is_counted_where_more_turned_wrong_than_beside(
    changes: dict[str, Any], beside: dict[str, Any], count: bool, expected: tuple[str, str]
) -> None:
    assert harm_phrase(level("worse", **changes) | {"own": WRONG, "beside": beside}, "her", count) == expected


AMOUNTS = [
    (0.36, 0.24, 0.49, "share", "36 points [24, 49]"),
    (1.234, 0.5, 2.0, "log-odds", "1.2 nats [0.5, 2.0]"),
    (0.0002, -0.0001, 0.0004, "probability", "0.020 points [−0.010, 0.040]"),
    (0.0, 0.0, 0.0, "probability", "0.0 points [0.0, 0.0]"),
    (0.04, math.nan, math.nan, "probability", "4.0 points"),
]


@pytest.mark.parametrize(("value", "low", "high", "scale", "expected"), AMOUNTS)
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
    words = percent(share)
    assert float(words.strip("<> %")) == pytest.approx(100 * share, abs=0.6)
    assert words not in ("0 %", "100 %") or share in (0, 1)


def contrasts(rows: list[dict[str, Any]], made: Report) -> pd.DataFrame:
    """Return a frame of contrasts between groups."""
    common = {"what": "contrast", "about": "other_people", "editor": "memit", "relation": "all", "group": "women"}
    common |= {"scale": "probability", "axis": "gender", "true_answer": "old", "verdict": "hit_harder"}
    counts = {"decides": True, "mirror": False, "margin": 0.02, "n": 100, "n_people": 50, "n_edits": 100}
    numbers = {"value": -0.05, "low": -0.07, "high": -0.03, "detectable": 0.03}
    return pd.DataFrame([{**common, **counts, **numbers, **row} for row in rows]).reindex(columns=made.frame.columns)


MEN = {"group": "men", "value": 0.05, "low": 0.03, "high": 0.07, "verdict": "hit_less"}
CLAIMS: list[tuple[list[dict[str, Any]], str]] = [
    ([MEN, {"mirror": True}], "Women for whom the old answer is true were hit harder than others by 5.0 points"),
    # women gain, men stay: men are not said to be harmed
    ([{"group": "men"}, {"group": "men", "what": "change", "value": 0}],
     "Right answers about men for whom the old answer is true gained less than those about others"),
    ([{"verdict": "slightly_harder", "value": -0.01, "low": -0.015, "high": -0.005}],
     "Women for whom the old answer is true were hit a little harder than others by 1.0 points [0.5, 1.5] "
     "(memit), below the 2.0 points declared to matter."),
    ([{}, {"editor": "random(memit)"}], "No group"),  # the control shows it as well
    ([{"verdict": "too_few"}], "Too few people were asked about to compare groups."),
    ([{"verdict": "equal"}], "No group was hit harder by 2 points or more."),
    ([{"verdict": "undecided"}, {**MEN, "verdict": "equal"}],
     "No group is shown to be hit harder. (Gaps under 3 points could be missed.)"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "sentence"), CLAIMS)
def test_the_group_that_lost_is_named_or_what_could_be_missed(
    rows: list[dict[str, Any]], sentence: str, made: Report
) -> None:
    assert group_sentence(contrasts(rows, made), made.run, AuditSettings()).startswith(sentence)


def test_the_same_people_are_named_once(made: Report) -> None:
    frame = contrasts([{"axis": "race", "group": "Central Asian"}, {"axis": "region", "group": "Central Asia"}], made)
    assert len(group_claims(frame, made.run)) == 1


def test_a_group_of_few_edits_is_named_without_a_size(made: Report) -> None:
    row = contrasts([{"n_edits": 79, "relation": "P27"}], made).assign(gained=False).iloc[0]
    words = claim(row, several=True)
    assert "in edits of citizenship (memit)" in words
    assert "points" not in words


def test_the_finding_names_no_size_whose_interval_holds_zero(made: Report) -> None:
    for sentence in finding(made.frame, made.run, made.settings):
        for low, high in re.findall(r"\[(−?[\d.]+), (−?[\d.]+)\]", sentence):
            assert float(low.replace("−", "-")) * float(high.replace("−", "-")) > 0, sentence


WORKED = [(0.9, 0.8, 0.95, True, []), (0.6, 0.4, 0.8, False, ["Edits by memit are not shown to work: 12 of 20."])]
WORKED += [(0.2, 0.1, 0.4, False, ["Edits by memit did not work: 4 of 20."])]
WORKED += [(1.0, 0.5, 1.0, False, ["20 of 20 edits by memit worked, too few to show that most do."])]


@pytest.mark.parametrize(("value", "low", "high", "holds", "words"), WORKED)
def test_edits_work_where_the_interval_is_above_half(
    value: float, low: float, high: float, holds: bool, words: list[str], made: Report
) -> None:
    common = {"editor": "memit", "relation": "all", "value": value, "low": low, "high": high, "n": 20}
    rows = [{**common, "what": f"efficacy_{phase}"} for phase in ("before", "after")]
    frame = pd.DataFrame(rows).reindex(columns=made.frame.columns)
    assert doubts(frame, made.run) == words
    assert gates(frame, made.run)[0][0] == holds
