"""Editors of other authors: the scaffold, names, and the clause that a broken or careless one breaks."""

import hashlib
import importlib
import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import torch

from seesaw_cf.cli import main
from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.contract import check_contract
from seesaw_cf.editors.plugins import code_facts, editor_name, is_own
from seesaw_cf.errors import EditError, StorageError, UnknownNameError
from seesaw_cf.models import WeightDelta
from seesaw_cf.records.load import usual_configs
from tests.api.own_editor import OneStep, OneStepConfig
from tests.fakes import REQUESTS, tiny_model, tiny_tokenizer


@pytest.fixture(autouse=True)
def _names_are_forgotten() -> Iterator[None]:
    before = dict(EDITORS)
    yield
    EDITORS.clear()
    EDITORS.update(before)


@pytest.fixture
def scaffold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the scaffold of an editor; return its Python file."""
    with redirect_stdout(io.StringIO()):
        assert main(["new", "own", "--out", str(tmp_path / "own")]) == 0
    monkeypatch.syspath_prepend(tmp_path / "own")
    yield tmp_path / "own" / "own.py"
    for module in ("own", "test_own"):
        sys.modules.pop(module, None)


@pytest.mark.slow
def test_what_the_scaffold_writes_passes_its_own_tests(scaffold: Path) -> None:
    tests = importlib.import_module("test_own")
    functions = [value for name, value in vars(tests).items() if name.startswith("test_")]
    assert functions
    for function in functions:
        function()
    for path in scaffold.parent.glob("*.*"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not any("mine" in line.lower() for line in lines), path
        assert path.suffix != ".py" or max(map(len, lines)) <= 120, path


def test_a_scaffold_is_found_by_its_file_and_by_its_entry_point(scaffold: Path) -> None:
    assert editor_name(str(scaffold)) == "own"
    assert code_facts("own").keys() == {"class", "sha256"}
    installed = scaffold.parent / "own-0.1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 0.1\n")
    assert '[project.entry-points."seesaw_cf.editors"]' in (scaffold.parent / "pyproject.toml").read_text()
    (installed / "entry_points.txt").write_text("[seesaw_cf.editors]\nelsewhere = own:Own\n")
    found = {point.name: point.value for point in entry_points(group="seesaw_cf.editors")}
    assert found["elsewhere"] == "own:Own"
    EDITORS.update(found)
    assert load_editor("elsewhere").__name__ == "Own"
    assert not is_own("elsewhere")


@pytest.mark.parametrize("name", ["Mine", "my-editor", "json", "", "my_editor", "class", "rome", "identity"])
def test_a_scaffold_takes_no_name_that_would_not_work(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", name, "--out", str(tmp_path / "own")]) == 1
    assert "expected small letters and digits that name no installed module" in capsys.readouterr().err
    assert not (tmp_path / "own").exists()


CONFIG = """from dataclasses import dataclass
@dataclass(frozen=True)
class Config:
    @classmethod
    def for_model(cls, model): return cls()
