"""The whole audit from Python: the numbers of the command, models in memory, editors of somebody else."""

import copy
import gc
import inspect
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import seesaw_cf
from seesaw_cf.cli import main
from seesaw_cf.editors import EDITORS
from seesaw_cf.errors import RecordError, RunFolderError, StorageError, UnknownNameError
from seesaw_cf.models import WeightDelta, load_model
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.manifest import read_manifest
from seesaw_cf.run.prepare import LoadedModel
from tests.api.own_editor import OneStep, OneStepConfig

pytestmark = pytest.mark.slow

QUIET: dict[str, Any] = {"progress": False, "device": "cpu", "data": "sample", "control_seeds": 1}
OWN = Path(__file__).with_name("own_editor.py")


@pytest.fixture(autouse=True)
def _own_editors_are_forgotten() -> Iterator[None]:
    yield
    EDITORS.pop("onestep", None)


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    return load_model("seesaw-tiny", device="cpu", progress=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audits")


@pytest.fixture(scope="module")
def audited(folder: Path) -> seesaw_cf.Audit:
    return seesaw_cf.audit("seesaw-tiny", editor="ft", limit=2, out=folder / "run", **QUIET)


@pytest.mark.slow(20)
def test_it_is_the_run_and_the_report_of_the_command(audited: seesaw_cf.Audit, folder: Path) -> None:
    words = "audit seesaw-tiny --editor ft --control-seeds 1 --device cpu --limit 2 --quiet"
    words += " --data sample"
    with redirect_stdout(io.StringIO()) as said:
        assert not main(f"{words} --out {folder}/same".split())
    assert (folder / "same" / "scores.parquet").read_bytes() == (folder / "run" / "scores.parquet").read_bytes()
    assert audited.screen.finding[0] in " ".join(said.getvalue().split())


def test_results_are_frames_and_the_object_is_small_to_print(audited: seesaw_cf.Audit) -> None:
    assert list(audited.summary["about"]) == ["other_facts", "other_people_old", "other_people_new"]
    assert len(audited.summary.columns) == 8
    lost = audited.tables["levels"].query("what == 'beyond' and about == 'other_facts' and decides")["value"].iloc[0]
    assert audited.summary["harm"].iloc[0] == -lost, "harm is above 0"
    levels, facts = audited.tables["levels"], audited.tables["other_facts"]
    assert set(levels["editor"]) == set(facts["editor"]) == {"ft", "random(ft)"}
    assert set(audited.tables["contrasts"]["verdict"]) <= {"too_few", "undecided"}
    assert audited.screen.finding[0] in " ".join(str(audited).split())


def test_tables_in_latex(audited: seesaw_cf.Audit) -> None:
    assert audited.to_latex("levels").startswith("\\begin{tabular}")
    for name, rows in audited.tables.items():
        lines = re.findall(r"\\\\$", audited.to_latex(name), re.MULTILINE)
        assert len(lines) == 1 + len(rows), name
    with pytest.raises(UnknownNameError, match="level"):
        audited.to_latex("level")


def test_it_is_saved_once(audited: seesaw_cf.Audit, tmp_path: Path) -> None:
    assert audited.screen.about in audited.save(tmp_path / "kept").read_text(encoding="utf-8")
    assert (tmp_path / "kept").stat().st_mode & 0o055, "whoever may read files of this user may read it"
    assert (tmp_path / "kept" / "scores.parquet").exists()
    with pytest.raises(StorageError, match="exists, expected a new folder"):
        audited.save(tmp_path / "kept")


def test_a_model_in_memory_is_audited_as_by_its_name(audited: seesaw_cf.Audit, loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    model.train()
    weights = fingerprint(model)
    in_memory = seesaw_cf.audit(model, tokenizer, editor="ft", limit=2, **QUIET)
    pd.testing.assert_frame_equal(in_memory.report.frame, audited.report.frame)
    assert in_memory.report.run.manifest["model"]["id"] == "seesaw-tiny"
    assert fingerprint(model) == weights
    assert model.training, "its mode is the caller's"
    model.eval()
    place = in_memory.report.run.folder
    assert place.exists()
    del in_memory
    gc.collect()
    assert not place.exists(), "a folder of nobody is removed with the audit"


def test_a_model_in_memory_is_reported_in_the_dtype_that_it_has(tmp_path: Path) -> None:
    model, tokenizer = load_model("seesaw-tiny", device="cpu", dtype="bfloat16", progress=False)
    job = Job("seesaw-tiny", editors=("ft",), data="sample", limit=1, dtype="float32")
    run = make_run(job, tmp_path / "run", loaded=LoadedModel(model, tokenizer))
    assert (run.manifest.model["dtype"], run.manifest.job["dtype"]) == ("bfloat16", "bfloat16")


def test_two_models_in_memory_are_compared(loaded: tuple[Any, Any]) -> None:
    base, tokenizer = loaded
    changed = copy.deepcopy(base)
    with torch.no_grad():
        changed.get_parameter("model.layers.1.mlp.down_proj.weight").mul_(0.5)
    compared = seesaw_cf.audit(base, tokenizer, changed={"halved": changed}, limit=1, **QUIET)
    assert set(compared.tables["levels"]["editor"]) == {"halved", "random(halved)"}
    facts: Any = compared.report.run.manifest["edited"]["halved"]
    assert (facts["form"], facts["null"]) == ("model in memory", "noise")


def test_an_editor_of_somebody_else_in_a_file() -> None:
    audit = seesaw_cf.audit("seesaw-tiny", editor=str(OWN), config="cross_property", limit=1, **QUIET)
    assert set(audit.tables["levels"]["editor"]) == {"onestep", "random(onestep)"}
    settings: Any = audit.report.run.manifest["editors"]["onestep"]
    assert re.fullmatch("[0-9a-f]{64}", settings["sha256"])


@dataclass(frozen=True)
class Scaled(OneStep):
    """An editor with an attribute that its settings do not have."""

    scale: float = 1.0

    def edit(self, model: Any, tokenizer: Any, requests: Any) -> WeightDelta:
        delta = super().edit(model, tokenizer, requests)
        return WeightDelta({name: self.scale * delta.dense(name) for name in delta.updates})


def test_an_object_is_used_as_it_is(loaded: tuple[Any, Any], tmp_path: Path) -> None:
    def norm(scale: float, out: Path) -> tuple[float, Any]:
        editor = Scaled(OneStepConfig(0), scale=scale)
        seesaw_cf.audit(*loaded, editor=editor, control=(), config="cross_property", limit=1, out=out, **QUIET)
        return pd.read_parquet(out / "edits.parquet")["delta_norm"][0], read_manifest(out)["editors"]["scaled"]

    (one, first), (three, second) = norm(1.0, tmp_path / "one"), norm(3.0, tmp_path / "three")
    assert three == pytest.approx(3 * one, rel=1e-5)
    assert first["attributes"] != second["attributes"]
    with pytest.raises(RunFolderError, match=r"editors\.scaled\.attributes"):
        norm(3.0, tmp_path / "one")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        ({"editor": "ft", "limits": 2}, TypeError, "unexpected keyword argument 'limits'"),
        ({}, RecordError, "nothing is audited"),
        ({"editor": "ft", "protocol": "batch", "checkpoints": [1, 2]}, RecordError, "gives curves and no report"),
        ({"changed": 3}, RecordError, "changed is of the class int, expected a folder"),
        ({"editor": "ft", "tokenizer": "loaded"}, RecordError, "which brings its own"),
        ({"changed": {"ft": "mine"}}, UnknownNameError, "the name 'ft' is that of another model"),
        ({"tokenizer": 3}, RecordError, "of the class int, expected the tokenizer"),
    ],
)
def test_a_wrong_call_is_told(call: dict[str, Any], error: type[Exception], said: str, loaded: tuple[Any, Any]) -> None:
    call = {name: loaded[1] if value == "loaded" else value for name, value in call.items()}
    with pytest.raises(error, match=said):
        seesaw_cf.audit("seesaw-tiny", **call)


