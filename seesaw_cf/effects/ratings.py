"""Ratings: are flaws more present after the edit, and how do edited models do on LEME's survey?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.instruments import ITEMS, SCALE, TYPES
from seesaw_cf.effects.means import plain_mean
from seesaw_cf.effects.tables import Columns, Kind, floats, ids, labels, read_columns, refuse_rows
from seesaw_cf.stats.agreement import agreement
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.simple import case_estimate, t_test

NAN = float("nan")
# 1: more present after the edit, -1: more present before, 0: equal.
SIDES = (-1.0, 0.0, 1.0)
FLAW_COLUMNS: dict[str, Kind] = dict.fromkeys(("item", "group", "flaw", "rater"), labels)
FLAW_COLUMNS |= {"rating": floats, "edit": labels}
SURVEY_COLUMNS: dict[str, Kind] = {"case_id": ids, "method": labels, "item": labels, "rating": floats}


def open_ended_flaws(columns: Columns, *, judge: str | None = None) -> JsonObject:
    """Return the mean rating per (group, flaw) with tests, the raters' agreement, and an automatic judge's accuracy.

    Args:
        columns: `item`, the pair of texts; `group`, what the pair is counted under, such as the edited property;
            `flaw`, the one rated; `rater`; `rating`, -1 (more before), 0 (equal), 1 (more after), None = not rated;
            `edit` of the pair's texts, where it is known: without it pairs stand for edits, and notes say so.
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
    frame = read_columns(FLAW_COLUMNS, columns, ["edit"])
    note = "" if "edit" in frame else "edits not given: pairs of one edit count as independent"
    frame = frame if "edit" in frame else frame.assign(edit=frame["item"])
    _check(frame, judge)
    humans = frame[frame["rater"] != judge]
    flaws: dict[str, dict[str, JsonObject]] = {}
    agreement: dict[str, JsonObject] = {}
    judged: dict[str, JsonObject] = {}
    for (name, which), rows in humans.groupby(["group", "flaw"], sort=True):
        flaws.setdefault(str(name), {})[str(which)] = _flaw(rows, note)
    for which, rows in frame.groupby("flaw", sort=True):
        table = rows[rows["rater"] != judge].pivot(index=["group", "item"], columns="rater", values="rating")
        agreement[str(which)] = _agreement(table)
        if judge is not None:
            answers = rows[rows["rater"] == judge].set_index(["group", "item"])["rating"]
            judged[str(which)] = _judge(table, answers)
    out: JsonObject = {"flaws": flaws, "agreement": agreement}
    return out if judge is None else out | {"judge": judged}


def _check(frame: pd.DataFrame, judge: str | None) -> None:
    scale = f"ratings in {SIDES}: recode them, e.g. 2 * (x - 1.5) for 1 = before, 1.5 = equal, 2 = after"
    keys, rating = ["item", "group", "flaw", "rater"], frame["rating"]
    refuse_rows(frame, rating.notna() & ~rating.isin(SIDES), ["rating", "rater", "item"], scale)
    refuse_rows(frame, frame.duplicated(keys), keys, "one rating of each: keep one of them")
    edits = frame.drop_duplicates(["group", "item", "edit"])
    refuse_rows(edits, edits.duplicated(["group", "item"]), ["item", "edit"], "one edit of an item: of its two texts")
    if judge is not None:
        one_of("rater", judge, sorted(set(frame["rater"])))


def mean_rating(rows: pd.DataFrame, clusters: Sequence[str] = ("edit", "rater")) -> tuple[Estimate, float]:
    """Return the mean of all ratings, with the interval of these clusters, and p of the pooled t-test, as published.

    Args:
        rows: item, edit, rater, rating; NaN = not rated.
        clusters: "edit" and "rater" speak of other edits and raters like these; "edit" alone of these raters.
    """
    rated = rows.dropna(subset="rating").sort_values(["item", "rater"], kind="stable")
    if rated.empty:
        return Estimate(NAN, note="no ratings", clusters={"edit": 0}), NAN
    values = rated["rating"].to_numpy(np.float64)
    return plain_mean(values, {name: pd.factorize(rated[name])[0] for name in clusters}), t_test(values)[1]


def _flaw(rows: pd.DataFrame, note: str) -> JsonObject:
    mean, p_paper = mean_rating(rows)
    out: JsonObject = {"n_ratings": mean.n, "n_items": int(rows.dropna(subset="rating")["item"].nunique())}
    out |= {"n_missing": len(rows) - mean.n, "mean": mean.value}
    if not mean.n:
        return out | {"note": mean.note}
    note = "; ".join(filter(None, [mean.note, note]))
    return out | {"note": note} | mean.columns("low", "high", "stderr", "p") | {"p_paper": p_paper}


