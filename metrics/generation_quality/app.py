"""Demo of `generation_quality`: paste rows as CSV, read the numbers."""

from __future__ import annotations

import io

import pandas as pd

from seesaw_cf.effects.texts import generation_quality
from seesaw_cf.errors import SeesawError

EXAMPLE = """\
case_id,text,reference
1,"Ann is a painter. Ann is a painter. Ann is a painter.","A painter makes paintings."
2,"Bob was born in Vienna and studied law.","Vienna is the capital of Austria."
"""


def table(text: str) -> tuple[pd.DataFrame, str]:
    """One row per measure from texts pasted as CSV.

    Args:
        text: CSV with case_id, text, reference.

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    try:
        rows = pd.read_csv(io.StringIO(text))
        texts, references = ([[str(t)] for t in rows[name].fillna("")] for name in ("text", "reference"))
        result = generation_quality(rows["case_id"].tolist(), texts, references)
    except (SeesawError, pd.errors.ParserError, pd.errors.EmptyDataError, KeyError, TypeError, ValueError) as error:
        return pd.DataFrame(), f"{type(error).__name__}: {error}"
    figures = {name: row for name, row in result.items() if isinstance(row, dict)}
    frame = pd.DataFrame.from_dict(figures, orient="index").rename_axis("measure").reset_index()
    return frame, f"{result['n_cases']} cases, {result['n_empty']} empty texts."


def main() -> None:
    """Opens the page."""
    import gradio as gr

    with gr.Blocks(title="generation_quality") as page:
        gr.Markdown("# generation_quality\nLow entropy or high repetition: the edit damaged the model.")
        text = gr.Textbox(EXAMPLE, lines=8, label="Rows (CSV)")
        output, message = gr.Dataframe(label="Numbers"), gr.Markdown()
        gr.Button("Compute").click(table, [text], [output, message])
    page.launch()


if __name__ == "__main__":
    main()
