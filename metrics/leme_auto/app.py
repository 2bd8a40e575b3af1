"""Demo of `leme_auto`: paste passages as CSV, read the measures."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd

from seesaw_cf.effects.leme_auto import STANDS_FOR, leme_auto
from seesaw_cf.errors import SeesawError
from seesaw_cf.metrics.demo import demo_page

EXAMPLE = """\
case_id,subject,related,subject_passage,related_passage,new_fact,subject_facts,related_facts
1,Ann,Bob,Ann is a painter. She lives in Rome.,Bob married Ann.,Ann lives in Rome,Ann is a painter,Bob sings|Bob is 9
2,Cleo,Dan,Cleo was born in Oslo.,Dan knows Cleo. Dan sings.,Cleo was born in Bonn,Cleo is a chemist,Dan sings
"""
TEXTS = ("subject", "related", "subject_passage", "related_passage", "new_fact")


def table(text: str) -> tuple[pd.DataFrame, str]:
    """One row per measure from passages pasted as CSV.

    Args:
        text: CSV with the columns of the metric; several facts are joined by "|".

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    try:
        rows = pd.read_csv(io.StringIO(text)).fillna("")
        facts = ([cell.split("|") for cell in rows[name]] for name in ("subject_facts", "related_facts"))
        result = leme_auto(rows["case_id"].tolist(), *(rows[name].tolist() for name in TEXTS), *facts)
    except (SeesawError, pd.errors.ParserError, pd.errors.EmptyDataError, KeyError, TypeError, ValueError) as error:
        return pd.DataFrame(), f"{type(error).__name__}: {error}"
    found = [{"measure": name, "stands for": STANDS_FOR[name]} | row for name, row in result["means"].items()]
    return pd.DataFrame(found), f"{len(rows)} rows."


def page() -> Any:
    """The page, with the example's results."""
    import gradio as gr

    about = "Simple measures of passages. Correlate them with people's ratings before use."
    inputs = [
        gr.Textbox(EXAMPLE, lines=8, label="Rows (CSV)"),
    ]
    return demo_page("leme_auto", about, table, inputs, "Measures")


if __name__ == "__main__":
    page().launch()
