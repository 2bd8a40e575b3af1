"""Demo of `leme_auto`: paste passages as CSV, read the measures."""

from __future__ import annotations

from functools import partial

import pandas as pd

from seesaw_cf.effects.leme_auto import STANDS_FOR, PassageColumns, leme_auto
from seesaw_cf.metrics.demo import demo_page, explained
from seesaw_cf.stats.plain import as_json

EXAMPLE = """\
case_id,subject,related,subject_passage,related_passage,new_fact,subject_facts,related_facts
1,Ann,Bob,Ann is a painter. She lives in Rome.,Bob married Ann.,Ann lives in Rome,Ann is a painter,Bob sings|Bob is 9
2,Cleo,Dan,Cleo was born in Oslo.,Dan knows Cleo. Dan sings.,Cleo was born in Bonn,Cleo is a chemist,Dan sings
"""
TEXTS = ("subject", "related", "subject_passage", "related_passage", "new_fact")


@explained()
def table(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """One row per measure from passages pasted as CSV.

    Args:
        rows: CSV with the columns of the metric; several facts are joined by "|".

    Returns:
        The table, and a message: what was counted, or what is wrong with the text.
    """
    rows = rows.fillna("")
    facts = ([cell.split("|") for cell in rows[name]] for name in ("subject_facts", "related_facts"))
    result = as_json(leme_auto)(
        rows["case_id"].tolist(), PassageColumns(*(rows[name].tolist() for name in TEXTS), *facts)
    )
    records = [{"measure": name, "stands for": STANDS_FOR[name]} | row for name, row in result["means"].items()]
    return pd.DataFrame(records), f"{len(rows)} rows."


ABOUT = "Simple measures of passages. Correlate them with people's ratings before use."
page = partial(demo_page, "leme_auto", ABOUT, table, EXAMPLE, "Measures")


if __name__ == "__main__":
    page().launch()
