"""What a run needs is asked before weights are loaded; what records lack is said and kept."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.editors.control_names import CONTROLS, control_name, first_seed, is_control, planned, split_control
from seesaw_cf.editors.controls import IdentityControl
from seesaw_cf.editors.ft import FT
from seesaw_cf.editors.ike import IKE
from seesaw_cf.errors import RecordError, RunFolderError, SeesawError, StorageError, UnknownNameError
from seesaw_cf.records import cases_to_table
from seesaw_cf.records.load import load_cases
from seesaw_cf.run import job as jobs
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import editor_settings, make_editor, make_editors, settings_of
from seesaw_cf.run.manifest import check_places
from tests.runner import small


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(*_: Any, **__: Any) -> None:
        raise AssertionError("the weights were loaded")

    monkeypatch.setattr(jobs, "load_model", loaded)


def job(base: Path, **changes: Any) -> Job:
    return Job(str(base), **{"editors": ("ft",), "data": "sample", "limit": 2, "device": "cpu", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"editors": ("rome",)}, r"rome: texts are needed .* with --corpus: a text file"),
        ({"controls": ("identical",)}, r"unknown control 'identical'\. Did you mean 'identity'"),
        ({"editors": ("identity",), "controls": ("none",)}, r"needs an editor that it is the control of"),
        ({"editors": ("ike",), "controls": ("random",)}, r"random\(ike\): in-context editing changes no weights"),
        ({"scorer": "try"}, "unknown scorer"),
        ({"editors": ("ike",), "save_checkpoints": True}, "checkpoints"),
        ({"editors": (), "changed": ("mine=org/name",), "save_checkpoints": True}, "checkpoints"),
        ({"editor_config": {"ft": {"layers": [9]}}}, "9"),
        ({"editor_config": {"ft": {"layerz": [1]}}}, "unknown setting of FTConfig 'layerz'. Did you mean 'layers'"),
        ({"editor_config": {"memit": {}}}, "unknown editor of this run 'memit'"),
        (
            {"controls": ("identity",), "editor_config": {"identity": {"editor": "rome"}}},
            "a control of a run wraps each of its editors",
        ),
        ({"editors": (), "changed": ()}, "neither an editor nor a changed model, so nothing is audited"),
    ],
)
def test_what_is_wrong_with_a_job_is_said(tmp_path: Path, base: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SeesawError, match=message):
        make_run(job(base, **changes), tmp_path / "run")


@pytest.mark.usefixtures("no_weights")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, "rome: texts are needed"),
        ({"editor_config": {"rome": {"use_moments": False}}}, "the weights were loaded"),
        ({"editors": ("ft",), "configs": ("cross_subject",) * 2}, "case numbers occur twice, .* one at a time"),
    ],
)
def test_what_can_be_told_is_told_before_weights_are_loaded(
    tmp_path: Path, base: Path, changes: dict[str, Any], error: str
) -> None:
    with pytest.raises((SeesawError, AssertionError), match=error):
        make_run(job(base, **{"editors": ("rome",), "limit": None, **changes}), tmp_path / "run")


def test_a_control_is_named_after_what_it_wraps_and_planned_for_every_editor() -> None:
    assert planned(["ft", "rome"], ["identity", "random"]) == (
        *("ft", "rome"),
        *("identity(ft)", "random(ft)", "identity(rome)", "random(rome)"),
    )
    assert planned(["ft", "identity"]) == planned(["ft"], ["identity"]) == ("ft", "identity(ft)")
    assert planned(["identity(memit)"]) == ("identity(memit)",)
    assert split_control(control_name("random", "memit")) == ("random", "memit")
    assert split_control("memit") == ("", "memit")
    # What draws is made with several seeds, after everything else; all of them are one control.
    assert planned(["ft"], ["identity", "random"], 3) == (
        *("ft", "identity(ft)", "random(ft)"),
        *("random(ft, 2)", "random(ft, 3)"),
    )
    assert split_control("random(ft, 2)") == ("random", "ft")
    assert [first_seed(name) for name in ("random(ft, 2)", "random(ft)", "ft")] == ["random(ft)", "random(ft)", "ft"]
    drawn = [settings_of(control_name("random", "ft", n), {"random": {"seed": 5}})["seed"] for n in (1, 2, 3)]
    assert drawn[0] == 5
    assert len(set(drawn)) == 3
    assert [is_control(name) for name in ("identity", "identity(ft)", "identityx", "ft")] == [True, True, False, False]
    with pytest.raises(UnknownNameError, match="needs an editor"):
        planned(["identity"])


@pytest.mark.parametrize(("settings", "seeds"), [({}, {3}), ({"random": {"seed": 1}}, {1, 3})])
def test_seed_of_a_run_reaches_controls_whose_settings_have_none(settings: dict[str, Any], seeds: set[int]) -> None:
    job = Job("seesaw-tiny", editors=("ft",), controls=CONTROLS, limit=2, seed=3, editor_config=settings)
    names = planned(job.names, job.editor_controls)
    editors = make_editors(names, small.model(), editor_settings(settings, names, None, job.seed), None)
    drawn = {kind: getattr(editors[f"{kind}(ft)"].config, "seed", None) for kind in CONTROLS}
    assert drawn["random"] == min(seeds)
    assert set(drawn.values()) == seeds


def test_a_control_has_the_settings_and_the_lessons_of_its_editor(tmp_path: Path) -> None:
    overrides = {"ft": {"steps": 3}, "identity": {"seed": 5}}
    assert settings_of("identity(ft)", overrides) == {"seed": 5, "editor": "ft", "settings": {"steps": 3}}
    assert settings_of("ft", overrides) == {"steps": 3}
    made = make_editor("identity(ft)", small.model(), settings_of("identity(ft)", overrides), None)
    assert isinstance(made, IdentityControl)
    assert isinstance(made.inner, FT)
    assert (made.inner.config.steps, made.config.seed, made.config.editor) == (3, 5, "ft")
    spare = load_cases("sample", "cross_subject")[:3]
    taught = make_editor("identity(ike)", small.model(), {}, None, spare)
    assert isinstance(taught, IdentityControl)
    assert isinstance(taught.inner, IKE)
    assert taught.inner == make_editor("ike", small.model(), {}, None, spare)
    same = make_editor("identity(ft)", small.model(), {}, None, others={"ft": made.inner})
    assert isinstance(same, IdentityControl)
    assert same.inner is made.inner
    (tmp_path / "x").write_text("{")
    with pytest.raises(RecordError, match="not JSON"):
        editor_settings(tmp_path / "x", ["ft"])


@given(count=st.integers(1, 7), together=st.integers(1, 8))
@settings(deadline=None)
def test_the_checksum_of_cases_is_that_of_one_list_of_rows(count: int, together: int) -> None:
    """It was computed from all rows at once by earlier versions, whose runs can be continued."""
    cases = [replace(small.cases()[0], case_id=number, extra={"näme": "ö"}) for number in range(count)]
    rows = json.dumps(cases_to_table(cases).to_pylist(), sort_keys=True, ensure_ascii=False)
    with patch("seesaw_cf.run.job._ROWS", together):
        assert jobs._checksum(cases) == hashlib.sha256(rows.encode()).hexdigest()


def test_a_place_that_cannot_be_written_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="expected a folder"):
        check_places(tmp_path / "file")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(StorageError, match="--out"):
        check_places(tmp_path / "run")
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StorageError, match="SEESAW_CF_CACHE"):
        check_places(tmp_path / "run")