def _agreement(table: pd.DataFrame) -> JsonObject:
    values = table.to_numpy(np.float64)
    if values.shape[1] < 2:
        return {"note": "one rater"}
    whole = values[~np.isnan(values).any(axis=1)]
    equal = float((whole == whole[:, :1]).all(axis=1).mean()) if len(whole) else NAN
    figures: JsonObject = {"krippendorff": agreement("nominal", values), "fleiss": agreement("fleiss", values)}
    return figures | {"all_equal": equal, "n_items": len(values)}


def _judge(table: pd.DataFrame, answers: pd.Series) -> JsonObject:
    common = table.dropna(how="all").index.intersection(answers.dropna().index)
    humans, judged = table.loc[common].to_numpy(np.float64), answers.loc[common].to_numpy(np.float64)
    n_split = int(np.isnan(middle_rating(humans)).sum())
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
    """
    ordered = np.sort(ratings, axis=1)  # NaN last
    rated, rows = (~np.isnan(ratings)).sum(axis=1), np.arange(len(ratings))
    low, high = (ordered[rows, np.maximum(place, 0)] for place in ((rated - 1) // 2, rated // 2))
    return np.where(low == high, low, NAN)


# The survey: ratings from 1 to 7 by editing method.


ON_SCALE = "ratings from 1 to 7: leave them empty (None), so that they count as missing"
_TYPE_OF = {item.name: item.type for item in ITEMS}


def survey_of_columns(columns: Columns, *, reference: str | None = None) -> JsonObject:
    """Return the mean rating of every method on every item.

    Args:
        columns: `case_id`, the edit each rating is about (several samples and raters of one edit share it); `method` of
            editing, such as "memit" or "none"; `item`, one of the nine; `rating`, 1 to 7, None or NaN when missing.
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
    frame = read_columns(SURVEY_COLUMNS, columns)
    for name in frame["item"].unique():
        one_of("survey item", name, _TYPE_OF)
    outside = frame["rating"].notna() & ~frame["rating"].between(min(SCALE), max(SCALE))
    refuse_rows(frame, outside, ["rating", "item", "case_id"], f"{ON_SCALE}, or recode them")
    if reference is not None:
        one_of("method", reference, sorted(set(frame["method"])))
    frame["type"] = frame["item"].map(_TYPE_OF)
    methods: JsonObject = {}
    for name, rows in frame.groupby("method", sort=True):
        versus = frame[frame["method"] == reference] if reference not in (None, name) else None
        items, types = _cells(rows, versus, "item", _TYPE_OF), _cells(rows, versus, "type", TYPES)
        methods[str(name)] = {"items": items, "types": types}
    missing = int(frame["rating"].isna().sum())
    return {"methods": methods, "n_ratings": len(frame) - missing, "n_missing": missing}


def _cells(rows: pd.DataFrame, versus: pd.DataFrame | None, by: str, names: Iterable[str]) -> dict[str, JsonObject]:
    """Return mean ratings by name, and what they are more than those of the reference."""
    out: dict[str, JsonObject] = {}
    for name in names:
        part = rows[rows[by] == name]
        if part.empty:
            continue
        rated, mean = part.dropna(subset="rating"), Estimate(NAN, note="no ratings")
        if len(rated):
            mean = case_estimate(rated["rating"], rated["case_id"], within=(min(SCALE), max(SCALE)))
        out[name] = {"n": mean.n, "n_cases": mean.n_clusters, "n_missing": len(part) - len(rated), "mean": mean.value}
        out[name] |= mean.columns("low", "high", "stderr", "note")
        if versus is not None:
            out[name]["difference"] = _difference(rated, versus[versus[by] == name].dropna(subset="rating"))
    return out


def _difference(rated: pd.DataFrame, versus: pd.DataFrame) -> JsonObject:
    """Return the mean of the method minus that of the reference, over the edits that both have ratings of."""
    common = set(rated["case_id"]) & set(versus["case_id"])
    if not common:
        return {"mean": None, "note": "no edit in common", "n_cases": 0}
    joined = pd.concat([rated, versus], keys=["method", "reference"]).query("case_id in @common")
    own = joined.index.get_level_values(0).to_numpy() == "method"
    found = case_estimate(joined["rating"], joined["case_id"], own, ~own)
    columns = found.columns("low", "high", "stderr", "note", "p")
    return {"n_cases": found.n_clusters, "mean": found.value} | columns
