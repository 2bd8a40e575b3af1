"""What is declared is what is there: packages, extras and data files of the distribution."""

from __future__ import annotations

import ast
import configparser
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf import __all__, __version__
from seesaw_cf.base import system

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


_DECLARED = """
import json, runpy, setuptools
setuptools.setup = lambda **options: print(json.dumps(options))
runpy.run_path("setup.py")
"""


@pytest.fixture(scope="module")
def declared() -> dict[str, Any]:
    """What setup.py declares, read by a process of its own: setuptools puts its distutils in place of Python's."""
    run = [sys.executable, "-c", _DECLARED]
    options: dict[str, Any] = json.loads(subprocess.run(run, cwd=ROOT, capture_output=True, check=True).stdout)
    return options


def test_every_package_is_declared(declared: dict[str, Any]) -> None:
    assert set(declared["packages"]) == set().union(*(_packages(name, ROOT / folder) for name, folder in TOP.items()))


def test_what_installs_imports_nothing_of_maintainers() -> None:
    for file in _sources():
        assert not re.search(r"^\s*from benchmarks\b", file.read_text(encoding="utf-8"), re.MULTILINE), file


def test_the_readme_of_an_index_has_no_relative_links(declared: dict[str, Any]) -> None:
    text = declared["long_description"]
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", text) == []
    assert len(re.findall(r"\]\(", text)) == len(re.findall(r"\]\(", (ROOT / "README.md").read_text(encoding="utf-8")))


def test_the_long_names_lead_to_the_top_level_folders(declared: dict[str, Any]) -> None:
    assert declared["package_dir"] == TOP
    for folder in ("editors", "metrics", "builder_scripts"):
        link = ROOT / "seesaw_cf" / folder
        assert link.is_symlink()
        assert link.resolve() == ROOT / folder


def test_package_data_patterns_match_files() -> None:
    for package, patterns in _setup()["options.package_data"].items():
        if package == "*":  # of every package that has such files
            continue
        folder = ROOT / package.replace("seesaw_cf.", "seesaw_cf/", 1).replace(".", "/")
        # As setuptools does: a value of several lines is split at the lines only.
        for pattern in patterns.strip().split("\n" if "\n" in patterns else ","):
            assert list(folder.glob(pattern.strip())), f"{package}: nothing matches {pattern}"


def test_the_extras_that_keep_the_core_small() -> None:
    extras = set(_setup()["options.extras_require"])
    models = {"longform", "api", "stereotypes", "topics", "toxicity"}
    others = {"build", "hub", "ray", "harness"}
    assert extras - models - others == {"docs", "test"}
    assert _setup()["options"]["python_requires"] == ">=3.11"


def test_the_version_is_one() -> None:
    assert _setup()["metadata"]["version"] == __version__


def test_public_names_exist_and_are_sorted() -> None:
    import seesaw_cf

    assert sorted(__all__) == __all__
    assert all(getattr(seesaw_cf, name) is not None for name in __all__)


def test_unknown_public_names_are_attribute_errors() -> None:
    import seesaw_cf

    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        seesaw_cf.lode  # noqa: B018


