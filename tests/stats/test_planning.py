"""Planner and variance components: against planted values, and against the power that a simulated study really has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from seesaw_cf.cli import main
from seesaw_cf.effects import run_components
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats import (
    Components,
    Crossing,
    Design,
    case_weights,
    contrast_components,
    plan,
    variance_components,
)
from tests.report.runs import cases, write_run

PLANTED = Components(edit=0.05, person=0.08, prompt=0.1)


def crossed(edits: int, people: int, per_edit: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Edit and person codes: each edit asks `per_edit` people."""
    rng = np.random.default_rng(seed)
    person = np.concatenate([rng.choice(people, per_edit, replace=False) for _ in range(edits)])
    return np.repeat(np.arange(edits), per_edit), person, rng


def test_components_are_found_again() -> None:
    edit, person, rng = crossed(300, 300, 40, 0)
    y = rng.normal(0, PLANTED.edit, 300)[edit] + rng.normal(0, PLANTED.person, 300)[person]
    found = variance_components(y + rng.normal(0, PLANTED.prompt, y.size), edit, person)
    assert found.edit == pytest.approx(0.05, rel=0.15)
    assert found.person == pytest.approx(0.08, rel=0.15)
    assert found.prompt == pytest.approx(0.10, rel=0.05)
    with pytest.raises(RecordError, match="1 edits and 40 people, expected at least two of each"):
        variance_components(y[:40], np.zeros(40, int), person[:40])


def test_contrast_components_are_found_again() -> None:
    edit, person, rng = crossed(400, 300, 40, 1)
    member = (np.arange(300) % 4 == 0)[person]
    shift = rng.normal(0, PLANTED.edit, 400)  # of one group more than the other, by edit
    y = rng.normal(0, 0.3, 400)[edit] + rng.normal(0, PLANTED.person, 300)[person] + shift[edit] * member
    found = contrast_components(y + rng.normal(0, PLANTED.prompt, y.size), edit, person, member)
    assert found.edit == pytest.approx(0.05, rel=0.3)
    assert found.person == pytest.approx(0.08, rel=0.2)
    assert found.prompt == pytest.approx(0.10, rel=0.1)
    with pytest.raises(RecordError, match="0 edits were scored on both groups"):
        contrast_components(y, edit, person, np.zeros(y.size, bool))


@pytest.mark.parametrize("share", [None, 0.25])
def test_planned_studies_have_the_planned_power(share: float | None) -> None:
    delta, draws = 0.03, 400
    design = plan(delta, PLANTED, Design(people_per_edit=20, edits_per_person=5, share=share))
    edit, person, rng = crossed(design.edits, design.people, 20, 2)
    n_people = int(person.max()) + 1
    y = rng.normal(0, PLANTED.person, (n_people, draws))[person] + rng.normal(0, PLANTED.prompt, (edit.size, draws))
    of_edit = rng.normal(0, PLANTED.edit, (design.edits, draws))[edit]
    everybody = np.ones(edit.size, bool)
    if share is None:
        y, parts = y + of_edit + delta, [case_weights(edit, everybody)]
    else:
        member = (np.arange(n_people) < share * n_people)[person]
        y += member[:, None] * (of_edit + delta)
        parts = [case_weights(edit, side) for side in (member, ~member)]
    estimate, stderr, df, _ = Crossing(parts, {"edit": edit, "person": person}).errors(y)
    power = float(np.mean(2 * stats.t.sf(np.abs(estimate) / stderr, df) < 0.05))
    assert 0.72 <= power <= 0.90


def test_plan_finds_the_smallest_design_and_says_when_there_is_none() -> None:
    found = plan(0.05, PLANTED, Design(people_per_edit=20))
    assert found.reachable
    assert (
        found.detectable <= 0.05 < plan(0.05, PLANTED, Design(people_per_edit=20), max_edits=found.edits - 1).detectable
    )
    assert plan(0.1, PLANTED, Design(people_per_edit=20)).edits < found.edits
    assert plan(0.05, PLANTED, Design(people_per_edit=20), tests=10).edits > found.edits
    assert not plan(1e-9, PLANTED, Design(people_per_edit=20), max_edits=100).reachable
    with pytest.raises(RecordError, match="delta is 0"):
        plan(0, PLANTED, Design(people_per_edit=20))
    with pytest.raises(RecordError, match="share is 1, expected a finite number between 0 and 1"):
        plan(0.1, PLANTED, Design(people_per_edit=20, share=1))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", cases(("P27",), 8, 20), ("memit",))
    assert main(["plan", "--effect", "0.05"]) == 0
    assert "those of the simulation" in capsys.readouterr().out
    file = tmp_path / "plan.json"
    words = ["--effect", "0.05", "--run", str(folder), "--axis", "gender", "--group", "women", "--json", str(file)]
    assert main(["plan", *words]) == 0
    assert "a contrast of" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    assert 0.3 < found["share"] < 0.5
    components, share, n = run_components(folder, axis="gender", group="women")
    assert (found["components"]["prompt"], found["share"]) == (components.prompt, share)
    assert n == 160
    edits = [row["edits"] for row in found["plans"]]
    assert edits == sorted(edits, reverse=True)
    assert main(["plan", "--effect", "0.05", "--run", str(folder), "--group", "women"]) == 1
    assert "--group needs --axis" in capsys.readouterr().err
    with pytest.raises(UnknownNameError, match="unknown gender group 'womn'"):
        run_components(folder, axis="gender", group="womn")
