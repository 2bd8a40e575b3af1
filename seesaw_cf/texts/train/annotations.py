"""Annotated pairs of premise and claim from a CSV file, checked before anything is trained on them."""

from __future__ import annotations

import os
import re

import pandas as pd

from seesaw_cf.base.errors import RecordError, UnknownNameError, unknown_name
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.texts.train.rows import TrainingRows, join_groups, read_csv

_CONTENT = re.compile(r"\s*Passage:(?P<premise>.*?)(?P<gap>\s*)Claim:(?P<claim>(?:(?!Claim:).)*)", re.DOTALL)
_MIN_WORDS = 3  # words; shorter premises ("He") are slips of highlighting that many samples share
_NEEDED = ("sample_id", "classification")


def read_annotations(path: str | os.PathLike[str]) -> TrainingRows:
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
    groups = join_groups(list(frame["sample_id"]), texts)
    return TrainingRows(pairs, labels, units, groups, LABELS)


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
    """Return the index into `LABELS` of a cell of a file.

    Raises:
        UnknownNameError: It is not a label.
    """
    if text not in LABELS:
        raise UnknownNameError(f"{path}, row {row}: {unknown_name('classification', text, LABELS)}")
    return LABELS.index(text)


def pair_of(path: str | os.PathLike[str], row: int, first: str, claim: str | None = None) -> tuple[str, str, str]:
    """Return premise, claim and unit ("paragraph" or "sentence") of a row.

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
