"""People's ratings of flaws as the tables that judges write, and what is said of them."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypedDict, cast

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.tables import schema_of
from seesaw_cf.base.types import JsonObject
from seesaw_cf.stats.agreement import annotator_agreement
from seesaw_cf.stats.plain import as_json
from seesaw_cf.stats.simple import proportion
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


class ReflectedShare(TypedDict):
    """The result of `share_reflected`."""

    value: float
    low: float
    high: float
    n: int
    unsure: int
    not_rated: int
    comments: int


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


def share_reflected(reflected: pa.Table) -> ReflectedShare:
    """Return the share of pairs that reflect the edit, among those where a rater answers yes or no.

    Args:
        reflected: Rows of `REFLECTED`.

    Returns:
        `value` with `low` and `high` (Wilson, 95 %), `n` answers, `unsure`, `not_rated`, and `comments`.
    """
    answers = reflected.column("reflected").to_pylist()
    yes = proportion(answers.count("yes"), answers.count("yes") + answers.count("no"))
    comments = sum(bool(text) for text in reflected.column("comment").to_pylist())
    counts = {"unsure": answers.count("unsure"), "not_rated": answers.count(None), "comments": comments}
    return cast(ReflectedShare, yes.columns("value", "low", "high", "n") | counts)


def agreement_of_two(ratings: pd.DataFrame, edits: pd.Series, draws: int) -> JsonObject | None:
    """Return how far two columns of ratings agree, as plain values; None without a row.

    Args:
        ratings: One row per pair, with `pair_id` in the index.
        edits: Id of a pair -> the edit that its texts are about: pairs of one edit are not independent.
        draws: See `annotator_agreement`.
    """
    if ratings.empty:
        return None
    names, groups = list(map(str, ratings)), edits[ratings.index.get_level_values("pair_id")].tolist()
    return as_json(annotator_agreement)(ratings.to_numpy(float).tolist(), names=names, groups=groups, draws=draws)


def edits_of_pairs(rows: pd.DataFrame) -> pd.Series:
    """Return id of a pair -> its edit, from rows of `FLAWS`."""
    return rows.groupby("pair_id")["case_id"].first()


def intra_rater(work: HumanWork, *, draws: int = 1000) -> dict[str, dict[str, Any]]:
    """Return how often a rater agrees with themselves on pairs rated twice, the second time in the other order.

    Args:
        work: Ratings of people.
        draws: Bootstrap samples of edits behind the intervals.

    Returns:
        Flaw -> `seesaw_cf.stats.agreement.annotator_agreement` of first and second rating (`percent`, `cohen`,
        `krippendorff`, `n_items`, `majority_share`), or {"note": ...} where nothing was rated twice.
    """
    once, twice = (
        frame.dropna(subset="change").set_index(["flaw", "pair_id"])["change"]
        for frame in (work.table.to_pandas(), work.repeats.to_pandas())
    )
    pairs = pd.concat({"first": once, "second": twice}, axis=1).dropna()
    agreement, edits = {}, edits_of_pairs(work.table.to_pandas())
    for flaw in dict.fromkeys(work.table.column("flaw").to_pylist()):
        rows = pairs[pairs.index.get_level_values("flaw") == flaw]
        agreement[flaw] = agreement_of_two(rows, edits, draws) or {"note": "nothing rated twice"}
    return agreement
