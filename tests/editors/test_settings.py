"""Settings as they come from a JSON file, and every editor through the command line on the embedded model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seesaw_cf.cli import main
from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.control_names import first_seed, is_control
from seesaw_cf.editors.controls import ControlConfig
from seesaw_cf.editors.ft import FTConfig, LoRAConfig
from seesaw_cf.editors.locate.config import with_settings
from seesaw_cf.editors.memit import MEMITConfig
from seesaw_cf.editors.mend import MENDConfig
from seesaw_cf.editors.mend.training import MENDTraining
from seesaw_cf.errors import EditError, SettingError, UnknownNameError
from seesaw_cf.models.architectures import Architecture
from seesaw_cf.run.make_editors import make_editor
from tests.fakes import tiny_model, tiny_tokenizer

MEND_QUICK = {"training": {"steps": 20, "validate_every": 10}, "rank": 8}
"""Enough steps for a network that exists; how good one gets is measured elsewhere."""


def test_lists_become_tuples_and_nested_settings_keep_the_rest() -> None:
    config = with_settings(
        MENDConfig(layers=(1,), training=MENDTraining.for_width(128)), {"layers": [0, 2], "training": {"steps": 7}}
    )
    assert config.layers == (0, 2)
    assert config.training == MENDTraining(**{**_fields(MENDTraining.for_width(128)), "steps": 7})
    row = {"blocks": "a", "mlp_in": ["b"], "mlp_out": "c", "norm": "d"}
    assert with_settings(MEMITConfig(layers=(1,)), {"architecture": row}).architecture == Architecture(
        "a", ("b",), "c", "d"
    )
    wrapped = with_settings(ControlConfig(), {"editor": "rome", "settings": {"layers": [1]}})
    assert wrapped.settings == {"layers": [1]}


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 3}, "MEMITConfig: layers is 3, expected a list"),
        *(({"steps": value}, f"steps is {value!r}, expected") for value in ("ten", True, 0)),
        ({"clamp": "wide"}, "clamp is 'wide'"),
        ({"allow_identity": 1}, "allow_identity is 1"),
        ({"architecture": {"block": "x"}}, "unexpected keyword argument 'block'"),
    ],
)
def test_values_of_another_kind_are_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EditError, match=message):
        with_settings(MEMITConfig(layers=(1,)), settings)


@pytest.mark.parametrize("config", [FTConfig(layers=(1,)), LoRAConfig(layers=(1,)), MEMITConfig(layers=(1,))])
def test_numbers_that_would_overflow_are_errors(config: Any) -> None:
    for setting, value in (("learning_rate", 1e38), ("weight_decay", -5), ("weight_decay", 1e300)):
        with pytest.raises(SettingError, match=rf"{setting} is .*, expected a finite number"):
            with_settings(config, {setting: value})


def test_unknown_settings_are_errors_also_inside_others() -> None:
    with pytest.raises(UnknownNameError, match=r"setting of MENDTraining 'step'. Did you mean 'steps'"):
        with_settings(MENDConfig(layers=(1,)), {"training": {"step": 3}})
    wrong = {"editor": "memit", "settings": {"laiers": [1]}}
    control = make_editor("random", tiny_model("llama"), wrong, ["some text"])
    with pytest.raises(UnknownNameError, match=r"setting of MEMITConfig 'laiers'. Did you mean 'layers'"):
        control.fit(tiny_model("llama"), tiny_tokenizer())


@pytest.mark.parametrize("name", EDITORS)
def test_every_editor_is_made_for_every_model_by_name(name: str) -> None:
    editor = make_editor(name, tiny_model("gpt2"), {}, ["some text"])
    assert editor.config == load_editor(name).config_class.for_model(tiny_model("gpt2"))


SHOWN = ("alphaedit", "ike", "lora", "mend", "identity")
"""One of each kind: other commands and pages run FT, ROME, MEMIT and controls."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores before any edit are the same for every editor: they are worked out once."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow(15)
@pytest.mark.parametrize(
    "name", [name if name in SHOWN else pytest.param(name, marks=pytest.mark.exhaustive) for name in EDITORS]
)
def test_every_editor_runs_from_the_command_line(
    name: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two cases on the embedded model, with nothing given but the editor's name (and fewer steps for MEND).

    A control wraps the editor that it stands beside.
    """
    monkeypatch.setenv("SEESAW_CF_CACHE", str(cache))
    editor, control = ("memit", name) if is_control(name) else (name, "none")
    row = f"{name}(memit)" if is_control(name) else name
    words = ["audit", "seesaw-tiny", "--editor", editor, "--control", control, "--data", "sample", "--limit", "2"]
    words += ["--config", "cross_subject", "--device", "cpu", "--quiet"]
    if name == "mend":
        (tmp_path / "settings.json").write_text(json.dumps({"mend": MEND_QUICK}))
        words += ["--editor-config", str(tmp_path / "settings.json")]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    assert "facts edited with" in capsys.readouterr().out
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()
    fine = {"ok", "zero delta"} if name == "identity" else {"ok"}  # what is known already needs no change
    assert {edit["status"] for edit in edits if edit["editor"] == row} <= fine
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert {first_seed(editor) for editor in manifest["editors"]} == ({row, "memit"} if is_control(name) else {name})
