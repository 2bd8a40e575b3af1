"""Demo of `leme_annotation`: paste rows as CSV, read the shares."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects.leme_annotation import LABELS, leme_annotation
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
case_id,group,passage,claim_kind,label
1,none,subject,ground_truth,supports
1,rome,subject,ground_truth,contradicts
1,rome,subject,new_fact,supports
2,none,subject,ground_truth,supports
2,rome,subject,ground_truth,supports
2,rome,subject,new_fact,contradicts
"""


@explained()
def table(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """One row per (group, passage, kind of claim) from annotations pasted as CSV.

    Args:
        rows: CSV with case_id, group, passage, claim_kind, label (may be empty).

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    labels = [None if pd.isna(label) else str(label) for label in rows["label"]]
    group, passage, kind = (rows[name].astype(str).tolist() for name in ("group", "passage", "claim_kind"))
    result = as_json(leme_annotation)(rows["case_id"].tolist(), group, passage, kind, labels)
    records = [
        {"group": group, "passage": passage, "claim": kind}
        | {label: row[label]["value"] for label in LABELS if label in row}
        | {"n": row["n"], "n_cases": row["n_cases"]}
        for group, passages in result["shares"].items()
        for passage, kinds in passages.items()
        for kind, row in kinds.items()
    ]
    return pd.DataFrame(records), f"{result['n_missing']} of {result['n_rows']} rows without label."


ABOUT = "Share of claims that the passages support, leave open or contradict."
page = partial(demo_page, "leme_annotation", ABOUT, table, EXAMPLE, "Shares")


if __name__ == "__main__":
    page().launch()
