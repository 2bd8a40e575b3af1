"""What no file may do. Who may import whom is in setup.cfg, [importlinter]."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _sources() -> list[Path]:
    folders = ("seesaw_cf", "editors", "metrics", "builder_scripts")
    return [file for folder in folders for file in (ROOT / folder).rglob("*.py") if "__pycache__" not in file.parts]


@cache
def _nodes(file: Path) -> list[ast.AST]:
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, kinds)]


def _imports(file: Path) -> Iterator[str]:
    for node in _nodes(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield f"{node.module}"


@pytest.mark.slow
def test_nothing_pickles_or_trusts_remote_code_by_itself() -> None:
    assert len(_sources()) > 200
    for file in _sources():
        text = file.read_text(encoding="utf-8")
        assert "pickle" not in {name.split(".")[0] for name in _imports(file)}, file
        loads = [call for call in re.findall(r"torch\.load\([^)]*\)", text) if "weights_only=True" not in call]
        assert loads == [], file
        assert "trust_remote_code=True" not in text, file


def test_no_own_module_is_imported_by_a_computed_name() -> None:
    """Such an import escapes the layers; the tables of names (commands, editors, public names) are checked to exist."""
    allowed = {"seesaw_cf/base/system.py", "seesaw_cf/cli/parse.py", "seesaw_cf/texts/graph/scores.py"}
    allowed |= {"metrics/register.py", "editors/plugins.py"}  # of other packages
    found = {str(file.relative_to(ROOT)) for file in _sources() if "import_module(" in file.read_text(encoding="utf-8")}
    assert found <= allowed


@pytest.mark.slow
def test_no_function_takes_more_than_eight_parameters() -> None:
    """More than that is a dataclass."""
    found = []
    for file in _sources():
        for node in _nodes(file):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if len([name for name in names if name not in ("self", "cls")]) > 8 and node.name != "audit":
                    found.append(f"{file.relative_to(ROOT)}:{node.lineno} {node.name} takes {len(names)}")
    assert found == []
