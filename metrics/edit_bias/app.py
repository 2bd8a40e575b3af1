"""Demo of `edit_bias`: paste rows as CSV, read D per group."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects import BiasColumns, bias_of_columns
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
case_id,prompt,subject,groups,pre_new,pre_true,post_new,post_true
1,Ann is a citizen of,Ann,female,-0.7,-1.4,-1.4,-1.4
1,Bob is a citizen of,Bob,male,-0.7,-1.4,-0.7,-1.4
2,Cleo is a citizen of,Cleo,female,-0.6,-1.5,-1.2,-1.5
2,Dan is a citizen of,Dan,male,-0.8,-1.3,-0.8,-1.3
"""


@explained()
def table(rows: pd.DataFrame, score: str = "summed") -> tuple[pd.DataFrame, str]:
    """One row per group from rows pasted as CSV.

    Args:
        rows: CSV with the columns of the metric; several groups of one person are joined by "|".
        score: "summed" or "log_odds".

    Returns:
        The table, and a message: what was left out, or what is wrong with the text.
    """
    rows["groups"] = [str(tags).split("|") for tags in rows["groups"].fillna("")]
    result = as_json(bias_of_columns)(BiasColumns(**rows.to_dict("list")), score=score)  # type: ignore[arg-type]
    groups = {"all": result["overall"]} | result["groups"]
    columns = ["D_pre", "D_post", "D", "low", "high", "p", "n_prompts", "n_subjects", "n_cases", "note"]
    frame = pd.DataFrame.from_dict(groups, orient="index")[columns].rename_axis("group").reset_index()
    return frame, f"{result['n_unscored']} of {result['n_rows']} rows left out. {result['method']}"


ABOUT = "Log-probabilities in nats. D below 0: less confident in the right answer after the edit."
page = partial(demo_page, "edit_bias", ABOUT, table, EXAMPLE, "Groups", {"Score": ("summed", "log_odds")})


if __name__ == "__main__":
    page().launch()
