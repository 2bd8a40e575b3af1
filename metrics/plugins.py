"""Metrics of other packages and of files: modules of `evaluate` that are computed on the rows of a run."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.plugins import Plugin, Plugins, failure, has_arguments
from seesaw_cf.base.types import JsonObject
from seesaw_cf.metrics.register import METRICS


def _is_module(plugin: Plugin) -> bool:
    kinds = inspect.getmro(plugin) if inspect.isclass(plugin) else ()
    return any((kind.__module__, kind.__name__) == ("evaluate.module", "EvaluationModule") for kind in kinds)


PLUGINS = Plugins(
    noun="metric",
    known=METRICS,
    marks=_is_module,
    mark="classes below evaluate.Metric",
    clauses={
        "it is a class below evaluate.Metric or evaluate.Measurement": _is_module,
        "it can be made without arguments": lambda plugin: has_arguments(plugin, ""),
        "it has _info(), which names its columns": lambda plugin: has_arguments(plugin, "_info"),
        "it has _compute, which takes its columns": lambda plugin: hasattr(plugin, "_compute"),
    },
    error=RecordError,
    page="docs/api/metrics.md",
)


def compute(name: str, tables: Sequence[pd.DataFrame]) -> dict[str, JsonObject]:
    """Compute a metric for each editor of a run.

    Args:
        name: A key of `METRICS`.
        tables: The run's questions about other people, and its answers about other facts: `Results.prompts` and
            `Results.answers`.

    Returns:
        Editor -> what the metric returns.

    Raises:
        RecordError: No table has all of its columns, or it fails; the message says in which line.
    """
    kind = PLUGINS.load(name)
    try:
        metric = kind(keep_in_memory=True)
        columns = list(metric.features)
        rows = _table(name, columns, tables)
        return {
            str(editor): metric.compute(**{column: _values(frame[column]) for column in columns})
            for editor, frame in rows.groupby("editor", sort=False)
        }
    except RecordError:
        raise
    except Exception as error:  # what another author wrote can fail in any way
        file = inspect.getsourcefile(kind) or ""
        raise RecordError(f"metric {name}: {failure(error, file)}. Correct it, or its columns.") from error


def _table(name: str, columns: Sequence[str], tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    for table in tables:
        if set(columns) <= set(table):
            return table
    known = sorted({str(column) for table in tables for column in table})
    missing = next((column for column in columns if column not in known), columns[0])
    raise RecordError(f"metric {name}: {unknown_name('column of a run', missing, known)}")


def _values(column: pd.Series) -> list[object]:
    """Return a column as plain values; a missing number is None."""
    values = (value.tolist() if isinstance(value, np.ndarray) else value for value in column)
    return [None if isinstance(value, float) and np.isnan(value) else value for value in values]


def check_metric(name: str, tables: Sequence[pd.DataFrame]) -> dict[str, str]:
    """Check every clause of the contract of metrics on the rows of a run.

    Args:
        name, tables: See `compute`.

    Returns:
        Clause -> what breaks it, "" where it holds. A clause that an earlier one makes impossible to check is left out.
    """
    try:
        first, second = compute(name, tables), compute(name, tables)
    except RecordError as error:
        return {"it can be computed on a run": str(error)}
    clauses = {"it can be computed on a run": "", "its docstring says what it is": ""}
    if not (PLUGINS.load(name).__doc__ or "").strip():
        clauses["its docstring says what it is"] = "no docstring"
    clauses["it returns plain JSON, with None for what cannot be estimated"] = _not_json(first)
    clauses["the same rows give the same numbers"] = "" if str(first) == str(second) else "other numbers"
    silent = [editor for editor, numbers in first.items() if not isinstance(numbers.get("n"), int)]
    clauses["it says in `n` how many rows it rests on"] = ", ".join(silent)
    return clauses


def _not_json(values: Mapping[str, JsonObject]) -> str:
    faults = (
        f"{name} of {editor} is {value!r}"
        for editor, own in values.items()
        for name, value in own.items()
        if not _is_json(value)
    )
    return next(faults, "")


def _is_json(value: object) -> bool:
    try:
        return bool(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return False
