"""Another number of CPU threads changes the last digits: it is part of what a run is, and `--threads` sets it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from seesaw_cf.errors import RunFolderError
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.manifest import claim_folder
from tests import fresh
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

RAY = ("--engine", "ray")


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_threads")
def test_threads_are_set_and_are_part_of_the_runs_identity(tmp_path: Path) -> None:
    job: dict[str, Any] = {"model": "seesaw-tiny", "editors": ("ft",), "limit": 1, "device": "cpu", "data": "sample"}
    two = make_run(Job(**job, threads=2), tmp_path).manifest
    assert torch.get_num_threads() == 2
    assert make_run(Job(**job), tmp_path).manifest.identity == two.identity  # torch still has two
    one = make_run(Job(**job, threads=1), tmp_path).manifest
    assert torch.get_num_threads() == 1
    assert one.identity != two.identity
    claim_folder(tmp_path / "run", two)
    with pytest.raises(RunFolderError) as caught:
        claim_folder(tmp_path / "run", one)
    assert ("scoring.threads: the folder has 2, this run 1 (give --threads N to both)") in str(caught.value)


def _run(out: Path, threads: int, *engine: str) -> None:
    """A run as from a shell that says nothing about threads, with nothing cached by another one."""
    env = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    options = ["audit", "seesaw-tiny", "--control", "none", "--device", "cpu", "--editor", "memit", "--limit", "2",
               "--block", "1", "--config", "cross_subject"]  # fmt: skip
    options += [*engine, "--quiet", "--threads", str(threads), "--out", str(out)]
    env |= {"OMP_WAIT_POLICY": "PASSIVE", "SEESAW_CF_CACHE": f"{out}.cache"}  # threads that wait do not spin
    fresh.python("-m", "seesaw_cf", *options, cwd=ROOT, env=env)


@pytest.mark.slow(40)
@pytest.mark.exhaustive
@pytest.mark.parametrize("threads", [1, 2])
def test_ray_and_a_local_run_with_the_same_threads_write_the_same_bytes(tmp_path: Path, threads: int) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    _run(tmp_path / "alone", threads)
    _run(tmp_path / "shared", threads, *RAY)
    for table in ("scores.parquet", "edits.parquet"):
        assert (tmp_path / "alone" / table).read_bytes() == (tmp_path / "shared" / table).read_bytes()
