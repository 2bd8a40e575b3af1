"""Every metric folder: complete, loads by path, runs its doctest, results are plain JSON; the page of all metrics."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect

import evaluate
import pandas as pd
import pytest
from huggingface_hub import metadata_load

from seesaw_cf.metrics import app
from seesaw_cf.metrics.register import METRICS
from tests import fresh
from tests.conftest import ROOT
from tests.metrics.test_inputs import COLUMNS

FOLDERS = sorted(path.name for path in (ROOT / "metrics").iterdir() if (path / "README.md").exists())
SECTIONS = (
    "Metric description",
    "How to use",
    "Inputs",
    "Output values",
    "Examples",
    "Limitations and bias",
    "Citation",
)


def test_the_table_of_metrics_is_the_folder_and_a_metric_imports_nothing_heavy() -> None:
    assert sorted(METRICS) == FOLDERS
    for name in FOLDERS:
        tree = ast.walk(ast.parse((ROOT / "metrics" / name / f"{name}.py").read_text(encoding="utf-8")))
        asked = {node.module for node in tree if isinstance(node, ast.ImportFrom)}
        rooms = {str(module).split(".")[1] for module in asked if str(module).startswith("seesaw_cf.")}
        assert rooms <= {"base", "effects", "metrics", "records", "stats"}, name


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_is_complete(name: str) -> None:
    folder = ROOT / "metrics" / name
    for file in (f"{name}.py", "README.md", "requirements.txt"):
        assert (folder / file).stat().st_size, file
    body = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    card = metadata_load(folder / "README.md")
    assert card is not None
    assert card["title"] == name
    assert {"evaluate", "metric"} <= set(card["tags"])
    for section in SECTIONS:
        assert f"# {section}\n" in body, section
    for word in ("**Range**", "**Direction**"):
        assert word in body, word


@pytest.mark.parametrize("name", FOLDERS)
def test_loads_by_path_and_runs_its_doctest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    metric = evaluate.load(f"metrics/{name}")
    assert f":{type(metric).__name__}" in str(METRICS[name])
    parameters = inspect.signature(type(metric)._compute).parameters.values()
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters)
    result = doctest.testmod(importlib.import_module(type(metric).__module__))
    assert result.attempted > 1
    assert result.failed == 0


@pytest.mark.parametrize("name", FOLDERS)
def test_the_page_computes_rows_of_text_as_the_metric_does(name: str) -> None:
    columns = COLUMNS[name]
    rows = pd.DataFrame({key: [_cell(value) for value in column] for key, column in columns.items()})
    frame, message = app.table(name, rows.to_csv(index=False))
    assert len(frame), message
    assert app.header(name) == ",".join(columns)
    frame, message = app.table(name, "nonsense\n1\n")
    assert frame.empty
    assert "missing" in message


def _cell(value: object) -> str:
    return "|".join(map(_cell, value)) if isinstance(value, list) else "" if value is None else str(value)


def test_the_page_asks_for_gradio_only_when_opened() -> None:
    pytest.importorskip("gradio", reason="gradio is not installed: pip install -c constraints.txt gradio")
    # In a process of its own: gradio leaves event loops open.
    script = "from seesaw_cf.metrics.app import page; print(len(page().fns))"
    done = fresh.python("-c", script, cwd=ROOT)
    assert done.stdout == "2\n", done.stderr[-3000:]
