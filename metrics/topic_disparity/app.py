"""Demo of `topic_disparity`: paste rows as CSV, read the numbers."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd

from seesaw_cf.effects.topics import topic_disparity
from seesaw_cf.errors import SeesawError
from seesaw_cf.metrics.demo import demo_page

EXAMPLE = "identity,topic\n" + "bakers,0\nbakers,0\nbakers,1\ntailors,1\ntailors,1\ntailors,0\ntailors,2\n" * 5


def table(text: str, min_triples: int = 10) -> tuple[pd.DataFrame, str]:
    """One row per identity from statements pasted as CSV.

    Args:
        text: CSV with identity, topic (a number).
        min_triples: Nothing is shown of an identity with fewer statements.

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    try:
        rows = pd.read_csv(io.StringIO(text))
        names, topics = rows["identity"].astype(str).tolist(), [int(number) for number in rows["topic"]]
        result = topic_disparity(names, topics, min_triples=int(min_triples))
    except (SeesawError, pd.errors.ParserError, pd.errors.EmptyDataError, KeyError, TypeError, ValueError) as error:
        return pd.DataFrame(), f"{type(error).__name__}: {error}"
    frame = [
        {"identity": name, "n": row["n"]}
        | {f"topic {topic}": share["value"] for topic, share in (row["shares"] or {}).items()}
        | {key: (row["relative_entropy"] or {}).get(key) for key in ("corrected", "low", "high", "p_adjusted")}
        | {"note": row["note"]}
        for name, row in result["identities"].items()
    ]
    return pd.DataFrame(frame), result["method"]


def page() -> Any:
    """The page, with the example's results."""
    import gradio as gr

    about = "Relative entropy in nats: 0 = spoken of like everybody else."
    inputs = [
        gr.Textbox(EXAMPLE, lines=8, label="Rows (CSV)"),
        gr.Number(10, precision=0, label="Fewest statements"),
    ]
    return demo_page("topic_disparity", about, table, inputs, "Identities")


if __name__ == "__main__":
    page().launch()
