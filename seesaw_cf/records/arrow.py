"""Cases as an Arrow table: one row per case, columns named as in CounterFact and the released SEESAW-CF files.

The prompts about other people, three parallel lists in the released JSON, are one list of structs here. Only strings,
numbers, booleans, structs and lists are used, so that `datasets.load_dataset` and streaming open the files as they are.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from seesaw_cf.errors import RecordError
from seesaw_cf.types import AttributePrompt, Case, EditRequest, Entity

__all__ = ["CASES", "ENTITY", "REQUEST", "cases_to_table", "entity_row", "request_row", "table_to_cases"]

T = TypeVar("T")

_STRINGS = pa.list_(pa.string())
ENTITY = pa.struct([("str", pa.string()), ("id", pa.string())])
REQUEST = pa.struct(
    [
        ("prompt", pa.string()),
        ("relation_id", pa.string()),
        ("target_new", ENTITY),
        ("target_true", ENTITY),
        ("subject", pa.string()),
    ]
)
_PROMPT = pa.struct(
    [
        ("text", pa.string()),
        ("subject", ENTITY),
        ("template_id", pa.string()),
        ("holds", pa.string()),
        ("gender", _STRINGS),
        ("race", _STRINGS),
        ("region", _STRINGS),
        ("living", pa.bool_()),
        ("sitelinks", pa.int64()),
        ("flags", _STRINGS),
    ]
)

# Null means None; an empty list or string is itself. `extra` is a JSON object with sorted keys.
CASES: pa.Schema = pa.schema(
    [
        ("case_id", pa.int64()),
        ("requested_rewrite", REQUEST),
        ("effect_relation_id", pa.string()),
        ("attribute_prompts", pa.list_(_PROMPT)),
        ("effect_prompts", pa.list_(_PROMPT)),
        ("candidates", _STRINGS),
        ("gold", _STRINGS),
        ("generation_prompts", _STRINGS),
        ("paraphrase_prompts", _STRINGS),
        ("neighborhood_prompts", _STRINGS),
        ("record_format", pa.string()),
        ("extra", pa.string()),
        ("flags", _STRINGS),
    ]
)


def entity_row(entity: Entity) -> dict[str, str | None]:
    """An entity as a value of type `ENTITY`."""
    return {"str": entity.label, "id": entity.id}


def request_row(request: EditRequest) -> dict[str, object]:
    """An edit request as a value of type `REQUEST`."""
    return {
        "prompt": request.prompt,
        "relation_id": request.relation_id,
        "target_new": entity_row(request.target_new),
        "target_true": entity_row(request.target_true),
        "subject": request.subject,
    }


def _lists(type_: pa.DataType, rows: Sequence[Sequence[T]], flat: Callable[[list[T]], pa.Array]) -> pa.Array:
    """A list column from its rows; `flat` makes the column of all their elements."""
    offsets = pa.array(itertools.accumulate(map(len, rows), initial=0), pa.int32())
    return pa.ListArray.from_arrays(offsets, flat(list(itertools.chain.from_iterable(rows))), type=type_)


def _strings(rows: Sequence[Sequence[str]]) -> pa.Array:
    return _lists(_STRINGS, rows, lambda flat: pa.array(flat, pa.string()))


def _entities(rows: Sequence[Entity]) -> pa.Array:
    columns = [pa.array([row.label for row in rows], pa.string()), pa.array([row.id for row in rows], pa.string())]
    return pa.StructArray.from_arrays(columns, fields=list(ENTITY))


def _requests(rows: Sequence[EditRequest]) -> pa.Array:
    columns = [
        pa.array([row.prompt for row in rows], pa.string()),
        pa.array([row.relation_id for row in rows], pa.string()),
        _entities([row.target_new for row in rows]),
        _entities([row.target_true for row in rows]),
        pa.array([row.subject for row in rows], pa.string()),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(REQUEST))


def _prompts(rows: Sequence[AttributePrompt]) -> pa.Array:
    columns = [
        pa.array([row.text for row in rows], pa.string()),
        _entities([row.subject for row in rows]),
        pa.array([row.template_id for row in rows], pa.string()),
        pa.array([row.holds for row in rows], pa.string()),
        _strings([row.gender for row in rows]),
        _strings([row.race for row in rows]),
        _strings([row.region for row in rows]),
        pa.array([row.living for row in rows], pa.bool_()),
        pa.array([row.sitelinks for row in rows], pa.int64()),
        _strings([row.flags for row in rows]),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_PROMPT))


def _prompt_lists(rows: Sequence[Sequence[AttributePrompt]]) -> pa.Array:
    return _lists(pa.list_(_PROMPT), rows, _prompts)


def cases_to_table(cases: Iterable[Case]) -> pa.Table:
    """Turns cases into a table of schema `CASES`, one row per case, in the order given.

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
    columns = [
        pa.array([row.case_id for row in rows], pa.int64()),
        _requests([row.request for row in rows]),
        pa.array([row.effect_relation_id for row in rows], pa.string()),
        _prompt_lists([row.attribute_prompts for row in rows]),
        _prompt_lists([row.effect_prompts for row in rows]),
        _strings([row.candidates for row in rows]),
        _strings([row.gold for row in rows]),
        _strings([row.generation_prompts for row in rows]),
        _strings([row.paraphrase_prompts for row in rows]),
        _strings([row.neighborhood_prompts for row in rows]),
        pa.array([row.record_format for row in rows], pa.string()),
        pa.array([json.dumps(row.extra, sort_keys=True, allow_nan=False) for row in rows], pa.string()),
        _strings([row.flags for row in rows]),
    ]
    return pa.Table.from_arrays(columns, schema=CASES)


