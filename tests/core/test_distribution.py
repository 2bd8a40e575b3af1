"""Wheel and sdist, built from a copy of the tree, do the job in an environment that has never seen the checkout."""

import os
import shutil
import subprocess
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests import fresh

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow(120)
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
NOT_COPIED = (".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")

EVERYTHING = """
import importlib, pathlib, pkgutil
import seesaw_cf
home = pathlib.Path(seesaw_cf.__file__).parent
assert "site-packages" in home.parts, home
for found in pkgutil.walk_packages([str(home)], "seesaw_cf."):
    if not found.name.endswith("__main__") and not found.name.startswith("seesaw_cf.harnesses."):
        importlib.import_module(found.name)
for name in seesaw_cf.configs():
    assert len(seesaw_cf.load(name)), name
seesaw_cf.register()
import evaluate
for name in seesaw_cf.metrics.register.METRICS:
    assert evaluate.load(name, keep_in_memory=True).description
print("all there")
"""


def _build(tree: Path, kind: str, out: Path) -> Path:
    """One distribution of a tree, without asking an index for the build's requirements."""
    out.mkdir()
    fresh.python("-c", BUILD, f"build_{kind}", str(out), cwd=tree)
    [made] = out.iterdir()
    return made


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout; building writes into it."""
    copy = tmp_path_factory.mktemp("tree") / "seesaw_cf"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return copy


@pytest.fixture(scope="module")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(tree, "sdist", tmp_path_factory.mktemp("sdist") / "out")


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(tree, "wheel", tmp_path_factory.mktemp("wheel") / "out")


def test_the_sdist_is_whole_and_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(tmp_path)], check=True)
    [unpacked] = tmp_path.iterdir()
    for name in ("dataset_card.md", "LICENSE", "constraints.txt", "README.md", "CITATION.cff", "CHANGELOG.md"):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes(), name
    assert (unpacked / "docs" / "editors.md").exists()
    again, once = _contents(_build(unpacked, "wheel", tmp_path / "wheel")), _contents(wheel)
    record = next(name for name in once if name.endswith("/RECORD"))
    assert again.keys() == once.keys()
    assert [name for name in once if name != record and again[name] != once[name]] == []
    assert any(name.endswith("licenses/LICENSE") for name in once)
    assert not any("__pycache__" in name or name.startswith("tests") for name in once)


def _installed(wheel: Path, folder: Path) -> Path:
    """A fresh environment with the wheel; it sees the packages of this one, but not the checkout."""
    fresh.python("-m", "venv", "--without-pip", str(folder))
    site = next(folder.glob("lib/python*/site-packages"))
    # The folder named comes behind the environment's own, and its .pth files, such as the checkout's, are not read.
    (site / "seen.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = str(folder / "bin" / "python")
    install = ["pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", "--ignore-installed"]
    fresh.python("-m", *install, str(wheel))
    return folder / "bin"


def test_the_wheel_does_the_job_from_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    scripts = _installed(wheel, tmp_path / "environment")
    empty = tmp_path / "empty"
    empty.mkdir()
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    homes = {name: str(tmp_path / name) for name in ("HF_HOME", "SEESAW_CF_CACHE", "MPLCONFIGDIR")}
    offline = {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

    def call(*words: str) -> str:
        done = subprocess.run(
            [str(scripts / words[0]), *words[1:]], cwd=empty, env={**kept, **homes, **offline}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
        return done.stdout

    assert "memit" in call("seesaw-cf", "list", "editors")
    assert "edit_bias" in call("seesaw-cf", "list", "metrics")
    assert call("python", "-c", EVERYTHING).endswith("all there\n")
    call("seesaw-cf", "audit", "seesaw-tiny", "--editor", "memit", "--limit", "2", "--out", "run", "--quiet")
    call("seesaw-cf", "report", "run", "--out", "report")
    assert (empty / "report" / "report.html").stat().st_size
