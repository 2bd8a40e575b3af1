"""Which cases of a run are about one edit: another case about the same edit is no second trial of it."""

from __future__ import annotations

import pandas as pd

_SAME = ["editor", "relation_id", "subject", "target_true", "target_new", "delta_norm", "new_pre", "true_pre"]


def once_each(edits: pd.DataFrame) -> pd.DataFrame:
    """The first row of each edit.

    Args:
        edits: Rows of `seesaw_cf.run.edit_table.EDITS`, of a run that makes one edit at a time.
    """
    return edits.drop_duplicates(_SAME)


def edit_numbers(edits: pd.DataFrame) -> dict[tuple[str, int], int]:
    """(editor, case) -> the first case about the same edit, which stands for all of them.

    Args:
        edits: As `once_each`.
    """
    first = edits.groupby(_SAME, dropna=False, sort=False)["case_id"].transform("first")
    return dict(zip(zip(edits["editor"], edits["case_id"]), first))
