"""The commands around the main job, through `main`, as a user types them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from seesaw_cf.cli import main
from tests import fresh
from tests.given import Capture, Patch, Temp
from tests.report.frozen import restore
from tests.report.runs import cases, property_cases, write_run


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: Temp) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "x", cases(("P27",), 4, 8) + property_cases(2))


def call(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.mark.slow
@pytest.mark.parametrize("found", [True, False])
def test_open_shows_the_page_in_the_browser(
    run_folder: Path, found: bool, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    asked: list[str] = []

    def browser(address: str) -> bool:
        asked.append(address)
        return found

    monkeypatch.setattr("webbrowser.open", browser)
    assert call("report", run_folder, "--out", tmp_path / "a report", "--open") == 0
    page = tmp_path / "a report" / "report.html"
    assert asked == [page.as_uri()]
    assert page.exists()
    assert (f"Open {page} in yours" in capsys.readouterr().out) is not found


def test_report_of_nothing_explains_itself(tmp_path: Path, capsys: Capture) -> None:
    assert call("report", tmp_path) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "not a run folder. Give the folder that `seesaw-cf audit --out` wrote." in said.err


def test_list_shows_everything_there_is(capsys: Capture) -> None:
    assert call("list") == 0
    shown = capsys.readouterr().out
    for words in ("memit  ", "seesaw-tiny", "cross_subject", "P103  language", "South Asian", "edit_bias"):
        assert words in shown


def _elsewhere(tmp_path: Path, code: str) -> str:
    """Runs code in a fresh process in an empty folder, offline, with caches of its own."""
    folder = tmp_path / "elsewhere"
    folder.mkdir(exist_ok=True)
    offline = {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = fresh.python("-c", code, cwd=folder, env={**os.environ, **offline})
    return done.stdout


@pytest.mark.slow(10)
def test_after_setup_plain_names_load_from_any_folder_offline(tmp_path: Path) -> None:
    code = """
from datasets import load_dataset
from seesaw_cf.cli import main
assert main(["setup"]) == 0
import evaluate
print(len(load_dataset("seesaw_cf", "cross_property", split="test")), evaluate.load("edit_bias").name)
"""
    rows, name = _elsewhere(tmp_path, code).strip().split("\n")[-1].split()
    assert int(rows) > 100
    assert name == "edit_bias"


def test_cache_drops_what_nobody_used(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path))
    files = {
        name: tmp_path / name for name in ("pre/old.parquet", "pre/new.parquet", "mend/key/a", "mend/key/b", "own")
    }
    for file in files.values():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * 1000)
    month_ago = time.time() - 40 * 86_400
    for name in ("pre/old.parquet", "mend/key/a", "own"):
        os.utime(files[name], (month_ago, month_ago))
    assert call("setup", "--prune", 30) == 0
    assert "1.00kB deleted, unused for 30 days; 3.00kB left" in capsys.readouterr().out
    assert [name for name, file in files.items() if not file.exists()] == ["pre/old.parquet"]
    assert call("setup", "--prune", 0) == 0
    assert [name for name, file in files.items() if file.exists()] == ["own"]


def test_fail_if_worse_exits_with_3_and_the_finding(tmp_path: Path, capsys: Capture) -> None:
    run = str(restore("planted", tmp_path / "run"))
    assert main(["report", run, "--out", str(tmp_path / "one")]) == 0
    shown = capsys.readouterr().out
    assert main(["report", run, "--out", str(tmp_path / "two"), "--fail-if", "worse"]) == 3
    said = capsys.readouterr()
    assert "hit harder" in said.err
    assert said.out.splitlines()[:5] == shown.splitlines()[:5]
