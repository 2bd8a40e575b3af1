"""Benchmarks are run by hand, so nothing else notices that a name which they import has moved."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "benchmarks").rglob("*.py"))
OURS = ("seesaw_cf", "builder_scripts", "benchmarks", "tests")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_name_that_a_benchmark_imports_is_there(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in OURS:
            continue
        try:
            module = import_module(str(node.module))
        except ModuleNotFoundError as error:
            if str(error.name).split(".")[0] in OURS:
                raise
            pytest.skip(f"{error.name} is not installed")
        for alias in node.names:
            if not hasattr(module, alias.name):
                import_module(f"{module.__name__}.{alias.name}")
