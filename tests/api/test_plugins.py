"""Editors, metrics and record readers of other authors: scaffolds, names, and the clause that a broken one breaks."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seesaw_cf.base.plugins import Plugins, entries
from seesaw_cf.cli import main
from seesaw_cf.editors.plugins import PLUGINS as EDITORS
from seesaw_cf.errors import EditError, RecordError, StorageError, UnknownNameError
from seesaw_cf.metrics.plugins import PLUGINS as METRICS
from seesaw_cf.metrics.plugins import check_metric, compute
from seesaw_cf.metrics.register import register
from seesaw_cf.records import load_cases
from seesaw_cf.records.load import check_configs, usual_configs
from seesaw_cf.records.readers import PLUGINS as READERS
from seesaw_cf.records.readers import check_reader

KINDS: dict[str, Plugins] = {"editor": EDITORS, "metric": METRICS, "records": READERS}


@pytest.fixture(autouse=True)
def _names_are_forgotten() -> Iterator[None]:
    before = {kind: dict(plugins.known) for kind, plugins in KINDS.items()}
    yield
    for kind, plugins in KINDS.items():
        plugins.known.clear()
        plugins.known.update(before[kind])


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Write the scaffold of a kind; return its Python file."""
    before = set(sys.modules)

    def write(kind: str) -> Path:
        name = f"own{kind}"
        with redirect_stdout(io.StringIO()):
            assert main(["new", kind, name, "--out", str(tmp_path / name)]) == 0
        monkeypatch.syspath_prepend(tmp_path / name)
        return tmp_path / name / f"{name}.py"

    yield write
    for module in set(sys.modules) - before:
        if module.removeprefix("test_").removeprefix("own") in KINDS:
            del sys.modules[module]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_scaffold_writes_passes_its_own_tests(kind: str, new: Callable[[str], Path]) -> None:
    file = new(kind)
    tests = importlib.import_module(f"test_{file.stem}")
    functions = [value for name, value in vars(tests).items() if name.startswith("test_")]
    assert functions
    for function in functions:
        function()
    for path in file.parent.glob("*.*"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not any("mine" in line.lower() for line in lines), path
        assert path.suffix != ".py" or max(map(len, lines)) <= 120, path


@pytest.mark.parametrize("kind", KINDS)
def test_a_scaffold_is_found_by_its_file_and_by_its_entry_point(kind: str, new: Callable[[str], Path]) -> None:
    file, plugins = new(kind), KINDS[kind]
    assert plugins.name(str(file)) == file.stem
    [group] = [line.split('"')[1] for line in (file.parent / "pyproject.toml").read_text().splitlines() if '."' in line]
    installed = file.parent / "own-0.1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 0.1\n")
    target = plugins.load(file.stem).__name__
    (installed / "entry_points.txt").write_text(f"[{group}]\nelsewhere = {file.stem}:{target}\n")
    assert entries(group)["elsewhere"] == f"{file.stem}:{target}"
    plugins.known.update(entries(group))
    assert plugins.load("elsewhere").__name__ == target
    assert not plugins.is_own("elsewhere")


@pytest.mark.parametrize("name", ["Mine", "my-editor", "json", "", "my_editor", "class", "rome", "identity"])
def test_a_scaffold_takes_no_name_that_would_not_work(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "editor", name, "--out", str(tmp_path / "own")]) == 1
    assert "expected small letters and digits that name no installed module" in capsys.readouterr().err
    assert not (tmp_path / "own").exists()


