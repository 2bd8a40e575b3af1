"""How large a run must be: its own contrasts, with what is missing where there is nothing to plan for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from seesaw_cf.cli import main
from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.needed import SPREAD, Aim, needs
from seesaw_cf.report.needed import compared, missing, needed, needed_of, needs_table, run_needs
from seesaw_cf.report.results import Results, read_results
from seesaw_cf.types import AttributePrompt, Case
from tests.report.runs import cases, property_cases, write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = write_run(tmp_path_factory.mktemp("needed") / "run", cases(("P27",), 12, 24), ("memit", "random(memit)"))
    return read_results(folder)


def test_contrasts_of_editors_are_planned_and_no_controls(results: Results) -> None:
    frame = run_needs(results, 0.3)
    assert set(frame["editor"]) == {"memit"}
    assert results.audit is not None
    own = results.audit.verdicts.query("editor == 'memit'")
    assert list(frame["group"]) == list(own["group"])
    tested = frame[frame["stderr"].notna()]
    assert len(tested) >= 3
    assert (tested["edits_needed"].dropna() >= tested["edits"][tested["edits_needed"].notna()]).all()
    cost = tested["cheapest_edits"] * tested["cheapest_people"] / tested["edits"] / tested["people"]
    alone = [tested[f"{name}_needed"] / tested[name] for name in ("edits", "people")]
    assert all((cost[ratio.notna()] <= ratio[ratio.notna()] * 1.1).all() for ratio in alone)
    with_note = frame[frame["stderr"].isna()]
    assert with_note["note"].str.len().gt(0).all()


def test_a_larger_effect_takes_less(results: Results) -> None:
    small, large = (run_needs(results, effect) for effect in (0.2, 0.4))
    both = small["times"].notna() & large["times"].notna()
    assert both.any()
    assert (large["times"][both] <= small["times"][both]).all()
    assert (large["detectable"].dropna() == small["detectable"].dropna()).all()


def test_one_sentence_says_what_would_decide(results: Results) -> None:
    sentence = needed_of(run_needs(results, 0.1, open_only=True))
    assert sentence.startswith("To decide 0.1 in half of the")
    assert "times the" in sentence
    assert sentence in needs_table(run_needs(results, 0.1)).terminal().replace("\n", " ")
    assert needed(replace(results, audit=None)) == ""


def test_the_mirror_of_a_two_label_axis_changes_no_numbers(results: Results) -> None:
    """The sentence of a report leaves mirrors out, the table of plan shows them: both say the same."""
    assert results.audit is not None
    assert results.prompts is not None
    contrasts = results.audit.verdicts.query("editor == 'memit'")
    every, few = (needs(results.prompts, rows, Aim(0.1)) for rows in (contrasts, hypotheses(contrasts)))
    assert len(few) < len(every)
    pd.testing.assert_frame_equal(every[~every["mirror"]].reset_index(drop=True), few)


def test_a_prediction_says_how_far_it_may_be_off(results: Results) -> None:
    """The range is what the effect takes where the error of the larger run is as far off as in halves of a run."""
    frame = run_needs(results, 0.1)
    ends = [run_needs(results, 0.1 / spread) for spread in SPREAD]
    for name in ("edits", "people"):
        for end, other in zip(("least", "most"), ends, strict=True):
            assert frame[f"{name}_{end}"].equals(other[f"{name}_needed"])
        there = frame[f"{name}_needed"].notna() & frame[f"{name}_most"].notna()
        assert (frame[f"{name}_least"][there] < frame[f"{name}_most"][there]).any()
    row = frame[frame["edits_needed"].notna() & frame["edits_most"].notna()].iloc[0]
    ranged = f"{row['edits_needed']:,.0f} ({row['edits_least']:,.0f} to {row['edits_most']:,.0f})"
    assert ranged in needs_table(frame, group=row["group"]).markdown()
    assert "8 of 10 predictions from half of a run, with errors 0.7 to 1.75 times" in needs_table(frame).about


def test_contrasts_precise_enough_take_edits_for_equivalence_alone(results: Results) -> None:
    sentence = needed_of(run_needs(results, 30.0, open_only=True))
    assert "would have shown 30" in sentence
    assert sentence.endswith("to call them equal takes 80 edits, 12 are there.")


def test_a_group_of_three_people_says_what_it_lacks(results: Results) -> None:
    frame = run_needs(results, 0.3)
    group = frame.loc[frame["stderr"].isna(), "group"].iloc[0]
    table = needs_table(frame, group=group)
    assert "lacks" in table.heads
    assert "too few" in table.markdown() or "no edit was scored" in table.markdown()


@pytest.mark.parametrize(
    ("made", "editors", "said"),
    [
        (property_cases(1), ("memit",), "asked nothing about other people"),
        (cases(("P27",), 3, 6), ("random(memit)",), "has control edits only"),
        ([], ("memit",), "nobody is among others"),
    ],
    ids=["no people", "control only", "one group"],
)
def test_a_run_without_contrasts_says_what_is_missing(
    made: list[Case], editors: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not made:
        people = cases(("P27",), 6, 8)
        made = [replace(case, attribute_prompts=tuple(map(_alike, case.attribute_prompts))) for case in people]
    folder = write_run(tmp_path / "run", made, editors)
    results = read_results(folder)
    assert compared(results) == said.startswith("nobody")
    assert compared(results) or said in missing(results)
    assert needed(results) == ""
    assert main(["plan", "--effect", "0.02", "--run", str(folder), "--json", str(tmp_path / "plan.json")]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["made_by"] == "seesaw-cf plan"


def _alike(prompt: AttributePrompt) -> AttributePrompt:
    return replace(prompt, gender=("men",), race=(), region=())


def test_command_line(results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = tmp_path / "plan.json", str(results.folder)
    assert main(["plan", "--effect", "0.3", "--run", run, "--axis", "gender", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "WHAT WOULD DECIDE" in shown
    assert "WHAT EFFECTS ARE MADE OF" in shown
    numbers = json.loads(file.read_text(encoding="utf-8"))
    assert {row["axis"] for row in numbers["needs"]} == {"gender"}
    assert numbers["components"][0]["rest"] is not None
    assert main(["plan", "--effect", "0.3", "--run", run, "--group", "womn"]) == 1
    assert "Did you mean 'women'" in capsys.readouterr().err
    assert main(["plan", "--effect", "0.3", "--run", run, "--share", "0.2"]) == 1
    assert "--share is about a study that is not there yet" in capsys.readouterr().err
