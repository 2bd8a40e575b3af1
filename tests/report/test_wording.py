"""Reports of changed models that were edited for no named fact speak of facts and changes, in every form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.editors.control_names import is_control
from seesaw_cf.models.steering import SteeringVector
from seesaw_cf.report import Results, read_results
from seesaw_cf.report.findings import find
from seesaw_cf.report.wording import about_changes
from seesaw_cf.report.write import run_report
from seesaw_cf.run.job import run_job
from seesaw_cf.run.jobs import Job


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("changed")
    direction = torch.randn(128, generator=torch.Generator().manual_seed(0))
    SteeringVector(2, direction, 0.4).save(folder / "vector")
    configs = ("cross_subject", "cross_property")
    job = Job(
        "seesaw-tiny",
        changed=(f"edits={folder / 'vector'}",),
        configs=configs,
        data="sample",
        limit=3,
        device="cpu",
    )
    run_job(job, folder / "run", progress=False)
    return read_results(folder / "run")


@pytest.mark.slow
def test_the_first_screen_names_no_edit(results: Results) -> None:
    found = find(results)
    assert [name for name in results.editors if not is_control(name)] == ["edits"]
    text = found.terminal().replace("random(edits)", "").replace("edits", "", 1)
    words = set(re.findall(r"\w*edit\w*", text.replace("edits", "NAME"), re.IGNORECASE))
    assert not words, words
    assert "took" not in text
    assert "Did the edits take" not in dict(found.lines)
    assert dict(found.lines)["What the control is"].startswith("random(edits): random directions of the same length")
    assert re.match(r"\d+ facts and \d+ people asked about;", dict(found.lines)["How sure"])
    assert "the steering vector edits (1 place moved, norm " in found.about


@pytest.mark.slow
def test_the_files_claim_no_edit(results: Results, tmp_path: Path) -> None:
    run_report(results).write(tmp_path / "report")
    markdown = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    for text in (markdown, page):
        for words in (
            "facts edited",
            "NOT CLAIMED",
            "Not claimed",
            "Did the edits take",
            "Worst edits",
            "edited person",
            "Editors side by side",
        ):
            assert words not in text, words
    assert "## Facts that moved most" in markdown
    assert "write something false about real people" not in markdown


@given(name=st.sampled_from(["the edit", "edited person", "a.b", "new answer", "random(the edit)"]))
def test_names_stay_as_they_are(name: str) -> None:
    sentence = f"after edits by {name}: 3 edits, 1 edit, “{name}” again"
    assert about_changes(sentence, [name]) == f"of {name}: 3 facts, 1 fact, “{name}” again"


def test_parts_of_words_stay() -> None:
    assert about_changes("editing editorial credits unedited") == "editing editorial credits unedited"
