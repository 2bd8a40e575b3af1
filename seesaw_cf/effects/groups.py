"""D per demographic group: case means, pooled means, the papers' t-test and a clustered bootstrap interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.stats import cluster_weights, interval, ratio_draws, t_test

__all__ = ["ALL", "AXES", "UNKNOWN", "check_axes", "group_effects", "members", "summarise"]

AXES = ("gender", "race", "region")
# The group of everybody, and the group of people without a tag on an axis.
ALL, UNKNOWN = "all", "unknown"
_HOLDS = ("target_new", "target_true", "")


def check_axes(axes: Iterable[str]) -> None:
    """Refuses an axis that the score table does not have.

    Raises:
        UnknownNameError: Not "gender", "race" or "region"; near names are suggested.
    """
    for axis in axes:
        if axis not in AXES:
            raise unknown_name("axis", axis, AXES)


def members(tags: Sequence[Sequence[str] | None]) -> dict[str, NDArray[np.intp]]:
    """The row numbers of each group, in alphabetical order, `UNKNOWN` last.

    A person with several tags counts in each of those groups, once; a person without any counts as unknown.
    """
    lists = pd.Series(list(tags), dtype=object).explode().dropna()
    lists = lists[lists != ""]
    pairs = pd.DataFrame({"row": lists.index, "group": lists.to_numpy()}).drop_duplicates()
    groups = {str(g): np.sort(rows.to_numpy(np.intp)) for g, rows in pairs.groupby("group", sort=True)["row"]}
    untagged = np.setdiff1d(np.arange(len(tags)), pairs["row"].to_numpy(np.intp))
    return groups | ({UNKNOWN: untagged} if untagged.size else {})


def summarise(
    prompts: pd.DataFrame, groups: dict[str, NDArray[np.intp]], *, draws: int = 2000, seed: int = 0
) -> list[dict[str, Any]]:
    """Estimates of D for groups of rows that share one set of cases.

    Args:
        prompts: Columns case_id, person, D_pre, D_post, D and status, one row per prompt.
        groups: Row positions of every group.
        draws: Bootstrap samples of whole cases; 0 leaves the intervals out.
        seed: Seed of the bootstrap; the same samples of cases serve every group.

    Returns:
        One dictionary per group; see `group_effects` for the fields.
    """
    order = np.lexsort((prompts["D"].to_numpy(), prompts["case_id"].to_numpy()))  # sums do not depend on row order
    case, case_ids = pd.factorize(prompts["case_id"].iloc[order], sort=True)
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    columns = {name: prompts[name].to_numpy()[order] for name in ("D_pre", "D_post", "D", "person")}
    usable = (prompts["status"] == "ok").to_numpy()[order]
    means = np.zeros((len(case_ids), len(groups)))
    present = np.zeros_like(means)
    rows = []
    for column, (group, positions) in enumerate(groups.items()):
        every = np.sort(rank[positions])
        kept = every[usable[every]]
        n_per_case = np.bincount(case[kept], minlength=len(case_ids))
        has = n_per_case > 0
        case_means = {
            name: np.bincount(case[kept], columns[name][kept], len(case_ids))[has] / n_per_case[has]
            for name in ("D_pre", "D_post", "D")
        }
        means[has, column], present[has, column] = case_means["D"], 1.0
        rows.append({"group": group} | _describe(columns, kept, case_means) | {"n_unscored": every.size - kept.size})
    if draws:
        samples = ratio_draws(cluster_weights(len(case_ids), draws, seed), means, present)
        for column, row in enumerate(rows):
            if row["n_cases"] > 1:
                row["low"], row["high"], row["stderr"] = interval(samples[:, column])
    return rows


def _describe(
    columns: dict[str, NDArray[Any]], kept: NDArray[np.intp], case_means: dict[str, NDArray[np.float64]]
) -> dict[str, Any]:
    nan = float("nan")
    t, p, note = t_test(case_means["D"])
    row: dict[str, Any] = {name: float(v.mean()) if v.size else nan for name, v in case_means.items()}
    row |= {"low": nan, "high": nan, "stderr": nan, "t": t, "p": p}
    row |= {f"pooled_{name}": float(columns[name][kept].mean()) if kept.size else nan for name in case_means}
    row["n_prompts"] = int(kept.size)
    row["n_subjects"] = int(pd.Series(columns["person"][kept]).nunique())
    row["n_cases"] = int(case_means["D"].size)
    return row | {"note": note}


def group_effects(
    prompts: pd.DataFrame,
    *,
    axes: Sequence[str] = AXES,
    holds: str = "target_new",
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """D per (editor, edited relation, axis, group), with an overall row per editor and relation.

    Args:
        prompts: The result of `seesaw_cf.effects.prompt_effects`.
        axes: Which axes, of "gender", "race" and "region".
        holds: Whose prompts: people who hold "target_new" (the papers' D), people who hold "target_true", or "" for
            people of whom it is unknown.
        draws: Bootstrap samples of whole cases.
        seed: Seed of the bootstrap.

    Returns:
        One row per editor, relation, axis and group (axis and group `ALL` for everybody, group `UNKNOWN` for people
        without a tag): D_pre, D_post and D as means of case means (what the papers print), `low`, `high`, `stderr`
        (95 % percentile bootstrap over cases), `t` and `p` (one-sample t-test over cases, as in the papers),
        pooled_D_pre, pooled_D_post, pooled_D (unweighted over prompts), n_prompts, n_subjects, n_cases, n_unscored
        (prompts left out because they could not be scored) and `note` (why there is no test). The unit is the form of
        score that `prompts` was made with.

    Raises:
        UnknownNameError: An axis is unknown.
        RecordError: There are no prompts about people who hold `holds`.

    Source: SEESAW-CF section 4.1 and Tables 10-15, D_{d,g}; averaging order as in the authors' evaluation.
    """
    check_axes(axes)
    chosen = prompts[prompts["holds"].fillna("") == holds]
    if chosen.empty:
        there = prompts["holds"].fillna("").value_counts().to_dict()
        raise RecordError(f"no prompts about people with holds={holds!r}; prompts per value: {there}. Known: {_HOLDS}.")
    found = []
    for (editor, relation), rows in chosen.groupby(["editor", "edit_relation"], sort=True):
        for axis in (ALL, *axes):
            groups = {ALL: np.arange(len(rows))} if axis == ALL else members(rows[axis].tolist())
            key = {"editor": editor, "relation": relation, "axis": axis}
            found += [key | row for row in summarise(rows, groups, draws=draws, seed=seed)]
    return pd.DataFrame(found)
