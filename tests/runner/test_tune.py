"""Settings found on edits that are not evaluated: the draws, the search, and that nobody tuned on is evaluated."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.cli import main
from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.control_names import CONTROLS
from seesaw_cf.editors.locate.config import preset_config
from seesaw_cf.editors.spaces import SPACES, search_space
from seesaw_cf.errors import RecordError, SettingError, UnknownNameError
from seesaw_cf.run import tune
from seesaw_cf.run.jobs import Job, TunePlan
from seesaw_cf.run.tune import draw_edits, draw_trials, run_tune
from seesaw_cf.run.tuned import held_out, tuned_subjects
from tests.effects.rows import four, table
from tests.runner import small

SEARCH = [
    "tune",
    "--data",
    "sample-small",
    "--model",
    "seesaw-tiny",
    "--editor",
    "ft",
    "--trials",
    "3",
    "--first-edits",
    "2",
    "--finalists",
    "2",
    "--final-edits",
]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(), min_size=1, max_size=4, unique=True), min_size=1)
)
def test_trials_are_the_preset_and_distinct_points_of_the_space(space: dict[str, list[int]]) -> None:
    points = math.prod(len(values) for values in space.values())
    for count in (1, 3, points + 5):
        found = draw_trials(space, count, seed=1)
        assert found == draw_trials(space, count, seed=1)
        assert found[0] == {}
        assert len(found) == min(count - 1, points) + 1
        assert len({json.dumps(one, sort_keys=True) for one in found}) == len(found)
        assert all(one.keys() == space.keys() and all(one[k] in space[k] for k in space) for one in found[1:])


def test_neighbours_that_the_model_did_not_know_are_not_counted() -> None:
    """Of three neighbours one was wrong before the edit, one stays right and one does not: a half stays."""
    neighbours = [
        four(-1.0, -3.0, -1.0, -3.0, kind="neighborhood", prompt_id=0),
        four(-4.0, -1.0, -4.0, -1.0, kind="neighborhood", prompt_id=1),
        four(-4.0, -1.0, -1.0, -4.0, kind="neighborhood", prompt_id=2),
    ]
    edit = four(-4.0, -1.0, -1.0, -4.0, kind="efficacy", prompt_id=3)
    rows = [
        row | {"case_id": case, "editor": "trial"} for case in range(5) for part in (edit, *neighbours) for row in part
    ]
    facts: tune.TrialFacts = {"n": 5, "status": {str(case): "ok" for case in range(5)}, "fluency": []}
    found = tune._trial_row("final", 1, table(rows), facts)
    assert (found["efficacy"]["value"], found["neighborhood"]["value"], found["neighborhood"]["n"]) == (1.0, 0.5, 10)
    # Of ten edits half were refused: efficacy counts as 1/2, like the neighbours.
    refused = {str(case): "refused: no" for case in range(5, 10)}
    more: tune.TrialFacts = {"n": 10, "status": facts["status"] | refused, "fluency": []}
    half = tune._trial_row("final", 1, table(rows), more)
    assert [found["score"], half["score"]] == pytest.approx([2 / 3, 0.5])
    assert half["refused"] == {"refused: no": 5}


def test_edits_are_about_different_people_and_a_small_draw_begins_a_large_one() -> None:
    cases = small.cases()
    many = draw_edits(cases, 100, seed=3)
    assert len({case.request.subject for case in many}) == len(many) == len({c.request.subject for c in cases})
    assert draw_edits(cases, 2, seed=3) == many[:2]
    assert draw_edits(cases[::-1], 100, seed=3) == many
    three = [replace(case, request=replace(case.request, subject=name)) for name in small.PEOPLE for case in cases[:3]]
    counts = Counter(case.request.relation_id for case in draw_edits(three, 5, seed=3))
    assert sorted(counts.values()) == [1, 2, 2]


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("n_layers", [1, 30])
def test_every_point_of_a_declared_space_is_a_setting_of_the_editor(name: str, n_layers: int) -> None:
    space = search_space(name, n_layers)
    kind = load_editor(name).config_class
    for layers in space["layers"]:
        assert isinstance(layers, tuple)
        assert layers == tuple(range(layers[0], layers[-1] + 1))
        assert 0 <= layers[0] <= layers[-1] <= max(n_layers - 2, 0)
    for setting, values in space.items():
        for value in values:
            preset_config(name, kind, small.model(), {"layers": [0], setting: value})


def test_editors_without_a_declared_space_have_none() -> None:
    assert {name for name in EDITORS if not search_space(name, 12)} == {"mend", "ike", *CONTROLS}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, r"tune: the search space is empty, expected an object of settings"),
        ({"steps": []}, r"tune: the space of 'steps' is \[\], expected a list of values"),
        ({"steps": 3}, r"tune: the space of 'steps' is 3, expected a list of values"),
    ],
)
def test_spaces_in_which_nothing_can_be_searched(space: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        TunePlan(space=space)


@pytest.mark.slow
def test_a_search_that_cannot_be_made_is_refused_before_the_first_edit(tmp_path: Path) -> None:
    job = Job("seesaw-tiny", ("ft",), data="sample-small")
    with pytest.raises(RecordError, match="tune: trials is 0, expected a whole number from 1 to 10000"):
        TunePlan(trials=0)
    with pytest.raises(RecordError, match="tune: trials is 1000000000, expected a whole number from 1 to 10000"):
        TunePlan(trials=10**9)
    with pytest.raises(RecordError, match=r"tune: 1,000,000 edits of different people, and the records have 40\."):
        run_tune(job, TunePlan(first_edits=1_000_000), tmp_path / "a", progress=False)
    with pytest.raises(RecordError, match=r"editors \['ft', 'rome'\], expected one editor"):
        run_tune(replace(job, editors=("ft", "rome")), TunePlan(), tmp_path / "a", progress=False)
    with pytest.raises(RecordError, match="no search space is declared for 'ike', only for ft, rome"):
        run_tune(replace(job, editors=("ike",)), TunePlan(), tmp_path / "a", progress=False)
    with pytest.raises(UnknownNameError, match=r"unknown setting of FTConfig 'stepps'\. Did you mean 'steps'"):
        run_tune(job, TunePlan(space={"stepps": [3]}), tmp_path / "a", progress=False)
    with pytest.raises(SettingError, match="steps"):
        run_tune(job, TunePlan(space={"steps": ["many"]}), tmp_path / "a", progress=False)
    assert not (tmp_path / "a" / "shards").exists()


def test_edits_that_settings_were_tuned_on_are_refused_or_left_out(tmp_path: Path) -> None:
    cases = small.cases()
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"ft": {"steps": 3}, "provenance": {"ft": {"subjects": ["Ada Lovelace"]}}}))
    assert tuned_subjects(file) == {"Ada Lovelace"}
    about = sum(case.request.subject == "Ada Lovelace" for case in cases)
    with pytest.raises(RecordError, match=rf"{about} of the {len(cases)} edits .*\(Ada Lovelace\).*--leave-out-tuned"):
        held_out(cases, file, leave_out=False)
    assert len(held_out(cases, file, leave_out=True)) == len(cases) - about
    assert held_out(cases, None, leave_out=False) == cases
    broken: list[Any] = [["Ada"], {"ft": {}}, {"ft": {"subjects": "Ada"}}, {"ft": {"subjects": [1]}}, "x"]
    for damaged in broken:
        file.write_text(json.dumps({"provenance": damaged}))
        with pytest.raises(RecordError, match=r"settings\.json: 'provenance' is .*expected what `seesaw-cf tune`"):
            tuned_subjects(file)


@pytest.mark.slow(15)
def test_a_search_is_continued_and_its_settings_are_taken_by_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = tmp_path / "space.json"
    space.write_text(json.dumps({"steps": [1, 25], "layers": [[0], [2]], "norm_constraint": [0.0005, None]}))
    out = tmp_path / "tuned"
    command = [*SEARCH, "5", "--space", str(space), "--out", str(out), "--quiet"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "report.html, report.md, report.json, tables/ (2 files)" in shown
    assert "--leave-out-tuned" in shown
    names = ("settings.json", "tune.json", "report/report.md")
    made = {name: (out / name).read_bytes() for name in names}
    found = json.loads(made["tune.json"])
    shards = sorted(out.glob("shards/*/*.parquet"))
    assert len(shards) == len(found["trials"]) >= 3 + 2
    (out / "tune.json").unlink()
    shards[1].unlink()
    kept = shards[0].stat().st_mtime_ns
    assert main(command) == 0
    assert {name: (out / name).read_bytes() for name in names} == made
    assert shards[0].stat().st_mtime_ns == kept
    final = [row for row in found["trials"] if row["round"] == "final"]
    best = max(final, key=lambda row: (row["score"], row["efficacy"]["value"], -row["trial"]))
    assert found["best"]["trial"] == best["trial"]
    assert all(row["efficacy"]["n"] == row["n"] == 5 for row in final)
    assert len(found["subjects"]) == 5
    run = ["run", "--model", "seesaw-tiny", "--editor", "ft", "--editor-config", str(out / "settings.json")]
    capsys.readouterr()
    assert main([*run, "--out", str(tmp_path / "run"), "--quiet"]) == 1
    assert "about people on whom these settings were tuned" in capsys.readouterr().err
    assert main([*run, "--leave-out-tuned", "--limit", "12", "--out", str(tmp_path / "run"), "--quiet"]) == 0