def _misfit(rows: Sequence[Case], error: Exception) -> RecordError:
    """Names the first case that does not fit on its own."""
    for row in rows:
        try:
            _table([row])
        except Exception as own:
            return RecordError(
                f"case {row.case_id!r}: a value does not fit its column ({own}); expected the types of "
                "seesaw_cf.types.Case, text without lone surrogates and JSON values in extra. Correct or drop the case."
            )
    return RecordError(f"{len(rows)} cases do not fit into one table ({error}). Split them into several tables.")


def _values(column: pa.Array, name: str) -> list[Any]:
    """The values of a column in which null means nothing."""
    if column.null_count:
        raise TypeError(f"{name} is null in {column.null_count} rows")
    return list(column.to_pylist())


def _parts(column: pa.Array, values: Sequence[T]) -> list[tuple[T, ...]]:
    """Cuts the flattened values of a list column into one tuple per row."""
    offsets = column.offsets.to_pylist()
    return [tuple(values[start - offsets[0] : stop - offsets[0]]) for start, stop in itertools.pairwise(offsets)]


def _read_strings(column: pa.Array) -> list[tuple[str, ...]]:
    return _parts(column, column.flatten().to_pylist())


def _read_entities(column: pa.Array) -> list[Entity]:
    return list(map(Entity, column.field("id").to_pylist(), _values(column.field("str"), "str")))


def _read_requests(column: pa.Array) -> list[EditRequest]:
    return list(
        map(
            EditRequest,
            _values(column.field("prompt"), "prompt"),
            _values(column.field("subject"), "subject"),
            _values(column.field("relation_id"), "relation_id"),
            _read_entities(column.field("target_new")),
            _read_entities(column.field("target_true")),
        )
    )


def _read_prompts(column: pa.Array) -> list[tuple[AttributePrompt, ...]]:
    flat = column.flatten()
    prompts = map(
        AttributePrompt,
        _values(flat.field("text"), "text"),
        _read_entities(flat.field("subject")),
        _values(flat.field("template_id"), "template_id"),
        _values(flat.field("holds"), "holds"),
        _read_strings(flat.field("gender")),
        _read_strings(flat.field("race")),
        _read_strings(flat.field("region")),
        flat.field("living").to_pylist(),
        flat.field("sitelinks").to_pylist(),
        _read_strings(flat.field("flags")),
    )
    return _parts(column, list(prompts))


def table_to_cases(table: pa.Table) -> list[Case]:
    """Turns a table of schema `CASES` into cases, the inverse of `cases_to_table`.

    Args:
        table: A table with the columns of `CASES`; others are ignored.

    Raises:
        RecordError: A column is missing or has another type, or a row is no usable edit request.
    """
    missing = [name for name in CASES.names if name not in table.column_names]
    if missing:
        raise RecordError(
            f"table of cases: columns {missing} are missing; it has {table.column_names}. "
            "Make it with seesaw_cf.records.cases_to_table, or import the released files again."
        )
    try:
        table = table.select(CASES.names).cast(CASES)
    except pa.ArrowException as error:
        raise RecordError(f"table of cases: {error}. Make it with seesaw_cf.records.cases_to_table.") from error
    try:
        return [case for batch in table.to_batches() for case in _read_batch(batch)]
    except (AttributeError, TypeError, json.JSONDecodeError) as error:
        raise RecordError(
            f"table of cases: a null where a value is needed, or no JSON in extra ({error}); only effect_relation_id, "
            "ids, living and sitelinks may be null. Make it with seesaw_cf.records.cases_to_table."
        ) from error


def _read_batch(batch: pa.RecordBatch) -> list[Case]:
    return list(
        map(
            Case,
            _values(batch["case_id"], "case_id"),
            _read_requests(batch["requested_rewrite"]),
            batch["effect_relation_id"].to_pylist(),
            _read_prompts(batch["attribute_prompts"]),
            _read_prompts(batch["effect_prompts"]),
            _read_strings(batch["candidates"]),
            _read_strings(batch["gold"]),
            _read_strings(batch["generation_prompts"]),
            _read_strings(batch["paraphrase_prompts"]),
            _read_strings(batch["neighborhood_prompts"]),
            _values(batch["record_format"], "record_format"),
            map(json.loads, _values(batch["extra"], "extra")),
            _read_strings(batch["flags"]),
        )
    )
