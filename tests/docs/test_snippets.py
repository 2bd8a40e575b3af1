"""Every command and every snippet of the README is run, in an empty folder, as a reader would run it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Commands that cannot be run inside the tests: why, and what is checked instead.
NOT_RUN = {
    "make": "runs this test itself; `make -n` shows that the target exists",
    "git": "clones this repository",
    "pip": "installs this package",
}
PLACEHOLDERS = ("ORG/", "YOUR_", "http")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def _commands() -> Iterator[str]:
    for block in _blocks("bash"):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.split("  #")[0].strip()
            if command and not command.startswith("#"):
                yield command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all snippets, in their order: a later one may use what an earlier one wrote."""
    return tmp_path_factory.mktemp("reader")


def _run(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(words, cwd=cwd, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


def test_there_is_something_to_run() -> None:
    assert len(_blocks("python")) >= 3
    assert sum(command.startswith("seesaw-cf") for command in _commands()) >= 4
    assert {"make demo", "make test"} <= set(_commands())


@pytest.mark.parametrize("command", [c for c in _commands() if c.split()[0] in NOT_RUN])
def test_make_targets_exist(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "make":
        answer = _run(["make", "-n", *words[1:]], ROOT)
        assert answer.returncode == 0, answer.stderr


@pytest.mark.slow
def test_every_command_and_snippet_runs_in_the_order_of_the_readme(folder: Path) -> None:
    ran = 0
    for kind, text in re.findall(r"^```(bash|python)\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        if kind == "python":
            answer = _run([sys.executable, "-W", "error::FutureWarning:seesaw_cf", "-c", text], folder)
            assert answer.returncode == 0, f"{text}\n{answer.stdout}\n{answer.stderr}"
            ran += 1
            continue
        for line in text.replace("\\\n", " ").splitlines():
            command = line.split("  #")[0].strip()
            words = shlex.split(command)
            if not words or words[0] in NOT_RUN or any(mark in command for mark in PLACEHOLDERS):
                continue
            assert words[0] == "seesaw-cf", f"the README names a command that no test runs: {command}"
            answer = _run([sys.executable, "-m", "seesaw_cf", *words[1:]], folder)
            assert answer.returncode == 0, f"{command}\n{answer.stdout}\n{answer.stderr}"
            ran += 1
    assert ran >= 7


def test_every_command_of_the_readme_is_known() -> None:
    from seesaw_cf.cli import COMMANDS

    for command in _commands():
        words = shlex.split(command)
        if words[0] == "seesaw-cf":
            assert words[1] in COMMANDS


def test_pictures_and_linked_files_are_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
