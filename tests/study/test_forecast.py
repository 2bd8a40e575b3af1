"""The plan of a study: counts by hand, spread from a finished cell, a measured rate, and nothing run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from transformers import AutoTokenizer

from seesaw_cf.cli import main
from seesaw_cf.models.load import model_path
from seesaw_cf.records.load import load_cases
from seesaw_cf.run.design import PromptDesign
from seesaw_cf.run.questions import questions
from seesaw_cf.study import forecast as module
from seesaw_cf.study.declared import read_study
from seesaw_cf.study.forecast import forecast
from seesaw_cf.study.work import run_study

STUDY = """
models: [seesaw-tiny]
editors: {editors}
records: {{sample-small: {{data: sample-small, limit: {limit}}}}}
controls: [identity]
protocols: [single, batch]
threads: 1
"""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)


def written(editors: str = "[ft]", limit: int = 400) -> Path:
    file = Path("study.yaml")
    file.write_text(STUDY.format(editors=editors, limit=limit))
    return file


@pytest.mark.slow(10)
def test_counts_are_those_of_the_records() -> None:
    """400 is more than there are, so every case is edited: alone by editor and control, or once per relation."""
    found = forecast(read_study(written()), Path("out"))
    cases = [PromptDesign().choose(case, 0) for case in load_cases("sample-small", "cross_subject")]
    single, batch = found.costs
    relations = {case.request.relation_id for case in cases}
    assert (single.edits, batch.edits) == (2 * len(cases), 2 * len(relations))
    asked = [list(questions(case)) for case in cases]
    assert single.prompts == 2 * sum(map(len, asked))
    tokenizer = AutoTokenizer.from_pretrained(model_path("seesaw-tiny"))
    prefixes = set()
    for number, one in enumerate(asked):
        for question in one:
            ids = tokenizer(f"{question.cloze.context} {question.cloze.target}", add_special_tokens=False)["input_ids"]
            prefixes |= {(number, *ids[:length]) for length in range(1, len(ids))}
    per_edit = len(prefixes)
    assert batch.tokens < 2 * per_edit < single.tokens  # the first cell also scores before the edits
    assert single.tokens - 2 * per_edit <= per_edit
    assert single.disk == 120 * 2 * single.prompts
    assert single.hours == pytest.approx((single.tokens + single.editing) / found.rates[0].per_second / 3600)
    assert single.flops / (single.tokens + single.editing) == pytest.approx(2 * 2.33e6, rel=0.05)
    assert not Path("out").exists()


@pytest.mark.slow
def test_every_test_of_an_editor_is_in_the_family_that_is_planned_for() -> None:
    cases = load_cases("sample-small", "cross_subject")
    study = read_study(written())
    sizes = list(module.sizes_of("sample-small", cases, study, Path("out")))
    assert [row["axis"] for row in sizes] == ["gender", "race", "region"]
    people = {p.subject.id: p for case in cases for p in case.attribute_prompts if p.holds == "target_new"}
    races, regions = (len({g for p in people.values() for g in getattr(p, axis)}) for axis in ("race", "region"))
    # Men with women once; five relations and all of them; holders of the new and of the old answer.
    assert {row["tests"] for row in sizes} == {(1 + races + regions) * 6 * 2}
    new = [
        replace(c, attribute_prompts=tuple(p for p in c.attribute_prompts if p.holds == "target_new")) for c in cases
    ]
    assert {row["tests"] for row in module.sizes_of("x", new, study, Path("out"))} == {(1 + races + regions) * 6}


@pytest.mark.parametrize(("out", "folder"), [("a/study", "a/study-plan"), (".", "study-plan")])
def test_a_plan_has_a_folder_beside_any_other(out: str, folder: str) -> None:
    assert module.plan_folder(Path(out)) == Path(folder)


@pytest.mark.slow
def test_second_moments_are_counted_once_and_in_memory() -> None:
    ft, memit, _, again = forecast(read_study(written("[ft, memit]", 2)), Path("out")).costs
    assert (ft.texts, again.texts) == (0, 0)
    assert memit.texts > 10_000
    assert memit.memory > ft.memory
    assert memit.editing > 4 * ft.editing


@pytest.mark.slow(10)
def test_the_plan_is_written_beside_and_spread_comes_from_a_finished_cell(capsys: pytest.CaptureFixture[str]) -> None:
    file = written(limit=12)
    assert main(["study", str(file), "--plan"]) == 0
    said = capsys.readouterr().out
    assert "EDITS AND PEOPLE" in said
    assert "Spread of effects: the simulation's." in said
    assert "tokens a second, measured by scoring 256 of the study's own clozes" in " ".join(said.split())
    assert sorted(path.name for path in Path().iterdir()) == ["study-plan", "study.yaml"]
    assert run_study(read_study(file), Path("study"), ["*/single/ft"], progress=False) == []
    assert main(["study", str(file), "--plan"]) == 0
    assert "Spread of effects: seesaw-tiny/sample-small/single/ft" in " ".join(capsys.readouterr().out.split())
    costs = pd.read_csv("study-plan/costs.csv")
    assert costs["state"].tolist() == ["finished", "open"]
    assert costs["hours"].tolist()[0] == 0
    sizes = pd.read_csv("study-plan/sizes.csv")
    assert set(sizes["axis"]) == {"gender", "race", "region"}
    assert (sizes["edits_needed"] > 4).all()
    assert (sizes["people_needed"] > 4).all()
