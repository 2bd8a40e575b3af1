"""Sentences about levels: each editor beside its control, judged by the interval of the difference alone."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seesaw_cf.report import read_results
from seesaw_cf.report.levels import level_sentences
from seesaw_cf.report.results import Results
from tests.report.runs import cases, property_cases, write_run

CONTROL = {"control": "random(memit)", "control_value": 0.01, "control_low": 0.0, "control_high": 0.02}


@pytest.fixture(scope="module")
def results(run_folder: Path) -> Results:
    return read_results(run_folder, axes=("gender",))


def _sentence(results: Results, **changes: Any) -> str:
    nan = math.nan
    row = {"level": "target_true", "scale": "probability", "decides": True, "editor": "memit", "control": ""}
    row |= {"before": -0.8, "after": -0.7, "value": 0.1, "low": 0.08, "high": 0.12, "note": ""}
    row |= dict.fromkeys(("after_low", "after_high", "control_value", "control_low", "control_high"), nan)
    row |= {"n": 4220, "n_edits": 147, "n_people": 241}
    row |= {
        "difference": nan,
        "difference_low": nan,
        "difference_high": nan,
        "difference_note": "",
        "verdict": "",
    } | changes
    head = {"target_true": "Old answer", "target_new": "New answer", "other_facts": "Other facts"}[str(row["level"])]
    return level_sentences(replace(results, levels=pd.DataFrame([row])))[head]


def test_the_verdict_of_the_difference_ends_the_sentence(results: Results) -> None:
    difference = {"difference": 0.08, "difference_low": 0.02, "difference_high": 0.14}
    said = _sentence(results, **CONTROL, **difference, verdict="worse than its control")
    assert "after a random change of the same size +0.010 [" in said
    assert said.endswith(": worse than its control.")


def test_shares_are_said_in_points(results: Results) -> None:
    shares = {"level": "other_facts", "scale": "share", "before": 0.9875, "after": 0.36875, "n": 160, "n_people": 20}
    shares |= {"after_low": 0.298, "after_high": 0.446, "value": -0.61875, "low": -0.694, "high": -0.530}
    difference = {"difference": -0.6125, "difference_low": -0.687, "difference_high": -0.526}
    beside = {"control": "random(memit)", "control_value": -0.00625, "control_low": -0.0365, "control_high": 0.02}
    beside |= {"verdict": "worse than its control"}
    assert _sentence(results, **shares, **difference, **beside) == (
        "After memit, 36.9% [29.8, 44.6] of the other facts about the edited person are still right, 98.8% before: "
        "-61.9 points [-69.4, -53.0] (160 answers about 20 people); after a random change of the same size -0.6 points "
        "[-3.6, +2.0]. Difference -61.3 points [-68.7, -52.6]: worse than its control."
    )


def test_without_a_control_nothing_is_put_down_to_an_edit(results: Results) -> None:
    assert _sentence(results) == (
        "After memit, people who hold the old answer moved by +0.100 [+0.080, +0.120] towards the new, false one "
        "(4,220 prompts, 241 people, 147 edits). Without a control nothing of this is put down to an edit."
    )


def test_without_an_interval_it_says_why(results: Results) -> None:
    note, nan = "the cases of a relation are one edit", math.nan
    said = _sentence(
        results, low=nan, high=nan, note=note, **CONTROL, difference=0.09, difference_note=note, verdict="not testable"
    )
    assert f"moved by +0.100 (no interval: {note}) towards" in said
    assert said.endswith(f"Difference +0.090: not testable (no interval: {note}).")


def test_where_probabilities_are_tiny_log_odds_speak(results: Results) -> None:
    said = _sentence(results, scale="log-odds", before=-1e-6, after=1e-6, value=2.3, low=2.0, high=2.6)
    assert "moved by +2.300 nats [+2.000, +2.600] in log-odds (+2.0e-06 in probability) towards" in said


def test_a_control_is_no_subject(results: Results) -> None:
    assert _sentence(results, editor="random(memit)") == "Only controls were made: there is no edit to speak of."


def test_a_run_with_a_control_is_read_from_its_scores(tmp_path: Path) -> None:
    asked = cases(("P27", "P101"), 6, 12, holds=("target_new", "target_true")) + property_cases(4)
    folder = write_run(tmp_path / "run", asked, ("memit", "random(memit)"))
    made = read_results(folder, axes=("gender",))
    values = made.levels.set_index(["level", "scale", "editor"])["value"].to_dict()
    whole = made.accuracy.set_index(["edit_relation", "editor"])["change"].to_dict()
    for editor in made.editors:
        assert values["other_facts", "share", editor] == whole["all", editor]
    effects = made.effects[(made.effects["axis"] == "all") & (made.effects["editor"] == "memit")]
    for holds, own in effects.groupby("holds"):
        mean = (own["D"] * own["n_cases"]).sum() / own["n_cases"].sum()
        assert values[holds, "probability", "memit"] == pytest.approx(mean)
    for sentence in level_sentences(made).values():
        assert sentence.startswith("After memit, ")
        assert "Difference " in sentence
        assert "After random" not in sentence
    batch = read_results(write_run(tmp_path / "batch", asked, ("memit", "random(memit)"), protocol="batch"))
    assert all("(no interval: the cases of a relation are one edit)" in one for one in level_sentences(batch).values())
