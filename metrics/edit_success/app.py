"""Demo of `edit_success`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from seesaw_cf.effects import SuccessColumns, edit_success
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
case_id,test,pre_new,pre_true,post_new,post_true,tokens_right,tokens_kept,n_tokens,generated
1,rewrite,-5,-1,-0.1,-3,2,0,2,1
1,paraphrase,-5,-1,-0.5,-2,1,0,2,0
1,neighborhood,-5,-1,-6,-0.5,1,2,2,0
2,rewrite,-4,-2,-0.3,-2,1,0,1,1
2,paraphrase,-4,-2,-3,-2,0,1,1,0
2,neighborhood,-4,-2,-2,-1,1,1,1,1
"""


@explained()
def table(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """One row per number from rows pasted as CSV.

    Args:
        rows: CSV with the columns of the metric; empty = not measured.

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    columns: dict[str, Any] = {str(name): rows[name].tolist() for name in rows}
    result = as_json(edit_success)(SuccessColumns(**columns))
    protocols = {name: value for name, value in result.items() if isinstance(value, dict)}
    records = [
        {"protocol": protocol, "number": name} | row
        for protocol, numbers in protocols.items()
        for name, row in numbers.items()
        if isinstance(row, dict)
    ]
    return pd.DataFrame(records), f"{result['n_rows']} rows, {result['n_empty']} without any measurement."


ABOUT = "The same words mean different things: read the protocol beside the number."
page = partial(demo_page, "edit_success", ABOUT, table, EXAMPLE, "Numbers")


if __name__ == "__main__":
    page().launch()