def test_torch_is_installed_first_and_at_one_version() -> None:
    """A looser request downloads gigabytes of GPU packages."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert makefile.index("torch==2.13.0") < makefile.index("--editable")


# Import name -> name of the distribution, where they differ.
DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "sentence_transformers": "sentence-transformers",
    "umap": "bertopic",
    "yaml": "pyyaml",
}
# These files may only be imported by code that has checked for the extra.
HARNESSES = {"ability.py", "lm_eval_model.py", "__main__.py"}
_OF_EXTRA = dict.fromkeys(HARNESSES, "harness")


def _declared() -> dict[str, set[str]]:
    """ "core" and every extra -> its distributions."""
    setup = _setup()
    texts = {"core": setup["options"]["install_requires"], **setup["options.extras_require"]}
    return {
        name: {re.split(r"[\[<>=]", line)[0].strip().lower() for line in text.splitlines() if line.strip()}
        for name, text in texts.items()
    }


def _imports(tree: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Top-level names that are imported, and whether inside a function; what only type checkers read is left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0], inside
        yield from _imports(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def _outside(file: Path) -> set[tuple[str, bool]]:
    """Distributions that a file imports, beside the standard library and this package."""
    own = {*sys.stdlib_module_names, "seesaw_cf", "__future__"}
    found = set(_imports(ast.parse(file.read_text(encoding="utf-8"))))
    return {(DISTRIBUTIONS.get(name, name).lower(), inside) for name, inside in found if name not in own}


def _sources() -> list[Path]:
    folders = [ROOT / folder for folder in TOP.values()]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return [file for file in files if not any(parent.is_symlink() for parent in file.parents)]


@pytest.mark.slow
def test_what_is_imported_at_the_top_of_a_module_is_in_the_core() -> None:
    declared = _declared()
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in _sources()
        for name, inside in _outside(file)
        if not inside and name not in declared["core"] | declared.get(_OF_EXTRA.get(file.name, ""), set())
    ]
    assert found == []


@pytest.mark.slow
def test_what_is_imported_inside_a_function_is_in_the_core_or_an_extra() -> None:
    declared = _declared()
    known = set().union(*(names for extra, names in declared.items() if extra != "test"))
    demo = {"gradio"}  # its first line says how to install it
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in _sources()
        for name, _ in _outside(file)
        if name not in known | (demo if file.name == "app.py" else set())
    ]
    assert found == []


def test_every_extra_has_a_line_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("| extra | for |")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", text)) >= set(_setup()["options.extras_require"])


def test_every_declared_package_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    declared = _declared()
    needed = set().union(*(names for names in declared.values()))
    assert {name.replace("_", "-") for name in needed} - pinned == {"seesaw-cf"}


def test_no_page_installs_the_package_from_an_index_first() -> None:
    """It is published on none; extras of an installed package may be added by name."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for line in page.read_text(encoding="utf-8").splitlines():
            assert not re.match(r"pip install '?seesaw_cf", line), page


def _without(folder: Path, absent: set[str]) -> Path:
    """A copy by links of the installed packages, without some of them."""
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        name = re.split(r"[-.]", entry.name)[0].lower()
        if name not in absent and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    return folder


WITHOUT_TORCH = """
import importlib, importlib.util
assert all(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "safetensors"))
import seesaw_cf, seesaw_cf.effects, seesaw_cf.stats
from seesaw_cf.metrics.register import METRICS
for name in METRICS:
    importlib.import_module(f"seesaw_cf.metrics.{name}.{name}")
import seesaw_cf.metrics.app
import evaluate
row = dict(case_id=[1], prompt=["Ann is"], subject=["Ann"], groups=[["female"]])
scores = dict(pre_new=[-1.0], pre_true=[-1.0], post_new=[-2.0], post_true=[-1.0])
metric = evaluate.load(seesaw_cf.path().parent.as_posix() + "/metrics/edit_bias", keep_in_memory=True)
print(metric.compute(**row, **scores)["overall"]["n_cases"])
"""


@pytest.mark.slow
def test_metrics_and_statistics_need_no_torch(tmp_path: Path) -> None:
    """In a process that has every package but these."""
    folder = tmp_path / "site-packages"  # dill takes modules of other folders for the user's own
    folder.mkdir()
    packages = _without(folder, {"torch", "functorch", "torchgen", "transformers", "safetensors"})
    path = os.pathsep.join((str(ROOT), str(packages)))
    done = subprocess.run(
        [sys.executable, "-S", "-c", WITHOUT_TORCH], env={**os.environ, "PYTHONPATH": path}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr[-2000:]


@pytest.mark.slow
def test_effects_and_statistics_do_not_touch_an_installed_torch() -> None:
    block = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "safetensors"):
            raise AssertionError(f"imports {name}")
sys.meta_path.insert(0, Block())
import seesaw_cf, seesaw_cf.effects, seesaw_cf.stats, seesaw_cf.metrics.register, seesaw_cf.metrics.edit_bias
"""
    subprocess.run([sys.executable, "-c", block], cwd=ROOT, check=True)


def test_the_commit_is_of_the_package_and_not_of_a_repository_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bool(system.versions()["commit"]) == (ROOT / ".git").exists()
    monkeypatch.setattr(system, "__file__", str(ROOT / "seesaw_cf" / "texts" / "graph" / "versions.py"))
    assert system.versions()["commit"] == ""


def test_the_running_package_is_this_one() -> None:
    assert importlib.metadata.version("seesaw_cf") == __version__
