"""What every `evaluate` module here has: its description and columns, and results as plain JSON types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import datasets
import evaluate

from seesaw_cf.stats.plain import as_json

Module = TypeVar("Module", bound=evaluate.EvaluationModule)


def describe(citation: str, columns: Mapping[str, str]) -> Callable[[type[Module]], type[Module]]:
    """Tell `evaluate` what it wants to know of a module, from its docstring.

    The first paragraph of the docstring is the description, the rest are arguments, results and examples.

    Args:
        citation: For its page.
        columns: Name -> Arrow type of a row's value, such as "int64" or "list of string".
    """

    def described(kind: type[Module]) -> type[Module]:
        info = evaluate.MetricInfo if issubclass(kind, evaluate.Metric) else evaluate.MeasurementInfo
        description, _, inputs = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
        texts = {"description": f"{description}\n", "citation": citation, "inputs_description": f"\n{inputs}\n"}
        features = {name: _feature(what) for name, what in columns.items()}
        kind._info = lambda self: info(**texts, features=datasets.Features(features))
        return kind

    return described


def _feature(what: str) -> object:
    value = datasets.Value(what.removeprefix("list of "))
    return datasets.List(value) if what.startswith("list of ") else value


def column_arguments(function: Callable[..., object], kinds: Collection[str]) -> Callable[..., dict[str, Any]]:
    """Wrap `function` so that it takes each of its `columns` separately and returns plain JSON.

    Args:
        function: Takes `columns`, and options.
        kinds: Names of its columns.
    """
    _, *options = inspect.signature(function).parameters.values()
    in_json = as_json(function)

    def call(**values: Any) -> dict[str, Any]:
        columns = {name: values.pop(name) for name in kinds if name in values}
        return in_json(columns, **values)

    every = [*(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in kinds), *options]
    call.__signature__ = inspect.Signature([each.replace(kind=each.KEYWORD_ONLY) for each in every])  # type: ignore[attr-defined]
    return call
