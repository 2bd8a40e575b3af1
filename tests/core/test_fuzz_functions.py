"""Arguments of the wrong type at every public function: an error that names the argument, before anything is done."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.base import arguments, types
from seesaw_cf.effects import BiasColumns, bias_of_columns
from seesaw_cf.errors import RecordError, SeesawError, UnknownNameError

PACKAGES = ("seesaw_cf.stats", "seesaw_cf.effects", "seesaw_cf.records")
EVIL: tuple[Any, ...] = (None, True, 3, -1, 10**400, 0.5, math.nan, math.inf, 1j, "", "x", "\udcff", "a\0b", b"x")
EVIL += ([], [None], [[1], [1, 2]], ["x", 1], (), {}, {1: 2}, {"a"}, object(), Path("x"), np.array(["x"]), int, print)
EVIL += (pd.DataFrame(), pa.table({}))


def functions() -> Iterator[tuple[str, Any]]:
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield f"{package}.{name}", getattr(module, name)


FUNCTIONS = dict(functions())
PARAMETERS = [
    (name, parameter.name)
    for name, function in FUNCTIONS.items()
    for parameter in inspect.signature(function).parameters.values()
    if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
]
# What surely is of another type, for each annotation as it is written.
WRONG: dict[str, tuple[Any, ...]] = {
    "float": (None, True, "x", b"x", [], {}, 1j, object(), pd.DataFrame()),
    "int": (None, True, 0.5, math.nan, "x", b"x", [], {}, object(), pd.DataFrame()),
    "bool": (None, 0, 1, "x", [], object()),
    "str": (None, True, 3, 0.5, b"x", [], {}, object(), Path("x"), pd.DataFrame()),
    "pd.DataFrame": (None, True, 3, "x", [], {}, object(), pa.table({})),
    "pd.Series": (None, True, 3, "x", [], {}, object(), pd.DataFrame()),
    "pa.Table": (None, True, 3, "x", [], {}, object(), pd.DataFrame()),
    "pa.Table | pd.DataFrame": (None, True, 3, "x", [], {}, object(), Path("x")),
    "Case": (None, True, 3, "x", [], {}, object()),
    "Components": (None, True, 3, "x", [], {}, object()),
    "str | os.PathLike[str]": (None, True, 3, 0.5, b"x", [], {}, object()),
    "Literal": (None, True, 3, b"x", [], {}, object()),
    "array": ("x", ["x"], [None], [[1], [1, 2]], object(), np.array(["x"]), {"a": 1}),
    "list": (True, 3, 0.5, "x", b"x", {"a": 1}, object(), [object()], [b"x"]),
    "mapping": (True, 3, 0.5, "x", b"x", ["x"], object(), {1: 2}),
}
FITTING: dict[str, Any] = {
    "float": 0.5,
    "int": 5,
    "bool": False,
    "str": "x",
    "array": np.zeros(3, bool),
    "list": [],
    "mapping": {},
    "pd.DataFrame": pd.DataFrame(),
    "pd.Series": pd.Series(dtype=float),
    "pa.Table": pa.table({}),
    "pa.Table | pd.DataFrame": pd.DataFrame(),
    "str | os.PathLike[str]": "missing",
}


def kind(hint: Any, written: str) -> str:
    """Which row of the tables above an annotation belongs to; "" for one that takes anything."""
    origin = typing.get_origin(arguments.type_behind(hint))
    plain = written.removesuffix(" | None")
    if "ArrayLike" in written or plain == "Codes" or origin is np.ndarray:
        return "array"
    if plain == "Scores":
        return "pa.Table | pd.DataFrame"
    if plain in WRONG:
        return plain
    if origin is typing.Literal:
        return "Literal"
    if plain.startswith("Mapping"):
        return "mapping"
    return "list" if plain.startswith(("Sequence", "Iterable", "list")) else ""


def parameter_kind(function: Any, name: str) -> str:
    return kind(typing.get_type_hints(function).get(name), inspect.signature(function).parameters[name].annotation)


def needed(function: Any) -> dict[str, Any]:
    """Something of the right type for every argument without a default; None where nothing else is known."""
    given = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    named = [p.name for p in given if p.kind is not p.VAR_KEYWORD]
    return {name: FITTING.get(parameter_kind(function, name)) for name in named}


def alone(function: Any, name: str) -> Any:
    """A checked function with this one argument of another function."""

    def taken(*values: Any) -> None:
        pass

    parameter = inspect.signature(function).parameters[name].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    taken.__annotations__ = {name: typing.get_type_hints(function)[name]}
    return arguments.checked(taken, function.__name__)


def test_no_function_is_left_out() -> None:
    assert len(FUNCTIONS) >= 40
    known = [name for function, name in PARAMETERS if parameter_kind(FUNCTIONS[function], name)]
    assert len(known) > 0.94 * len(PARAMETERS)


@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_another_type_is_named(function: str, name: str) -> None:
    called = FUNCTIONS[function]
    expected = parameter_kind(called, name)
    written = inspect.signature(called).parameters[name].annotation
    for value in WRONG.get(expected, ()):
        if value is None and written.endswith("| None"):
            continue
        with pytest.raises(RecordError, match=f"^{called.__name__}: {name} is .*, expected "):
            alone(called, name)(value)
        calls = needed(called) | {name: value}
        if all(fit is not None for other, fit in calls.items() if other != name):
            with pytest.raises(RecordError, match=f"^{called.__name__}: {name} is .*, expected "):
                called(**calls)


CLASSES = [
    getattr(types, name)
    for name in arguments.public_names(vars(types))
    if dataclasses.is_dataclass(getattr(types, name))
]


@pytest.mark.parametrize("made", CLASSES)
def test_records_of_anything(made: Any) -> None:
    names = [field.name for field in dataclasses.fields(made) if field.init]

    refused: list[SeesawError] = []

    @settings(derandomize=True, deadline=None, database=None, max_examples=60)
    @given(st.fixed_dictionaries(dict.fromkeys(names, st.sampled_from(EVIL))))
    def check(values: Mapping[str, Any]) -> None:
        try:
            made(**values)
        except SeesawError as error:
            refused.append(error)

    check()
    for error in refused:
        assert isinstance(error, ValueError | LookupError)
        assert str(error).encode("utf-8")


ROW: dict[str, Any] = {
    "case_id": [0],
    "prompt": ["{} is"],
    "subject": ["Ada"],
    "groups": [["women"]],
    "pre_new": [-1.0],
    "pre_true": [-1.0],
    "post_new": [-1.0],
    "post_true": [-1.0],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": ["women"]}, "groups is .'women'., expected one list of texts per row"),
        ({"groups": 5}, "groups is 5, expected one list of texts per row"),
        ({"pre_new": ["x"]}, "pre_new is .'x'., expected a list of numbers"),
        ({"pre_new": "x"}, "pre_new is 'x', expected a list of numbers"),
        ({"pre_new": [-1.0, -1.0]}, "unequal lengths"),
        ({"subject": None}, "subject is None, expected a list of texts"),
        ({"prompt": [3]}, "prompt is .3., expected a list of texts"),
        ({"draws": 0.5}, "draws is 0.5, expected a whole number"),
        ({"axis": 5}, "axis is 5, expected text or None"),
    ],
)
def test_columns_of_the_wrong_type(change: dict[str, Any], message: str) -> None:
    options = {key: value for key, value in change.items() if key not in ROW}
    with pytest.raises(SeesawError, match=message):
        bias_of_columns(BiasColumns(**ROW | {key: change[key] for key in change if key in ROW}), **options)


def test_an_unknown_name_is_met_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown mode 'pape'\. Did you mean 'paper'"):
        bias_of_columns(BiasColumns(**ROW), mode="pape")  # type: ignore[arg-type]


def test_the_signature_stays() -> None:
    assert bias_of_columns.__module__ == "seesaw_cf.effects.columns"
    assert "columns" in inspect.signature(bias_of_columns).parameters
