"""Check the arguments of the functions that users call against their annotations, by beartype."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

import numpy as np

from seesaw_cf.base.errors import RecordError

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with its arguments checked when it is called; the first call imports beartype.

    Raises:
        RecordError: (when it is called) An argument has another type; the message names function, argument and types.
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
    from beartype import BeartypeConf, FrozenDict, beartype

    inner = inspect.unwrap(function)
    written = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    hints = typing.get_type_hints(SimpleNamespace(__annotations__=written), inner.__globals__)
    # A name that is not known is an error of the function itself, which lists the known ones.
    hints = {name: str if typing.get_origin(hint) is typing.Literal else hint for name, hint in hints.items()}
    wider: dict[Any, Any] = {
        bool: bool | np.bool_,
        int: int | np.integer,
        float: float | int | np.integer | np.floating,
        Sequence[str]: list[str] | tuple[str, ...],  # one text is not a list of letters
    }
    if transformers := sys.modules.get("transformers.modeling_utils"):
        wider[transformers.PreTrainedModel] = sys.modules["torch"].nn.Module  # peft wraps models in a class of its own
    conf = BeartypeConf(violation_param_type=RecordError, is_color=False, hint_overrides=FrozenDict(wider))

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    functools.update_wrapper(call, function)
    call.__annotations__ = hints
    return beartype(conf=conf)(call)
