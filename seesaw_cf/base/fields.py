"""Checks against annotations: of the fields that settings declare, and of arguments of public functions.

A field is a range of numbers, a name of a list, a path that is read or written.

`field_types` checks them in `__post_init__`; the command line makes its options from them.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, ParamSpec, TypeVar

from seesaw_cf.base import checks
from seesaw_cf.base.checks import Range
from seesaw_cf.base.errors import RecordError, SeesawError

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class OneOf:
    """A name out of a few.

    Attributes:
        names: All of them.
    """

    names: Collection[str]

    def check(self, where: str, value: object, error: type[SeesawError] = RecordError) -> None:
        """Raise `UnknownNameError` where a value is none of the names."""
        checks.one_of(where.rpartition(" ")[2].removesuffix("s").strip("-"), value, self.names)


class Role(Enum):
    """What a path is for; a plain `Path` is read. The command line checks outputs by it."""

    READ = "is read where there is a file or folder of that name"
    FOLDER = "a folder for results: no run, study or dataset, nor in one"
    OWN = "a folder that is made whole or claimed by its manifest"


Positive = Annotated[int, Range(1, checks.LARGEST, whole=True)]
Count = Annotated[int, Range(0, checks.LARGEST, whole=True)]
Draws = Annotated[int, Range(0, checks.MOST_DRAWS, whole=True)]
Seed = Annotated[int, Range(0, checks.LAST_SEED, whole=True)]
Threads = Annotated[int, Range(1, checks.MOST_THREADS, whole=True)]
AboveZero = Annotated[float, Range(0, checks.LARGEST, ends=False)]
AtLeastZero = Annotated[float, Range(0, checks.LARGEST)]
Share = Annotated[float, Range(0, 1)]
Inside = Annotated[float, Range(0, 1, ends=False)]
NameOrPath = Annotated[str, Role.READ]
OutputFolder = Annotated[Path, Role.FOLDER]
OwnFolder = Annotated[Path, Role.OWN]


def field_types(record: object, *, name: str = "", error: type[SeesawError] = RecordError) -> None:
    """Check every field of a dataclass against its annotation, for `__post_init__`; numbers must be finite.

    A `float` also takes whole numbers; a `bool` is not a number. Classes of other packages are not checked. Messages
    begin with `name`, what a user calls, or with that of the class.

    Raises:
        RecordError: (or `error`) A field holds something else.
        UnknownNameError: A name that is none of its `Literal`.
    """
    for field, hint in hints_of(type(record)).items():  # type: ignore[arg-type]
        check_value(f"{name or type(record).__name__}: {field}", getattr(record, field), hint, error=error)


def check_value(where: str, value: object, hint: object, *, error: type[SeesawError] = RecordError) -> None:
    """Check a value against an annotation, and against the ranges and lists of names in it.

    Raises:
        RecordError: (or `error`) It is something else.
        UnknownNameError: A name that is in none of the lists.
    """
    if typing.get_origin(hint) is typing.Literal:
        checks.one_of(where.rpartition(" ")[2], value, typing.get_args(hint))
    elif not _fits(value, hint):
        raise error(f"{where} is {checks.shown(value)}, expected {words_of(hint)}.")
    for mark, item in _marks(value, hint):
        mark.check(where, item, error)


def memory_size(where: str, text: str) -> int:
    """Return the number of bytes that "4GiB" means.

    Raises:
        RecordError: It means none.
    """
    match = re.fullmatch(r"(\d{1,20}(?:\.\d{1,20})?)\s*([KMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise RecordError(f"{where} is {checks.shown(text, 80)}, expected an amount of memory such as 4GiB or 500MB.")
    power = "KMGT".find(match[2].upper()) + 1 if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


@functools.lru_cache(maxsize=256)
def hints_of(kind: Any) -> dict[str, object]:
    """Return field -> annotation of a dataclass."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(kind)}


