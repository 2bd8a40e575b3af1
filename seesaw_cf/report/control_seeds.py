"""A control that draws, made with several seeds: its effect on a question is the mean over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from seesaw_cf.base.types import Estimate
from seesaw_cf.editors.control_names import first_seed
from seesaw_cf.effects.success import Success


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
    first = rows.loc[drawn, named.columns]
    means = pd.concat([first, named]).groupby(index, sort=False)[list(columns)].mean()
    out = rows.astype(dict.fromkeys(columns, float))
    out.loc[drawn, list(columns)] = means.reindex(pd.MultiIndex.from_frame(rows.loc[drawn, index])).to_numpy()
    return out


def fold_success(success_of: Mapping[str, Success]) -> dict[str, Success]:
    """Return editor -> its numbers, of a control the means over its seeds."""
    folded: dict[str, list[Success]] = {}
    for name, success in success_of.items():
        folded.setdefault(first_seed(name), []).append(success)
    return {name: _mean_success(seeds) for name, seeds in folded.items()}


def _mean_success(seeds: Sequence[Success]) -> Success:
    first = seeds[0]
    if len(seeds) == 1:
        return first
    numbers = {
        protocol: {name: _mean([seed.numbers[protocol][name] for seed in seeds]) for name in numbers}
        for protocol, numbers in first.numbers.items()
    }
    return replace(first, numbers=numbers)


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    ends = {name: [getattr(estimate, name) for estimate in estimates] for name in ("value", "low", "high")}
    return replace(estimates[0], **{name: sum(values) / len(values) for name, values in ends.items()})
