"""--quiet is quiet: no bar and no note of any library."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seesaw_cf.base.retrying import no_bars, quiet


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


@pytest.mark.slow(20)
def test_a_quiet_command_writes_nothing_to_stderr(tmp_path: Path) -> None:
    words = ["audit", "seesaw-tiny", "--editor", "ft", "--limit", "1", "--control", "none", "--device", "cpu"]
    words += ["--quiet", "--out", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-m", "seesaw_cf", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
