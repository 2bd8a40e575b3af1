"""Cases as an Arrow table: one row per case, columns named as in CounterFact and the released SEESAW-CF files.

The prompts about other people, three parallel lists in the released JSON, are one list of structs here. Only strings,
numbers, booleans, structs and lists are used, so that `datasets.load_dataset` and streaming open the files as they are.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import read_bytes
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.types import AttributePrompt, Case, EditRequest, Entity
from seesaw_cf.records.checks import check_unique
from seesaw_cf.records.formats import request_row
from seesaw_cf.records.json_records import parse_json
from seesaw_cf.records.relations import FREE

T = TypeVar("T")

TEXT, TEXTS = pa.string(), pa.list_(pa.string())
ENTITY = pa.struct({"str": TEXT, "id": TEXT})
REQUEST = pa.struct({"prompt": TEXT, "relation_id": TEXT, "target_new": ENTITY, "target_true": ENTITY, "subject": TEXT})
_PROMPT = pa.struct(
    {
        "text": TEXT,
        "subject": ENTITY,
        **dict.fromkeys(("template_id", "holds"), TEXT),
        **dict.fromkeys(("gender", "race", "region"), TEXTS),
        "living": pa.bool_(),
        "sitelinks": pa.int64(),
        "flags": TEXTS,
    }
)
# Null means None; an empty list or string is itself. `extra` is a JSON object with sorted keys.
CASES: pa.Schema = pa.schema(
    {
        "case_id": pa.int64(),
        "requested_rewrite": REQUEST,
        "effect_relation_id": TEXT,
        **dict.fromkeys(("attribute_prompts", "effect_prompts"), pa.list_(_PROMPT)),
        **dict.fromkeys(("candidates", "gold"), TEXTS),
        **dict.fromkeys(("generation_prompts", "paraphrase_prompts", "neighborhood_prompts"), TEXTS),
        **dict.fromkeys(("record_format", "extra"), TEXT),
        "flags": TEXTS,
    }
)
# Open-ended prompts of cases, which long texts are written for: one row per (case, prompt). use: "guided" or "free";
# config: where the case is; subject_id: null where the record names its subject only.
OPEN_ENDED: pa.Schema = pa.schema(
    {
        "case_id": pa.int64(),
        "config": TEXT,
        "requested_rewrite": REQUEST,
        **dict.fromkeys(("effect_relation_id", "subject_id", "prompt", "use"), TEXT),
    }
)

# Struct -> what it is a column of; fields and columns have the same names but for a few.
_RECORDS: dict[pa.DataType, type] = {ENTITY: Entity, REQUEST: EditRequest, _PROMPT: AttributePrompt}
_REPEATED = (Entity, AttributePrompt)  # of which equal ones of a batch are one object: edits ask the same
_ATTRIBUTES = {"str": "label", "requested_rewrite": "request"}
_REMEDY = "Make it with seesaw_cf.records.cases_to_table, or import the released files again."
_BATCH = 4096  # cases that are read together
_NULLABLE = ("id", "effect_relation_id", "living", "sitelinks")
_REQUIRED = (
    "case_id",
    "requested_rewrite",
    "record_format",
    "paraphrase_prompts",
    "neighborhood_prompts",
)  # everywhere


def _column(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Return a column out of values: records, sequences of anything, or what Arrow takes as it is."""
    if pa.types.is_list(kind):
        offsets = pa.array(itertools.accumulate(map(len, values), initial=0), pa.int32())
        items = _column(kind.value_type, list(itertools.chain.from_iterable(values)))
        return pa.ListArray.from_arrays(offsets, items, type=kind)
    if pa.types.is_struct(kind):
        columns = [_column(field.type, _attributes(values, field.name)) for field in kind]
        return pa.StructArray.from_arrays(columns, fields=list(kind))
    return pa.array(values, kind)


def _attributes(records: Iterable[object], column: str) -> list[Any]:
    return list(map(attrgetter(_ATTRIBUTES.get(column, column)), records))


