"""Ray actors write the tables of one process, byte for byte; one cluster serves every test of this file."""

import functools
import os
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.errors import RunFolderError
from seesaw_cf.run.workers import _count_places, run_on_ray
from tests.conftest import ROOT
from tests.scoring.shared_run import make, same_tables


@pytest.fixture(scope="module")
def cluster() -> Any:
    """Ray with two CPUs; its own threads and warnings are not this package's to answer for."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'seesaw_cf[ray]')")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    os.environ["RAY_raylet_start_wait_time_s"] = "300"  # noqa: SIM112 - Ray's own spelling; a loaded machine is slow
    paths = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "SEESAW_CF_CACHE": os.environ["SEESAW_CF_CACHE"]}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": paths})
    yield ray
    ray.shutdown()


@pytest.mark.parametrize(
    ("nodes", "cpus", "gpus", "count"),
    [
        ([{"CPU": 2.0}, {"CPU": 1.0}], 1, 0.0, 3),
        ([{"CPU": 9.0}, {"CPU": 3.0}], 4, 0.0, 2),
        ([{"CPU": 16.0, "GPU": 1.0}], 1, 0.1, 10),
        ([{"CPU": 4.0}, {"CPU": 4.0, "GPU": 3.0}, {}], 1, 2.0, 1),
    ],
)
def test_as_many_actors_as_the_nodes_have_place_for(
    nodes: list[dict[str, float]], cpus: int, gpus: float, count: int
) -> None:
    assert _count_places(nodes, cpus, gpus) == count


def _mortal(out: Path, always: bool) -> Any:
    os.environ.update(SEESAW_TEST_DIES=f"{out}.died", SEESAW_TEST_ALWAYS="1" if always else "0")
    return make(out)


@pytest.mark.slow(60)
@pytest.mark.filterwarnings("ignore")
def test_ray_replaces_a_dead_actor(alone: Path, tmp_path: Path, cluster: Any) -> None:
    run_on_ray(functools.partial(_mortal, tmp_path / "run", False), tmp_path / "run", progress=False)
    assert Path(f"{tmp_path / 'run'}.died").exists()
    same_tables(alone, tmp_path / "run")
    run_on_ray(functools.partial(make, tmp_path / "run"), tmp_path / "run", progress=False)  # nothing left to do
    with pytest.raises(RunFolderError, match="belongs to another run"):  # not Ray's traceback of a dead actor
        run_on_ray(functools.partial(make, tmp_path / "run", seed=1), tmp_path / "run", progress=False)


@pytest.mark.slow(120)
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_up_on_a_task_that_always_kills(tmp_path: Path, cluster: Any) -> None:
    with pytest.raises(RunFolderError, match=r"block \d+ killed its worker 3 times"):
        run_on_ray(functools.partial(_mortal, tmp_path / "run", True), tmp_path / "run", progress=False)
