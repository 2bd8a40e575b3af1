"""Arguments of public functions, checked against their annotations before a library fails on them somewhere inside.

A package or module wraps what it exports once, at its end; a package's calls between its modules are not checked again.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import numbers
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, Sized
from dataclasses import is_dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seesaw_cf.base.checks import check_path, is_text, shown, text
from seesaw_cf.base.errors import RecordError

P = ParamSpec("P")
R = TypeVar("R")

_KINDS: dict[object, Callable[[object], bool]] = {
    Any: lambda value: True,
    bool: lambda value: isinstance(value, bool | np.bool_),
    # More than 64 bits fit into no array, tensor or table.
    int: lambda value: (
        type(value) is not bool and isinstance(value, numbers.Integral) and -(2**63) <= int(value) < 2**63
    ),
    # NaN is a number: functions that cannot take it say so.
    float: lambda value: type(value) is not bool and isinstance(value, numbers.Real) and _is_float(value),
    str: is_text,
    type(None): lambda value: value is None,
}
_ONE_EACH = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_NUMBERS = (Any, bool, int, float | None)
_CHECKED_CLASSES = ("pandas", "pathlib", "pyarrow", "seesaw_cf", "torch", "transformers")


def check_public(module: dict[str, Any]) -> None:
    """Wrap what a module exports: its functions, the methods of its classes, and how dataclasses are made.

    Records that check themselves in `__post_init__`, and raise another error, are made as before.

    Args:
        module: `globals()` of the module.
    """
    for name in public_names(module):
        member = module.get(name)
        if inspect.isfunction(member):
            module[name] = checked(member)
        elif inspect.isclass(member) and not getattr(member, "_is_protocol", False):
            _check_class(member)


def public_names(module: Mapping[str, Any]) -> list[str]:
    """Return what a package lists in `__all__`, or the functions and classes that a module defines."""
    own = [
        name
        for name, value in module.items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module["__name__"]
    ]
    return list(module.get("__all__", own))


def _check_class(kind: type[Any]) -> None:
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(member):
            setattr(kind, name, checked(member))
        elif isinstance(member, classmethod):
            setattr(kind, name, classmethod(checked(member.__func__)))
    if "__init__" in vars(kind) and not hasattr(kind, "__post_init__"):
        kind.__init__ = checked(kind.__init__, kind.__name__, kind if is_dataclass(kind) else None)


def checked(function: Callable[P, R], name: str = "", kind: type | None = None) -> Callable[P, R]:
    """Return the function with its arguments checked against its annotations; the signature stays.

    Args:
        function: A function or method.
        name: What it is called in messages; its own name when empty.
        kind: The dataclass that it makes. Its fields may be inherited from another module.

    Raises:
        RecordError: (when it is called) An argument of another type; it is named with what was expected.
    """
    signature = inspect.signature(function)
    called = name or function.__name__
    parameters = signature.parameters.items()
    written = {key: str(each.annotation) for key, each in parameters if each.kind in _ONE_EACH}
    places = [key for key, each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]
    annotated = typing.cast(Callable[..., object], kind or function)

    def check(key: str, value: object) -> object:
        if key not in written:
            return value
        hint = _hints(annotated).get(key, Any)
        value = _as_array(value, hint) if typing.get_origin(hint) is np.ndarray else value
        _check(f"{called}: {key}", value, hint, written[key])
        return value

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            by_place = [*map(check, places, args), *args[len(places) :]]
            by_name = {key: check(key, value) for key, value in kwargs.items()}
        except RecordError:
            pass
        else:
            return function(*by_place, **by_name)  # type: ignore[arg-type]
        with contextlib.suppress(TypeError):
            for key, value in signature.bind(*args, **kwargs).arguments.items():
                check(key, value)  # of several wrong ones the first in the signature's order is named
        return function(*args, **kwargs)  # its error says it better: a misspelt name before the missing one

    return call


@functools.lru_cache(maxsize=1024)
def _hints(function: Callable[..., object]) -> dict[str, object]:
    """Return the types of the arguments, not of the result, which may be imported for type checkers only."""
    if inspect.isclass(function):
        hints = typing.get_type_hints(function)
    else:
        written = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
        where = inspect.unwrap(function).__globals__
        hints = typing.get_type_hints(types.SimpleNamespace(__annotations__=written), where)
    return {name: type_behind(hint) for name, hint in hints.items()}


def _check(where: str, value: object, hint: object, written: str) -> None:
    if isinstance(value, str):
        text(where, value)
    if not _test(hint)(value):
        raise RecordError(f"{where} is {_seen(value)}, expected {_WORDS.get(written, written)}.")
    if isinstance(value, str | os.PathLike) and "Path" in written:
        check_path(value)


@functools.lru_cache(maxsize=4096)
def _test(hint: object) -> Callable[[Any], bool]:
    """Return the test of a type; it is made once for each type."""
    hint = type_behind(getattr(hint, "__bound__", None) or hint)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _KINDS:
        return _KINDS[hint]
    if origin is Callable:
        return callable
    if _takes_arrays(parts):
        return lambda value: _is_array(value) or (value is None and type(None) in parts)
    if origin in (typing.Union, types.UnionType):
        tests = [_test(part) for part in parts]
        return lambda value: any(test(value) for test in tests)
    if origin is typing.Literal:
        return lambda value: isinstance(value, str)  # the function itself names the known ones
    if origin is np.ndarray:
        dtype = _dtype(hint)
        return lambda value: (
            isinstance(value, np.ndarray) and value.ndim > 0 and _is_array(value) and _is_kind(value, dtype)
        )
    if origin is type:
        kind = getattr(parts[0], "__bound__", None) or parts[0]
        return lambda value: inspect.isclass(value) and _fits_kind(value, kind)
    if isinstance(origin, type):
        return functools.partial(_fits_generic, origin=origin, parts=parts)
    if typing.is_typeddict(hint):
        return lambda value: isinstance(value, dict)
    if isinstance(hint, type) and hint.__module__.split(".")[0] in _CHECKED_CLASSES:
        return functools.partial(_fits_class, hint=hint)
    return lambda value: True


def _fits(value: object, hint: object) -> bool:
    return _test(hint)(value)


def type_behind(hint: Any) -> Any:
    """Return the type behind a name from a `type` statement, as NumPy has them since 2.5; any other type as it is."""
    if not hasattr(hint, "__value__"):
        return hint
    parts = typing.get_args(hint)
    return type_behind(hint.__value__[parts] if parts else hint.__value__)


def _takes_arrays(parts: tuple[object, ...]) -> bool:
    """Return whether a union is `ArrayLike`, or has it as one part or, up to NumPy 2.4, as several."""
    return ArrayLike in parts or set(typing.get_args(type_behind(ArrayLike))) <= set(parts)


def _fits_class(value: object, hint: type) -> bool:
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(hint) if not name.startswith("_"))
    # A model that another library has wrapped, such as peft, is none of transformers, but a module with its config.
    module = next((base for base in hint.__mro__[1:] if base.__module__ == "torch.nn.modules.module"), None)
    return isinstance(value, hint) or (module is not None and isinstance(value, module) and hasattr(value, "config"))


def _fits_kind(value: type, hint: type) -> bool:
    """Return whether a value fits `type[hint]`: a class of that kind, or one that offers what the protocol names."""
    if getattr(hint, "_is_protocol", False):
        return _fits_class(value, hint)
    return not inspect.isclass(hint) or issubclass(value, hint)


def _fits_generic(value: Any, origin: type, parts: tuple[object, ...]) -> bool:
    if issubclass(origin, Mapping):
        pairs = value.items() if isinstance(value, Mapping) else [(None, None)]
        keys, values = parts if len(parts) == 2 else (Any, Any)
        return isinstance(value, Mapping) and all(_fits(k, keys) and _fits(v, values) for k, v in pairs)
    if issubclass(origin, os.PathLike):
        return isinstance(value, os.PathLike)
    if issubclass(origin, tuple) and parts[-1:] != (...,):
        same = isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value) == len(parts)
        return same and all(map(_fits, value, parts))
    if issubclass(origin, Iterable):
        return _fits_items(value, origin, parts[0] if parts else Any)
    return True


def _fits_items(value: object, origin: type, hint: object) -> bool:
    """Return whether a value holds such items; arrays, series and columns of a data set are as good as a list."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        return False
    if not isinstance(value, Sized):  # a generator can be gone through once, and that is the function's
        return not issubclass(origin, Sequence)
    if hint is float:
        hint = float | None  # a missing number is None in a data set
    record = isinstance(hint, type) and hint.__module__.startswith("seesaw_cf")
    if hasattr(value, "ndim") and (value.ndim == 0 or record):
        return False
    if hasattr(value, "ndim"):  # one item tells of what kind all of them are
        if hint in _NUMBERS:
            return hint is Any or getattr(getattr(value, "dtype", None), "kind", "f") in "biufO"
        return all(_fits(item, hint) for item in itertools.islice(value, 1))
    # What is read while it is gone through, from a disk or the network, is not read here.
    return not (record or issubclass(type(value), list | tuple | Set)) or all(_fits(item, hint) for item in value)


