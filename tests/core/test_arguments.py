"""Hints that NumPy writes as `type` statements since 2.5 are checked like the types they stand for."""

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
