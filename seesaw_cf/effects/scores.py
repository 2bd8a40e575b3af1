"""Score tables of any size, in memory or in a file: only the rows and columns that are asked for, editor by editor."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.tables import LATER, SCORES, column_names, read_table

# Pre-edit rows may be stored once for all editors, under one of these names.
UNEDITED = ("", "none")
_WORDS = [field.name for field in SCORES if field.type == pa.string()]
_CODED = {name: pa.field(name, pa.dictionary(pa.int32(), pa.string())) for name in _WORDS}
# A file's statistics of words, not of codes, tell which parts of it to skip: rows are chosen by these two columns.
_ENCODED = [name for name in _WORDS if name not in ("editor", "kind")]
_PART = 500_000  # rows of all editors that are paired at a time
_BETWEEN = "\x1f"  # "unit separator": no tag has it


@dataclass(frozen=True)
class ScoreFile:
    """A score table in a file, of which parts are read; words come as codes.

    Attributes:
        path: A Parquet file with the columns `seesaw_cf.base.tables.SCORES`.
    """

    path: Path

    @cached_property
    def _names(self) -> list[str]:
        return column_names(self.path)

    def rows(self, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Return some columns of the rows for which an expression holds.

        Raises:
            RecordError: The file is damaged or has other columns.
        """
        schema = pa.schema([_CODED.get(name, SCORES.field(name)) for name in columns])
        there = [name for name in columns if name in self._names]
        rows = read_table(
            self.path,
            schema,
            columns=there,
            filters=where,
            read_dictionary=_WORDS if where is None else _ENCODED,
            use_threads=False,  # reading ahead would take the memory that parts save
            pre_buffer=False,
        )
        return rows.unify_dictionaries()


Scores: TypeAlias = pa.Table | pd.DataFrame | ScoreFile
"""A score table as functions of effects take it."""


def as_table(scores: pa.Table | pd.DataFrame) -> pa.Table:
    """Bring a score table to the schema `seesaw_cf.base.tables.SCORES`.

    Raises:
        RecordError: Columns are missing or hold other types.
    """
    for name in LATER:
        if isinstance(scores, pd.DataFrame) and name not in scores:
            scores = scores.assign(**{name: None})
        elif isinstance(scores, pa.Table) and name not in scores.column_names:
            scores = scores.append_column(name, pa.nulls(len(scores), SCORES.field(name).type))
    names = scores.column_names if isinstance(scores, pa.Table) else list(scores.columns)
    missing = [name for name in SCORES.names if name not in names]
    if missing:
        raise RecordError(f"score table: columns {missing} are missing, got {names}. See seesaw_cf.base.tables.SCORES.")
    try:
        if isinstance(scores, pa.Table):
            return scores.select(SCORES.names).cast(SCORES)
        return pa.Table.from_pandas(scores[SCORES.names], schema=SCORES, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
        raise RecordError(f"score table: a column has another type than SCORES says ({error}).") from error


def checked(scores: Scores) -> pa.Table | ScoreFile:
    """Return a file as it is, and any other score table as `as_table` does."""
    return scores if isinstance(scores, ScoreFile) else as_table(scores)


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
    scores: pa.Table | ScoreFile, where: pc.Expression, columns: Sequence[str] = SCORES.names, parts: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each editor with post-edit rows, with its pre-edit rows or, if it has none, the shared ones.

    Args:
        scores: See `checked`.
        where: Which rows count.
        columns: Which columns are read.
        parts: Rows of an editor may come in several tables, of whole cases in their order.

    Raises:
        RecordError: No post-edit row exists, or a phase other than "pre" and "post".
    """
    counts = count_rows(scores, ["editor", "phase"], where)
    phases = set(counts["phase"].to_pylist())
    if phases - {"pre", "post"}:
        raise RecordError(f"score table: phases {sorted(map(str, phases))}, expected only 'pre' and 'post'.")
    there = {(editor or "", phase) for editor, phase in zip(counts["editor"].to_pylist(), counts["phase"].to_pylist())}
    editors = sorted(editor for editor, phase in there if phase == "post")
    if not editors and there:
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
    case, cuts = pc.field("case_id"), []
    for low, high in zip([None, *firsts], [*firsts, None]):
        above = where if low is None else where & (case >= low)
        cuts.append(above if high is None else above & (case < high))
    return cuts


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
    return categorical([tuple(filter(None, text.split(_BETWEEN))) for text in values] if lists else values, codes)


def stack(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return frames below each other, codes as codes; the frames are emptied column by column, for want of memory."""
    columns = {}
    for name in list(map(str, frames[0].columns)):
        parts = [frame.pop(name) for frame in frames]
        coded = all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts)
        columns[name] = _together(parts) if coded else pd.concat(parts, ignore_index=True)
    return pd.DataFrame(columns, copy=False)


def _together(parts: Sequence[pd.Series]) -> pd.Categorical:
    values = [part.cat.categories.tolist() for part in parts]
    starts = np.cumsum([0, *map(len, values)])
    codes = [part.cat.codes.to_numpy(np.int32) for part in parts]
    moved = [np.where(own < 0, own, own + start) for own, start in zip(codes, starts)]
    return categorical([value for own in values for value in own], np.concatenate(moved))


def categorical(values: Sequence[Hashable], codes: NDArray[np.integer[Any]]) -> pd.Categorical:
    """Return codes, -1 where missing, as codes of the values that occur, sorted and each once."""
    used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(values))).tolist()
    place = {value: at for at, value in enumerate(sorted({values[at] for at in used}))}  # type: ignore[type-var]
    table = np.full(len(values) + 1, -1, np.int32)  # -1 is its last entry
    table[used] = [place[values[at]] for at in used]
    return pd.Categorical.from_codes(table[codes], categories=pd.Index(list(place), tupleize_cols=False))
