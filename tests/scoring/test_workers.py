"""Shards that several processes wrote give the tables of one process, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from seesaw_cf.errors import RunFolderError
from tests.scoring.shared_run import make, same_tables


@pytest.mark.slow
def test_shares_done_in_turn_give_the_tables_of_one_process(alone: Path, tmp_path: Path) -> None:
    runs = [make(tmp_path / "run") for _ in range(3)]
    for run, tasks in zip(runs, ([0, 4], [3], [2])):
        for number in tasks:
            run.do(run.blocks[number])
    (tmp_path / "run" / "manifest.json").write_text((alone / "manifest.json").read_text())
    runs[0].complete()
    same_tables(alone, tmp_path / "run")


@pytest.mark.slow
def test_shards_of_another_run_are_found_out(alone: Path, tmp_path: Path) -> None:
    make(tmp_path / "other", seed=1).complete()
    shard = "shards/nudge/P21-00000001.parquet"
    run = make(tmp_path / "run")
    run.complete()
    (tmp_path / "run" / shard).write_bytes((tmp_path / "other" / shard).read_bytes())
    with pytest.raises(RunFolderError, match=r"P21-00000001.parquet was written by another run .*Delete that file"):
        run.merge()
    (tmp_path / "run" / shard).unlink()
    make(tmp_path / "run").complete()
    same_tables(alone, tmp_path / "run")
