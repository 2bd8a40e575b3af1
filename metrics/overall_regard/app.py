"""Demo of `overall_regard`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects.regard import overall_regard
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
identity,regard
bakers,positive
bakers,positive
bakers,neutral
tailors,negative
tailors,positive
tailors,negative
"""


@explained(dtype=str, keep_default_na=False)
def table(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """One row per identity from statements pasted as CSV.

    Args:
        rows: CSV with identity, regard.

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    labels = [label or None for label in rows["regard"]]
    result = as_json(overall_regard)(rows["identity"].tolist(), labels)
    columns = ["overall", "normalised", "low", "high", "n_positive", "n_negative", "n_neutral", "n_other", "n"]
    frame = pd.DataFrame.from_dict(result["identities"], orient="index")[columns]
    return frame.rename_axis("identity").reset_index(), f"{result['n_unscored']} rows left out. {result['method']}"


ABOUT = "Below 0: spoken of badly more often than well."
page = partial(demo_page, "overall_regard", ABOUT, table, EXAMPLE, "Identities")


if __name__ == "__main__":
    page().launch()
