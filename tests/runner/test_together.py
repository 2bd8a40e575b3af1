"""Two processes with the same job and the same folder: both finish, with the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest


@pytest.mark.slow
def test_of_several_processes_one_claims_a_folder_and_the_others_join(tmp_path: Path) -> None:
    rounds = 100
    command = [sys.executable, "-m", "tests.runner.claimer", str(tmp_path), str(rounds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, **pipes) for _ in range(3)]  # type: ignore[call-overload]
    try:
        assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 3
        for _ in range(rounds):
            for worker in workers:
                worker.stdin.write("\n")
                worker.stdin.flush()
            said = Counter(worker.stdout.readline() for worker in workers)
            assert said == {"claimed\n": 1, "joined\n": 2}
    finally:
        for worker in workers:
            worker.stdin.close()
            worker.wait(timeout=60)
            worker.stdout.close()


@pytest.mark.slow(60)
@pytest.mark.exhaustive
def test_two_runs_started_together_end_with_the_same_bytes(tmp_path: Path) -> None:
    options = "--data sample --config cross_subject --editor ft --limit 2 --threads 1 --control none --keep-deltas"
    command = [sys.executable, "-m", "seesaw_cf", "audit", "seesaw-tiny", *options.split(), "--quiet", "--out"]

    def start(out: str, cache: str) -> subprocess.Popen[str]:
        env = {**os.environ, "SEESAW_CF_CACHE": str(tmp_path / cache)}
        return subprocess.Popen([*command, str(tmp_path / out)], env=env, stderr=subprocess.PIPE, text=True)

    both = [start("both", "shared"), start("both", "shared")]
    said = [process.communicate(timeout=600)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    alone = start("alone", "own")
    said.append(alone.communicate(timeout=600)[1])
    assert alone.returncode == 0, said
    for table in ("scores.parquet", "edits.parquet"):
        assert (tmp_path / "both" / table).read_bytes() == (tmp_path / "alone" / table).read_bytes()
