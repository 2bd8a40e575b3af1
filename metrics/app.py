"""One page for all metrics, made from the columns that each declares: paste rows, read every number.

pip install gradio
python -m seesaw_cf.metrics.app
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import datasets
import pandas as pd

from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.system import resolve
from seesaw_cf.base.types import JsonObject
from seesaw_cf.metrics.register import METRICS

_BAD_TEXT = (SeesawError, pd.errors.ParserError, pd.errors.EmptyDataError, TypeError, ValueError)


def header(name: str) -> str:
    """Return the columns of a metric as the first line of a CSV."""
    return ",".join(_module(name)._info(None).features)


def table(name: str, text: str, options: str = "") -> tuple[pd.DataFrame, str]:
    """Compute a metric.

    Args:
        name: Of the metric.
        text: CSV with its columns; the parts of a list are joined by "|", an empty cell is no value.
        options: Its options as JSON, such as `{"score": "log_odds"}`.

    Returns:
        Every number as a table, and a message: the other results, or what is wrong with the text.
    """
    module = _module(name)
    try:
        rows = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
        features = module._info(None).features
        if missing := [column for column in features if column not in rows]:
            raise RecordError(f"the columns {missing} are missing, expected {', '.join(features)}.")
        columns = {column: [_value(cell, features[column]) for cell in rows[column]] for column in features}
        result = module._compute(**columns, **json.loads(options or "{}"))
    except _BAD_TEXT as error:
        return pd.DataFrame(), f"{type(error).__name__}: {error}"
    others = [f"{key}: {value}" for key, value in result.items() if not isinstance(value, dict)]
    return pd.DataFrame(list(_records(result))).dropna(axis=1, how="all"), "; ".join([f"{len(rows)} rows", *others])


def page() -> Any:
    """Return the page, a `gradio.Blocks`; `.launch()` opens it."""
    import gradio as gr

    first = next(iter(METRICS))
    with gr.Blocks(title="seesaw_cf metrics") as made:
        name = gr.Dropdown(list(METRICS), value=first, label="Metric")
        text = gr.Textbox(header(first), lines=8, label="Rows (CSV)")
        options = gr.Textbox("", label='Options (JSON), such as {"seed": 1}')
        button = gr.Button("Compute", variant="primary")
        numbers = gr.Dataframe(label="Results", interactive=False, wrap=True)
        message = gr.Markdown()
        name.change(header, [name], [text])
        button.click(table, [name, text, options], [numbers, message])
    return made


def _module(name: str) -> Any:
    return resolve(METRICS[name])


def _value(text: str, feature: Any) -> object:
    if isinstance(feature, datasets.List):
        return [_value(part, feature.feature) for part in text.split("|")] if text else []
    if feature.dtype == "string":
        return text or None
    return (int if feature.dtype == "int64" else float)(text) if text else None


def _records(result: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[JsonObject]:
    """Yield each part of a result that has numbers, with the names that lead to it."""
    own = {name: value for name, value in result.items() if not isinstance(value, dict)}
    if path and own:
        yield {"result": ", ".join(path), **own}
    for name, value in result.items():
        if isinstance(value, dict):
            yield from _records(value, (*path, name))


if __name__ == "__main__":
    page().launch()
