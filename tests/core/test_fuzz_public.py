"""Any value at any argument of what the package exports: success or a message of this package, nothing else."""

from __future__ import annotations

import dataclasses
import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import SeesawError
from seesaw_cf.generation import Ask
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.types import Cloze, EditRequest, Entity
from tests.core.fitting_objects import REQUEST
from tests.core.fitting_values import CLOZES, FITTING, OBJECTS, fitting
from tests.core.public_surface import needed, surface

SURFACE = surface()
ANYTHING: tuple[Any, ...] = (
    *(None, True, 0, 3, -1, 10**400, 0.5, -0.5, math.nan, math.inf, -math.inf, 1j),
    *(
        "",
        " ",
        "x",
        "\udcff",
        "a\0b",
        "../..",
        "x" * 300,
        b"x",
        Path("x"),
        Path("a\0b"),
        Path("\udcff"),
        Path("/dev/full"),
    ),
    *([], [None], [[1], [1, 2]], ["x", 1], ["\udcff"], ["a\0b"], [""], [math.nan], [math.inf, 1.0], [-1], [10**400]),
    *((), (1,), (-1,), (99,), {}, {1: 2}, {"x": 1}, {"x": math.nan}, {"a"}, object(), int, print, lambda *a, **k: None),
    *(np.array(["x"]), np.zeros((0,)), np.zeros((2, 3)), np.full(6, math.nan), np.array([-1, 99] * 3), np.array(1.0)),
    *(pd.DataFrame(), pd.DataFrame({"x": [1]}), pd.Series(dtype=float), pa.table({}), pa.table({"x": [1]})),
    *(torch.zeros(2), torch.zeros(2, 3, dtype=torch.int64), torch.tensor(math.nan), torch.nn.Linear(2, 2)),
)


OTHER = dataclasses.replace(REQUEST, target_new=Entity(None, "Chad"))
LONG = "word " * 600
# Values of the right type and no good.
BAD: dict[str, list[Any]] = {
    "requests": [
        [REQUEST, OTHER],
        [dataclasses.replace(REQUEST, target_new=REQUEST.target_true)],
        [dataclasses.replace(REQUEST, target_true=Entity(None, ""))],
        [dataclasses.replace(REQUEST, subject=LONG)],
        [dataclasses.replace(REQUEST, target_new=Entity(None, LONG))],
        [EditRequest("{}", "x", "", Entity(None, "\0"), Entity(None, ""))],
    ],
    "clozes": [[Cloze("", "x")], [Cloze("x", "")], [Cloze(LONG, "x")], [Cloze("x", LONG)], [Cloze("\udcff", "x")]],
    "delta": [
        WeightDelta(),
        WeightDelta({"no.such.weight": torch.zeros(2, 2)}),
        WeightDelta(context="New fact: x\n"),
        WeightDelta(meta={"x": object()}),
    ],
    "asks": [[Ask(LONG)], [Ask("x", 2**63)]],
    "repo": ["x", "a/b/c", "../x", "a/" + "b" * 200],
}
BAD["jobs"] = [[(one, CLOZES)] for one in BAD["delta"]] + [[(WeightDelta(), own)] for own in BAD["clozes"]]
WRONG_TENSORS = [torch.zeros(2, 2), torch.tensor(math.nan), torch.zeros(0), LowRank(torch.ones(2, 1), torch.ones(3, 2))]


def arguments(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Fitting arguments beside the given ones, the object of a method included."""
    parameters = inspect.signature(SURFACE[name]).parameters
    wanted = [*needed(SURFACE[name]), *(p for p in parameters.values() if f"{p.name}:{name}" in FITTING)]
    made = {p.name: fitting(name, p.name, str(p.annotation)) for p in wanted if p.name not in given} | given
    return made | ({"self": OBJECTS[name.split(".")[-2]]()} if "self" in parameters else {})


def used(name: str, given: dict[str, Any]) -> None:
    """Calls a function or method, and goes through what it yields."""
    found = SURFACE[name](**arguments(name, given))
    if hasattr(found, "__enter__") and not isinstance(found, torch.Tensor | Path):
        with found:
            pass
    elif inspect.isgenerator(found):
        list(found)


def call(name: str, given: dict[str, Any]) -> None:
    try:
        used(name, given)
    except SeesawError as error:
        str(error).encode("utf-8")  # every terminal and file can take the message


def named(name: str) -> list[str]:
    parameters = inspect.signature(SURFACE[name]).parameters.values()
    return [p.name for p in parameters if p.name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


CALLED = [name for name in SURFACE if named(name)]


def options(name: str) -> list[tuple[str, str, Any]]:
    return [(name, key, value) for key in named(name) for value in (*BAD.get(key, ()), *ANYTHING)]


# What the fitting values of these arguments are made with takes seconds: a model, a run, scores.
HEAVY = {"model", "tokenizer", "generator", "scorer", "delta", "prompts", "scores", "results", "run", "run_folder"}
HEAVY |= {"crawl", "annotator", "embedder", "self", "source", "path", "file", "name_or_path", "spec", "paths"}
HEAVY |= {"columns"}
HEAVY_CALLS = {"effects.audit_record", "report.Results", "report.read_results", "seesaw_cf.load"}
LIGHT = [
    name for name in CALLED if HEAVY.isdisjoint(inspect.signature(SURFACE[name]).parameters) and name not in HEAVY_CALLS
]
REST = [name for name in CALLED if name not in LIGHT]

BOUNDED = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_surface_is_found() -> None:
    assert len(LIGHT) > 100
    assert len(REST) > 100


def check_anything(name: str, examples: int) -> None:
    @settings(BOUNDED, max_examples=examples)
    @given(st.sampled_from(options(name)))
    def check(evil: tuple[str, str, Any]) -> None:
        call(evil[0], {evil[1]: evil[2]})

    check()


# What is refused although every argument is of its type: no server answers, and the model was not fetched or has no
# published settings.
WITHOUT = {"generation.OpenAIGenerator.generate", "generation.ServedScorer.score", "sharing.share"}
WITHOUT |= {"sharing.share_page"}
WITHOUT |= {"seesaw_cf.audit", "seesaw_cf.compare"}  # without an editor; a change that is nowhere
WITHOUT |= {"models.packaged.fetch_model", "models.packaged.packaged_path"}
WITHOUT |= {"editors.locate.config.LocateThenEditConfig.for_model"}


@pytest.mark.parametrize("name", LIGHT)
def test_fitting_arguments_are_taken(name: str) -> None:
    """Or a call with one argument that is anything would be refused for another one."""
    (call if name in WITHOUT else used)(name, {})


@pytest.mark.parametrize("name", LIGHT)
def test_one_argument_is_anything(name: str) -> None:
    check_anything(name, 8)


# Some of these go through a model, a run or a report; what these are made of, each process makes once.
@pytest.mark.slow(1)
@pytest.mark.parametrize("name", REST)
def test_one_argument_of_what_needs_a_model_is_anything(name: str) -> None:
    (call if name in WITHOUT else used)(name, {})
    check_anything(name, 1 if name == "report.write_report" else 3)
