"""The names that programs may rely on, and objects that are small to print."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import seesaw_cf
from seesaw_cf.errors import SeesawError
from tests.conftest import ROOT
from tests.core.fitting_values import OBJECTS
from tests.core.test_fuzz_public import LIGHT, SURFACE, arguments

STABLE = {"audit", "compare", "load", "register", "scoring", "editors", "effects", "metrics", "types"}


def test_the_stable_names_are_shown_and_declared() -> None:
    assert set(dir(seesaw_cf)) >= STABLE
    assert set(seesaw_cf.__all__) >= STABLE
    page = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8").partition("**Everything else")[0]
    assert set(re.findall(r"`(?:seesaw_cf\.)?(\w+)`", page)) >= STABLE


def _shown(value: object) -> Iterable[object]:
    """Yield a value, or the items of a list or mapping, where these are objects of this package."""
    if isinstance(value, dict):
        value = list(value.values())
    for item in value if isinstance(value, list | tuple) else [value]:
        if type(item).__module__.startswith("seesaw_cf"):
            yield item


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_small_to_print(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(repr(OBJECTS[name]())) <= 2000


@pytest.mark.parametrize("name", LIGHT)
def test_what_a_function_returns_is_small_to_print(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        returned: Any = SURFACE[name](**arguments(name, {}))
    except SeesawError:
        return
    for item in _shown(returned):
        assert len(repr(item)) <= 2000, type(item)
