"""The page of a metric's demo: inputs, a button, and results that are there from the beginning. Needs gradio."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import datasets
import pandas as pd

from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.types import JsonObject
from seesaw_cf.base.versions import resolve
from seesaw_cf.metrics.register import METRICS

_DIGITS = 4  # significant digits
_BAD_TEXT = (SeesawError, pd.errors.ParserError, pd.errors.EmptyDataError, TypeError, ValueError)


class Page(Protocol):
    """A page of a demo; gradio's `Blocks` is one."""

    def launch(self) -> object:
        """Serve the page and open it."""


@dataclass(frozen=True)
class Demo:
    """A page that shows what the example gives, and computes again at a click.

    Attributes:
        name: The metric's name, the page's title.
        about: One sentence on how to read the numbers.
        example: CSV with the metric's columns; the parts of a list are joined by "|".
        options: Option of the metric -> its choices (the first is chosen), or its first text or number.
        blank: What an empty cell of a column of texts means.
    """

    name: str
    about: str
    example: str
    options: Mapping[str, Sequence[str] | str | int] = field(default_factory=dict)
    blank: str | None = None

    def table(self, text: str, *values: object) -> tuple[pd.DataFrame, str]:
        """Compute the metric.

        Args:
            text: CSV, as the example.
            *values: Of the options.

        Returns:
            Every number as a table, and a message: the other results, or what is wrong with the text.
        """
        kind: Any = resolve(METRICS[self.name])
        try:
            rows = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
            features = kind._info(None).features
            if missing := [name for name in features if name not in rows]:
                raise RecordError(f"the columns {missing} are missing, expected {', '.join(features)}.")
            columns = {name: [self._cell(cell, features[name]) for cell in rows[name]] for name in features}
            result = kind._compute(**columns, **{name: value or None for name, value in zip(self.options, values)})
        except _BAD_TEXT as error:
            return pd.DataFrame(), f"{type(error).__name__}: {error}"
        others = [f"{name}: {value}" for name, value in result.items() if not isinstance(value, dict)]
        return pd.DataFrame(list(_records(result))).dropna(axis=1, how="all"), "; ".join([f"{len(rows)} rows", *others])

    def _cell(self, text: str, feature: Any) -> object:
        if isinstance(feature, datasets.List):
            return [self._cell(part, feature.feature) for part in text.split("|")] if text else []
        if feature.dtype == "string":
            return text or self.blank
        return (int if feature.dtype == "int64" else float)(text) if text else None

    def page(self) -> Page:
        """Return the page, a `gradio.Blocks`; `.launch()` opens it."""
        import gradio as gr

        def shown(*values: Any) -> tuple[pd.DataFrame, str]:
            frame, message = self.table(*values)
            return frame.map(_short), message

        inputs = [gr.Textbox(self.example, lines=8, label="Rows (CSV)")]
        for label, value in self.options.items():
            if isinstance(value, str):
                inputs.append(gr.Textbox(value, label=label))
            elif isinstance(value, int):
                inputs.append(gr.Number(value, precision=0, label=label))
            else:
                inputs.append(gr.Radio(list(value), value=value[0], label=label))
        frame, message = shown(*(box.value for box in inputs))
        page: Page
        with gr.Blocks(title=self.name) as page:
            gr.Markdown(f"# {self.name}\n{self.about}")
            for box in inputs:
                box.render()
            button = gr.Button("Compute", variant="primary")
            output = gr.Dataframe(frame, label="Results", interactive=False, wrap=True)
            below = gr.Markdown(message)
            button.click(shown, list(inputs), [output, below])
        return page


def _records(result: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[JsonObject]:
    """Yield each part of a result that has numbers, with the names that lead to it."""
    own = {name: value for name, value in result.items() if not isinstance(value, dict)}
    if path and own:
        yield {"result": ", ".join(path), **own}
    for name, value in result.items():
        if isinstance(value, dict):
            yield from _records(value, (*path, name))


def _short(cell: object) -> object:
    if not isinstance(cell, float):
        return str(cell) if isinstance(cell, list) else cell
    return None if cell != cell else float(f"{cell:.{_DIGITS}g}")
