"""What is declared is what is there: packages, extras and data files of the distribution."""

from __future__ import annotations

import configparser
from pathlib import Path

from seesaw_cf import __all__, __version__

ROOT = Path(__file__).resolve().parents[2]
TOP = {"seesaw_cf": "seesaw_cf", "seesaw_cf.editors": "editors", "seesaw_cf.metrics": "metrics"} | {
    "seesaw_cf.builder_scripts": "builder_scripts"
}


def _setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def _packages(name: str, folder: Path) -> set[str]:
    """Folders with an `__init__.py`, below one top-level folder, links left out."""
    inits = [file.parent for file in folder.rglob("__init__.py")]
    kept = [path for path in inits if not any(parent.is_symlink() for parent in (path, *path.parents))]
    return {".".join((name, *path.relative_to(folder).parts)) for path in kept}


def test_every_package_is_declared() -> None:
    declared = set(_setup()["options"]["packages"].split())
    assert declared == set().union(*(_packages(name, ROOT / folder) for name, folder in TOP.items()))


def test_the_long_names_lead_to_the_top_level_folders() -> None:
    lines = [line.split("=") for line in _setup()["options"]["package_dir"].strip().splitlines()]
    assert {name.strip(): folder.strip() for name, folder in lines} == TOP
    for folder in ("editors", "metrics", "builder_scripts"):
        link = ROOT / "seesaw_cf" / folder
        assert link.is_symlink()
        assert link.resolve() == ROOT / folder


def test_package_data_patterns_match_files() -> None:
    for package, patterns in _setup()["options.package_data"].items():
        folder = ROOT / package.replace("seesaw_cf.", "seesaw_cf/", 1).replace(".", "/")
        for pattern in patterns.replace("\n", ",").split(","):
            if pattern.strip():
                assert list(folder.glob(pattern.strip())), f"{package}: nothing matches {pattern}"


def test_the_extras_that_keep_the_core_small() -> None:
    extras = set(_setup()["options.extras_require"])
    models = {"longform", "judge", "api", "stereotypes", "topics", "toxicity"}
    assert extras == {"build", "plots", "hub", "mixed", "ray", "test"} | models
    assert _setup()["options"]["python_requires"] == ">=3.11"


def test_the_version_is_one() -> None:
    assert _setup()["metadata"]["version"] == __version__


def test_public_names_exist_and_are_sorted() -> None:
    import seesaw_cf

    assert sorted(__all__) == __all__
    assert all(getattr(seesaw_cf, name) is not None for name in __all__)


def test_unknown_public_names_are_attribute_errors() -> None:
    import pytest

    import seesaw_cf

    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        seesaw_cf.lode  # noqa: B018


def test_torch_is_installed_first_and_at_one_version() -> None:
    """A looser request downloads gigabytes of GPU packages."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert makefile.index("torch==2.13.0") < makefile.index("--editable")
