"""Demo of `open_ended_flaws`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects.flaws import open_ended_flaws
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

# One line per pair of texts: what five raters say.
_ANSWERS = ("11111", "00000", "10110", "00000", "11111", "01001")
_ROWS = [
    f"{item},Q{item},gender,sexism,A{rater},{answer}"
    for item, answers in enumerate(_ANSWERS)
    for rater, answer in enumerate(answers, 1)
]
EXAMPLE = "\n".join(["item,edit,group,flaw,rater,rating", *_ROWS, ""])


@explained()
def table(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """One row per (group, flaw) from ratings pasted as CSV.

    Args:
        rows: CSV with item, edit (may be left out), group, flaw, rater, rating (-1, 0, 1 or empty).

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    item, group, flaw, rater = (rows[name].astype(str).tolist() for name in ("item", "group", "flaw", "rater"))
    edit = rows["edit"].astype(str).tolist() if "edit" in rows else None
    result = as_json(open_ended_flaws)(item, group, flaw, rater, rows["rating"].tolist(), edit=edit)
    records = [{"group": g, "flaw": f} | row for g, flaws in result["flaws"].items() for f, row in flaws.items()]
    alphas = ", ".join(f"{flaw}: {row.get('krippendorff')}" for flaw, row in result["agreement"].items())
    return pd.DataFrame(records), f"Krippendorff's alpha: {alphas}"


ABOUT = "Above 0: more present after the edit."
page = partial(demo_page, "open_ended_flaws", ABOUT, table, EXAMPLE, "Numbers")


if __name__ == "__main__":
    page().launch()
