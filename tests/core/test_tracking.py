"""Numbers of a run go to a tracker of experiments, by its own library, and only when one is named."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import seesaw_cf
from seesaw_cf.base.tracking import TRACKERS, track, tracking
from seesaw_cf.cli import main
from seesaw_cf.errors import MissingExtraError, ServiceError, UnknownNameError


class FakeLibrary(ModuleType):
    """What a tracker's library is called with."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)  # transformers looks for one
        self.calls: list[tuple[str, object]] = []

    def init(self, **settings: object) -> None:
        self.calls.append(("init", settings))

    def log(self, numbers: Mapping[str, float]) -> None:
        self.calls.append(("log", dict(numbers)))

    def finish(self) -> None:
        self.calls.append(("finish", None))


@pytest.fixture(params=TRACKERS)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    fake = FakeLibrary(request.param)
    monkeypatch.setitem(sys.modules, request.param, fake)
    return fake


def test_a_step_and_its_numbers_are_logged_and_the_run_is_finished(library: FakeLibrary) -> None:
    def run_that_fails() -> None:
        with tracking(library.__name__, "first", {"model": "tiny"}):
            track("blocks", {"done": 1, "of": 2})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_that_fails()
    assert library.calls == [
        ("init", {"project": "seesaw_cf", "name": "first", "config": {"model": "tiny"}}),
        ("log", {"blocks/done": 1, "blocks/of": 2}),
        ("finish", None),
    ]


def test_a_tracker_that_cannot_begin_is_named(library: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise RuntimeError("api_key not configured")

    monkeypatch.setattr(library, "init", refuse)
    name = library.__name__
    with pytest.raises(ServiceError, match=rf"--track {name}: .*not configured.*leave --track out"), tracking(name):
        pass


class Steps:
    """A tracker that keeps what it is told."""

    def __init__(self) -> None:
        self.log_calls: list[tuple[str, dict[str, float]]] = []

    def log(self, step: str, numbers: Mapping[str, float]) -> None:
        self.log_calls.append((step, dict(numbers)))


def test_nothing_is_tracked_that_is_not_asked_for() -> None:
    steps = Steps()
    with tracking(steps):
        with tracking(None):
            track("inside", {"done": 1})
        track("blocks", {"done": 2})
    track("after", {"done": 3})
    assert steps.log_calls == [("blocks", {"done": 2})]
    with pytest.raises(UnknownNameError, match="unknown tracker 'mlflow'"), tracking("mlflow", "first", {}):
        pass


def test_a_library_that_is_not_there_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"pip install .seesaw_cf\[wandb\]"), tracking("wandb", "first", {}):
        pass


@pytest.mark.slow(15)
def test_a_run_logs_its_blocks_and_its_levels(library: FakeLibrary, tmp_path: Path) -> None:
    words = f"run --model seesaw-tiny --editor ft --limit 2 --out {tmp_path}/run --quiet --track {library.__name__}"
    assert main(words.split()) == 0
    names = {name for kind, numbers in library.calls if kind == "log" and isinstance(numbers, dict) for name in numbers}
    assert {"blocks/done", "blocks/of", "ft/target_new/probability/value"} <= names
    assert [kind for kind, _ in library.calls][-1] == "finish"


@pytest.mark.slow
def test_an_audit_from_python_tells_an_object() -> None:
    steps, asked = Steps(), dict[str, Any](configs="cross_property", limit=1)
    with tracking(steps):
        seesaw_cf.audit("seesaw-tiny", editor="ft", control=(), progress=False, **asked)
    assert steps.log_calls == [("blocks", {"done": 1, "of": 1})]