def test_every_setting_of_a_job_is_an_argument_with_its_default() -> None:
    asked = {name: own.default for name, own in inspect.signature(seesaw_cf.audit).parameters.items()}
    names = {"editors": "editor", "controls": "control", "control_models": "control_model", "configs": "config"}
    alone = {"model", "doses", "repeats", "pairs"}  # of the command: their report is another one
    for field in fields(Job):
        if field.name not in alone | {"editors", "changed", "controls", "control_models", "configs"}:
            assert asked[field.name] == field.default, field.name
        assert field.name in alone or names.get(field.name, field.name) in asked


def test_a_model_without_its_tokenizer_is_explained(loaded: tuple[Any, Any]) -> None:
    with pytest.raises(RecordError, match="its tokenizer is missing"):
        seesaw_cf.audit(loaded[0], editor="ft")


@pytest.mark.slow(6)
def test_a_steered_model_in_memory_is_asked_as_it_is(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    weights, steered = fingerprint(model), copy.deepcopy(model)
    direction = torch.randn(128, generator=torch.Generator().manual_seed(0))
    steered.model.layers[2].register_forward_hook(lambda _, __, output: output + direction)
    found = seesaw_cf.audit(model, tokenizer, changed={"steered": steered}, limit=2, **QUIET)
    facts = found.report.run.manifest["edited"]["steered"]
    assert (facts["form"], facts["null"]) == ("model in memory", "")
    assert set(found.tables["groups"]["editor"]) == {"steered"}
    assert fingerprint(model) == weights


def test_a_model_of_the_bases_own_modules_is_refused(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    with pytest.raises(RecordError, match="made of the base's own modules"):
        seesaw_cf.audit(model, tokenizer, changed={"same": model}, limit=1, **QUIET)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_a_peft_model_as_the_base_is_to_be_merged_first(loaded: tuple[Any, Any]) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    adapted = peft.get_peft_model(copy.deepcopy(loaded[0]), peft.LoraConfig(target_modules=["q_proj"]))
    with pytest.raises(RecordError, match=r"the base is a PeftModel.*Merge it first"):
        seesaw_cf.audit(adapted, loaded[1], editor="ft")