"""
BROKEN = [
    ("raise OSError('no disk')", r"fails \(line 1, OSError: no disk\)"),
    ("import sys\nsys.exit(0)", r"fails \(line 2, SystemExit: 0\)"),
    ("x = (", r"fails \(line 1, SyntaxError"),
    ("x = 1", "0 objects in it are classes with a config_class, expected one"),
    ("class A:\n    config_class = 3\nclass B(A): pass", r"2 objects .* \(A, B\), expected one\. Name"),
    ("class A:\n    config_class = 3", "line 1: broken, config_class is a frozen dataclass"),
    (f"{CONFIG}class A:\n    config_class = Config", r"line 6: broken, fit\(model, tokenizer\) prepares"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_broken_file_is_refused_with_its_line_or_clause(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    with pytest.raises(EditError, match=message):
        editor_name(str(file))


def test_a_name_is_taken_once(scaffold: Path, tmp_path: Path) -> None:
    editor_name(str(scaffold))
    (tmp_path / "other.py").write_text(scaffold.read_text())
    with pytest.raises(EditError, match="the name 'own' is that of"):
        editor_name(str(tmp_path / "other.py"))


def test_names_that_lead_nowhere() -> None:
    with pytest.raises(StorageError, match=r"there is no file nowhere\.py"):
        editor_name("nowhere.py")
    with pytest.raises(EditError, match=r"importing it fails .ModuleNotFoundError"):
        editor_name("no_such_package.module:Name")
    with pytest.raises(UnknownNameError, match="unknown editor"):
        editor_name("nothing")
    EDITORS["gone"] = "no_such_package.module:Name"
    with pytest.raises(EditError, match=r"importing it fails .ModuleNotFoundError"):
        load_editor("gone")


def test_the_configs_of_an_audit_fit_its_data(tmp_path: Path) -> None:
    assert usual_configs("sample") == ("cross_subject", "cross_property")
    (tmp_path / "records.json").write_text("[]")
    assert usual_configs(str(tmp_path / "records.json")) == ("cross_subject",)


def test_a_file_that_was_edited_in_a_session_is_another_editor(scaffold: Path) -> None:
    first = load_editor(editor_name(str(scaffold)))
    before = code_facts("own")
    assert load_editor(editor_name(str(scaffold))) is first
    scaffold.write_text(scaffold.read_text() + "\n\nMARK = 7\n")
    assert sys.modules[load_editor(editor_name(str(scaffold))).__module__].MARK == 7
    assert code_facts("own")["class"] == before["class"]
    assert code_facts("own")["sha256"] == hashlib.sha256(scaffold.read_bytes()).hexdigest() != before["sha256"]


@dataclass(frozen=True)
class Careless(OneStep):
    """Breaks one promise after another."""

    slip: str = ""

    def edit(self, model: Any, tokenizer: Any, requests: Any) -> WeightDelta:
        delta = super().edit(model, tokenizer, requests)
        [name] = delta.updates
        update = delta.dense(name)
        if self.slip == "in place":
            with torch.no_grad():
                model.get_parameter(name).add_(1.0)
        if self.slip == "random":
            return WeightDelta({name: update + 1e-3 * torch.rand(1)}, delta.meta)
        wrong: dict[str, Any] = {
            "zero": {name: 0 * update},
            "shape": {name: update[:1]},
            "nan": {name: float("nan") * update},
            "unknown": {"model.nothing": update},
            "backwards": {name: -update},
        }
        return WeightDelta(wrong.get(self.slip, {name: update}), delta.meta)


def broken(slip: str) -> dict[str, str]:
    model = tiny_model("llama")
    editor = Careless(OneStepConfig.for_model(model), slip=slip)
    clauses = check_contract(editor, model, tiny_tokenizer(), REQUESTS[:2])
    return {clause: fault for clause, fault in clauses.items() if fault}


def test_an_honest_editor_keeps_every_clause() -> None:
    assert broken("") == {}


@pytest.mark.parametrize(
    ("slip", "clause", "fault"),
    [
        ("in place", "edit leaves model, tokenizer, random state and disk as they were", "weights"),
        ("random", "the same request gives the same change, bit for bit", "other numbers in"),
        ("zero", "the change fits the model", "every number is 0"),
        ("shape", "the change fits the model", "of another shape"),
        ("nan", "the change fits the model", "not finite"),
        ("unknown", "the change fits the model", "no parameters of the model: model.nothing"),
        ("backwards", "the new answer becomes likelier", "nats before"),
    ],
)
def test_a_careless_editor_is_told_which_clause_it_breaks(slip: str, clause: str, fault: str) -> None:
    assert fault in broken(slip)[clause]


@pytest.mark.slow(15)
def test_the_command_says_what_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(Path(__file__).with_name("own_editor.py")), "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert all(line.startswith("holds") for line in lines)
