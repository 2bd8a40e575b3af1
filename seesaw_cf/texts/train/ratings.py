"""Rated passages from a CSV file, and how well a rater agrees with the ratings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from scipy import stats

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.survey_items import ITEMS, Shown
from seesaw_cf.stats import clustered_mean, interval
from seesaw_cf.stats.agreement import krippendorff_alpha
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import plain
from seesaw_cf.texts.annotate.reports import Interval
from seesaw_cf.texts.train.rows import Rows, read_csv
from seesaw_cf.texts.train.scores import join_groups, share_of_rows

ITEMS_BY_NAME = {item.name: item for item in ITEMS}
FACTS = {"new_fact": "New fact", "old_facts": "Old facts", "subject": "Subject", "related_entity": "Related entity"}
PASSAGES = {"main": "Main passage", "related": "Related passage"}
_SPLIT = " | "  # between old facts in a CSV cell


def rater_texts(item: str, sample: Shown) -> tuple[str, str]:
    """Return what an encoder reads: the passages that the item shows, and the item's statement with the facts it shows.

    Raises:
        UnknownNameError: No such item.
    """
    one_of("survey item", item, ITEMS_BY_NAME)
    seen = set(ITEMS_BY_NAME[item].fields)
    passages = [f"{label}: {getattr(sample, name)}" for name, label in PASSAGES.items() if name in seen]
    facts = [f"{label}: {_text(getattr(sample, name))}." for name, label in FACTS.items() if name in seen]
    return "\n".join(passages), " ".join([f"{ITEMS_BY_NAME[item].statement}.", *facts])


def passages_of(texts: tuple[str, str]) -> list[str]:
    """Return the passages in what `rater_texts` made."""
    main, _, related = f"\n{texts[0]}".partition(f"\n{PASSAGES['related']}: ")
    return [text for text in (main.removeprefix(f"\n{PASSAGES['main']}: "), related) if text]


def _text(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else "; ".join(value)


@dataclass(frozen=True, slots=True)
class RatingData(Rows):
    """Ratings to train on; all fields have one entry per row.

    Attributes:
        pairs: See `rater_texts`.
        ratings: 1 to 7.
        items: Names of survey items.
        groups: Rows with the same number share a sample or a passage text.
    """

    pairs: tuple[tuple[str, str], ...]
    ratings: tuple[float, ...]
    items: tuple[str, ...]
    groups: tuple[int, ...]


def read_ratings(path: str | os.PathLike[str]) -> RatingData:
    """Read a CSV file of ratings, one row per (sample, item, rater).

    Columns: `sample_id`, `item` (one of the nine of the survey), `rating` (1 to 7), the passages `main` and `related`,
    and what items show in addition: `new_fact`, `old_facts` (of the entity the item asks about; several joined by
    " | "), `subject`, `related_entity`. Columns that no item in the file shows may be missing.

    Raises:
        StorageError: The file cannot be read.
        RecordError: A column is missing, a rating is not from 1 to 7, a row has no sample or nothing in a passage
            that its item shows.
        UnknownNameError: An item outside the survey.
    """
    frame = read_csv(path)
    missing = [name for name in ("sample_id", "item", "rating") if name not in frame]
    rows: list[Mapping[str, str]] = frame.to_dict("records")  # type: ignore[assignment]
    if not missing:
        for name in dict.fromkeys(frame["item"]):
            one_of("survey item", name, ITEMS_BY_NAME)
        missing = sorted({field for name in frame["item"] for field in ITEMS_BY_NAME[name].fields}.difference(frame))
    if missing or not rows:
        raise RecordError(
            f"{path}: {f'columns {missing} are missing' if missing else 'there are no rows'}; it has "
            f"{list(frame.columns)}. Expected sample_id, item, rating and what the items show."
        )
    ratings = tuple(_rating(path, number, row) for number, row in enumerate(rows))
    samples = [_sample(path, number, row) for number, row in enumerate(rows)]
    pairs = tuple(rater_texts(row["item"], sample) for row, sample in zip(rows, samples))
    groups = join_groups(
        list(frame["sample_id"]), [sample.main for sample in samples], [sample.related for sample in samples]
    )
    return RatingData(pairs, ratings, tuple(frame["item"]), tuple(groups))


def _rating(path: str | os.PathLike[str], number: int, row: Mapping[str, str]) -> float:
    try:
        value = float(row["rating"])
    except ValueError:
        value = float("nan")
    if not 1 <= value <= 7:
        raise RecordError(f"{path}, row {number}: rating {row['rating']!r}, expected a number from 1 to 7.")
    if not row["sample_id"].strip():
        raise RecordError(f"{path}, row {number}: no sample_id. Splits need to know which rows belong together.")
    return value


def _sample(path: str | os.PathLike[str], number: int, row: Mapping[str, str]) -> Shown:
    fields = ITEMS_BY_NAME[row["item"]].fields
    if empty := [name for name in fields if name in PASSAGES and not row[name].strip()]:
        raise RecordError(f"{path}, row {number}: item {row['item']} shows {empty}, which is empty. Drop the row.")
    texts = {name: row[name].strip() for name in fields if name != "old_facts"}
    facts = tuple(row["old_facts"].split(_SPLIT)) if "old_facts" in fields else ()
    return Shown(**texts, old_facts=facts)  # type: ignore[arg-type]


class RatingScores(TypedDict):
    """The result of `rating_scores`."""

    spearman: Interval
    mean_absolute_error: Interval
    exact: Interval
    within_one: Interval
    krippendorff_interval: float | None
    n: int
    n_groups: int


def rating_scores(
    truth: Sequence[float], ratings: Sequence[float], groups: Sequence[int], *, draws: int = 1000
) -> RatingScores:
    """Return how far a rater's ratings are from people's.

    Args:
        truth: People's ratings.
        ratings: The rater's, any real numbers.
        groups: The independent sample of each row; intervals resample whole ones.
        draws: Bootstrap samples.

    Returns:
        `spearman`, `mean_absolute_error`, `exact` (share equal after rounding), `within_one` (share at most 1 away, on
        either side, after rounding), each value, low, high; `krippendorff_interval`, `n`, `n_groups`; plain JSON types.
        Shares have the interval of `share_of_rows`, the mean error that of a clustered mean, none below five groups.
        That of rho is the percentile interval of a bootstrap over groups, which covers .92 and .95 at 10 and 20
        groups of five rows (nominal .95; 400 invented raters).

    Source: LEME, Appendix F, Table 9.
    Deviates: `within_one` is two-sided; the released code counts every rating that is too low as a hit.
    """
    people, rater = np.asarray(truth, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    members = [np.flatnonzero(codes == code) for code in range(int(codes.max(initial=-1)) + 1)]
    rng = np.random.default_rng(0)
    picks = [
        np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        for _ in range(draws if members else 0)
    ]
    low, high, _ = interval(np.array([_spearman(people[rows], rater[rows]) for rows in picks]))
    away, error = np.abs(np.round(rater) - people), np.abs(people - rater)
    weights = np.full(len(error), 1 / max(len(error), 1))
    mean = clustered_mean(error, [weights], {"group": codes}) if len(error) else Estimate(float("nan"))
    value = float(error.mean()) if len(error) else None
    alpha = krippendorff_alpha(np.stack([people, np.round(rater)], axis=1), "interval")
    scores: RatingScores = plain({
        "spearman": {"value": _spearman(people, rater), "low": low, "high": high},
        "mean_absolute_error": {"value": value, "low": max(0.0, mean.low), "high": mean.high},
        "exact": share_of_rows(away == 0, codes),
        "within_one": share_of_rows(away <= 1, codes),
        "krippendorff_interval": alpha,
        "n": len(people),
        "n_groups": len(members),
    })  # fmt: skip
    return scores


def _spearman(people: Floats, rater: Floats) -> float:
    if len(people) < 3 or np.ptp(people) == 0 or np.ptp(rater) == 0:
        return float("nan")
    return float(stats.spearmanr(people, rater).statistic)
