"""How many edits and raters it takes to find an effect, from how much raters of a finished study differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from seesaw_cf.errors import RecordError
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats import Design, plan, variance_components

PER_EDIT = (1, 2, 3, 5)
"""Raters per edit that are planned for."""


def plan_section(
    rated: pd.DataFrame,
    by: str,
    effects: Sequence[float],
    per_rater: int | None = None,
    name: str = "plan",
    title: str = "How many edits and raters",
) -> Table:
    """`rater_plan` as a section of a report."""
    about = (
        "The smallest study with raters like these that finds a mean of `effect` (two-sided, level 0.05, power 0.8), "
        "from how far ratings here differ between edits, between raters, and otherwise (`sd_...`), when `per_edit` "
        "raters rate each edit and a rater takes `per_rater` edits. What a rater says about an edit is averaged, over "
        "as many texts and statements as here, and counts once in `ratings`. An interval for raters like these takes "
        "five."
    )
    return table_of(name, title, about, rater_plan(rated, by, effects, per_rater), digits=3)


def rater_plan(rated: pd.DataFrame, by: str, effects: Sequence[float], per_rater: int | None = None) -> pd.DataFrame:
    """The smallest study that finds an effect with raters like those who rated.

    Edits and raters are both taken for samples: the variance of a mean is that between edits over their number, that
    between raters over their number, and the rest over the number of ratings. Ratings by one rater of several texts or
    statements of an edit are averaged first: they share what the edit did, so they are no independent items.

    Args:
        rated: group (the edit), rater, value and the column `by`; no value is missing.
        by: What is planned for, such as the flaw.
        effects: Means to tell from 0 (two-sided, level 0.05, power 0.8).
        per_rater: How many edits one rater takes; None = the mean of those who rated.

    Returns:
        `by`, effect, raters per edit, edits per rater, edits, raters, ratings (an edit by a rater is one), detectable,
        sd_edit, sd_rater, sd_rest, n ratings and n_cases edits behind them, note.
    """
    rows: list[Mapping[str, object]] = []
    for name, part in rated.groupby(by, sort=False, observed=True):
        means = part.groupby(["group", "rater"], sort=False, observed=True)["value"].mean().reset_index()
        edit, rater = (pd.factorize(means[column])[0] for column in ("group", "rater"))
        workload = per_rater or max(1, round(len(means) / max(1, means["rater"].nunique())))
        counts = {"n": len(part), "n_cases": means["group"].nunique()}
        try:
            spread = variance_components(means["value"].to_numpy(float), edit, rater)
        except RecordError:
            rows.append({by: name} | counts | {"note": "one rater or one edit: how raters differ is not known"})
            continue
        sds = {"sd_edit": spread.edit, "sd_rater": spread.person, "sd_rest": spread.prompt} | counts
        for effect in effects:
            for each in PER_EDIT:
                design = plan(effect, spread, Design(each, workload))
                size = {"edits": design.edits, "raters": design.people, "ratings": design.prompts}
                note = "" if design.reachable else "not reached by any number of edits"
                about = {by: name, "effect": effect, "per_edit": each, "per_rater": workload}
                rows.append(about | size | {"detectable": design.detectable} | sds | {"note": note})
    return pd.DataFrame(rows)
