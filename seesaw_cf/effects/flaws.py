"""Ratings of flaws in pairs of texts: are they more present after the edit?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.effects.columns import check_lengths
from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.stats import clustered_mean, t_test
from seesaw_cf.stats.agreement import fleiss_kappa, krippendorff_alpha
from seesaw_cf.stats.plain import plain

__all__ = ["SCALE", "open_ended_flaws"]

# 1: more present after the edit, -1: more present before, 0: equal.
SCALE = (-1.0, 0.0, 1.0)


def open_ended_flaws(
    item: Sequence[str],
    group: Sequence[str],
    flaw: Sequence[str],
    rater: Sequence[str],
    rating: Sequence[float | None],
    *,
    judge: str | None = None,
) -> dict[str, Any]:
    """Mean rating per (group, flaw) with tests, agreement of the raters, and accuracy of an automatic judge.

    Args:
        item: The pair of texts.
        group: What the pair is counted under, such as the edited property.
        flaw: The flaw rated.
        rater: Who rated.
        rating: -1 (more before), 0 (equal), 1 (more after), None = not rated.
        judge: Name of an automatic rater, compared with the others and left out of the means.

    Returns:
        `flaws[group][flaw]`: `mean` over all ratings (the papers' value), `low`, `high`, `stderr`, `p` with ratings
        of one item as one cluster, `p_paper` (pooled one-sample t-test), `n_ratings`, `n_items`, `n_missing`;
        `agreement[flaw]`: `krippendorff` (nominal), `fleiss`, `all_equal`; and with a judge `judge[flaw]`: accuracy by
        the published rule ("any_rater"), against the humans' median ("median"), each beside `constant`, what answering
        0 to everything scores.

    Raises:
        RecordError: Unequal lengths, a label outside the scale, or a rater who rated an item's flaw twice.
        UnknownNameError: `judge` is no rater.

    Source: SEESAW-CF Table 6 (means and t-test), Table 20 (any-rater accuracy).
    Deviates: intervals cluster by item; missing ratings are missing, not "equal" and not -1.
    """
    given = {"item": item, "group": group, "flaw": flaw, "rater": rater, "rating": rating}
    check_lengths(given)
    frame = pd.DataFrame({name: list(column) for name, column in given.items()})
    frame["rating"] = frame["rating"].astype(np.float64)
    _check(frame, judge)
    humans = frame[frame["rater"] != judge]
    result: dict[str, Any] = {"flaws": {}, "agreement": {}}
    for (name, which), rows in humans.groupby(["group", "flaw"], sort=True):
        result["flaws"].setdefault(name, {})[which] = _mean(rows)
    for which, rows in frame.groupby("flaw", sort=True):
        table = rows[rows["rater"] != judge].pivot(index=["group", "item"], columns="rater", values="rating")
        result["agreement"][which] = _agreement(table)
        if judge is not None:
            answers = rows[rows["rater"] == judge].set_index(["group", "item"])["rating"]
            result.setdefault("judge", {})[which] = _judge(table, answers)
    return dict(plain(result))


def _check(frame: pd.DataFrame, judge: str | None) -> None:
    outside = frame[frame["rating"].notna() & ~frame["rating"].isin(SCALE)]
    if len(outside):
        first = outside.iloc[0]
        raise RecordError(
            f"{len(outside)} ratings outside the scale {SCALE}, first: {first['rating']:g} by {first['rater']!r} on "
            f"item {first['item']!r}. Recode them, e.g. 2 * (x - 1.5) for 1 = before, 1.5 = equal, 2 = after."
        )
    twice = frame.duplicated(["item", "group", "flaw", "rater"])
    if twice.any():
        first = frame[twice].iloc[0]
        raise RecordError(
            f"{int(twice.sum())} ratings are repeated, first: {first['rater']!r} on {first['flaw']!r} of item "
            f"{first['item']!r}. Keep one of them."
        )
    if judge is not None and judge not in set(frame["rater"]):
        raise unknown_name("rater", judge, sorted(set(frame["rater"])))


def _mean(rows: pd.DataFrame) -> dict[str, Any]:
    rated = rows[rows["rating"].notna()].sort_values(["item", "rater"], kind="stable")
    out: dict[str, Any] = {"n_ratings": len(rated), "n_items": rated["item"].nunique()}
    out["n_missing"] = len(rows) - len(rated)
    if rated.empty:
        return out | {"mean": None, "note": "no ratings"}
    values = rated["rating"].to_numpy()
    found = clustered_mean(values, [np.full(len(values), 1 / len(values))], {"item": pd.factorize(rated["item"])[0]})
    out |= {"mean": found.value, "low": found.low, "high": found.high, "stderr": found.stderr, "p": found.p}
    return out | {"p_paper": t_test(values)[1], "note": found.note}


def _agreement(table: pd.DataFrame) -> dict[str, Any]:
    values = table.to_numpy(np.float64)
    if values.shape[1] < 2:
        return {"note": "one rater"}
    whole = values[~np.isnan(values).any(axis=1)]
    equal = float((whole == whole[:, :1]).all(axis=1).mean()) if len(whole) else float("nan")
    return {
        "krippendorff": krippendorff_alpha(values),
        "fleiss": fleiss_kappa(values),
        "all_equal": equal,
        "n_items": len(values),
    }


def _judge(table: pd.DataFrame, answers: pd.Series) -> dict[str, Any]:
    rated = table[table.notna().any(axis=1)]
    common = rated.index.intersection(answers.dropna().index)
    humans, given = rated.loc[common].to_numpy(np.float64), answers.loc[common].to_numpy(np.float64)
    out: dict[str, Any] = {"n": len(common), "n_unmatched": len(answers) - len(common)}
    if not len(common):
        return out
    median = np.sign(np.nanmedian(humans, axis=1))
    for name, guess in (("judge", given), ("constant", np.zeros(len(common)))):
        out[name] = {
            "any_rater": float((humans == guess[:, None]).any(axis=1).mean()),
            "median": float((median == guess).mean()),
        }
    return out
