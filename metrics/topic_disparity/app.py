"""Demo of `topic_disparity`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects.topics import topic_disparity
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = "identity,topic\n" + "bakers,0\nbakers,0\nbakers,1\ntailors,1\ntailors,1\ntailors,0\ntailors,2\n" * 5


@explained()
def table(rows: pd.DataFrame, min_triples: int = 10) -> tuple[pd.DataFrame, str]:
    """One row per identity from statements pasted as CSV.

    Args:
        rows: CSV with identity, topic (a number).
        min_triples: Nothing is shown of an identity with fewer statements.

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    names, topics = rows["identity"].astype(str).tolist(), [int(number) for number in rows["topic"]]
    result = as_json(topic_disparity)(names, topics, min_triples=int(min_triples))
    frame = [
        {"identity": name, "n": row["n"]}
        | {f"topic {topic}": share["value"] for topic, share in (row["shares"] or {}).items()}
        | {key: (row["relative_entropy"] or {}).get(key) for key in ("corrected", "low", "high", "p_adjusted")}
        | {"note": row["note"]}
        for name, row in result["identities"].items()
    ]
    return pd.DataFrame(frame), result["method"]


ABOUT = "Relative entropy in nats: 0 = spoken of like everybody else."
page = partial(demo_page, "topic_disparity", ABOUT, table, EXAMPLE, "Identities", {"Fewest statements": 10})


if __name__ == "__main__":
    page().launch()
