"""Tables that effects are made of: score tables of any size, editor by editor, and plain columns, value by value."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.tables import LATER, SCORES, column_names, read_table

# Pre-edit rows may be stored once for all editors, under one of these names.
UNEDITED = ("", "none")
_WORDS = [field.name for field in SCORES if field.type == pa.string()]
_CODED = {name: pa.field(name, pa.dictionary(pa.int32(), pa.string())) for name in _WORDS}
# A file's statistics of words, not of codes, tell which parts of it to skip: rows are chosen by these two columns.
_ENCODED = [name for name in _WORDS if name not in ("editor", "kind")]
_SMALL = 8 * 2**20  # bytes of a file that is read once, as a whole
_PART = 500_000  # rows of all editors that are paired at a time
_BETWEEN = "\x1f"  # "unit separator": no tag has it


@dataclass(frozen=True)
class ScoreFile:
    """A score table in a file, of which parts are read; words come as codes.

    Attributes:
        path: A Parquet file with the columns `seesaw_cf.base.tables.SCORES`.
        only: Which of its rows the table has; all when None.
    """

    path: Path
    only: pc.Expression | None = None

    def rows(self, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Return some columns of the rows for which an expression holds.

        Raises:
            RecordError: The file is damaged or has other columns.
        """
        if not self.path.is_file() or self.path.stat().st_size > _SMALL:
            both = [own for own in (self.only, where) if own is not None]
            return self._read(columns, reduce(operator.and_, both) if both else None)
        return (self._whole if where is None else self._whole.filter(where)).select(columns)

    @cached_property
    def _whole(self) -> pa.Table:
        return self._read(SCORES.names, self.only)

    def _read(self, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        schema = pa.schema([_CODED.get(name, SCORES.field(name)) for name in columns])
        stored = column_names(self.path)
        there = [name for name in columns if name in stored]
        coded = _WORDS if where is None else _ENCODED
        # reading ahead would take the memory that parts save
        frugal: dict[str, Any] = {"use_threads": False, "pre_buffer": False}
        rows = read_table(self.path, schema, columns=there, filters=where, read_dictionary=coded, **frugal)
        return rows.unify_dictionaries()


Scores: TypeAlias = pa.Table | pd.DataFrame | ScoreFile
"""A score table as functions of effects take it."""


def checked(scores: Scores) -> pa.Table | ScoreFile:
    """Return a file as it is, and any other score table with the schema `seesaw_cf.base.tables.SCORES`.

    Raises:
        RecordError: Columns are missing or hold other types.
    """
    if isinstance(scores, ScoreFile):
        return scores
    try:
        table = scores if isinstance(scores, pa.Table) else pa.Table.from_pandas(scores, preserve_index=False)
        for name in [name for name in LATER if name not in table.column_names]:
            table = table.append_column(name, pa.nulls(len(table), SCORES.field(name).type))
        if missing := [name for name in SCORES.names if name not in table.column_names]:
            got = f"{missing} are missing, got {table.column_names}"
            raise RecordError(f"score table: columns {got}. See seesaw_cf.base.tables.SCORES.")
        return table.select(SCORES.names).cast(SCORES)
    except pa.ArrowException as error:
        raise RecordError(f"score table: a column has another type than SCORES says ({error}).") from error


def rows_of(
    scores: pa.Table | ScoreFile, columns: Sequence[str] = SCORES.names, where: pc.Expression | None = None
) -> pa.Table:
    """Return some columns of the rows for which an expression holds."""
    if isinstance(scores, ScoreFile):
        return scores.rows(columns, where)
    return (scores if where is None else scores.filter(where)).select(columns)


def count_rows(scores: pa.Table | ScoreFile, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
    """Return the distinct rows of some columns of words, with how often each occurs as `count_all`."""
    rows = rows_of(scores, columns, where)
    counts = rows.group_by(list(columns)).aggregate([([], "count_all")])
    return counts.cast(pa.schema([*(SCORES.field(name) for name in columns), ("count_all", pa.int64())]))


def by_editor(
    scores: Scores, where: pc.Expression, columns: Sequence[str], what: str, parts: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each editor with post-edit rows, with its pre-edit rows or, if it has none, the shared ones.

    Args:
        scores: A score table.
        where: Which rows count.
        columns: Which columns are read.
        what: Which rows these are, in words.
        parts: Rows of an editor may come in several tables, of whole cases in their order.

    Raises:
        RecordError: As `checked`; no such row, or none after the edit, a phase other than "pre" and "post", or rows of
            several forms.
    """
    scores = checked(scores)
    counts = count_rows(scores, ["editor", "phase", "form"], where)
    if not len(counts):
        kinds = sorted(map(str, count_rows(scores, ["kind"])["kind"].to_pylist()))
        raise RecordError(f"score table: no rows of {what}; kinds there: {kinds}. Score them too.")
    if len(forms := {form or "plain" for form in counts["form"].to_pylist()}) > 1:
        raise RecordError(
            f"score table: rows of {what} in the forms {sorted(forms)}, expected one: an answer in chat and one in a "
            "text to continue are never averaged. Take the rows of one form, or the file scores_FORM.parquet."
        )
    phases = set(counts["phase"].to_pylist())
    if phases - {"pre", "post"}:
        raise RecordError(f"score table: phases {sorted(map(str, phases))}, expected only 'pre' and 'post'.")
    there = {(editor or "", phase) for editor, phase in zip(counts["editor"].to_pylist(), counts["phase"].to_pylist())}
    editors = sorted(editor for editor, phase in there if phase == "post")
    if not editors:
        raise RecordError("score table: no post-edit rows, so there is no effect to compute. Score after the edit too.")
    shared = (pc.field("phase") == "pre") & _named(UNEDITED)
    cuts = _parts(scores, where) if parts and isinstance(scores, ScoreFile) else [where]
    for editor in editors:
        own = _named([editor])
        chosen = own if (editor, "pre") in there else own | shared
        tables = (rows_of(scores, columns, cut & chosen) for cut in cuts)
        yield from ((editor, rows) for rows in tables if rows.num_rows)


def _parts(scores: ScoreFile, where: pc.Expression) -> list[pc.Expression]:
    """Cut rows into whole cases, about `_PART` rows at a time; files are written in about the order of cases."""
    counts = count_rows(scores, ["case_id"], where).sort_by("case_id")
    part = np.cumsum(counts["count_all"].to_numpy()) // _PART
    firsts = counts["case_id"].to_numpy()[np.flatnonzero(np.diff(part)) + 1].tolist()
    case, edges = pc.field("case_id"), [-(2**63), *firsts, 2**63]
    return [where & (case >= low) & (case <= high - 1) for low, high in pairwise(edges)]


def _named(editors: Sequence[str]) -> pc.Expression:
    named = pc.field("editor").isin(list(editors))
    return named | pc.field("editor").is_null() if "" in editors else named


def as_frame(rows: pa.Table) -> pd.DataFrame:
    """Return rows with numbers as they are, and words and lists of words as `as_codes`."""
    numbers = {field.name: pa.types.is_primitive(field.type) for field in rows.schema}
    return pd.DataFrame({name: rows[name].to_numpy() if numbers[name] else as_codes(rows[name]) for name in numbers})


def as_codes(column: pa.ChunkedArray) -> pd.Categorical:
    """Return a column of words as codes of its sorted values; of lists of words the values are tuples without gaps."""
    whole = column.combine_chunks()
    if lists := pa.types.is_list(whole.type):
        whole = pc.binary_join(pa.ListArray.from_arrays(whole.offsets, whole.values.fill_null("")), _BETWEEN)
    encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return _coded([([tuple(filter(None, text.split(_BETWEEN))) for text in values] if lists else values, codes)])


def stack(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return frames below each other, codes as codes; the frames are emptied column by column, for want of memory."""
    columns = {}
    for name in list(map(str, frames[0].columns)):
        parts = [frame.pop(name) for frame in frames]
        coded = all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts)
        whole = [(part.cat.categories.tolist(), part.cat.codes.to_numpy(np.int32)) for part in parts] if coded else []
        columns[name] = _coded(whole) if coded else pd.concat(parts, ignore_index=True)
    return pd.DataFrame(columns, copy=False)


def _coded(parts: Sequence[tuple[Sequence[Hashable], NDArray[np.integer[Any]]]]) -> pd.Categorical:
    """Return values by their codes, -1 where missing, as codes of the values that occur, sorted and each once."""
    used = {values[code] for values, codes in parts for code in np.flatnonzero(np.bincount(codes + 1)[1:]).tolist()}
    place = {value: at for at, value in enumerate(sorted(used))}  # type: ignore[type-var]
    tables = [np.array([*(place.get(value, -1) for value in values), -1], np.int32) for values, _ in parts]
    moved = np.concatenate([table[codes] for table, (_, codes) in zip(tables, parts)])
    return pd.Categorical.from_codes(moved, categories=pd.Index(list(place), tupleize_cols=False))


# Plain columns: every value is checked by the one kind that its column is declared to hold.

Id = int | str
"""What an edit, an item or a cluster is called; a column holds whole numbers or texts, never both."""
Columns: TypeAlias = Mapping[str, Any] | pd.DataFrame
"""Columns of equal length by name, as every metric takes them: lists, arrays or a data frame; None: left out."""
Kind = Callable[[str, Any], object]
"""A cell's name and value -> the value as it is computed with; raises `RecordError` for a bad one."""
labels: Kind = checks.text
wholes: Kind = partial(checks.whole, low=-(2**63), high=2**63 - 1)
text_lists: Kind = partial(checks.each, check=checks.text)


def ids(where: str, value: object) -> object:
    """Read a whole number or a text."""
    return labels(where, value) if isinstance(value, str) else wholes(where, value)


def optional_labels(where: str, value: object) -> str | None:
    """Read a text; None, NaN and "" are missing, and become None."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else checks.text(where, value) or None


def floats(where: str, value: object) -> float:
    """Read a number, infinite ones included; None becomes NaN."""
    if value is None:
        return math.nan
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        with suppress(OverflowError):  # a whole number beyond every float
            return float(value)
    raise RecordError(f"{where} is {checks.shown(value)}, expected a number or None.")


def float_lists(where: str, value: object) -> NDArray[np.float64]:
    """Read an array of numbers."""
    return np.array(checks.each(where, value, floats), dtype=np.float64)


_NUMBERS: Mapping[Kind, type] = {wholes: np.int64, floats: np.float64}


def check_lengths(columns: Mapping[str, Sequence[object]]) -> None:
    """Check that columns have the same number of rows.

    Raises:
        RecordError: A column is not a list, or columns are empty or of unequal length; all lengths are shown.
    """
    for name, column in columns.items():
        if not isinstance(column, Sized) or isinstance(column, str | bytes | Mapping) or not getattr(column, "ndim", 1):
            raise RecordError(f"{name} is {checks.shown(column)}, expected a list with one value per row.")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise RecordError(f"columns have unequal lengths {lengths}; give one value per row in every column.")
    if not any(lengths.values()):
        raise RecordError(f"no rows in {list(lengths)}; there is nothing to compute.")


def read_columns(kinds: Mapping[str, Kind], columns: Columns, optional: Collection[str] = ()) -> pd.DataFrame:
    """Read columns of equal length into a data frame.

    Args:
        kinds: Column -> what each of its cells holds.
        columns: One value per row in each.
        optional: Which of them may be missing.

    Raises:
        RecordError: Unequal lengths, no rows, a missing column, or a value that its column cannot hold; row, value and
            what was expected.
        UnknownNameError: There is no such column.
    """
    for name in columns:
        checks.one_of("column", name, kinds)
    given: dict[str, Any] = {name: columns[name] for name in kinds if columns.get(name) is not None}
    if missing := [name for name in kinds if name not in given and name not in optional]:
        raise RecordError(f"columns {missing} are missing; there are {list(given)}.")
    check_lengths(given)
    frame = {}
    for name, column in given.items():
        kind = kinds[name]
        if kind is ids:
            kind = labels if any(isinstance(value, str) for value in column) else wholes
        plain = kind is floats and set(map(type, column)) <= {float, type(None)}
        values = list(column) if plain else list(checks.each(name, column, kind))
        frame[name] = pd.Series(values, dtype=_NUMBERS.get(kind, object))
    return pd.DataFrame(frame)


def read_clustered(kinds: Mapping[str, Kind], columns: Columns) -> pd.DataFrame:
    """Read columns as `read_columns` does, with `cluster` as codes from 0; without it every row is a separate one."""
    frame = read_columns(kinds, columns, ["cluster"])
    return frame.assign(cluster=pd.factorize(frame["cluster"])[0] if "cluster" in frame else np.arange(len(frame)))


def refuse_rows(frame: pd.DataFrame, bad: pd.Series, names: Sequence[str], expected: str) -> None:
    """Refuse rows.

    Args:
        frame: All rows.
        bad: Which of them are refused.
        names: Columns of the first one that are shown.
        expected: What they should be, and what to do.

    Raises:
        RecordError: A row is refused.
    """
    if bad.any():
        row = frame.loc[bad.to_numpy(), list(names)].astype(object).iloc[0].to_dict()
        first = ", ".join(f"{name} {value!r}" for name, value in row.items())
        raise RecordError(f"{int(bad.sum())} of {len(frame)} rows are refused, first: {first}. Expected {expected}.")
