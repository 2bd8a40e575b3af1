"""Answers of people and judges from files and folders: tables recognised by their columns, and files as released."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.tables import read_table
from seesaw_cf.texts.released import read_csv, released_annotations, released_flaws
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS, REFLECTED

Answers = Mapping[str, pd.DataFrame]
"""Kind out of `KINDS` -> rows of all files; "again": flaws that were rated a second time. What is missing has none."""
KINDS: Mapping[str, pa.Schema] = {
    "flaws": FLAWS,
    "reflected": REFLECTED,
    "ratings": RATINGS,
    "annotations": ANNOTATIONS,
    "failures": FAILURES,
    "passages": PASSAGES,
    "again": FLAWS,
}
_AGAIN = ("swapped", "repeats")  # last part of a file's name
_TEXT = ["editor", "case_id", "phase", "sample"]
# What is answered, and what tells one row from another; the same answer twice is one.
_QUESTIONS = {
    "flaws": ["change", "pair_id", "flaw", "rater"],
    "again": ["change", "pair_id", "flaw", "rater"],
    "reflected": ["reflected", "pair_id", "rater"],
    "ratings": ["rating", *_TEXT, "item", "rater"],
    "annotations": ["label", *_TEXT, "passage", "claim_kind", "claim_id", "annotator"],
    "failures": ["present", *_TEXT, "mode", "rater"],
    "passages": ["text", *_TEXT, "passage", "prompt_id"],
}


def rows_of_kind(answers: Answers, kind: str) -> pd.DataFrame:
    """Return the answers of one kind."""
    return answers[kind] if kind in answers else KINDS[kind].empty_table().to_pandas()


def collect(places: Sequence[Path], needed: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Read answers of people and judges.

    Args:
        places: Parquet files, folders whose Parquet files are read, and CSV files as the authors of the papers
            released them. Beside a Parquet file `NAME.repeats` and `NAME.reflected` are read too.
        needed: Kinds of which there must be at least one row.

    Returns:
        The rows by kind. Files that are of no kind, such as calls to a judge, are left out.

    Raises:
        StorageError: A place is not there, or a file is not a Parquet file.
        RecordError: No row of a kind in `needed`, a rater who gives two answers to the same question, or raters of one
            released study whose pairs of texts differ.
    """
    parts: dict[str, dict[str, pd.DataFrame]] = {}
    for file in dict.fromkeys(file for place in places for file in _files(place)):
        for kind, table in _tables(file):
            again = kind == "flaws" and file.stem.split(".")[-1] in _AGAIN
            parts.setdefault("again" if again else kind, {})[str(file)] = table.to_pandas()
    _check_same_pairs({file: own for file, own in parts.get("flaws", {}).items() if file.lower().endswith(".csv")})
    answers = {kind: joined(kind, own) for kind, own in parts.items()}
    if not any(len(rows_of_kind(answers, kind)) for kind in needed):
        raise RecordError(
            f"{', '.join(map(str, places))}: no table of {' or '.join(needed)} with a row in it. Expected Parquet "
            "files as raters and judges write them, the folders they are in, or CSV files as released."
        )
    return answers


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(place.glob("*.parquet"))
    beside = (place.with_suffix(f".{name}{place.suffix}") for name in ("repeats", "reflected"))
    return [place, *(file for file in beside if file.exists())]


def _tables(file: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield the kind and the rows of a file; a released one has two kinds."""
    if file.suffix.lower() == ".csv":
        if "classification" in read_csv(file):
            yield "annotations", released_annotations(file)[0]
        else:
            yield from zip(("flaws", "reflected"), released_flaws(file), strict=True)
        return
    try:
        columns = set(pq.read_schema(file).names)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file}: no Parquet file that can be read ({error}). Check the path.") from error
    if kind := next((kind for kind, schema in KINDS.items() if set(schema.names) <= columns), ""):
        yield kind, read_table(file, KINDS[kind])


def _check_same_pairs(released: Mapping[str, pd.DataFrame]) -> None:
    """Refuse raters of one study who rated other pairs: a text that was changed makes another pair."""
    for file, own in released.items():
        first, expected = next(iter(released.items()))
        pairs = own.drop_duplicates("pair_id")
        other = pairs[~pairs["pair_id"].isin(expected["pair_id"])]
        if len(other):
            raise RecordError(
                f"{file}: {len(other)} of {len(pairs)} pairs are not in {first}, the first of "
                f"{other['entity'].iloc[0]!r}. Put its texts right, or report the files apart."
            )


def joined(kind: str, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join the tables of one kind; the same answer twice counts once.

    Args:
        kind: One of `KINDS`.
        tables: Where each is from -> rows.

    Raises:
        RecordError: Two answers to the same question by the same rater; both places are named.
    """
    value, *key = _QUESTIONS[kind]
    places = [f"{source}, row {number}" for source, own in tables.items() for number in range(1, len(own) + 1)]
    rows = pd.concat(tables.values(), ignore_index=True).assign(place=places).drop_duplicates([value, *key])
    if (twice := rows.duplicated(key)).any():
        other = rows[twice].iloc[0]
        one = rows[(rows[key].astype(object) == other[key].astype(object)).all(axis=1)].iloc[0]
        words = ", ".join(f"{name} {other[name]!r}" for name in key)
        raise RecordError(
            f"{other['place']}: {value} is {other[value]} for {words}, but {one['place']} has {one[value]}. Keep "
            "one of the two; or import people of another Label Studio with another word for --raters."
        )
    return rows.drop(columns="place").reset_index(drop=True)
