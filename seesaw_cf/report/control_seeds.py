"""A control that draws, made with several seeds: its effect on a question is the mean over them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from seesaw_cf.editors.control_names import first_seed


def mean_over_seeds(tables: Sequence[pd.DataFrame], keys: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the first table with the mean over all seeds where an editor is a control of several.

    Args:
        tables: One row per editor and question, of each control those of its first seed; then, where there are any,
            rows of its other seeds, such as "random(memit, 2)".
        keys: Columns that name a question.
        columns: Those that are averaged; NaN is left out, every other column stays that of the first seed.
    """
    rows, *others = tables
    if not others:
        return rows
    further, index = pd.concat(others), ["editor", *keys]
    named = further.assign(editor=further["editor"].map(first_seed))[[*index, *columns]]
    drawn = rows["editor"].isin(named["editor"].unique())
    means = pd.concat([rows.loc[drawn, named.columns], named]).groupby(index, sort=False)[list(columns)].mean()
    out = rows.copy()
    out.loc[drawn, list(columns)] = means.reindex(pd.MultiIndex.from_frame(rows.loc[drawn, index])).to_numpy()
    return out
