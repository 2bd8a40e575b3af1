"""From words to a call: the parameters of a command's function, and the fields of the settings among them, are options.

Names, types and defaults are those of the fields; `field_types` of the settings checks ranges and names.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, TypeVar

import cyclopts
from cyclopts import App, Parameter
from cyclopts.argument import Argument

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import SeesawError, unknown_name
from seesaw_cf.base.fields import check_value, hints_of, words_of
from seesaw_cf.cli import gone
from seesaw_cf.cli.output import UsageError

T = TypeVar("T")
Flat = Annotated[T, Parameter(name="*")]
"""Of a parameter whose fields are options."""

# Fields that hold several; the option has one name.
_PLURALS = {"editors", "controls", "control_models", "configs", "groups", "clusters", "metrics"}
_PLURALS |= {"pairs", "cells", "sources", "judges", "measures", "runs", "lists", "raters"}
# Fields that are set from Python or YAML alone.
_NO_OPTIONS = "errors|family|max_tokens|noise_floor|noise_floor_log_odds|prompts_per_person|ray_address|scorer"
_NO_OPTIONS += "|topics"
_WHOLE = re.compile(r"\s*[+-]?\d{1,40}\s*")


@dataclass(frozen=True)
class Given:
    """A value that a command was given.

    Attributes:
        name: Of the parameter or field.
        hint: Its annotation.
        value: What it holds.
        first: It stands before the options.
    """

    name: str
    hint: Any
    value: Any
    first: bool


def load_command(target: str) -> Callable[..., None]:
    """Return the function that "module:function" of this package names."""
    module, _, name = target.partition(":")
    function: Callable[..., None] = getattr(importlib.import_module(f"seesaw_cf.cli.{module}"), name)
    return function


def option_name(name: str) -> str:
    """Return the option of a field, without its dashes."""
    return (name.removesuffix("s") if name in _PLURALS else name.strip("_")).replace("_", "-")


def arguments(function: Callable[..., None]) -> list[Argument]:
    """Return what cyclopts knows of each option of a command, in order; settings themselves are left out."""
    found = _app("", function).assemble_argument_collection(parse_docstring=True)
    return [one for one in found if one.parse and not one.children]


def bind(name: str, function: Callable[..., None], words: Sequence[str]) -> inspect.BoundArguments:
    """Return the arguments of a command out of words.

    Raises:
        UsageError: An option is unknown, missing or given twice, or a value is of another type.
        SeesawError: What the settings refuse.
    """
    app = _app(name, function)
    known = [word for one in app.assemble_argument_collection() for word in one.names if one.parse and not one.children]
    _check_options(words, known)
    try:
        _, bound, _ = app.parse_args(list(words), print_error=False, exit_on_error=False)
    except cyclopts.CycloptsError as error:
        raise UsageError(_message(error, words)) from error
    except SeesawError as error:
        raise type(error)(in_options(str(error), function)) from error
    bound.apply_defaults()
    for entry in given(function, bound):
        if not is_dataclass(entry.value):
            check_value(f"--{option_name(entry.name)}", entry.value, entry.hint)
    return bound


def given(function: Callable[..., None], bound: inspect.BoundArguments) -> Iterator[Given]:
    """Yield what each parameter of a command, and each field of its settings, holds."""
    hints = typing.get_type_hints(function, include_extras=True)
    for name, value in bound.arguments.items():
        if is_dataclass(value):
            fields = hints_of(type(value))  # type: ignore[arg-type]
            first = inspect.signature(type(value)).parameters
            for field, hint in fields.items():
                yield Given(field, hint, getattr(value, field), first[field].kind is not inspect.Parameter.KEYWORD_ONLY)
        else:
            kind = bound.signature.parameters[name].kind
            yield Given(name, hints[name], value, kind is not inspect.Parameter.KEYWORD_ONLY)


def _app(name: str, function: Callable[..., None]) -> App:
    every = Parameter(
        negative=(),
        consume_multiple=True,
        allow_repeating=True,
        converter=_convert,
        parse=re.compile(rf"^(?!(?:{_NO_OPTIONS})$)"),
        name_transform=option_name,
    )
    return App(
        name=f"seesaw-cf {name}".strip(),
        default_command=function,
        default_parameter=every,
        help_flags=(),
        version_flags=(),
        help_format="plaintext",
        result_action="return_value",
    )


def _convert(kind: Any, tokens: Sequence[cyclopts.Token]) -> Any:
    """Convert words as cyclopts does, but 1.5, 0x10 and 1_000 are no whole numbers."""
    words = [token.value for token in tokens]
    leaves = set(_leaves(kind))
    if int in leaves and not leaves & {str, float} and not all(map(_WHOLE.fullmatch, words)):
        raise ValueError
    if int in leaves and str in leaves:
        return int(words[0]) if _WHOLE.fullmatch(words[0]) else words[0]
    return cyclopts.convert(kind, words)


def _leaves(kind: Any) -> Iterator[Any]:
    parts = typing.get_args(kind)
    for part in parts:
        yield from _leaves(part)
    if not parts:
        yield kind if isinstance(kind, type) else type(kind)  # of Literal["all"] that of the text


def _check_options(words: Sequence[str], known: Sequence[str]) -> None:
    """Refuse the first unknown option: say what replaces a removed one, or suggest near ones."""
    for word in words:
        name = word.partition("=")[0]
        if word == "--":
            return
        if word.startswith("--") and " " not in word and name not in known:
            near = str(unknown_name("option", name, known)).partition(" Known: ")[0]
            raise UsageError(gone.instead("option", name, gone.OPTIONS) or near)


def _message(error: cyclopts.CycloptsError, words: Sequence[str]) -> str:
    """Return where, what was got and what was expected."""
    error.verbose = False
    place = error.argument and next((name for name in error.argument.names if name in words), error.argument.name)
    label = _label(error.argument) if error.argument else ""
    if isinstance(error, cyclopts.MissingArgumentError):
        return f"{place}: the value is missing." if place in words else f"{label} is missing."
    if isinstance(error, cyclopts.UnusedCliTokensError):
        return f"got {shown(' '.join(error.unused_tokens or ()))}, expected options after it or nothing."
    token = getattr(error, "token", None) or next(iter(error.argument.tokens if error.argument else ()), None)
    if error.argument is not None and token is not None:
        return f"{label}: got {shown(token.value, 80)}, expected {_expected(error.argument)}."
    return str(error)


def _expected(argument: Any) -> str:
    hint = argument.field_info.annotation
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return " or ".join(words_of(part) for part in parts if part is not type(None))


def _label(argument: Any) -> str:
    """Return `--limit`, or MODEL of what stands before the options."""
    name: str = argument.name
    return name if argument.index is None else name.strip("-").upper()


def in_options(message: str, function: Callable[..., None]) -> str:
    """Return a message with the option in the place of "command: field" or "Settings: field"."""
    where = re.match(r"(\w+): (\w+)(?= is | are |: )", message)
    known = {option_name(one.field_info.name): _label(one) for one in arguments(function)}
    own = {function.__name__, *(getattr(kind, "__name__", "") for kind in typing.get_type_hints(function).values())}
    name = option_name(where[2]) if where and where[1] in own else ""
    return known[name] + message[where.end() :] if where and name in known else message
