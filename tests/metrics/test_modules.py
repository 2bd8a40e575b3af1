"""Every metric folder is complete, loads by path and runs its doctest; Table 5 of SEESAW-CF from published scores."""

import ast
import doctest
import importlib
import inspect
import json
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import evaluate
import pandas as pd
import pytest
from huggingface_hub import metadata_load

from benchmarks.table5 import PRINTED, PRINTED_AVERAGE, RESULTS, accuracies
from seesaw_cf.metrics import app
from seesaw_cf.metrics.register import METRICS
from tests import fresh
from tests.conftest import ROOT
from tests.metrics.test_inputs import COLUMNS, numbers_of

FOLDERS = sorted(path.name for path in (ROOT / "metrics").iterdir() if (path / "README.md").exists())


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
    card = metadata_load(folder / "README.md")
    assert card is not None
    assert card["title"] == name
    assert {"evaluate", "metric"} <= set(card["tags"])


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


# PEER_FACTS B4: property prompt, exact match, (pre, FT, MEMIT)
CORRECTED = {
    "P21/P101": (0.362, 0.348, 0.122),
    "P19/P101": (0.367, 0.316, 0.229),
    "P27/P101": (0.365, 0.362, 0.210),
    "P101/P27": (0.288, 0.277, 0.181),
    "P101/P21": (0.989, 0.961, 0.896),
    "P19/P21": (0.990, 0.983, 0.972),
    "P27/P21": (0.989, 0.986, 0.943),
}


def half_up(value: float, digits: str) -> Decimal:
    return Decimal(repr(value)).quantize(Decimal(digits), ROUND_HALF_UP)


def three(results: dict[str, Any], pair: str) -> tuple[float, float, float]:
    ft, memit = (results[editor]["pairs"][pair] for editor in ("ft", "memit"))
    assert ft["pre"] == memit["pre"]
    return ft["pre"], ft["post"], memit["post"]


@pytest.mark.slow(15)
@pytest.mark.parametrize("mode", ["paper", "exact"])
def test_published_scores_give_the_printed_and_the_corrected_values(mode: str, reference: Callable[..., Path]) -> None:
    results = accuracies(reference("gptj_cross_property", "scores.parquet"), mode)
    stored = json.loads((RESULTS / "table5.json").read_text())[mode]
    found, expected = (numbers_of({e: r["pairs"] for e, r in each.items()}) for each in (results, stored))
    assert found.keys() == expected.keys()
    for path, value in expected.items():  # another machine adds in another order
        assert found[path] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), path
    if mode == "exact":
        for name, corrected in CORRECTED.items():
            assert [round(value, 3) for value in three(results, name)] == list(corrected), name


def test_stored_results_have_the_printed_values() -> None:
    results = json.loads((RESULTS / "table5.json").read_text())["paper"]
    cells = {pair: (three(results, "/".join(pair)), printed) for pair, printed in PRINTED.items()}
    averages = tuple(results[e]["average"][k] for e, k in (("ft", "pre"), ("ft", "post"), ("memit", "post")))
    cells["average", ""] = averages, PRINTED_AVERAGE
    # 46 of 279 = 0.16487 is printed as .17: the authors rounded to three decimals first.
    once = [(pair, i) for pair, (found, printed) in cells.items() for i in range(3) if round(found[i], 2) != printed[i]]
    assert once == [(("P21", "P101"), 1)]
    for pair, (found, printed) in cells.items():
        twice = [half_up(float(half_up(value, "0.001")), "0.01") for value in found]
        assert [float(value) for value in twice] == list(printed), pair