def _marks(value: object, hint: Any) -> Iterator[tuple[Any, object]]:
    """Yield each condition that an annotation has for a value that is of its type, with what it is a condition on."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        yield from _marks(value, next(part for part in typing.get_args(hint) if _fits(value, part)))
    elif origin is typing.Annotated:
        yield from ((mark, value) for mark in hint.__metadata__ if isinstance(mark, Range | OneOf))
        yield from _marks(value, hint.__origin__)
    elif origin is tuple and isinstance(value, tuple) and typing.get_args(hint)[-1:] == (...,):
        for item in value:
            yield from _marks(item, typing.get_args(hint)[0])


def _fits(value: object, hint: object) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _fits(value, parts[0])
    if hint in _SIMPLE:
        return _SIMPLE[hint](value)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        same = parts[-1:] == (...,)
        if not isinstance(value, tuple) or not (same or len(value) == len(parts)):
            return False
        return all(_fits(item, part) for item, part in zip(value, parts[:1] * len(value) if same else parts))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    return not isinstance(hint, type) or not hint.__module__.startswith("seesaw_cf") or isinstance(value, hint)


def is_text(value: object) -> bool:
    """Return whether a value is a string that UTF-8 can hold."""
    try:
        return isinstance(value, str) and bool(value.encode("utf-8") or True)
    except UnicodeEncodeError:
        return False


_SIMPLE: dict[object, Callable[[object], bool]] = {
    bool: lambda value: isinstance(value, bool),
    int: lambda value: not isinstance(value, bool) and isinstance(value, numbers.Integral),
    float: checks.is_finite,
    str: is_text,
    type(None): lambda value: value is None,
}


_WORDS: dict[object, str] = {int: "a whole number", float: "a finite number", str: "text", bool: "True or False"}
_WORDS |= {type(None): "None", Path: "a path", os.PathLike: "a path"}


def words_of(hint: Any) -> str:
    """Return what an annotation takes, for messages."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    kind = origin or hint
    if "numpy._typing" in str(hint):
        return "an array"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(words_of, parts)))
    if origin is typing.Annotated:
        return next((mark.words for mark in hint.__metadata__ if isinstance(mark, Range)), words_of(hint.__origin__))
    if origin is typing.Literal:
        return " or ".join(map(repr, parts))
    if kind in _WORDS or not isinstance(kind, type):
        return _WORDS.get(kind, str(hint))
    if issubclass(kind, Mapping):
        return "a dict"
    if issubclass(kind, Iterable) and parts:
        return f"a list, each item {words_of(parts[0])}"
    return kind.__name__


# Arguments of the functions that users call, by beartype.


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with its arguments checked when it is called; the first call imports beartype.

    Raises:
        RecordError: (when it is called) An argument has another type; the message names function, argument and both.
    """
    checking = functools.cache(lambda: _check(function))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return checking()(*args, **kwargs)

    return call


def check_exports(package: dict[str, Any]) -> None:
    """Check the functions of a package's `__all__`; calls between its modules are not checked.

    Args:
        package: `globals()` of the package.
    """
    package.update({name: checked(package[name]) for name in package["__all__"] if inspect.isfunction(package[name])})


def _check(function: Callable[P, R]) -> Callable[P, R]:
    import numpy as np
    from beartype import BeartypeConf, FrozenDict, beartype

    inner = inspect.unwrap(function)
    written = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    hints = typing.get_type_hints(SimpleNamespace(__annotations__=written), inner.__globals__)
    wider: dict[Any, Any] = {
        bool: bool | np.bool_,
        int: int | np.integer,
        float: float | int | np.integer | np.floating,
    }
    if transformers := sys.modules.get("transformers.modeling_utils"):
        wider[transformers.PreTrainedModel] = sys.modules["torch"].nn.Module  # peft wraps models in a class of its own
    conf = BeartypeConf(violation_param_type=_WrongType, is_color=False, hint_overrides=FrozenDict(wider))

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    functools.update_wrapper(call, function)
    call.__annotations__ = {name: _wider(hint) for name, hint in hints.items()}
    checking = beartype(conf=conf)(call)

    @functools.wraps(function)
    def refuse_in_words(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return checking(*args, **kwargs)
        except _WrongType as error:  # beartype's message has many lines; it begins with the name of the argument
            (name,) = re.findall(r"parameter \**(\w+)=", str(error))[:1]
        value = inspect.signature(function).bind_partial(*args, **kwargs).arguments[name]
        where = inner.__qualname__.removesuffix(".__init__")
        raise RecordError(f"{where}: {name} is {checks.shown(value)}, expected {words_of(hints[name])}.")

    return refuse_in_words


class _WrongType(Exception):
    """An argument has another type than its annotation."""


def _wider(hint: Any) -> Any:
    """Return a type that also fits what is as good: an array or a column of a data set for a list, but not one text."""
    from beartype.vale import IsInstance

    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return str  # the function itself names the known ones
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(map(_wider, parts))]  # noqa: UP007
    if origin is Sequence and not getattr(parts[0], "__module__", "").startswith("seesaw_cf"):
        return typing.Annotated[Sized, ~IsInstance[str, bytes, Mapping]]  # the function itself names the wrong row
    return Mapping[tuple(map(_wider, parts))] if origin is Mapping else hint  # type: ignore[misc]
