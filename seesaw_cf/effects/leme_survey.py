"""Survey ratings by editing method: mean of case means per item and question type, with intervals clustered by case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.effects.columns import check_lengths
from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.longform.survey_items import ITEMS, TYPES
from seesaw_cf.stats import case_weights, clustered_mean
from seesaw_cf.stats.plain import plain

__all__ = ["survey_of_columns"]

_TYPE_OF = {item.name: item.type for item in ITEMS}


def survey_of_columns(
    case_id: Sequence[int],
    method: Sequence[str],
    item: Sequence[str],
    rating: Sequence[float | None],
    reference: str | None = None,
) -> dict[str, Any]:
    """Mean rating of every method on every item.

    Args:
        case_id: The edit each rating is about; several samples and raters of one edit share it.
        method: Editing method, such as "memit" or "none".
        item: Name of one of the nine items.
        rating: 1 to 7; None or NaN when there is none.
        reference: Method that the others are compared with, within the same edits.

    Returns:
        `methods[name]["items"][item]` and `["types"][type]`, each with mean (of case means), low, high, stderr, n,
        n_cases, n_missing, note, and with `reference` also `difference` (method minus reference over the edits that
        both have); n_ratings, n_missing. Missing ratings are left out and counted.

    Raises:
        RecordError: Columns of different lengths, or ratings outside 1 to 7.
        UnknownNameError: An item that is not in the survey, or a reference that is not among the methods.

    Source: LEME, Tables 1 and 10-19 (means over samples).
    Deviates: edits weigh alike whatever their number of ratings, and intervals know which ratings share an edit (the
        paper gives standard deviations over samples).
    """
    given = {"case_id": case_id, "method": method, "item": item, "rating": rating}
    check_lengths(given)
    frame = pd.DataFrame({name: list(column) for name, column in given.items()})
    frame["rating"] = frame["rating"].astype(np.float64)
    _check(frame, reference)
    frame["type"] = frame["item"].map(_TYPE_OF)
    methods = {}
    for name, rows in frame.groupby("method", sort=True):
        versus = frame[frame["method"] == reference] if reference is not None and name != reference else None
        methods[name] = {
            "items": _cells(rows, versus, "item", [one.name for one in ITEMS]),
            "types": _cells(rows, versus, "type", TYPES),
        }
    missing = int(frame["rating"].isna().sum())
    return dict(plain({"methods": methods, "n_ratings": len(frame) - missing, "n_missing": missing}))


def _check(frame: pd.DataFrame, reference: str | None) -> None:
    for name in dict.fromkeys(frame["item"]):
        if name not in _TYPE_OF:
            raise unknown_name("survey item", name, _TYPE_OF)
    outside = frame[frame["rating"].notna() & ~frame["rating"].between(1, 7)]
    if len(outside):
        first = outside.iloc[0]
        raise RecordError(
            f"{len(outside)} ratings outside 1 to 7, first: {first['rating']:g} for {first['item']!r} of case "
            f"{first['case_id']}. Leave them empty (None) so that they are counted as missing, or recode them."
        )
    if reference is not None and reference not in set(frame["method"]):
        raise unknown_name("method", reference, sorted(set(frame["method"])))


def _cells(rows: pd.DataFrame, versus: pd.DataFrame | None, by: str, names: Sequence[str]) -> dict[str, Any]:
    cells = {}
    for name in names:
        part = rows[rows[by] == name]
        if not len(part):
            continue
        cells[name] = _cell(part)
        if versus is not None:
            cells[name]["difference"] = _difference(part, versus[versus[by] == name])
    return cells


def _cell(rows: pd.DataFrame) -> dict[str, Any]:
    rated = rows[rows["rating"].notna()]
    out = {"n": len(rated), "n_cases": rated["case_id"].nunique(), "n_missing": len(rows) - len(rated)}
    if rated.empty:
        return out | {"mean": None, "low": None, "high": None, "stderr": None, "note": "no ratings"}
    code = pd.factorize(rated["case_id"])[0]
    return out | _inference(rated, [case_weights(code, np.ones(len(rated), bool))], code)


def _difference(rows: pd.DataFrame, versus: pd.DataFrame) -> dict[str, Any]:
    """Method minus reference over the edits that both have ratings of."""
    sides = [side[side["rating"].notna()] for side in (rows, versus)]
    common = set(sides[0]["case_id"]) & set(sides[1]["case_id"])
    if not common:
        return {"mean": None, "note": "no edit in common", "n_cases": 0}
    both = pd.concat([side[side["case_id"].isin(common)] for side in sides], keys=[0, 1], names=["side"])
    code, side = pd.factorize(both["case_id"])[0], both.index.get_level_values("side").to_numpy()
    weights = [case_weights(code, side == which) for which in (0, 1)]
    return {"n_cases": len(common), **_inference(both, weights, code, test=True)}


def _inference(
    rows: pd.DataFrame, weights: list[NDArray[np.float64]], code: NDArray[np.intp], *, test: bool = False
) -> dict[str, Any]:
    found = clustered_mean(rows["rating"].to_numpy(np.float64), weights, {"case": code})
    out = {"mean": found.value, "low": found.low, "high": found.high, "stderr": found.stderr, "note": found.note}
    return out | ({"p": found.p} if test else {})
