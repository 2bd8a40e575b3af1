"""--quiet is quiet: no bar and no note of any library."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from seesaw_cf.base.retrying import no_bars, quiet


def test_bars_are_off_in_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS", raising=False)
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    with quiet(False):
        assert no_bars() is None
    with quiet(True):
        assert no_bars() is True
        assert os.environ["TRANSFORMERS_VERBOSITY"] == "error"
    assert no_bars() is None
    assert os.environ["TRANSFORMERS_VERBOSITY"] == "info"


@pytest.mark.slow(20)
def test_a_quiet_command_writes_nothing_to_stderr() -> None:
    words = ["layers", "--model", "seesaw-tiny", "--facts", "2", "--noise-samples", "1", "--device", "cpu", "--quiet"]
    done = subprocess.run([sys.executable, "-m", "seesaw_cf", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