def test_a_scaffold_replaces_nothing(new: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = new("records").parent
    assert main(["new", "records", "another9", "--out", str(folder)]) == 1
    assert "exists and is not an empty folder" in capsys.readouterr().err


BROKEN = [
    ("editor", "raise OSError('no disk')", EditError, r"fails \(line 1, OSError: no disk\)"),
    ("editor", "x = (", EditError, r"fails \(line 1, SyntaxError"),
    ("editor", "class A:\n    config_class = 3", EditError, "line 1: broken, config_class is a frozen dataclass"),
    ("metric", "x = 1", RecordError, "0 objects in it are classes below evaluate.Metric, expected one"),
    ("metric", "def a(): pass", RecordError, "0 objects in it are classes"),
    (
        "metric",
        "import evaluate\nclass A(evaluate.Metric):\n    def __init__(self, x): pass",
        RecordError,
        "line 2: brok",
    ),
    ("records", "\ndef a(config, more): pass", RecordError, "line 2: broken, it is a function of one argument"),
    ("records", "def a(config): pass\ndef b(config): pass", RecordError, r"2 objects .* \(a, b\), expected one. Name"),
]


@pytest.mark.parametrize(("kind", "text", "error", "message"), BROKEN)
def test_a_broken_file_is_refused_with_its_line_or_clause(
    kind: str, text: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    with pytest.raises(error, match=message):
        KINDS[kind].name(str(file))


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_lead_nowhere(kind: str) -> None:
    plugins = KINDS[kind]
    with pytest.raises(StorageError, match=r"there is no file nowhere\.py"):
        plugins.name("nowhere.py")
    with pytest.raises(plugins.error, match=r"importing it fails .ModuleNotFoundError"):
        plugins.name("no_such_package.module:Name")
    with pytest.raises(UnknownNameError, match=f"unknown {plugins.noun}"):
        plugins.name("nothing")
    plugins.known["gone"] = "no_such_package.module:Name"
    with pytest.raises(plugins.error, match=r"importing it fails .ModuleNotFoundError"):
        plugins.load("gone")


READER = """from dataclasses import replace
from seesaw_cf.records import load_cases
from seesaw_cf.types import AttributePrompt, Entity
def own(config):
    cases = load_cases('sample-small', config)[:2]
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 3", "its result is 3, expected a list of cases"),
        ("return [*cases, 5]", "item 2 is 5, expected a seesaw_cf.types.Case"),
        ("return []", "no cases for the config"),
        ("return cases[0].nothing", "line 6, AttributeError"),
    ],
)
def test_a_reader_that_fails_is_named_with_item_or_line(body: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text(f"{READER}    {body}\n")
    with pytest.raises(RecordError, match=rf"record reader .*reads\.py.*{message}"):
        load_cases(str(tmp_path / "reads.py"), "cross_subject")


TWICE = "own.calls = getattr(own, 'calls', 0) + 1\n    return cases[: 3 - own.calls]"
SPACES = (
    "return [replace(case, attribute_prompts=(AttributePrompt('Ada  is', Entity(None, 'Ada')),)) for case in cases]"
)


@pytest.mark.parametrize(
    ("body", "clause", "fault"),
    [
        ("return [cases[0]] * 2", "each case has a number of its own", "occurs twice"),
        (TWICE, "it returns the same cases in the same order", "2 cases, then 1"),
        (SPACES, "no case or prompt is damaged", "two spaces in a row"),
    ],
)
def test_a_reader_is_told_which_clause_it_breaks(body: str, clause: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text(f"{READER}    {body}\n")
    broken = {key: text for key, text in check_reader(str(tmp_path / "reads.py"), "cross_subject").items() if text}
    assert [fault in text for key, text in broken.items() if clause in key] == [True], broken


def test_the_configs_of_an_audit_fit_its_data(tmp_path: Path) -> None:
    file = tmp_path / "reads.py"
    file.write_text(f"{READER}    return cases\n")
    assert usual_configs(str(file)) == ("cross_subject",)
    assert usual_configs("sample") == ("cross_subject", "cross_property")
    check_configs(str(file), ["anything"])
    (tmp_path / "records.json").write_text("[]")
    assert usual_configs(str(tmp_path / "records.json")) == ("cross_subject",)


ROWS = pd.DataFrame(
    {"editor": ["ft", "ft", "memit"], "D": [0.1, None, 0.3], "case_id": [1, 2, 1], "person": list("abc")}
)


def test_a_metric_is_computed_for_each_editor_and_keeps_its_clauses(new: Callable[[str], Path]) -> None:
    name = METRICS.name(str(new("metric")))
    assert compute(name, [ROWS])["ft"] == {"value": 0.1, "low": None, "high": None, "n": 1}
    assert compute(name, [pd.DataFrame({"editor": []}), ROWS])["memit"]["value"] == 0.3
    assert set(check_metric(name, [ROWS]).values()) == {""}


METRIC = """
import datasets, evaluate
class Own(evaluate.Metric):
    def _info(self):
        features = datasets.Features({{"{column}": datasets.Value("float64")}})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)
    def _compute(self, {column}):
        return {result}
"""


@pytest.mark.parametrize(
    ("column", "result", "clause", "fault"),
    [
        ("D", "1 / 0", "it can be computed on a run", "line 8, ZeroDivisionError"),
        ("log_odd", "{}", "it can be computed on a run", "unknown column of a run 'log_odd'. Did you mean 'log_odds'"),
        ("D", "{'n': 3, 'value': float('nan')}", "it returns plain JSON", "value of ft is nan"),
        ("D", "{'value': 3}", "it says in `n` how many rows", "ft, memit"),
        ("D", "{'n': 3}", "its docstring says what it is", "no docstring"),
        ("D", "{'n': __import__('time').perf_counter_ns()}", "the same rows give the same numbers", "other numbers"),
    ],
)  # fmt: skip
def test_a_metric_is_told_which_clause_it_breaks(
    column: str, result: str, clause: str, fault: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(METRIC.format(column=column, result=result))
    name = METRICS.name(str(tmp_path / "own.py"))
    rows = ROWS.assign(log_odds=0.0)
    broken = {key: text for key, text in check_metric(name, [rows]).items() if text}
    assert [fault in text for key, text in broken.items() if clause in key] == [True], broken


def test_a_metric_of_another_package_is_loaded_by_its_name(
    new: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = new("metric")
    METRICS.known["elsewhere"] = f"{file.stem}:{file.stem.capitalize()}"
    monkeypatch.setattr("evaluate.config.HF_MODULES_CACHE", str(tmp_path / "modules"))
    [stub] = [path for path in register() if path.stem == "elsewhere"]
    names: dict[str, Any] = {}
    exec(stub.read_text(encoding="utf-8"), names)
    metric = names[file.stem.capitalize()](keep_in_memory=True)
    assert metric.compute(D=[0.5], case_id=[1], person=["a"])["value"] == 0.5
