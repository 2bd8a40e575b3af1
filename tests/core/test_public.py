"""Arguments of the functions that users call: a wrong type is an error that names function, argument and types."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedModel

from seesaw_cf import types
from seesaw_cf.base.fields import checked
from seesaw_cf.errors import RecordError, UnknownNameError

PACKAGES = ("effects", "records", "scoring", "sharing", "logs", "editors", "models", "report", "texts.graph")
UNCHECKED = {"applied", "register"}  # a context manager, and a function without arguments
FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in map(importlib.import_module, ("seesaw_cf", *(f"seesaw_cf.{name}" for name in PACKAGES)))
    for name in sorted(set(module.__all__) - UNCHECKED)
    if inspect.isfunction(getattr(module, name))
}
ARGUMENTS = [
    (name, parameter.name)
    for name, function in FUNCTIONS.items()
    for parameter in inspect.signature(function).parameters.values()
    if parameter.annotation not in ("Any", "object") and parameter.kind is not parameter.VAR_KEYWORD
]
EVIL: tuple[Any, ...] = (None, True, 3, -1, 10**400, 0.5, np.nan, np.inf, 1j, "", "x", "\udcff", "a\0b", b"x", [], {})
EVIL += ([None], [[1], [1, 2]], ["x", 1], (), {1: 2}, {"a"}, object(), Path("x"), np.array(["x"]), int, print)


@pytest.mark.parametrize(("name", "key"), ARGUMENTS)
def test_an_argument_of_another_type_is_named(name: str, key: str) -> None:
    wrong = object()
    with pytest.raises(RecordError, match=rf"(?s)\.{FUNCTIONS[name].__name__}\(\) parameter {key}=<object .* violates"):
        FUNCTIONS[name](**{key: wrong})


@checked
def call(
    whole: int = 0,
    number: float = 0.0,
    texts: Sequence[str] = (),
    mode: Literal["a", "b"] = "a",
    model: PreTrainedModel | None = None,
) -> tuple[object, ...]:
    return whole, number, texts, mode, model


RECORDS = [kind for name in types.__all__ if dataclasses.is_dataclass(kind := getattr(types, name))]


@pytest.mark.parametrize("made", RECORDS)
def test_a_record_takes_anything_or_refuses_it_by_an_error_of_the_package(made: Any) -> None:
    names = [field.name for field in dataclasses.fields(made) if field.init]

    @settings(derandomize=True, deadline=None, database=None, max_examples=60)
    @given(st.fixed_dictionaries(dict.fromkeys(names, st.sampled_from(EVIL))))
    def check(values: Mapping[str, Any]) -> None:
        with contextlib.suppress(RecordError, UnknownNameError):
            made(**values)

    check()


ROW: dict[str, Any] = {
    "case_id": [0],
    "prompt": ["{} is"],
    "subject": ["Ada"],
    "groups": [["women"]],
    **{f"{phase}_{answer}": [-1.0] for phase in ("pre", "post") for answer in ("new", "true")},
}
