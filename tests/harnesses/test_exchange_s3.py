"""`run --exchange s3://...` on an S3-compatible server: two machines, one of them killed, write the tables of one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.conftest import ROOT

pytest.importorskip("s3fs", reason="needs s3fs")
pytest.importorskip("moto.server", reason="needs an S3 server on loopback: pip install 'moto[server]'")

RUN = (
    "run",
    "--model",
    "seesaw-tiny",
    "--editor",
    "ft",
    "--control",
    "none",
    "--limit",
    "6",
    "--block",
    "1",
    "--threads",
    "1",
)
TABLES = ("scores.parquet", "edits.parquet")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urlopen(Request(f"{url}/bucket", method="PUT"), timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "no answer"
                time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait()


def _start(machine: Path, server: str = "", *options: str, **variables: str) -> subprocess.Popen[str]:
    """A run with a run folder and a cache of its own."""
    credentials = {
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "not-to-be-logged",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    own = {"SEESAW_CF_CACHE": str(machine / "cache"), "AWS_ENDPOINT_URL": server, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "seesaw_cf", *RUN, "--out", str(machine / "run"), "--quiet", "-v", *options],
        cwd=ROOT,
        env=os.environ | credentials | own | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _finished(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    return out


def test_two_machines_on_an_s3_server_one_of_them_killed(server: str, tmp_path: Path) -> None:
    exchange = ("--exchange", "s3://bucket/runs/one")
    ranks = [{"RANK": str(rank), "WORLD_SIZE": "2"} for rank in range(2)]
    dead = _start(tmp_path / "dead", server, *exchange, **ranks[0])
    deadline = time.monotonic() + 200
    while not list((tmp_path / "dead" / "run" / "shards").rglob("*.parquet")):
        assert dead.poll() is None, dead.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    machines = [
        _start(tmp_path / f"machine{rank}", server, *exchange, **variables) for rank, variables in enumerate(ranks)
    ]
    logs = [_finished(machine) for machine in machines]
    _finished(_start(tmp_path / "alone"))
    for table in TABLES:
        assert (tmp_path / "machine0" / "run" / table).read_bytes() == (tmp_path / "alone" / "run" / table).read_bytes()
    assert not (tmp_path / "machine1" / "run" / "scores.parquet").exists()
    assert not any("not-to-be-logged" in log for log in logs)


def test_a_bucket_that_is_not_there_is_said(server: str, tmp_path: Path) -> None:
    out, _ = (process := _start(tmp_path, server, "--exchange", "s3://no-bucket/run")).communicate(timeout=300)
    assert process.returncode == 1
    assert "--exchange s3://no-bucket/run: cannot" in out
    assert "Traceback" not in out