def _is_float(value: numbers.Real) -> bool:
    try:
        return bool(float(value)) or True
    except OverflowError:  # a whole number beyond every float
        return False


def _is_array(value: object) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except (TypeError, ValueError):  # rows of unequal length, an object without an array
        return False


def _dtype(hint: object) -> type | None:
    """Return the type of the numbers in an `NDArray`; None for any."""
    dtype = typing.get_args(typing.get_args(hint)[1])[0]
    return dtype if isinstance(dtype, type) else None


def _as_array(value: Any, hint: object) -> object:
    """Return a list or a series of numbers as an array; anything else as it is."""
    if isinstance(value, np.ndarray | str) or not _is_array(value) or not np.ndim(value):
        return value
    return np.asarray(value, dtype=None if np.size(value) else _dtype(hint))


def _is_kind(value: NDArray[np.generic], dtype: type | None) -> bool:
    """Return whether an array fits a type: whole numbers are numbers, and True and False are both."""
    kinds = "biuf" if dtype is None else {"b": "b", "i": "biu"}.get(np.dtype(dtype).kind, "biuf")
    return not value.size or value.dtype.kind in kinds


def _seen(value: object) -> str:
    text = shown(value)
    return f"a {type(value).__name__}" if "\n" in text or text.endswith(" ...") else text


# What the shorter names of types mean, for somebody who has not read the source.
_WORDS = {
    "ArrayLike": "numbers",
    "ArrayLike | None": "numbers or None",
    "Floats": "an array of numbers",
    "Codes": "an array of whole numbers",
    "Codes | None": "an array of whole numbers or None",
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