def cases_to_table(cases: Iterable[Case]) -> pa.Table:
    """Turn cases into a table of schema `CASES`, one row per case, in the order given.

    Args:
        cases: Cases; none gives a table of 0 rows.

    Returns:
        The table. `table_to_cases` gives equal cases back.

    Raises:
        RecordError: A value does not fit its column: a half of a surrogate pair in a text, a case_id over 64 bits,
            something in `extra` that JSON cannot hold.
    """
    rows = list(cases)
    try:
        return _table(rows)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError, TypeError, ValueError) as error:
        raise _misfit(rows, error) from error


def _table(rows: Sequence[Case]) -> pa.Table:
    values = {name: _attributes(rows, name) for name in CASES.names}
    values["extra"] = [json.dumps(extra, sort_keys=True, allow_nan=False) for extra in values["extra"]]
    return pa.Table.from_arrays([_column(field.type, values[field.name]) for field in CASES], schema=CASES)


def _misfit(rows: Sequence[Case], error: Exception) -> RecordError:
    """Name the first case that does not fit on its own."""
    for row in rows:
        try:
            _table([row])
        except Exception as own:
            return RecordError(f"case {row.case_id!r}: a value does not fit its column ({own}). Correct or drop it.")
    return RecordError(f"{len(rows)} cases do not fit into one table ({error}). Split them into several tables.")


def _values(column: pa.Array, name: str) -> list[Any]:
    """Return the inverse of `_column`; null only where `_NULLABLE` names the column."""
    if column.null_count and name not in _NULLABLE:
        raise TypeError(f"{name} holds {column.null_count} nulls")
    if pa.types.is_list(column.type):
        offsets, items = column.offsets.to_pylist(), _values(column.flatten(), name)
        rows = (tuple(items[start - offsets[0] : stop - offsets[0]]) for start, stop in itertools.pairwise(offsets))
        return _unify(rows) if pa.types.is_string(column.type.value_type) else list(rows)
    if pa.types.is_struct(column.type):
        parts = {field.name: _values(column.field(field.name), field.name) for field in column.type}
        return _records(_RECORDS[column.type], parts)
    if pa.types.is_string(column.type):  # names and prompts repeat: one string for each, not one for each row
        encoded = column.dictionary_encode()
        texts = [*encoded.dictionary.to_pylist(), None]
        return [texts[index] for index in encoded.indices.fill_null(len(texts) - 1).to_pylist()]
    return list(column.to_pylist())


def _records(kind: type[T], columns: Mapping[str, Iterable[Any]]) -> list[T]:
    """Make records of a dataclass from the columns of its fields."""
    by_field = {_ATTRIBUTES.get(name, name): column for name, column in columns.items()}
    rows = zip(*(by_field[field.name] for field in fields(kind)))  # type: ignore[arg-type]
    if kind not in _REPEATED:
        return list(itertools.starmap(kind, rows))
    found: dict[tuple[Any, ...], T] = {}
    return [found[row] if row in found else found.setdefault(row, kind(*row)) for row in rows]


def _unify(values: Iterable[T]) -> list[T]:
    """Return the values, equal ones as one object."""
    first: dict[T, T] = {}
    return [first.setdefault(value, value) for value in values]


def table_to_cases(table: pa.Table) -> list[Case]:
    """Turn a table of schema `CASES` into cases, the inverse of `cases_to_table`.

    Args:
        table: A table with the columns of `CASES`; further ones are ignored. Of a config `coupled_*`, made for
            long texts: its edits, their paraphrases and neighbourhood prompts; what is not there is empty, and `extra`
            holds `kind` ("counterfactual" or "factual"), `locality` and `portability` where the rows have them and, of
            zsRE, `loc_ans`, the answer of its neighborhood prompt.

    Raises:
        RecordError: A column is missing or has another type, or a row is not a usable edit request.
    """
    if set(table.column_names) >= _COUPLED:
        table = _without_passages(table)
    missing = [name for name in CASES.names if name not in table.column_names]
    if missing:
        raise RecordError(f"table of cases: columns {missing} are missing. {_REMEDY}")
    try:
        table = table.select(CASES.names).cast(CASES).combine_chunks()  # else each of many row groups is a batch
    except pa.ArrowException as error:
        raise RecordError(f"table of cases: {error}. {_REMEDY}") from error
    try:
        return [case for batch in table.to_batches(_BATCH) for case in _read_batch(batch)]
    except (AttributeError, TypeError, json.JSONDecodeError) as error:
        raise RecordError(
            f"table of cases: a null where a value is needed, or no JSON object in extra ({error}). {_REMEDY}"
        ) from error


