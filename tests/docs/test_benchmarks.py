"""Benchmarks find what they import, and docs/published.md holds what its command computes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.published import claims, markdown, verdict

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


PAGE = (Path(__file__).parents[2] / "docs" / "published.md").read_text(encoding="utf-8")


@pytest.mark.slow(15)
def test_the_page_holds_the_tables_of_its_command(reference: Callable[..., Path]) -> None:
    for name, table in claims(reference()).items():
        assert "\n".join(markdown(table, name)) in PAGE, name


@pytest.mark.parametrize(
    ("change", "p", "sign", "claim"),
    [
        (-0.1, 0.01, -1, "stands"),
        (0.1, 0.01, -1, "falls"),
        (-0.1, 0.01, 0, "falls"),
        (-0.1, 0.2, 0, "not decided"),
        (0.1, 0.2, 1, "not decided"),
    ],
)
def test_no_effect_is_never_shown_by_a_test(change: float, p: float, sign: int, claim: str) -> None:
    assert verdict({"change": change, "p_adjusted": p, "sign": sign}) == claim
