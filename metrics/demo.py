"""The page of a metric's demo: inputs, a button, and results that are there from the beginning. Needs gradio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

__all__ = ["demo_page"]

_SHOWN = 4  # significant digits


def demo_page(
    name: str, about: str, compute: Callable[..., tuple[pd.DataFrame, str]], inputs: Sequence[Any], shows: str
) -> Any:
    """A page that shows what the inputs' first values give, and computes again at a click.

    Args:
        name: The metric's name, the page's title.
        about: One sentence on how to read the numbers.
        compute: Takes the inputs' values, gives a table and a message.
        inputs: Components of gradio, not yet drawn; their values are an example.
        shows: What the table's rows are.

    Returns:
        The page, a `gradio.Blocks`; `.launch()` opens it.
    """
    import gradio as gr

    def shown(*values: Any) -> tuple[pd.DataFrame, str]:
        frame, said = compute(*values)
        return frame.map(_short), said

    frame, said = shown(*(box.value for box in inputs))
    with gr.Blocks(title=name) as page:
        gr.Markdown(f"# {name}\n{about}")
        for box in inputs:
            box.render()
        button = gr.Button("Compute", variant="primary")
        output = gr.Dataframe(frame, label=shows, interactive=False, wrap=True)
        message = gr.Markdown(said)
        button.click(shown, list(inputs), [output, message])
    return page


def _short(cell: Any) -> Any:
    if not isinstance(cell, float):
        return cell
    return None if cell != cell else float(f"{cell:.{_SHOWN}g}")
