"""Demo of `generation_quality`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects.texts import generation_quality
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
case_id,text,reference
1,"Ann is a painter. Ann is a painter. Ann is a painter.","A painter makes paintings."
2,"Bob was born in Vienna and studied law.","Vienna is the capital of Austria."
"""


@explained()
def table(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """One row per measure from texts pasted as CSV.

    Args:
        rows: CSV with case_id, text, reference.

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    texts, references = ([[str(t)] for t in rows[name].fillna("")] for name in ("text", "reference"))
    result = as_json(generation_quality)(rows["case_id"].tolist(), texts, references)
    figures = {name: row for name, row in result.items() if isinstance(row, dict)}
    frame = pd.DataFrame.from_dict(figures, orient="index").rename_axis("measure").reset_index()
    return frame, f"{result['n_cases']} cases, {result['n_empty']} empty texts."


ABOUT = "Low entropy or high repetition: the edit damaged the model."
page = partial(demo_page, "generation_quality", ABOUT, table, EXAMPLE, "Numbers")


if __name__ == "__main__":
    page().launch()
