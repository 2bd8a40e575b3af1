"""Demo of `leme_survey`: paste ratings as CSV, read means per method and item."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects.leme_survey import survey_of_columns
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
case_id,method,item,rating
1,none,new_fact_main_passage,1
1,memit,new_fact_main_passage,6
2,none,new_fact_main_passage,2
2,memit,new_fact_main_passage,7
1,none,fluency,6
1,memit,fluency,4
2,none,fluency,7
2,memit,fluency,
"""


@explained(dtype={"method": str}, keep_default_na=False)
def table(rows: pd.DataFrame, reference: str = "none") -> tuple[pd.DataFrame, str]:
    """One row per method and item from ratings pasted as CSV.

    Args:
        rows: CSV with the columns of the metric; an empty rating is missing.
        reference: The method to compare with; "" for none.

    Returns:
        The table, and a message: what was left out, or what is wrong with the text.
    """
    rows["rating"] = pd.to_numeric(rows["rating"].replace("", None))
    result = as_json(survey_of_columns)(**rows.to_dict("list"), reference=reference or None)  # type: ignore[arg-type]
    records = [
        {
            "method": method,
            "item": item,
            **{name: cell[name] for name in ("mean", "low", "high", "n", "n_cases", "n_missing", "note")},
            "minus reference": (cell.get("difference") or {}).get("mean"),
        }
        for method, cells in result["methods"].items()
        for item, cell in cells["items"].items()
    ]
    return pd.DataFrame(records), f"{result['n_missing']} of {len(rows)} ratings missing."


ABOUT = "Ratings from 1 (strongly disagree) to 7 (strongly agree), one row each."
page = partial(demo_page, "leme_survey", ABOUT, table, EXAMPLE, "Means", {"Reference method": "none"})


if __name__ == "__main__":
    page().launch()
