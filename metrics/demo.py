"""The page of a metric's demo: inputs, a button, and results that are there from the beginning. Needs gradio."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol

import pandas as pd

from seesaw_cf.base.errors import SeesawError

P = ParamSpec("P")
Shown = tuple[pd.DataFrame, str]
"""A table, and a message: what was counted, or what is wrong with the text."""

_DIGITS = 4  # significant digits
_BAD_TEXT = (SeesawError, pd.errors.ParserError, pd.errors.EmptyDataError, KeyError, TypeError, ValueError)


class Page(Protocol):
    """A page of a demo; gradio's `Blocks` is one."""

    def launch(self) -> object:
        """Serve the page and open it."""


def explained(
    **read: Any,
) -> Callable[[Callable[Concatenate[pd.DataFrame, P], Shown]], Callable[Concatenate[str, P], Shown]]:
    """Make a function of rows one of their CSV text; a text it cannot read gives an empty table and a message.

    Args:
        **read: Options of `pandas.read_csv`.
    """

    def of_text(table: Callable[Concatenate[pd.DataFrame, P], Shown]) -> Callable[Concatenate[str, P], Shown]:
        @functools.wraps(table)
        def call(text: str, /, *args: P.args, **kwargs: P.kwargs) -> Shown:
            try:
                return table(pd.read_csv(io.StringIO(text), **read), *args, **kwargs)
            except _BAD_TEXT as error:
                return pd.DataFrame(), f"{type(error).__name__}: {error}"

        return call

    return of_text


def demo_page(
    name: str,
    about: str,
    table: Callable[..., Shown],
    example: str,
    shows: str,
    options: Mapping[str, Sequence[str] | str | int] | None = None,
) -> Page:
    """Return a page that shows what the example gives, and computes again at a click.

    Args:
        name: The metric's name, the page's title.
        about: One sentence on how to read the numbers.
        table: Takes the text and the options' values, gives a table and a message.
        example: CSV.
        shows: What the table's rows are.
        options: Label -> the choices (the first is chosen), or a first text or number; in the order of `table`.

    Returns:
        The page, a `gradio.Blocks`; `.launch()` opens it.
    """
    import gradio as gr

    def shown(*values: object) -> Shown:
        frame, message = table(*values)
        return frame.map(_short), message

    inputs = [gr.Textbox(example, lines=8, label="Rows (CSV)")]
    for label, value in (options or {}).items():
        if isinstance(value, str):
            inputs.append(gr.Textbox(value, label=label))
        elif isinstance(value, int):
            inputs.append(gr.Number(value, precision=0, label=label))
        else:
            inputs.append(gr.Radio(list(value), value=value[0], label=label))
    frame, message = shown(*(box.value for box in inputs))
    page: Page
    with gr.Blocks(title=name) as page:
        gr.Markdown(f"# {name}\n{about}")
        for box in inputs:
            box.render()
        button = gr.Button("Compute", variant="primary")
        output = gr.Dataframe(frame, label=shows, interactive=False, wrap=True)
        below = gr.Markdown(message)
        button.click(shown, list(inputs), [output, below])
    return page


def _short(cell: object) -> object:
    if not isinstance(cell, float):
        return cell
    return None if cell != cell else float(f"{cell:.{_DIGITS}g}")
