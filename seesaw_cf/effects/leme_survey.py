"""Survey ratings by editing method: mean of case means per item and question type, with intervals clustered by case."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.instruments import ITEMS, SCALE, TYPES
from seesaw_cf.effects.reader import floats, ids, labels, read_columns
from seesaw_cf.stats.simple import case_estimate

_TYPE_OF = {item.name: item.type for item in ITEMS}


def survey_of_columns(
    case_id: Sequence[int],
    method: Sequence[str],
    item: Sequence[str],
    rating: Sequence[float | None],
    reference: str | None = None,
) -> JsonObject:
    """Return the mean rating of every method on every item.

    Args:
        case_id: The edit each rating is about; several samples and raters of one edit share it.
        method: Editing method, such as "memit" or "none".
        item: Name of one of the nine items.
        rating: 1 to 7; None or NaN when missing.
        reference: Baseline of the other methods, within the same edits.

    Returns:
        `methods`: per method the mean ratings of items and question types, with `reference` also the differences from
        it; `n_ratings` that were given, which alone count, and `n_missing`.

    Raises:
        RecordError: Columns of different lengths, or ratings outside 1 to 7.
        UnknownNameError: An item that is not in the survey, or a reference that is not among the methods.

    Source: LEME, Tables 1 and 10-19 (means over samples).
    Deviates: each edit has the same weight for any number of ratings, and intervals are clustered by edit (the
        paper gives standard deviations over samples).
    """
    columns = {"case_id": case_id, "method": method, "item": item, "rating": rating}
    frame = read_columns({"case_id": ids, "method": labels, "item": labels, "rating": floats}, columns)
    _check(frame, reference)
    frame["type"] = frame["item"].map(_TYPE_OF)
    methods: JsonObject = {}
    for name, rows in frame.groupby("method", sort=True):
        versus = frame[frame["method"] == reference] if reference is not None and name != reference else None
        items, types = _cells(rows, versus, "item", [*_TYPE_OF]), _cells(rows, versus, "type", TYPES)
        methods[str(name)] = {"items": items, "types": types}
    missing = int(frame["rating"].isna().sum())
    return {"methods": methods, "n_ratings": len(frame) - missing, "n_missing": missing}


def _check(frame: pd.DataFrame, reference: str | None) -> None:
    for name in dict.fromkeys(frame["item"]):
        one_of("survey item", name, _TYPE_OF)
    outside = frame[frame["rating"].notna() & ~frame["rating"].between(1, 7)]
    if len(outside):
        first = outside.iloc[0]
        raise RecordError(
            f"{len(outside)} ratings outside 1 to 7, first: {first['rating']:g} for {first['item']!r} of case "
            f"{first['case_id']}. Leave them empty (None) so that they are counted as missing, or recode them."
        )
    if reference is not None:
        one_of("method", reference, sorted(set(frame["method"])))


def _cells(rows: pd.DataFrame, versus: pd.DataFrame | None, by: str, names: Sequence[str]) -> dict[str, JsonObject]:
    """Return mean ratings by name, and what they are more than those of the reference."""
    out: dict[str, JsonObject] = {}
    for name in names:
        part = rows[rows[by] == name]
        if part.empty:
            continue
        mean = _mean(part)
        out[name] = {"n": mean.n, "n_cases": mean.n_clusters, "n_missing": int(part["rating"].isna().sum())}
        out[name] |= {"mean": mean.value} | mean.columns("low", "high", "stderr", "note")
        if versus is not None:
            out[name]["difference"] = _difference(part, versus[versus[by] == name])
    return out


def _mean(rows: pd.DataFrame) -> Estimate:
    rated = rows[rows["rating"].notna()]
    if rated.empty:
        return Estimate(float("nan"), note="no ratings")
    return case_estimate(rated["rating"], rated["case_id"], within=(min(SCALE), max(SCALE)))


def _difference(rows: pd.DataFrame, versus: pd.DataFrame) -> JsonObject:
    """Return the mean of the method minus that of the reference, over the edits that both have ratings of."""
    sides = [side[side["rating"].notna()] for side in (rows, versus)]
    common = set(sides[0]["case_id"]) & set(sides[1]["case_id"])
    if not common:
        return {"mean": None, "note": "no edit in common", "n_cases": 0}
    joined = pd.concat([side[side["case_id"].isin(common)] for side in sides], keys=[0, 1], names=["side"])
    side = joined.index.get_level_values("side").to_numpy()
    found = case_estimate(joined["rating"], joined["case_id"], side == 0, side == 1)
    columns = found.columns("low", "high", "stderr", "note", "p")
    return {"n_cases": found.n_clusters, "mean": found.value} | columns
