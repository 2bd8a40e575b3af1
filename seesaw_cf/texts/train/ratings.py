"""Rated passages from a CSV file, and what an encoder reads of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.survey_items import ITEMS, Shown
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.train.rows import TrainingRows, join_groups, read_csv

ITEMS_BY_NAME = {item.name: item for item in ITEMS}
FACTS = {"new_fact": "New fact", "old_facts": "Old facts", "subject": "Subject", "related_entity": "Related entity"}
PASSAGES = {"main": "Main passage", "related": "Related passage"}
_SPLIT = " | "  # between old facts in a CSV cell
_MIDDLE, _SPREAD = 4.0, 3.0  # ratings 1 to 7 are learned as -1 to 1


def to_output(rating: float) -> float:
    """Return what an encoder learns of a rating."""
    return (rating - _MIDDLE) / _SPREAD


def from_output(outputs: Floats) -> Floats:
    """Return ratings from 1 to 7, not rounded."""
    return np.asarray(np.clip(_MIDDLE + _SPREAD * outputs, 1.0, 7.0))


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


def read_ratings(path: str | os.PathLike[str]) -> TrainingRows:
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
    return TrainingRows(pairs, ratings, tuple(frame["item"]), groups)


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
