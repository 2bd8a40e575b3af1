"""Arguments of public functions, checked against their annotations before a library fails on them somewhere inside.

A package wraps its public functions once, in its `__init__`; calls between its modules are not checked again.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from seesaw_cf.checks import shown
from seesaw_cf.errors import RecordError

__all__ = ["check_public", "checked"]

P = ParamSpec("P")
R = TypeVar("R")

_KINDS: dict[Any, Callable[[Any], bool]] = {
    Any: lambda value: True,
    bool: lambda value: isinstance(value, bool | np.bool_),
    int: lambda value: isinstance(value, numbers.Integral) and not isinstance(value, bool),
    # NaN is a number: functions that cannot take it say so.
    float: lambda value: isinstance(value, numbers.Real) and not isinstance(value, bool),
    str: lambda value: isinstance(value, str),
    type(None): lambda value: value is None,
}
_CHECKED_CLASSES = ("pandas", "pyarrow", "seesaw_cf")


def check_public(module: dict[str, Any]) -> None:
    """Wraps the functions that a package exports.

    Args:
        module: `globals()` of the package, with its `__all__`.
    """
    module |= {name: checked(module[name]) for name in module["__all__"] if inspect.isfunction(module[name])}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function with its arguments checked against its annotations; the signature stays.

    Raises:
        RecordError: (when it is called) An argument of another type; it is named with what was expected.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = _hints(function).get(name, Any)
            if signature.parameters[name].kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
                _check(f"{function.__name__}: {name}", value, hint, str(signature.parameters[name].annotation))
        return function(*args, **kwargs)

    return call


@functools.lru_cache(maxsize=512)
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return typing.get_type_hints(function)


def _check(where: str, value: Any, hint: Any, written: str) -> None:
    if not _fits(value, hint):
        raise RecordError(f"{where} is {_seen(value)}, expected {_WORDS.get(written, written)}.")


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _KINDS:
        return _KINDS[hint](value)
    if set(typing.get_args(ArrayLike)) <= set(parts):
        return _is_array(value) or (value is None and type(None) in parts)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is typing.Literal:
        return isinstance(value, str)  # the function itself names the known ones
    if origin is np.ndarray:
        return _is_array(value)
    if isinstance(origin, type):
        return _fits_generic(value, origin, parts)
    if isinstance(hint, type) and hint.__module__.split(".")[0] in _CHECKED_CLASSES:
        return getattr(hint, "_is_protocol", False) or isinstance(value, hint)
    return True


def _fits_generic(value: Any, origin: type, parts: tuple[Any, ...]) -> bool:
    if issubclass(origin, Mapping):
        pairs = value.items() if isinstance(value, Mapping) else [(None, None)]
        return isinstance(value, Mapping) and all(_fits(k, parts[0]) and _fits(v, parts[1]) for k, v in pairs)
    if issubclass(origin, os.PathLike):
        return isinstance(value, os.PathLike)
    if issubclass(origin, Iterable):
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
            return False
        item_hint = parts[0] | None if parts[0] is float else parts[0]  # a missing number is None in a data set
        # Arrays, series and columns of a data set are as good as a list; what can be read only once is not read here.
        known = isinstance(value, Sized) or not issubclass(origin, Sequence)
        return known and (not isinstance(value, Sequence) or all(_fits(item, item_hint) for item in value))
    return True


def _is_array(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except (TypeError, ValueError):  # rows of unequal length, an object without an array
        return False


def _seen(value: Any) -> str:
    found = shown(value)
    return f"a {type(value).__name__}" if "\n" in found or found.endswith(" ...") else found


# What the shorter names of types mean, for somebody who has not read the source.
_WORDS = {
    "ArrayLike": "numbers",
    "ArrayLike | None": "numbers or None",
    "Floats": "an array of numbers",
    "Codes": "an array of whole numbers",
    "NDArray[np.bool_]": "an array of True and False",
    "NDArray[np.intp]": "an array of whole numbers",
    "float": "a number",
    "float | None": "a number or None",
    "int": "a whole number",
    "str": "text",
    "str | None": "text or None",
    "bool": "True or False",
    "pd.DataFrame": "a pandas DataFrame",
    "pa.Table": "a pyarrow Table",
    "pa.Table | pd.DataFrame": "a pyarrow Table or a pandas DataFrame",
    "Sequence[Sequence[str]]": "one list of texts per row",
    "Sequence[str]": "a list of texts",
    "Sequence[float]": "a list of numbers",
    "Sequence[int]": "a list of whole numbers",
}
