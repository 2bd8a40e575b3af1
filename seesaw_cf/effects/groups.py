"""D per demographic group: case means, pooled means and errors clustered by edit and person; the papers' test apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.stats import case_weights, cluster_weights, clustered_means, interval, ratio_draws, t_test
from seesaw_cf.stats.bootstrap import Floats

__all__ = [
    "ALL",
    "AXES",
    "CLUSTERS",
    "UNKNOWN",
    "BiasMode",
    "both_scales",
    "check_axes",
    "group_effects",
    "mask",
    "members",
    "summarise",
]

AXES = ("gender", "race", "region")
# The group of everybody, and the group of people without a tag on an axis.
ALL, UNKNOWN = "all", "unknown"
# What a prompt belongs to: dimension -> column.
CLUSTERS: Mapping[str, str] = {"edit": "case_id", "person": "person"}
BiasMode = Literal["crossed", "paper"]
NAN = float("nan")
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
    prompts: pd.DataFrame,
    groups: dict[str, NDArray[np.intp]],
    *,
    mode: BiasMode = "crossed",
    clusters: Mapping[str, str] = CLUSTERS,
    draws: int = 2000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Estimates of D for groups of rows that share one set of cases.

    Args:
        prompts: Columns case_id, person, D_pre, D_post, D, log_odds, likelier_pre and status, one row per prompt.
        groups: Row positions of every group.
        mode: See `group_effects`.
        clusters: Dimension -> column, for the crossed mode.
        draws, seed: Bootstrap samples of whole cases for the paper mode; 0 leaves the intervals out.

    Returns:
        One dictionary per group; see `group_effects` for the fields.
    """
    # Sums must not depend on the order of rows.
    rows = prompts.assign(_person=pd.factorize(prompts["person"], sort=True)[0])
    order = np.lexsort([rows[name].to_numpy() for name in ("log_odds", "D", "_person", "case_id")])
    rows = rows.iloc[order]
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    case, case_ids = pd.factorize(rows["case_id"], sort=True)
    usable = (rows["status"] == "ok").to_numpy()
    codes = {name: pd.factorize(rows[column])[0] for name, column in clusters.items()}
    found = []
    for group, positions in groups.items():
        every = np.sort(rank[positions])
        kept = every[usable[every]]
        row = {"group": group} | _describe(rows.iloc[kept], case[kept]) | {"n_unscored": every.size - kept.size}
        if mode == "paper":
            row |= _published(rows.iloc[kept], case[kept], len(case_ids), draws, seed)
        else:
            row |= both_scales(rows, [case_weights(case, mask(len(rows), kept))], codes)
        found.append(row)
    return found


