"""Ratings of flaws in pairs of texts: are they more present after the edit?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.reader import floats, labels, read_columns
from seesaw_cf.stats import clustered_mean, t_test
from seesaw_cf.stats.agreement import fleiss_kappa, krippendorff_alpha
from seesaw_cf.stats.bootstrap import Floats

# 1: more present after the edit, -1: more present before, 0: equal.
NAN = float("nan")
SCALE = (-1.0, 0.0, 1.0)
_KINDS = {"item": labels, "group": labels, "flaw": labels, "rater": labels, "rating": floats}


@dataclass(frozen=True, slots=True)
class FlawMean:
    """Mean rating of one flaw in one group.

    Attributes:
        mean: Over all `n` ratings (the papers' value); interval and p are clustered by edit and rater.
        p_paper: Pooled one-sample t-test, as published.
        n_items: Items with a rating.
        n_missing: Ratings that were not given.
    """

    mean: Estimate
    p_paper: float
    n_items: int
    n_missing: int

    def row(self) -> JsonObject:
        """Return the columns of a table row."""
        out: JsonObject = {"n_ratings": self.mean.n, "n_items": self.n_items, "n_missing": self.n_missing}
        out |= {"mean": self.mean.value}
        if self.mean.n:
            out |= self.mean.columns("low", "high", "stderr", "p") | {"p_paper": self.p_paper}
        return out | {"note": self.mean.note}


def open_ended_flaws(
    item: Sequence[str],
    group: Sequence[str],
    flaw: Sequence[str],
    rater: Sequence[str],
    rating: Sequence[float | None],
    *,
    edit: Sequence[str] | None = None,
    judge: str | None = None,
) -> JsonObject:
    """Return the mean rating per (group, flaw) with tests, the raters' agreement, and an automatic judge's accuracy.

    Args:
        item: The pair of texts.
        group: What the pair is counted under, such as the edited property.
        flaw: The flaw rated.
        rater: Who rated.
        rating: -1 (more before), 0 (equal), 1 (more after), None = not rated.
        edit: The edit of the pair's texts; None = pairs stand for edits, and notes say so.
        judge: Name of an automatic rater, compared with the other raters and left out of the means.

    Returns:
        `flaws`: group -> flaw -> mean rating. `agreement`: flaw -> Krippendorff's nominal alpha, Fleiss' kappa over
        items that all rated, and in how many of these all are equal. `judge`: flaw -> accuracy on the `n` items that
        both rated, of the judge and of answering 0 to everything: "any_rater" (the published rule) and "median"
        (`middle_rating`, without the `n_split`); `n_unmatched` answers have no human rating to compare with.

    Raises:
        RecordError: Unequal lengths, a label outside the scale, a rater who rated an item's flaw twice, or an item
            with several edits.
        UnknownNameError: `judge` is not a rater.

    Source: SEESAW-CF Table 6 (means and t-test), Table 20 (any-rater accuracy).
    Deviates: errors are clustered by edit and rater, with no interval below five of either; missing
        ratings are missing, not "equal" and not -1.
    """
    columns = {"item": item, "group": group, "flaw": flaw, "rater": rater, "rating": rating}
    frame = read_columns(_KINDS | {"edit": labels}, columns | {"edit": item if edit is None else edit})
    _check(frame, judge)
    note = "edits not given: pairs of one edit count as independent" if edit is None else ""
    humans = frame[frame["rater"] != judge]
    flaws: dict[str, dict[str, FlawMean]] = {}
    agreement: dict[str, JsonObject] = {}
    judged: dict[str, JsonObject] = {}
    for (name, which), rows in humans.groupby(["group", "flaw"], sort=True):
        flaws.setdefault(str(name), {})[str(which)] = mean_rating(rows, note=note)
    for which, rows in frame.groupby("flaw", sort=True):
        table = rows[rows["rater"] != judge].pivot(index=["group", "item"], columns="rater", values="rating")
        agreement[str(which)] = _agreement(table)
        if judge is not None:
            answers = rows[rows["rater"] == judge].set_index(["group", "item"])["rating"]
            judged[str(which)] = _judge(table, answers)
    out: JsonObject = {"flaws": flaws, "agreement": agreement}
    return out if judge is None else out | {"judge": judged}


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
    edits = frame.drop_duplicates(["group", "item", "edit"])
    mixed = edits.loc[edits.duplicated(["group", "item"]), "item"].tolist()
    if mixed:
        raise RecordError(f"item {mixed[0]!r} has several edits, expected that of its two texts.")
    if judge is not None:
        one_of("rater", judge, sorted(set(frame["rater"])))


def mean_rating(rows: pd.DataFrame, clusters: Sequence[str] = ("edit", "rater"), note: str = "") -> FlawMean:
    """Return the mean of all ratings, with the interval of these clusters.

    Args:
        rows: item, edit, rater, rating; NaN = not rated.
        clusters: "edit" and "rater" speak of other edits and raters like these; "edit" alone of these raters.
        note: Added to why an interval is missing.
    """
    rated = rows[rows["rating"].notna()].sort_values(["item", "rater"], kind="stable")
    n_items, n_missing = int(rated["item"].nunique()), len(rows) - len(rated)
    if rated.empty:
        return FlawMean(Estimate(NAN, note="no ratings", clusters={"edit": 0}), NAN, n_items, n_missing)
    values = rated["rating"].to_numpy(np.float64)
    codes = {name: pd.factorize(rated[name])[0] for name in clusters}
    estimate = clustered_mean(values, [np.full(len(values), 1 / len(values))], codes)
    notes = "; ".join(filter(None, [estimate.note, note]))
    return FlawMean(replace(estimate, n=len(rated), note=notes), t_test(values)[1], n_items, n_missing)


def _agreement(table: pd.DataFrame) -> JsonObject:
    values = table.to_numpy(np.float64)
    if values.shape[1] < 2:
        return {"note": "one rater"}
    whole = values[~np.isnan(values).any(axis=1)]
    equal = float((whole == whole[:, :1]).all(axis=1).mean()) if len(whole) else NAN
    figures: JsonObject = {"krippendorff": krippendorff_alpha(values), "fleiss": fleiss_kappa(values)}
    return figures | {"all_equal": equal, "n_items": len(values)}


def _judge(table: pd.DataFrame, answers: pd.Series) -> JsonObject:
    rated = table[table.notna().any(axis=1)]
    common = rated.index.intersection(answers.dropna().index)
    humans, judged = rated.loc[common].to_numpy(np.float64), answers.loc[common].to_numpy(np.float64)
    n_split = int(np.isnan(middle_rating(humans)).sum()) if len(common) else 0
    out: JsonObject = {"n": len(common), "n_split": n_split, "n_unmatched": len(answers) - len(common)}
    for name, guess in (("judge", judged), ("constant", np.zeros(len(common)))) if len(common) else ():
        right = hits(humans, guess)
        out[name] = {rule: float(np.nanmean(hit)) if not np.isnan(hit).all() else NAN for rule, hit in right.items()}
    return out


def hits(humans: Floats, guess: Floats) -> dict[str, Floats]:
    """Return where a guess is right: that of any rater (the published rule), and `middle_rating`.

    Args:
        humans: (items, raters), NaN = not rated.
        guess: (items,) ratings.

    Returns:
        "any_rater" and "median" -> (items,) 1 or 0, NaN without a middle rating.
    """
    middle = middle_rating(humans)
    right = {"any_rater": (humans == guess[:, None]).any(axis=1).astype(np.float64)}
    return right | {"median": np.where(np.isnan(middle), NAN, middle == guess)}


def middle_rating(ratings: Floats) -> Floats:
    """Return the middle rater's rating of each item; NaN where no rater is in the middle.

    Among an odd number of ratings one is in the middle. Among an even number two are, and where they differ ("equal"
    and "more after", say) half of the people are on each side: that is not a verdict of either half.

    Args:
        ratings: (items, raters), NaN = not rated.

    Returns:
        (items,).

    Raises:
        RecordError: Another shape.
    """
    if ratings.ndim != 2:
        raise RecordError(f"middle rating: got an array of shape {ratings.shape}, expected (items, raters).")
    ordered = np.sort(ratings, axis=1)  # NaN last
    rated = (~np.isnan(ratings)).sum(axis=1)
    low, high = (
        np.take_along_axis(ordered, np.maximum(place, 0)[:, None], axis=1)[:, 0]
        for place in ((rated - 1) // 2, rated // 2)
    )
    return np.where(low == high, low, NAN)
