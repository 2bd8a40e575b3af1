"""What the tests of commands rely on: a forked process answers, fails and is alone like one that was started."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import fresh

ALONE = """
import os, sys
print(os.getcwd(), repr(sys.path[0]), sys.argv, sorted(name for name in sys.modules if name.startswith("seesaw_cf")))
"""
OLD = "import warnings; warnings.warn_explicit('old', FutureWarning, 'file', 1, module={!r})"

pytestmark = pytest.mark.slow


def test_it_starts_in_the_folder_and_without_this_package(tmp_path: Path) -> None:
    assert fresh.snippet(ALONE, tmp_path) == (0, f"{tmp_path} '' ['-c'] []\n")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise ValueError('no such thing')", 1, "ValueError: no such thing"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        (OLD.format("seesaw_cf"), 1, "FutureWarning: old"),
        (OLD.format("seesaw_cf.other"), 0, "FutureWarning: old"),
    ],
)
def test_how_a_snippet_ends_is_seen(text: str, code: int, message: str, tmp_path: Path) -> None:
    ended, said = fresh.snippet(text, tmp_path)
    assert ended == code, said
    assert message in said


def test_a_command_says_what_is_wrong(tmp_path: Path) -> None:
    code, said = fresh.command(["report", "nowhere"], tmp_path)
    assert code == 1, said
    assert said.startswith("error: ")
    assert "Traceback" not in said