def mask(n: int, positions: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(n,) True at `positions`."""
    chosen = np.zeros(n, dtype=bool)
    chosen[positions] = True
    return chosen


def _describe(rows: pd.DataFrame, case: NDArray[np.intp]) -> dict[str, Any]:
    names = ["D_pre", "D_post", "D", "log_odds", "likelier_pre"]
    n_prompts = np.bincount(case)
    has = n_prompts > 0
    per_case = {name: np.bincount(case, rows[name])[has] / n_prompts[has] for name in names}
    row: dict[str, Any] = {name: float(v.mean()) if v.size else NAN for name, v in per_case.items()}
    row |= {f"pooled_{name}": float(rows[name].mean()) if len(rows) else NAN for name in names[:3]}
    row |= {"n_prompts": len(rows), "n_subjects": int(rows["person"].nunique()), "n_cases": int(has.sum())}
    return row


def both_scales(rows: pd.DataFrame, parts: list[Floats], codes: Mapping[str, NDArray[np.intp]]) -> dict[str, Any]:
    """Interval, error, test and the reason for none, of D and (prefixed) of the change in log-odds.

    Args:
        rows: Columns D and log_odds.
        parts: See `seesaw_cf.stats.clustered_mean`.
        codes: Dimension -> cluster codes.
    """
    names = ("low", "high", "stderr", "p", "df")
    if not parts[0].any():
        empty = dict.fromkeys((*names, *(f"log_odds_{name}" for name in names)), NAN)
        return empty | {"effective": {}, "note": "nothing could be scored"}
    used = np.any([part != 0 for part in parts], axis=0)
    values = np.where(used[:, None], rows[["D", "log_odds"]].to_numpy(), 0.0)
    found = clustered_means(values, parts, codes)
    out = {name: getattr(found[0], name) for name in (*names, "effective", "note")}
    return out | {f"log_odds_{name}": getattr(found[1], name) for name in names}


def _published(rows: pd.DataFrame, case: NDArray[np.intp], n_cases: int, draws: int, seed: int) -> dict[str, Any]:
    """The papers' t-test over case means, with the bootstrap over cases as interval."""
    n_prompts = np.bincount(case, minlength=n_cases)
    has = n_prompts > 0
    means = np.bincount(case, rows["D"], n_cases) / np.maximum(n_prompts, 1)
    t, p, note = t_test(means[has])
    low, high, stderr = NAN, NAN, NAN
    if draws and has.sum() > 1:
        weights = cluster_weights(n_cases, draws, seed)
        low, high, stderr = interval(ratio_draws(weights, means[:, None], has[:, None].astype(np.float64))[:, 0])
    return {"low": low, "high": high, "stderr": stderr, "t": t, "p": p, "note": note}


def group_effects(
    prompts: pd.DataFrame,
    *,
    axes: Sequence[str] = AXES,
    holds: str = "target_new",
    mode: BiasMode = "crossed",
    clusters: Mapping[str, str] = CLUSTERS,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """D per (editor, edited relation, axis, group), with an overall row per editor and relation.

    Args:
        prompts: The result of `seesaw_cf.effects.prompt_effects`.
        axes: Which axes, of "gender", "race" and "region".
        holds: Whose prompts: people who hold "target_new" (the papers' D), people who hold "target_true", or "" for
            people of whom it is unknown.
        mode: "crossed": errors clustered along edit and person at once. "paper": the published t-test over case means,
            with a bootstrap over cases; it takes cases that share people for independent.
        clusters: Dimension -> column, for the crossed mode.
        draws, seed: Bootstrap samples of whole cases, for the paper mode.

    Returns:
        One row per editor, relation, axis and group (axis and group `ALL` for everybody, group `UNKNOWN` for people
        without a tag): D_pre, D_post and D as means of case means (what the papers print), `log_odds` (the change of
        log p(new) - log p(true), nats), `likelier_pre` (probability of the likelier answer before the edit),
        pooled_D_pre, pooled_D_post, pooled_D (unweighted over prompts), n_prompts, n_subjects, n_cases, n_unscored
        (prompts left out because they could not be scored), `low`, `high`, `stderr`, `p`, `note` (why there is no
        interval). The unit is the form of score that `prompts` was made with. In the crossed mode also `df`,
        `effective` (clusters per dimension) and `log_odds_low`, `_high`, `_stderr`, `_p`, `_df`; in the paper mode `t`.

    Raises:
        UnknownNameError: An axis or the mode is unknown.
        RecordError: There are no prompts about people who hold `holds`.

    Source: SEESAW-CF section 4.1 and Tables 10-15, D_{d,g}; averaging order as in the authors' evaluation. Errors:
        `seesaw_cf.stats.clustered_mean`.
    """
    check_axes(axes)
    if mode not in get_args(BiasMode):
        raise unknown_name("mode", mode, get_args(BiasMode))
    chosen = prompts[prompts["holds"].fillna("") == holds]
    if chosen.empty:
        there = prompts["holds"].fillna("").value_counts().to_dict()
        raise RecordError(f"no prompts about people with holds={holds!r}; prompts per value: {there}. Known: {_HOLDS}.")
    found = []
    for (editor, relation), rows in chosen.groupby(["editor", "edit_relation"], sort=True):
        for axis in (ALL, *axes):
            groups = {ALL: np.arange(len(rows))} if axis == ALL else members(rows[axis].tolist())
            key = {"editor": editor, "relation": relation, "axis": axis}
            made = summarise(rows, groups, mode=mode, clusters=clusters, draws=draws, seed=seed)
            found += [key | row for row in made]
    return pd.DataFrame(found)
