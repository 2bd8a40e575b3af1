"""Demo of `topic_disparity`: paste rows as CSV, read the numbers."""

from __future__ import annotations

import io

import pandas as pd

from seesaw_cf.effects.topics import topic_disparity
from seesaw_cf.errors import SeesawError

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


def main() -> None:
    """Opens the page."""
    import gradio as gr

    with gr.Blocks(title="topic_disparity") as page:
        gr.Markdown("# topic_disparity\nRelative entropy in nats: 0 = spoken of like everybody else.")
        text = gr.Textbox(EXAMPLE, lines=8, label="Rows (CSV)")
        least = gr.Number(10, precision=0, label="Fewest statements")
        output, message = gr.Dataframe(label="Identities"), gr.Markdown()
        gr.Button("Compute").click(table, [text, least], [output, message])
    page.launch()


if __name__ == "__main__":
    main()
