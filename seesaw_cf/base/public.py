"""Check the arguments of the functions that users call against their annotations, by beartype."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping, Sequence, Sized
from types import SimpleNamespace, UnionType
from typing import Any, ParamSpec, TypeVar

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
    conf = BeartypeConf(violation_param_type=RecordError, is_color=False, hint_overrides=FrozenDict(wider))

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    functools.update_wrapper(call, function)
    call.__annotations__ = {name: _wider(hint) for name, hint in hints.items()}
    return beartype(conf=conf)(call)


def _wider(hint: Any) -> Any:
    """Return a type that also fits what is as good: an array or a column of a data set for a list, but not one text."""
    from beartype.vale import IsInstance

    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return str  # the function itself names the known ones
    if origin in (typing.Union, UnionType):
        return typing.Union[tuple(map(_wider, parts))]  # noqa: UP007
    if origin is Sequence and not getattr(parts[0], "__module__", "").startswith("seesaw_cf"):
        return typing.Annotated[Sized, ~IsInstance[str, bytes, Mapping]]  # the function itself names the wrong row
    return Mapping[tuple(map(_wider, parts))] if origin is Mapping else hint  # type: ignore[misc]
