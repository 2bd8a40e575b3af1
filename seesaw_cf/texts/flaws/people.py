"""People's ratings of flaws as the tables that judges write."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TypedDict, cast

import pyarrow as pa

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.tables import schema_of
from seesaw_cf.texts.tables import FlawRow
from seesaw_cf.texts.write.pairs import FlawAnswer, PassagePair, flaw_row, flaw_table, unblinded

# Label in a sheet -> answer in the order shown; a blank cell is a missing rating, never "equal".
ANSWERS: Mapping[str, int] = {"A": -1, "equal": 0, "B": 1}


class ReflectedRow(TypedDict):
    """A row of `REFLECTED`.

    reflected: "yes", "no", "unsure" or None: whether a text states the edit. comment: in the rater's words.
    """

    pair_id: str
    editor: str
    case_id: int
    relation: str
    entity: str
    rater: str
    reflected: str | None
    comment: str


REFLECTED = schema_of(ReflectedRow)


@dataclass(frozen=True, slots=True)
class HumanWork:
    """Ratings of people, un-blinded.

    Attributes:
        table: Rows of `FLAWS`, one per (pair, flaw); a blank cell has the status "not rated".
        repeats: The same for the pairs that were rated a second time.
        reflected: Rows of `REFLECTED`, one per pair; comments on both copies of a pair are joined.
        known: Rows of the file that repeat another one word for word; they count once.
    """

    table: pa.Table
    repeats: pa.Table
    reflected: pa.Table
    known: int = 0


@dataclass(frozen=True, slots=True)
class PairRating:
    """What a person answered to one showing of a pair, however it was shown.

    Attributes:
        pair, rater: Who rated what.
        first: Which text was text A, "pre" or "post".
        again: The pair was there before, in the other order.
        labels: Flaw -> a label of `ANSWERS`, "" = not rated.
        reflected: "yes", "no", "unsure" or "".
        comment: Free text.
    """

    pair: PassagePair
    rater: str
    first: str
    again: bool
    labels: Mapping[str, str]
    reflected: str = ""
    comment: str = ""


def human_work(ratings: Sequence[PairRating], repeated: int = 0) -> HumanWork:
    """Return people's ratings as the tables that judges write, un-blinded.

    The answer about the edit is that of the first copy of a pair, or of the second where the first has none.

    Args:
        ratings: In any order.
        repeated: `HumanWork.known`.
    """
    rows: dict[bool, list[FlawRow]] = {False: [], True: []}
    reflected: dict[tuple[str, str], ReflectedRow] = {}
    for rating in sorted(ratings, key=lambda rating: rating.again):
        for flaw, label in rating.labels.items():
            change = unblinded(ANSWERS[label], rating.first) if label else None
            answer = FlawAnswer(change, reply=label, status="ok" if label else "not rated")
            rows[rating.again].append(flaw_row(rating.pair, flaw, rating.rater, rating.first, answer))
        key = (rating.rater, rating.pair.pair_id)
        row = reflected.setdefault(key, reflected_row(rating.pair, rating.rater))
        row["reflected"] = row["reflected"] or rating.reflected or None
        row["comment"] = " | ".join(part for part in (row["comment"], rating.comment) if part)
    table = pa.Table.from_pylist(list(reflected.values()), schema=REFLECTED)
    return HumanWork(flaw_table(rows[False]), flaw_table(rows[True]), table, repeated)


def reflected_row(pair: PassagePair, rater: str, answer: str | None = None) -> ReflectedRow:
    """Return one row of `REFLECTED`, without a comment."""
    about = {name: getattr(pair, name) for name in REFLECTED.names if hasattr(pair, name)}
    return cast(ReflectedRow, about | {"rater": rater, "reflected": answer, "comment": ""})


def read_sheet(path: str | os.PathLike[str], columns: Sequence[str]) -> dict[int, dict[str, str]]:
    """Read the rows of a CSV file that must have certain columns, each by its number in a spreadsheet (the head is 1).

    Between cells are commas, semicolons or tabs, whichever the head has most of: spreadsheets of some countries write
    semicolons. Rows without anything in them are left out.

    Raises:
        StorageError: It cannot be read.
        RecordError: It is not a CSV file in UTF-8, columns are missing, or a row has more cells than the head.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        delimiter = max(",;\t", key=text.partition("\n")[0].count)
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: not a CSV file in UTF-8 ({error}). Save the sheet as CSV UTF-8.") from error
    head = [name.strip() for name in lines[0]] if lines else []
    missing = [name for name in columns if name not in head]
    if missing:
        raise RecordError(f"{path}: columns {missing} are missing; it has {head}. Keep the sheet's columns and names.")
    rows = {}
    for number, cells in enumerate(lines[1:], 2):
        if any(cell.strip() for cell in cells[len(head) :]):
            raise RecordError(
                f"{path}: row {number} has {len(cells)} cells, expected {len(head)}, as the head has. A text with "
                f"{delimiter!r} in it needs quotation marks around it."
            )
        if any(cell.strip() for cell in cells):
            rows[number] = dict(zip_longest(head, cells[: len(head)], fillvalue=""))
    return rows
