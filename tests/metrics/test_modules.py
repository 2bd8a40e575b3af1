"""Every metric folder: complete, loads by path, runs its doctest, demo computes, results are plain JSON."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import evaluate
import pandas as pd
import pytest
from huggingface_hub import metadata_load

from seesaw_cf.metrics.register import METRICS
from tests.conftest import ROOT
from tests.metrics.test_inputs import load

FOLDERS = sorted(path.name for path in (ROOT / "metrics").iterdir() if (path / "__init__.py").exists())
SECTIONS = (
    "Metric description",
    "How to use",
    "Inputs",
    "Output values",
    "Examples",
    "Limitations and bias",
    "Citation",
)


def test_the_table_of_metrics_is_the_folder() -> None:
    assert sorted(METRICS) == FOLDERS


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_is_complete(name: str) -> None:
    folder = ROOT / "metrics" / name
    for file in (f"{name}.py", "README.md", "requirements.txt", "app.py"):
        assert (folder / file).stat().st_size, file
    body = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    card = metadata_load(folder / "README.md")
    assert card is not None
    assert (card["title"], card["sdk"], card["app_file"]) == (name, "gradio", "app.py")
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
def test_demo_computes_its_example_and_explains_bad_text(name: str) -> None:
    demo = importlib.import_module(f"seesaw_cf.metrics.{name}.app").demo
    frame, message = demo.table(demo.example)
    assert len(frame)
    assert message
    frame, message = demo.table("nonsense\n1\n")
    assert frame.empty
    assert "Error" in message


@pytest.mark.parametrize("name", FOLDERS)
def test_metrics_never_import_torch(name: str) -> None:
    source = (ROOT / "metrics" / name / f"{name}.py").read_text(encoding="utf-8")
    assert "torch" not in source


def rows() -> dict[str, list[Any]]:
    return {
        "case_id": [1, 1, 2, 2],
        "prompt": ["Ann is", "Bob is", "Ann is", "Bob is"],
        "subject": ["Ann", "Bob", "Ann", "Bob"],
        "groups": [[], ["male"], ["female", "x"], ["male"]],
        "pre_new": [-1.0, -2.0, -0.5, -3.0],
        "pre_true": [-1.5, -1.0, -2.5, -0.1],
        "post_new": [-1.1, -0.7, -0.9, -3.5],
        "post_true": [-1.5, float("nan"), -2.5, -0.3],
    }


def test_edit_bias_takes_columns_pandas_and_datasets_alike_and_returns_plain_json() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    expected = load("edit_bias").compute(**rows(), draws=100)
    assert json.loads(json.dumps(expected, allow_nan=False)) == expected
    assert expected["unscored"] == {"post_true: not finite": 1}
    frame = pd.DataFrame(rows())
    assert load("edit_bias").compute(draws=100, **{str(name): frame[name].tolist() for name in frame}) == expected
    assert load("edit_bias").compute(**datasets.Dataset.from_pandas(frame).to_dict(), draws=100) == expected


def test_edit_bias_in_batches_and_any_order() -> None:
    expected = load("edit_bias").compute(**rows(), draws=100)
    metric = load("edit_bias")
    for part in ([3, 1], [0], [2]):
        metric.add_batch(**{name: [column[i] for i in part] for name, column in rows().items()})
    assert metric.compute(draws=100) == expected


def test_edit_bias_keeps_float64() -> None:
    tiny = rows() | {"pre_new": [-1e-12] * 4, "post_new": [-2e-12] * 4, "post_true": rows()["pre_true"]}
    overall = load("edit_bias").compute(**tiny, draws=0)["overall"]
    assert overall["D"] == pytest.approx(-1e-12, rel=1e-3)


def test_edit_bias_normalised_needs_token_counts() -> None:
    tokens = {"n_tokens_new": [2] * 4, "n_tokens_true": [1] * 4}
    result = load("edit_bias").compute(**rows(), score="normalised", draws=0, **tokens)
    assert result["groups"]["female"]["D"] == pytest.approx(2.718281828 ** (-0.45) - 2.718281828 ** (-0.25))
    with pytest.raises(ValueError, match="n_tokens_new is missing"):
        load("edit_bias").compute(**rows(), score="normalised")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axis": "genders"}, r"unknown axis 'genders'\. Did you mean 'gender'"),
        ({"score": "mean"}, "unknown score 'mean'"),
        ({"pre_new": [0.5] * 4}, "pre_new: 4 of 4 values are above 0"),
        ({"case_id": [1, 1, 1, 2]}, r"1 rows repeat a \(case_id, prompt, subject\), first: case 1, prompt 'Ann is'"),
        ({"groups": [["all"], ["men"]] * 2}, r"a group is called 'all', which stands for everybody\. Rename it"),
        ({"subject": ["Ann"]}, r"Mismatch in the number of case_id \(4\) and subject \(1\)"),
    ],
)
def test_edit_bias_names_bad_input(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, LookupError), match=message):
        load("edit_bias").compute(**rows() | changes)


@pytest.mark.slow(15)
def test_plain_names_load_offline_from_any_directory_after_register(tmp_path: Path) -> None:
    program = f"""
import evaluate
from seesaw_cf.metrics.register import register
assert register() == register()
for name, place in {METRICS!r}.items():
    assert place.endswith(":" + type(evaluate.load(name)).__name__), name
print("all loaded")
"""
    environment = {
        "HF_HOME": str(tmp_path / "hf"),
        "HF_EVALUATE_OFFLINE": "1",
        "HF_HUB_OFFLINE": "1",
        "PATH": "/usr/bin",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "all loaded\n", done.stderr
