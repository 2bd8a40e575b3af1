"""Packages that documentation imports from: every public name is there, and importing one imports nothing heavy."""

from __future__ import annotations

import importlib

import pytest

from seesaw_cf.editors import EDITORS, load_editor
from tests import fresh

from ..conftest import ROOT

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
    package = importlib.import_module("seesaw_cf.editors")
    editor = load_editor(name)
    assert {editor.__name__, editor.config_class.__name__} <= set(package.__all__)
    assert getattr(package, editor.__name__) is editor
    assert getattr(package, editor.config_class.__name__) is editor.config_class


@pytest.mark.slow
def test_importing_packages_imports_no_torch() -> None:
    heavy = ("torch", "transformers", "datasets", "evaluate")
    code = f"import sys\nimport {', '.join(LIGHT)}\nprint(sorted(set(sys.modules) & set({heavy})))"
    done = fresh.python("-c", code, cwd=ROOT)
    assert done.stdout == "[]\n"
