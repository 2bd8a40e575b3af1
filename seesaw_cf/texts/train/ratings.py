"""Rated passages from a CSV file, and how well a rater agrees with the ratings."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pandas as pd
from scipy import stats

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.leme_annotation import LABELS, sentences
from seesaw_cf.effects.survey_items import ITEMS, Shown
from seesaw_cf.stats import clustered_mean, interval
from seesaw_cf.stats.agreement import krippendorff_alpha
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import plain
from seesaw_cf.texts.annotate.reports import Interval
from seesaw_cf.texts.train.rows import Rows, read_csv
from seesaw_cf.texts.train.scores import join_groups, share_of_rows

_ITEMS = {item.name: item for item in ITEMS}
FACTS = {"new_fact": "New fact", "old_facts": "Old facts", "subject": "Subject", "related_entity": "Related entity"}
PASSAGES = {"main": "Main passage", "related": "Related passage"}
_SPLIT = " | "  # between old facts in a CSV cell


def rater_texts(item: str, sample: Shown) -> tuple[str, str]:
    """Return what an encoder reads: the passages that the item shows, and the item's statement with the facts it shows.

    Raises:
        UnknownNameError: No such item.
    """
    one_of("survey item", item, _ITEMS)
    seen = set(_ITEMS[item].fields)
    passages = [f"{label}: {getattr(sample, name)}" for name, label in PASSAGES.items() if name in seen]
    facts = [f"{label}: {_text(getattr(sample, name))}." for name, label in FACTS.items() if name in seen]
    return "\n".join(passages), " ".join([f"{_ITEMS[item].statement}.", *facts])


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
            one_of("survey item", name, _ITEMS)
        missing = sorted({field for name in set(frame["item"]) for field in _ITEMS[name].fields} - set(frame.columns))
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
    fields = _ITEMS[row["item"]].fields
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


# Annotated pairs of premise and claim from a CSV file, checked before anything is trained on them.

_CONTENT = re.compile(r"\s*Passage:(?P<premise>.*?)(?P<gap>\s*)Claim:(?P<claim>(?:(?!Claim:).)*)", re.DOTALL)
_MIN_WORDS = 3  # words; shorter premises ("He") are slips of highlighting that many samples share
_NEEDED = ("sample_id", "classification")


@dataclass(frozen=True, slots=True)
class AnnotationData(Rows):
    """Rows to train on; all fields have one entry per row.

    Attributes:
        pairs: (premise, claim).
        labels: Index into `annotate.LABELS`.
        units: "paragraph" for whole passages, "sentence" for single sentences shown as premises.
        groups: Rows with the same number share a sample or a passage text; see `splits.join_groups`.
        notes: What was seen and is worth knowing, such as repeated rows.
    """

    pairs: tuple[tuple[str, str], ...]
    labels: tuple[int, ...]
    units: tuple[str, ...]
    groups: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def without_texts_of(self, other: AnnotationData) -> AnnotationData:
        """Return the rows with a premise that is not in `other`, white space and case aside."""
        texts = {_plain(premise) for premise, _ in other.pairs}
        return self.take([i for i, (premise, _) in enumerate(self.pairs) if _plain(premise) not in texts])

    def check_classes(self, part: str) -> None:
        """Refuse a part without one of the classes.

        Raises:
            RecordError: A class has no row.
        """
        counts = Counter(LABELS[label] for label in self.labels)
        if missing := [label for label in LABELS if not counts[label]]:
            raise RecordError(
                f"{part}: no row says {' or '.join(missing)} ({len(self.labels)} rows: {dict(counts)}); expected all "
                f"of {', '.join(LABELS)}. Bring rows of the missing class, or ask for fewer folds."
            )


def with_neutral_sentences(data: AnnotationData, seed: int = 0) -> AnnotationData:
    """Return the rows, and one sentence of every passage that is neutral: what a passage leaves open, each
    of its sentences leaves open. Where people highlighted only sentences that decide, shortness would tell the label.

    Args:
        data: The training part.
        seed: Of which sentence.
    """
    rng, neutral = random.Random(seed), LABELS.index("neutral")
    added = [
        ((rng.choice(parts), claim), group)
        for (premise, claim), label, unit, group in zip(data.pairs, data.labels, data.units, data.groups)
        if label == neutral and unit == "paragraph" and len(parts := sentences(premise)) > 1
    ]
    pairs, groups = tuple(pair for pair, _ in added), tuple(group for _, group in added)
    labels, units = data.labels + (neutral,) * len(added), data.units + ("sentence",) * len(added)
    return AnnotationData(data.pairs + pairs, labels, units, data.groups + groups, data.notes)


def read_annotations(path: str | os.PathLike[str]) -> AnnotationData:
    """Read a CSV file of annotations.

    Columns: `classification` (one of `LABELS`), `sample_id`, and either `content` ("Passage: ... Claim: ...", as the
    annotated data of LEME) or `premise` and `claim`. With `content`, an empty line before "Claim:" marks a whole
    passage, anything else a highlighted sentence. With `example_id`, ids are checked against samples. Other columns
    (method, kind of claim) are never read: they would tell the label.

    Raises:
        StorageError: The file cannot be read.
        RecordError: Columns are missing, a row has no sample, premise or claim, or an example belongs to two samples.
        UnknownNameError: A classification outside `LABELS`.
    """
    frame = read_csv(path)
    columns = ["content"] if "content" in frame else ["premise", "claim"]
    if missing := [name for name in (*_NEEDED, *columns) if name not in frame]:
        raise RecordError(
            f"{path}: columns {missing} are missing; it has {list(frame.columns)}. Expected sample_id, classification "
            "and either content or premise and claim."
        )
    _check_ids(path, frame)
    labels = tuple(label_index(path, row, text) for row, text in enumerate(frame["classification"]))
    parsed = [pair_of(path, row, *parts) for row, parts in enumerate(zip(*(frame[name] for name in columns)))]
    pairs, units = tuple((p, c) for p, c, _ in parsed), tuple(unit for _, _, unit in parsed)
    texts = [premise if len(premise.split()) >= _MIN_WORDS else "" for premise, _ in pairs]
    groups = tuple(join_groups(list(frame["sample_id"]), texts))
    return AnnotationData(pairs, labels, units, groups, _notes(frame, pairs, labels, groups))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _check_ids(path: str | os.PathLike[str], frame: pd.DataFrame) -> None:
    if (blank := frame["sample_id"].str.strip() == "").any():
        first = blank.tolist().index(True)
        raise RecordError(
            f"{path}: {int(blank.sum())} rows have no sample_id, first: row {first}. Splits need to know "
            "which rows belong together; restore the ids."
        )
    if "example_id" in frame:
        per_example = frame[frame["example_id"] != ""].groupby("example_id")["sample_id"].agg(["nunique", "unique"])
        conflicting = per_example[per_example["nunique"] > 1]
        if len(conflicting):
            raise RecordError(
                f"{path}: {len(conflicting)} examples belong to two samples, first: example "
                f"{conflicting.index[0]!r} to {sorted(conflicting['unique'].iloc[0])}. Ids were edited; restore them, "
                "or leave example_id out."
            )


def label_index(path: str | os.PathLike[str], row: int, text: str) -> int:
    """Index into `LABELS` of a cell of a file.

    Raises:
        UnknownNameError: It is not a label.
    """
    if text not in LABELS:
        error = unknown_name("classification", text, LABELS)
        raise type(error)(f"{path}, row {row}: {error}")
    return LABELS.index(text)


def pair_of(path: str | os.PathLike[str], row: int, first: str, claim: str | None = None) -> tuple[str, str, str]:
    """Premise, claim and unit ("paragraph" or "sentence") of a row.

    Args:
        path, row: For messages.
        first: The premise; without `claim` the whole cell "Passage: ... Claim: ...".
        claim: The claim, where it has an own column.

    Raises:
        RecordError: It is not such a cell, or one of them is empty.
    """
    premise, statement, unit = first.strip(), (claim or "").strip(), "paragraph"
    if claim is None:
        match = _CONTENT.fullmatch(first)
        if match is None:
            raise RecordError(f"{path}, row {row}: content {first[:60]!r} ... is not 'Passage: ... Claim: ...'.")
        premise, statement = match["premise"].strip(), match["claim"].strip()
        unit = "paragraph" if match["gap"].count("\n") > 1 else "sentence"
    if not premise or not statement:
        raise RecordError(
            f"{path}, row {row}: {'the passage' if not premise else 'the claim'} is empty. Fill it in or drop the row."
        )
    return premise, statement, unit


def _notes(
    frame: pd.DataFrame, pairs: Sequence[tuple[str, str]], labels: Sequence[int], groups: Sequence[int]
) -> tuple[str, ...]:
    by_pair: dict[tuple[str, str], set[int]] = {}
    for pair, label in zip(pairs, labels):
        by_pair.setdefault(pair, set()).add(label)
    conflicting = sum(len(values) > 1 for values in by_pair.values())
    short = sum(len(premise.split()) < _MIN_WORDS for premise, _ in pairs)
    n_samples, n_groups = frame["sample_id"].nunique(), len(set(groups))
    notes = {
        f"{len(pairs) - len(by_pair)} rows repeat the premise and claim of another": len(pairs) > len(by_pair),
        f"{conflicting} pairs of premise and claim have more than one label": conflicting > 0,
        f"{short} premises have fewer than {_MIN_WORDS} words and do not join samples": short > 0,
        f"{n_samples} samples share texts and make {n_groups} independent groups": n_samples != n_groups,
    }
    return tuple(note for note, holds in notes.items() if holds)
