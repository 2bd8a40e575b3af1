"""Records that long texts are written for, as the configs `coupled_*` and `open_ended` hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import read_bytes
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.types import Case, EditRequest, Entity
from seesaw_cf.records.arrow import CASES, open_ended, read_cases, table_to_cases
from seesaw_cf.records.coupled import coupled_row
from seesaw_cf.records.sample import SAMPLE, path

# Passage -> the field of a record that holds its entity.
SIDES = {"subject": "subject_entity", "related": "related_entity"}
# Configs that texts are written for where none is named: the first that the data has.
_USUAL = ("coupled_counterfact", "coupled_zsre", "open_ended")


LongformRecord = dict[str, Any]
"""A row of a config: `case_id`, `requested_rewrite` with CounterFact's field names, and what texts are written about.

Rows of `coupled_*` have two sides, `subject_entity` and `related_entity`, each with `entity` (id, str), `ground_truth`
(property_id, property, values) and its prompts `essay` and `article`; rows of `open_ended` a `prompt` and its `use`.
"""


def usual_configs(source: str) -> tuple[str, ...]:
    """Return the config that texts are written for where none is named; a file has one, which needs no name.

    Raises:
        UnknownNameError: A folder without such a config.
    """
    local = path() if source == SAMPLE else Path(source)
    if not local.is_dir():
        return _USUAL[:1]
    names = _configs(local)
    return (next((name for name in _USUAL if name in names), None) or one_of(f"config of {source}", _USUAL[0], names),)


def read_records(source: str, configs: Sequence[str]) -> dict[str, list[LongformRecord]]:
    """Read what long texts are written for: rows of `coupled_*` and `open_ended`, or cases, whose own prompts are read.

    Args:
        source: "sample", a dataset folder, a file, or a Hub id.
        configs: Names of its configs. A file has one: all names give the same rows, once.

    Returns:
        Config -> its rows.

    Raises:
        UnknownNameError: The source has no such config.
        RecordError: A file is damaged.
        StorageError: Nothing can be read there.
    """
    local = path() if source == SAMPLE else Path(source)
    if local.is_file():
        name = configs[0] if configs else _USUAL[0]
        return {name: _file_rows(local, name)}
    if not local.exists():
        return {config: _hub_rows(source, config) for config in configs}
    files = _configs(local)
    names = [one_of(f"config of {local}", config, files) for config in configs]
    return {name: [row for file in files[name] for row in _file_rows(file, name)] for name in names}


def _configs(folder: Path) -> dict[str, list[Path]]:
    root = folder / "data" if (folder / "data").is_dir() else folder
    files = {child.name: sorted(child.glob("*.parquet")) for child in root.iterdir() if child.is_dir()}
    return {name: own for name, own in files.items() if own}


def _hub_rows(source: str, config: str) -> list[LongformRecord]:
    from datasets import load_dataset

    try:
        tables = [part.data.table for part in load_dataset(source, config).values()]
        return _rows(pa.concat_tables(tables), config)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{source!r} is neither {SAMPLE!r}, a file or folder here, nor a data set the Hub answers for "
            f"({type(error).__name__}: {error}). Check the name, the config {config!r} and the network."
        ) from error


def _file_rows(file: Path, config: str) -> list[LongformRecord]:
    parquet = read_bytes(file)[:4] == b"PAR1"
    return _rows(read_table(file), config) if parquet else _case_rows(read_cases(file), config)


def _rows(table: pa.Table, config: str) -> list[LongformRecord]:
    """Return rows as they are; of cases, what texts are written for of them."""
    if set(CASES.names) <= set(table.column_names):
        return _case_rows(table_to_cases(table), config)
    return cast(list[LongformRecord], table.to_pylist())


def _case_rows(cases: Sequence[Case], config: str) -> list[LongformRecord]:
    """Return coupled entities where cases name them, else their open-ended prompts."""
    coupled = [row for case in cases if (row := coupled_row(case)) is not None]
    return cast(list[LongformRecord], coupled or open_ended(config, cases).to_pylist())


def coupled_records(records: Iterable[LongformRecord]) -> list[LongformRecord]:
    """Return the records that couple a subject with a related entity."""
    return [record for record in records if "subject_entity" in record]


def entity_name(side: Mapping[str, Any] | None) -> str:
    """Return the name of the entity on one side of a record; "" where there is none."""
    return str(((side or {}).get("entity") or {}).get("str") or "")


def records_of_run(manifest: Mapping[str, Any], passages: pa.Table) -> list[LongformRecord]:
    """Return the records that the texts of a run were written for.

    Args:
        manifest: `manifest.json` of the run; its job names the source of the records.
        passages: `tables.PASSAGES`.

    Raises:
        RecordError: The manifest is of no such run, or records are not there any more.
    """
    job, written = manifest.get("job") or {}, set(passages["case_id"].to_pylist())
    if not {"data", "configs"} <= job.keys():
        raise RecordError("manifest: no job with data and configs in it. Give the folder of `seesaw-cf texts write`.")
    everything = read_records(job["data"], job["configs"]).values()
    records = [row for rows in everything for row in rows if row["case_id"] in written]
    if lost := written - {row["case_id"] for row in records}:
        raise RecordError(
            f"{job['data']} {job['configs']}: {len(lost)} of {len(written)} cases of the run are not there any more, "
            f"first {min(lost)}. Put the records back where they were."
        )
    return records


def request_of(record: LongformRecord) -> EditRequest:
    """Return the edit that a record asks for.

    Raises:
        RecordError: It has none, or one that is not whole.
    """
    rewrite = record.get("requested_rewrite") or {}
    try:
        new, true = (Entity(side.get("id"), side["str"]) for side in (rewrite["target_new"], rewrite["target_true"]))
        return EditRequest(rewrite["prompt"], rewrite["subject"], rewrite["relation_id"], new, true)
    except (KeyError, AttributeError, TypeError) as error:
        raise RecordError(
            f"record {record.get('case_id')}: requested_rewrite is {rewrite!r} ({type(error).__name__}: {error}), "
            "expected prompt, subject, relation_id, target_new and target_true. Make the data with `seesaw-cf build`."
        ) from error


def spare_cases(rows: Sequence[LongformRecord], evaluated: Sequence[LongformRecord]) -> list[Case]:
    """Return the records that demonstrations of in-context editing may come from.

    Args:
        rows: All records of the run's configs. Paraphrase and neighborhood prompts, where they have them, give
            "update" and "retain".
        evaluated: Those that texts are written for. Their people, as subject of the edit or as related entity, are in
            no demonstration.

    Returns:
        One case for each other edit, in their order.
    """
    people = {name for row in evaluated for name in _people(row)}
    cases: dict[tuple[int, str], Case] = {}
    for row in rows:
        request = request_of(row)
        if people.isdisjoint(_people(row)):
            paraphrases, neighbors = row.get("paraphrase_prompts"), row.get("neighborhood_prompts")
            case = Case(
                row["case_id"],
                request,
                paraphrase_prompts=tuple(paraphrases or ()),
                neighborhood_prompts=tuple(neighbors or ()),
            )
            cases.setdefault((case.case_id, request.text), case)
    return list(cases.values())


def _people(row: LongformRecord) -> set[str]:
    return {row["requested_rewrite"]["subject"], *(entity_name(row.get(side)) for side in SIDES.values())} - {""}
