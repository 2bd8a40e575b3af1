"""`seesaw-cf audit` and the commands around it as a user meets them, with messages for what goes wrong."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seesaw_cf.cli import main
from tests import fresh
from tests.report.frozen import restore
from tests.report.runs import cases, property_cases, write_run
from tests.runner import small
from tests.tokenizer_styles import TEXTS


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def words(model_folder: Path) -> list[str]:
    """A run of two cases: fine-tuning for one step on the small model, quiet."""
    config = model_folder / "editors.json"
    config.write_text(json.dumps({"ft": {"steps": 1, "layers": [1]}}))
    corpus = model_folder / "corpus.txt"
    corpus.write_text("\n".join(TEXTS))
    return ["audit", "--model", str(model_folder), "--editor", "ft", "--editor-config", str(config), "--quiet",
            "--corpus", str(corpus), "--device", "cpu", "--control", "none"]  # fmt: skip


@pytest.mark.slow
def test_a_run_prints_its_screen_and_writes_its_files(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    two = [*words, "--limit", "2", "--config", "cross_subject", "--out", str(tmp_path / "run")]
    assert main(two) == 0
    out = capsys.readouterr().out
    assert "2 facts edited with ft" in out
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["editors"]["ft"]["steps"] == 1
    assert manifest["data"]["cases"] == 2
    assert len(manifest["model"]["fingerprint"]) == 64
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pydict()
    assert set(rows["phase"]) == {"pre", "post"}
    assert len(set(rows["case_id"])) == 2
    assert (tmp_path / "run" / "report" / "report.html").exists()
    # The same command again computes nothing and prints the same.
    assert main(two) == 0
    assert capsys.readouterr().out == out


@pytest.mark.slow
def test_without_options_the_control_is_random_and_both_configs_are_asked(tmp_path: Path, words: list[str]) -> None:
    assert main([*words[:-2], "--limit", "1", "--control-seeds", "1", "--out", str(tmp_path / "run")]) == 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["data"]["configs"] == ["cross_subject", "cross_property"]
    assert list(manifest["editors"]) == ["ft", "random(ft)"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--config", "cross_subjekt"], "unknown config 'cross_subjekt'. Did you mean 'cross_subject'"),
        (["--model", "seesaw-tny"], "Did you mean 'seesaw-tiny'"),
        (["--editor-config", "/no/such.json"], "/no/such.json: No such file or directory. Check the path."),
        (["--device", "banana"], "device 'banana' cannot be used (Expected one of cpu, cuda,"),
        pytest.param(["--device", "cuda:99"], "device 'cuda:99' cannot be used (", marks=pytest.mark.slow),
        (["--data", "org/none"], "neither 'sample', a file or folder here, nor a data set the Hub answers for"),
    ],
)
def test_what_goes_wrong_is_said_and_nothing_is_left(
    tmp_path: Path, words: list[str], changes: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--out", str(tmp_path / "run"), *changes]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_config_that_a_folder_lacks_is_refused_at_once(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cross_property.parquet").touch()
    monkeypatch.setitem(sys.modules, "seesaw_cf.run.job", None)  # what loads a model cannot be imported
    assert main([*words, "--out", str(tmp_path / "run"), "--data", str(tmp_path)]) == 1
    assert "'cross_subject'. Did you mean 'cross_property'? Known: cross_property." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--editor-config", "{", 'Expected an object such as {"memit": {"layers": [3, 4]}}'),
        ("--editor-config", '{"ft": 3}', "'ft' is 3, expected an object of settings such as"),
        ("--data", "[{", "cases.json"),
        ("--data", '[{"case_id": 1}]', "requested_rewrite"),
    ],
)
def test_a_bad_file_is_explained(
    tmp_path: Path, words: list[str], option: str, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cases.json"
    file.write_text(content)
    assert main([*words, "--out", str(tmp_path / "run"), option, str(file)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.slow(15)
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, words: list[str]) -> None:
    command: list[Any] = [sys.executable, "-m", "seesaw_cf", *words, "--limit", "100", "--out", str(tmp_path / "run")]
    # A shell's background job ignores Ctrl-C, and so would its child.
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    for _ in range(600):
        if list((tmp_path / "run").rglob("shards/ft/*.parquet")):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again to continue" in err
    assert not (tmp_path / "run" / "scores.parquet").exists()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "x", cases(("P27",), 4, 8) + property_cases(2))


def call(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.mark.slow
@pytest.mark.parametrize("found", [True, False])
def test_open_shows_the_page_in_the_browser(
    run_folder: Path, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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


@pytest.mark.slow(10)
def test_after_setup_plain_names_load_from_any_folder_offline(tmp_path: Path) -> None:
    code = """
from datasets import load_dataset
from seesaw_cf.cli import main
assert main(["setup"]) == 0
import evaluate
print(len(load_dataset("seesaw_cf", "cross_property", split="test")), evaluate.load("edit_bias").name)
"""
    offline = {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = fresh.python("-c", code, cwd=tmp_path, env={**os.environ, **offline})
    rows, name = done.stdout.strip().split("\n")[-1].split()
    assert int(rows) > 100
    assert name == "edit_bias"


def test_cache_drops_what_nobody_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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


@pytest.mark.slow
def test_fail_if_worse_exits_with_3_and_the_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(restore("planted", tmp_path / "run"))
    assert main(["report", run, "--out", str(tmp_path / "report"), "--fail-if", "worse"]) == 3
    said = capsys.readouterr()
    assert "hit harder" in said.err
    assert (tmp_path / "report" / "report.html").exists()
    assert main(["report", run, "--out", str(tmp_path / "report")]) == 0
    assert said.out.splitlines()[:5] == capsys.readouterr().out.splitlines()[:5]
