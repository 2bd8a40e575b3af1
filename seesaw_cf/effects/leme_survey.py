"""Survey ratings by editing method: mean of case means per item and question type, with intervals clustered by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.instruments import ITEMS, SCALE, TYPES
from seesaw_cf.effects.reader import floats, ids, labels, read_columns
from seesaw_cf.stats.case_means import case_estimate

_TYPE_OF = {item.name: item.type for item in ITEMS}


@dataclass(frozen=True, slots=True)
class MeanRatings:
    """Ratings of one method on one item or question type.

    Attributes:
        mean: Mean of case means over `n` ratings, clustered by case.
        n_missing: Ratings that were not given.
        difference: This method minus the reference over the edits that both have; None without a reference.
    """

    mean: Estimate
    n_missing: int
    difference: Estimate | None = None

    def row(self) -> JsonObject:
        """Return the columns of a table row."""
        counts = {"n": self.mean.n, "n_cases": self.mean.n_clusters, "n_missing": self.n_missing}
        row = counts | {"mean": self.mean.value} | self.mean.columns("low", "high", "stderr", "note")
        return row if self.difference is None else row | {"difference": _shown(self.difference)}


def _shown(estimate: Estimate) -> JsonObject:
    if not estimate.n:
        return {"mean": estimate.value, "note": estimate.note, "n_cases": 0}
    return {"n_cases": estimate.n_clusters, "mean": estimate.value} | estimate.columns(
        "low", "high", "stderr", "note", "p"
    )


@dataclass(frozen=True, slots=True)
class MethodRatings:
    """Ratings of one editing method.

    Attributes:
        items: Survey item -> its ratings.
        types: Question type -> its ratings.
    """

    items: Mapping[str, MeanRatings]
    types: Mapping[str, MeanRatings]


@dataclass(frozen=True, slots=True)
class Survey:
    """Ratings of editing methods.

    Attributes:
        methods: Method -> its ratings.
        n_ratings: Ratings that were given; they alone count.
        n_missing: Ratings that were not.
    """

    methods: Mapping[str, MethodRatings]
    n_ratings: int
    n_missing: int


def survey_of_columns(
    case_id: Sequence[int],
    method: Sequence[str],
    item: Sequence[str],
    rating: Sequence[float | None],
    reference: str | None = None,
) -> Survey:
    """Return the mean rating of every method on every item.

    Args:
        case_id: The edit each rating is about; several samples and raters of one edit share it.
        method: Editing method, such as "memit" or "none".
        item: Name of one of the nine items.
        rating: 1 to 7; None or NaN when missing.
        reference: Baseline of the other methods, within the same edits.

    Returns:
        Per method the mean ratings of items and question types, with `reference` also the differences from it.

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
    methods = {}
    for name, rows in frame.groupby("method", sort=True):
        versus = frame[frame["method"] == reference] if reference is not None and name != reference else None
        methods[str(name)] = MethodRatings(
            items=_cells(rows, versus, "item", [entry.name for entry in ITEMS]),
            types=_cells(rows, versus, "type", TYPES),
        )
    missing = int(frame["rating"].isna().sum())
    return Survey(methods, n_ratings=len(frame) - missing, n_missing=missing)


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


def _cells(rows: pd.DataFrame, versus: pd.DataFrame | None, by: str, names: Sequence[str]) -> dict[str, MeanRatings]:
    parts = {name: rows[rows[by] == name] for name in names}
    return {
        name: MeanRatings(
            _mean(part),
            int(part["rating"].isna().sum()),
            None if versus is None else _difference(part, versus[versus[by] == name]),
        )
        for name, part in parts.items()
        if len(part)
    }


def _mean(rows: pd.DataFrame) -> Estimate:
    rated = rows[rows["rating"].notna()]
    if rated.empty:
        return Estimate(float("nan"), note="no ratings")
    return case_estimate(rated["rating"], rated["case_id"], within=(min(SCALE), max(SCALE)))


def _difference(rows: pd.DataFrame, versus: pd.DataFrame) -> Estimate:
    """Return the mean of the method minus that of the reference, over the edits that both have ratings of."""
    sides = [side[side["rating"].notna()] for side in (rows, versus)]
    common = set(sides[0]["case_id"]) & set(sides[1]["case_id"])
    if not common:
        return Estimate(float("nan"), note="no edit in common")
    joined = pd.concat([side[side["case_id"].isin(common)] for side in sides], keys=[0, 1], names=["side"])
    side = joined.index.get_level_values("side").to_numpy()
    return case_estimate(joined["rating"], joined["case_id"], side == 0, side == 1)
