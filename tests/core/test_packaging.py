"""What is declared is there: packages, extras, data files, public names; extras that are missing are asked for."""

import ast
import configparser
import importlib
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from seesaw_cf.base.errors import MissingExtraError, SeesawError
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.cli.audit import ability
from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.effects.leme_auto import rouge1
from seesaw_cf.effects.texts import reference_score
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.run.workers import run_on_ray
from seesaw_cf.sharing import to_peft
from seesaw_cf.texts.graph.figures import triple_graph
from seesaw_cf.texts.graph.scores import find_scorer, fit_topics
from seesaw_cf.texts.training import label_scores
from tests import fresh
from tests.sharing.tiny import tiny

from ..conftest import ROOT

TOP = {"seesaw_cf": "seesaw_cf", "seesaw_cf.editors": "editors", "seesaw_cf.metrics": "metrics"} | {
    "seesaw_cf.builder_scripts": "builder_scripts"
}


def _setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


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
    names = {folder: name for name, folder in TOP.items()}
    places = {file.parent.relative_to(ROOT).parts for file in _sources()}
    assert set(declared["packages"]) == {".".join((names[top], *rest)) for top, *rest in places}


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


# Import name -> name of the distribution, where they differ.
DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "sentence_transformers": "sentence-transformers",
    "umap": "bertopic",
    "yaml": "pyyaml",
}
# These files may only be imported by code that has checked for the extra.
_OF_EXTRA = dict.fromkeys({"ability.py", "lm_eval_model.py", "__main__.py"}, "harness")


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
def test_what_is_imported_is_in_the_core_or_inside_a_function_in_an_extra() -> None:
    declared = _declared()
    known = set().union(*(names for extra, names in declared.items() if extra != "test"))
    found = []
    for file in _sources():
        allowed = declared["core"] | declared.get(_OF_EXTRA.get(file.name, ""), set())
        inner = known | ({"gradio"} if file.name == "app.py" else set())  # its first line says how to install it
        found += [f"{file}: {name}" for name, inside in _outside(file) if name not in (inner if inside else allowed)]
    assert found == []


@pytest.mark.slow
def test_sources_keep_rules_that_no_linter_has() -> None:
    """No pickle and no remote code; no own module by a computed name, which escapes the layers, but in tables of names
    that are checked to exist; of more than eight parameters a dataclass is made."""
    computed = {"seesaw_cf/base/system.py", "seesaw_cf/cli/parse.py", "seesaw_cf/texts/graph/scores.py"}
    computed |= {"metrics/register.py", "editors/plugins.py"}  # of other packages
    assert len(_sources()) > 200
    broken = []
    for file in _sources():
        text, name = file.read_text(encoding="utf-8"), str(file.relative_to(ROOT))
        tree = ast.parse(text)
        loads = [call for call in re.findall(r"torch\.load\([^)]*\)", text) if "weights_only=True" not in call]
        if loads or "trust_remote_code=True" in text or "pickle" in {module for module, _ in _imports(tree)}:
            broken.append(f"{name} trusts pickles or code")
        if "import_module(" in text and name not in computed:
            broken.append(f"{name} imports by a computed name")
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name != "audit":
                own = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
                if len(own - {"self", "cls"}) > 8:
                    broken.append(f"{name}:{node.lineno} {node.name} takes {len(own)} parameters")
    assert broken == []


def test_every_declared_package_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    needed = set().union(*_declared().values())
    assert {name.replace("_", "-") for name in needed} - pinned == {"seesaw-cf"}


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
    done = fresh.python("-S", "-c", WITHOUT_TORCH, env={**os.environ, "PYTHONPATH": path})
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr[-2000:]


ASKED: list[tuple[str, str, Callable[[], Any]]] = [
    ("build", "pyoxigraph", lambda: StoreSource("a.nt")),
    ("longform", "sklearn", lambda: label_scores([0], [0], [0], ("a",))),
    ("longform", "sklearn", lambda: reference_score(["a"], [["a"]])),
    ("longform", "rouge_score", lambda: rouge1("a", "a")),
    ("api", "openai", lambda: OpenAIGenerator("http://localhost:9", "m", "").check()),
    ("stereotypes", "networkx", lambda: triple_graph(SimpleNamespace())),  # type: ignore[arg-type]
    ("stereotypes", "sklearn", lambda: fit_topics(["a b", "c d", "e f"], 2)),
    ("topics", "bertopic", lambda: fit_topics(["a b", "c d", "e f"], 2, method="bertopic")),
    ("toxicity", "detoxify", lambda: find_scorer("attack", "detoxify")),
    ("hub", "peft", lambda: to_peft(WeightDelta({"a.weight": torch.ones(2, 2)}), tiny("llama"), "x")),
    ("harness", "lm_eval", lambda: ability(Path("run"), tasks=(), out=Path("out"))),
    ("ray", "ray", lambda: run_on_ray(lambda: None, Path("run"))),  # type: ignore[arg-type, return-value]
]


def test_the_table_has_every_extra() -> None:
    users = set(_setup()["options.extras_require"]) - {"docs", "test"}  # which no code of the package imports
    assert {extra for extra, _, _ in ASKED} >= users


@pytest.mark.parametrize(("extra", "module", "call"), ASKED, ids=[f"{e}-{m}" for e, m, _ in ASKED])
def test_a_missing_extra_is_named(
    extra: str, module: str, call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needed for .* cannot be imported \(.*{module}") as caught:
        call()
    assert f"Install it with: pip install 'seesaw_cf[{extra}]'" in str(caught.value)
    assert isinstance(caught.value, SeesawError)
    assert isinstance(caught.value, ImportError)
    assert caught.value.name


LAZY = [f"seesaw_cf.{room}" for room in ("editors", "generation", "models", "texts", "texts.graph")] + ["seesaw_cf"]
LIGHT = [*LAZY, "seesaw_cf.types", "seesaw_cf.records", "seesaw_cf.effects", "seesaw_cf.metrics"]


@pytest.mark.parametrize("package", LAZY)
def test_every_public_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__)) > 0
    for name in module.__all__:
        assert getattr(module, name) is not None, name


@pytest.mark.parametrize("name", EDITORS)
def test_every_editor_and_its_settings_can_be_imported_by_name(name: str) -> None:
    package, editor = importlib.import_module("seesaw_cf.editors"), load_editor(name)
    assert {editor.__name__, editor.config_class.__name__} <= set(package.__all__)


@pytest.mark.slow
def test_importing_packages_imports_no_torch() -> None:
    heavy = ("torch", "transformers", "datasets", "evaluate")
    code = f"import sys\nimport {', '.join(LIGHT)}\nprint(sorted(set(sys.modules) & set({heavy})))"
    assert fresh.python("-c", code, cwd=ROOT).stdout == "[]\n"
