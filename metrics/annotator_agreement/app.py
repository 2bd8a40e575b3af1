"""Demo of `annotator_agreement`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.agreement import annotator_agreement
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
A1,A2,A3
0,0,0
1,1,1
0,1,0
0,,1
-1,-1,0
"""


@explained()
def table(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Agreement of the columns of a CSV.

    Args:
        rows: One column per annotator, one row per item; empty = missing.

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    rows = rows.apply(pd.to_numeric)
    result = as_json(annotator_agreement)(rows.to_numpy().tolist(), names=[str(c) for c in rows.columns], draws=200)
    shares = {f"percent {name}": row for name, row in result["percent"].items()}
    alphas = {f"alpha {level}": row for level, row in result["krippendorff"].items()}
    figures = shares | {"Fleiss": result["fleiss"]} | alphas
    frame = pd.DataFrame.from_dict(figures, orient="index").rename_axis("figure").reset_index()
    return frame, f"{result['n_items']} items, {result['n_missing']} missing labels."


ABOUT = "Raw agreement flatters rare labels: read it beside the chance-corrected figures."
page = partial(demo_page, "annotator_agreement", ABOUT, table, EXAMPLE, "Numbers")


if __name__ == "__main__":
    page().launch()