# Columns that only the rows of `coupled_*` have, and what a case keeps of them in `extra`.
_COUPLED = {"kind", "subject_entity", "related_entity"}
_EXTRA = ("kind", "loc_ans", "locality", "portability")


def _without_passages(table: pa.Table) -> pa.Table:
    """Add the columns of `CASES` that a table of `coupled_*` lacks: `extra` is filled, the rest are empty."""
    rows = table.select([name for name in _EXTRA if name in table.column_names]).to_pylist()
    extra = [json.dumps({name: value for name, value in row.items() if value}) for row in rows]
    for field in CASES:
        if field.name not in (*table.column_names, *_REQUIRED):
            empty: list[object] = [[] if pa.types.is_list(field.type) else None] * len(table)
            table = table.append_column(field.name, pa.array(extra if field.name == "extra" else empty, field.type))
    return table


def _read_batch(batch: pa.RecordBatch) -> list[Case]:
    columns: dict[str, Iterable[Any]] = {name: _values(batch[name], name) for name in CASES.names}
    return _records(Case, columns | {"extra": ({**json.loads(text)} for text in columns["extra"])})


def open_ended(config: str, cases: Iterable[Case]) -> pa.Table:
    """Return the open-ended prompts of cases as a flat table of schema `OPEN_ENDED`.

    Args:
        config: The config that the cases belong to.
        cases: Its cases, or some of them. Those without generation prompts give no row.
    """
    rows = []
    for case in cases:
        free = {words.replace("{}", case.request.subject) for words in (FREE.present, FREE.past)}
        own = {"case_id": case.case_id, "config": config, "requested_rewrite": request_row(case.request)}
        own |= {"effect_relation_id": case.effect_relation_id, "subject_id": case.extra.get("subject_id") or None}
        rows += [
            own | {"prompt": text, "use": "free" if text in free else "guided"} for text in case.generation_prompts
        ]
    return pa.Table.from_pylist(rows, schema=OPEN_ENDED)


# Files of cases: Parquet (a file or a folder of shards), JSON and JSON lines, recognised by what they contain.


def read_cases(path: str | os.PathLike[str], skipped: list[str] | None = None) -> list[Case]:
    """Read cases from a Parquet file, a folder of Parquet shards, or a JSON or JSON-lines file.

    What the file contains decides, not its name. JSON records are flagged (`seesaw_cf.records.checks`); cases from
    Parquet keep the flags they have.

    Args:
        path: The file or folder. A name `seesaw_cf_P27_P101.json` means that P101 is the effect relation.
        skipped: Gets the message of each malformed JSON record, which is left out; None to raise the first.

    Returns:
        The cases in file order; of a folder, shard after shard by name.

    Raises:
        StorageError: The file does not exist.
        RecordError: The file is empty, damaged or of another kind, a record is malformed, two cases share a case_id.
        UnknownNameError: A relation is unknown.
    """
    place = check_path(path)
    if place.is_dir():
        shards = sorted(place.glob("*.parquet"))
        if not shards:
            raise RecordError(f"{place}: a folder without .parquet files. Give a file, or a folder such as data/NAME.")
        return check_unique([case for shard in shards for case in _read_parquet(shard)], place)
    content = read_bytes(place)
    if content.startswith(b"PAR1"):
        return check_unique(_read_parquet(place), place)
    return parse_json(content, place, skipped)


def _read_parquet(path: Path) -> list[Case]:
    table = read_table(path)
    try:
        return table_to_cases(table)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
