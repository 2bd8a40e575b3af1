"""Hints that NumPy writes as `type` statements are checked like the types behind them; what is said of a wrong call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import ArrayLike
from typing_extensions import TypeAliasType

from seesaw_cf.base import arguments
from seesaw_cf.errors import RecordError

Number = TypeVar("Number", bound=np.generic)
Array = TypeAliasType("Array", np.ndarray[Any, np.dtype[Number]], type_params=(Number,))
Indices = TypeAliasType("Indices", Array[np.intp])
Numbers = TypeAliasType("Numbers", ArrayLike)


def taken(
    indices: Indices,
    values: Numbers,
    weights: Numbers | None = None,
    names: Iterable[str] = (),
    sizes: Sequence[int] = (),
) -> type:
    return type(indices)


FITTING: dict[str, Any] = {
    "indices": [1, 2],
    "values": [0.5],
    "weights": [1, 2],
    "names": ("cross_subject",),
    "sizes": [1],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [("indices", [0.5]), ("indices", 1), ("values", ["x"]), ("weights", "x"), ("names", [1.0]), ("sizes", ["x"])],
)
def test_named_types_take_what_the_types_take(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    monkeypatch.setattr(arguments, "ArrayLike", Numbers)
    called = arguments.checked(taken)
    assert called(**FITTING) is np.ndarray
    assert called(**FITTING | {"weights": None}) is np.ndarray
    with pytest.raises(RecordError, match=f"taken: {name} is .*, expected"):
        called(**FITTING | {name: value})


def asked(first: int, second: str, *more: int, third: int = 0) -> tuple[object, ...]:
    return first, second, more, third


@pytest.mark.parametrize(
    ("args", "more", "error", "message"),
    [
        ((), {"second": 2, "first": "x"}, RecordError, "asked: first is 'x'"),  # as written, not as called
        ((1,), {"second": "y", "third": "z"}, RecordError, "asked: third is 'z'"),
        (("x",), {}, TypeError, "missing 1 required positional argument: 'second'"),
        (("x",), {"secnd": "y"}, TypeError, "unexpected keyword argument 'secnd'"),
        ((1, "y"), {"first": 2}, TypeError, "multiple values for argument 'first'"),
    ],
)
def test_a_call_that_does_not_fit_is_said_before_a_wrong_type(
    args: tuple[Any, ...], more: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        arguments.checked(asked)(*args, **more)
    assert caught.value.__context__ is None


def test_what_fits_arrives_as_it_was_given() -> None:
    called = arguments.checked(asked)
    assert called(1, "y", 2, 3, third=4) == (1, "y", (2, 3), 4)
    assert called(second="y", first=1) == (1, "y", (), 0)
