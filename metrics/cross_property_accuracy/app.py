"""Demo of `cross_property_accuracy`: paste candidates as CSV, read accuracy before and after the edit."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects import AccuracyColumns, accuracy_of_columns
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
case_id,edit_relation,effect_relation,prompt,candidate,gold,pre,post
1,P27,P101,Ann's field of work is,physics,1,-1.0,-1.0
1,P27,P101,Ann's field of work is,law,0,-2.0,-2.0
2,P27,P101,Bob's field of work is,physics,0,-3.0,-1.0
2,P27,P101,Bob's field of work is,law,1,-1.0,-2.0
"""
_CASE = ["case_id", "edit_relation", "effect_relation", "prompt"]


@explained()
def table(rows: pd.DataFrame, mode: str = "exact") -> tuple[pd.DataFrame, str]:
    """One row per pair of properties from one pasted CSV row per (case, candidate).

    Args:
        rows: CSV with case_id, edit_relation, effect_relation, prompt, candidate, gold (0 or 1), pre, post.
        mode: "exact" or "paper".

    Returns:
        The table, and a message: the method, or what is wrong with the text.
    """
    rows["right"] = rows["candidate"].where(rows["gold"].astype(bool))
    cases = rows.groupby(_CASE, sort=False).agg(
        candidates=("candidate", list),
        gold=("right", lambda labels: labels.dropna().tolist()),
        pre=("pre", list),
        post=("post", list),
    )
    result = as_json(accuracy_of_columns)(AccuracyColumns(**cases.reset_index().to_dict("list")), mode=mode)  # type: ignore[arg-type]
    columns = ["pre", "post", "change", "low", "high", "lost", "gained", "p", "chance", "majority", "n"]
    frame = pd.DataFrame.from_dict(result["pairs"], orient="index")[columns].rename_axis("pair").reset_index()
    return frame, str(result["method"])


ABOUT = "Share of right first choices before and after editing another property."
page = partial(demo_page, "cross_property_accuracy", ABOUT, table, EXAMPLE, "Pairs", {"Mode": ("exact", "paper")})


if __name__ == "__main__":
    page().launch()
