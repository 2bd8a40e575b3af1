"""`seesaw-cf audit` as a user meets it: a small model from a folder, real editors, and messages for what goes wrong."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seesaw_cf.cli import main
from tests.given import Capture, Patch, Temp
from tests.runner import small
from tests.tokenizer_styles import TEXTS


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: Temp) -> Path:
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


@pytest.fixture(scope="module")
def two(words: list[str]) -> list[str]:
    """Of two cases."""
    return [*words, "--limit", "2", "--config", "cross_subject"]


@pytest.mark.slow
def test_a_run_prints_its_screen_and_writes_its_files(tmp_path: Path, two: list[str], capsys: Capture) -> None:
    assert main([*two, "--out", str(tmp_path / "run")]) == 0
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
    assert main([*two, "--out", str(tmp_path / "run")]) == 0
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
        (["--editor", "memitt"], "unknown editor 'memitt'. Did you mean 'memit'"),
        (["--config", "cross_subjekt"], "unknown config 'cross_subjekt'. Did you mean 'cross_subject'"),
        (["--model", "seesaw-tny"], "Did you mean 'seesaw-tiny'"),
        (["--editor-config", "/no/such.json"], "/no/such.json: No such file or directory. Check the path."),
        (["--corpus", "/no/such.txt"], "/no/such.txt: cannot be read"),
        (["--device", "banana"], "device 'banana' cannot be used (Expected one of cpu, cuda,"),
        (["--device", "banana"], "Expected 'auto' or one of cpu"),
        (["--device", "cuda:99"], "device 'cuda:99' cannot be used ("),
        (["--data", "org/none"], "neither 'sample', a file or folder here, nor a data set the Hub answers for"),
    ],
)
def test_what_goes_wrong_is_said_and_nothing_is_left(
    tmp_path: Path, words: list[str], changes: list[str], message: str, capsys: Capture
) -> None:
    assert main([*words, "--out", str(tmp_path / "run"), *changes]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_config_that_a_folder_lacks_is_refused_at_once(
    tmp_path: Path, words: list[str], monkeypatch: Patch, capsys: Capture
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
        ("--editor-config", "[1]", "got [1]. Expected an object"),
        ("--editor-config", '{"ft": {"stepps": 3}}', "unknown setting of FTConfig 'stepps'. Did you mean 'steps'"),
        ("--editor-config", '{"rome": {}}', "unknown editor of this run 'rome'"),
        ("--data", "[{", "cases.json"),
        ("--data", '[{"case_id": 1}]', "requested_rewrite"),
    ],
)
def test_a_bad_file_is_explained(
    tmp_path: Path, words: list[str], option: str, content: str, message: str, capsys: Capture
) -> None:
    file = tmp_path / "cases.json"
    file.write_text(content)
    assert main([*words, "--out", str(tmp_path / "run"), option, str(file)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_folder_of_another_setting_is_refused(tmp_path: Path, two: list[str], capsys: Capture) -> None:
    assert main([*two, "--out", str(tmp_path / "run")]) == 0
    assert main([*two[:-4], *two[-2:], "--out", str(tmp_path / "run"), "--limit", "1"]) == 1
    assert "data.cases: the folder has 2, this run 1" in capsys.readouterr().err


@pytest.mark.slow(15)
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, words: list[str], monkeypatch: Patch) -> None:
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
