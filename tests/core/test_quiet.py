"""--quiet is quiet: no bar and no note of any library."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from seesaw_cf.base import system
from seesaw_cf.base.retrying import BETWEEN_LINES, Bar, no_bars, quiet, say_when_waiting, stage, stages


def test_bars_are_off_in_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS", raising=False)
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    with quiet(False):
        assert not no_bars()
    with quiet(True):
        assert no_bars()
        assert os.environ["TRANSFORMERS_VERBOSITY"] == "error"
    assert not no_bars()
    assert os.environ["TRANSFORMERS_VERBOSITY"] == "info"


class Log(io.StringIO):
    """A log file, or a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that bars read; a test moves them on."""
    seconds = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: seconds[0])
    return seconds


@pytest.mark.parametrize(("step", "lines"), [(0.01, 2), (0.1, 4), (0.2, 6), (2.0, 23)])
def test_a_log_file_has_whole_lines_and_few(
    step: float, lines: int, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", log := Log(terminal=False))
    for _ in Bar(range(20), "edit", unit="block"):
        clock[0] += step * BETWEEN_LINES
    text = log.getvalue()
    assert "\r" not in text
    assert text.endswith("\n")
    assert text.startswith("edit:   0%")
    assert len(text.splitlines()) <= lines
    assert "100%" in text


def test_a_log_file_has_whole_lines_beside_a_bar_that_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log := Log(terminal=False))
    with tqdm(total=2, file=io.StringIO()):
        assert list(Bar(range(3), "edit")) == [0, 1, 2]
    assert log.getvalue().startswith("edit:   0%")
    assert log.getvalue().endswith("s]\n")


def test_a_terminal_has_one_line_that_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log := Log(terminal=True))
    assert list(Bar(range(3), "edit", mininterval=0)) == [0, 1, 2]
    assert log.getvalue().count("\r") >= 4
    assert log.getvalue().count("\n") == 1


def test_stages_move_the_bar_around_them_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log := Log(terminal=True))
    stage("alone")
    assert log.getvalue() == ""
    with stages("tables", 3):
        stage("effects")
    assert "effects" in log.getvalue()
    assert "3/3" in log.getvalue()
    with stages("tables", 3, silent=True):
        stage("hidden")
    assert "hidden" not in log.getvalue()


def test_long_silence_is_broken_once() -> None:
    written: list[str] = []
    with say_when_waiting(lambda: "loading", 0.0, written.append):
        while not written:
            time.sleep(0.001)
    with say_when_waiting(lambda: "never", 60.0, written.append):
        pass
    assert written == ["loading"]


@pytest.mark.slow(20)
def test_a_quiet_command_writes_nothing_to_stderr(tmp_path: Path) -> None:
    words = [
        "audit",
        "seesaw-tiny",
        "--editor",
        "ft",
        "--limit",
        "1",
        "--control",
        "none",
        "--device",
        "cpu",
        "--quiet",
        "--out",
    ]
    words.append(str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-m", "seesaw_cf", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_slow_import_says_what_is_loaded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def slow(name: str) -> SimpleNamespace:
        time.sleep(0.3)
        return SimpleNamespace(audit=name)

    monkeypatch.setattr(system, "import_module", slow)
    monkeypatch.setattr(system, "_PATIENCE", 0.01)
    find, _ = system.lazy("package", {"audit": "package.api"})
    assert find("audit") == "package.api"
    assert "loading package.api and the libraries that it needs, such as torch" in caplog.text
