"""Records that long texts are written for, of the configs `coupled_*` and `open_ended`, and their edits and prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import read_bytes
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.types import Case, EditRequest, Entity
from seesaw_cf.records.arrow import CASES, open_ended, read_cases, table_to_cases
from seesaw_cf.records.coupled import coupled_row
from seesaw_cf.records.load import SAMPLE, path

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
    return _rows(read_table(file) if read_bytes(file)[:4] == b"PAR1" else read_cases(file), config)


def _rows(own: pa.Table | Sequence[Case], config: str) -> list[LongformRecord]:
    """Return rows as they are; of cases coupled entities where they name them, else their open-ended prompts."""
    if isinstance(own, pa.Table) and not set(CASES.names) <= set(own.column_names):
        return cast(list[LongformRecord], own.to_pylist())
    cases = table_to_cases(own) if isinstance(own, pa.Table) else own
    coupled = [row for case in cases if (row := coupled_row(case)) is not None]
    return cast(list[LongformRecord], coupled or open_ended(config, cases).to_pylist())


def entity_name(side: Mapping[str, Any] | None) -> str:
    """Return the name of the entity on one side of a record; "" where there is none."""
    return str(((side or {}).get("entity") or {}).get("str") or "")


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
        if people.isdisjoint(_people(row)):
            asked = [tuple(row.get(name) or ()) for name in ("paraphrase_prompts", "neighborhood_prompts")]
            case = Case(row["case_id"], request_of(row), paraphrase_prompts=asked[0], neighborhood_prompts=asked[1])
            cases.setdefault((case.case_id, case.request.text), case)
    return list(cases.values())


def _people(row: LongformRecord) -> set[str]:
    return {row["requested_rewrite"]["subject"], *(entity_name(row.get(side)) for side in SIDES.values())} - {""}


@dataclass(frozen=True, slots=True)
class PassagePrompt:
    """One text to be written.

    Attributes:
        passage: "subject", "related", "guided" or "free".
        number: Which prompt of its kind, from 0.
        entity: Person or thing of the text.
        text: The prompt, with the lead at its end; "" when the record cannot make it.
        status: "ok", or what is missing in the record.
        lead: Words of the prompt that the passage begins with.
    """

    passage: str
    number: int
    entity: Entity
    text: str
    status: str = "ok"
    lead: str = ""


@dataclass(frozen=True, slots=True)
class EditedCase:
    """One edit and the texts that are written before and after it."""

    case_id: int
    request: EditRequest
    prompts: tuple[PassagePrompt, ...]
    dataset: str = ""  # format and kind of a coupled record, such as "zsre factual"


def coupled_cases(records: Sequence[LongformRecord]) -> list[EditedCase]:
    """Return the edits of a `coupled_*` config with their two prompts.

    Source: LEME, Figure 2 and Appendix A.1; the last item, the relationship to the other entity of the couple, as in
        the released code and in the instructions that people were given (Table 4).
    Deviates: the released code writes "-relationship" without a space; the other items have one.

    Args:
        records: Rows of the config.

    Returns:
        One case per record. A record without related entity keeps a prompt with a status that tells why.

    Raises:
        RecordError: The edit or the subject's prompt is missing in a record, or two share a case id.
    """
    cases: dict[int, EditedCase] = {}
    for record in records:
        prompts = _side_prompt(record, "subject", "related"), _side_prompt(record, "related", "subject")
        if prompts[0].status != "ok":
            raise RecordError(f"coupled record {record.get('case_id')}: {prompts[0].status}. Build the config again.")
        dataset = " ".join(filter(None, (record.get("record_format"), record.get("kind"))))
        case = EditedCase(record["case_id"], request_of(record), prompts, dataset)
        if cases.setdefault(case.case_id, case) is not case:
            raise RecordError(f"coupled records: case {case.case_id} is there twice. Use one config at a time.")
    return list(cases.values())


def _side_prompt(record: LongformRecord, passage: str, other: str) -> PassagePrompt:
    side, couple = record.get(SIDES[passage]) or {}, entity_name(record.get(SIDES[other]))
    name, text = entity_name(side), str(side.get("essay") or "").strip()
    if not name or not text:
        return PassagePrompt(passage, 0, Entity(None, ""), "", f"the record has no {passage} entity")
    text += f"\n- relationship to {couple}" if couple else ""
    return PassagePrompt(passage, 0, Entity(side["entity"].get("id"), name), text)


def open_ended_cases(records: Sequence[LongformRecord]) -> list[EditedCase]:
    """Return the edits of the `open_ended` config with their guided and free prompts.

    Raises:
        RecordError: The edit is missing in a record, or rows of one case name different edits.
    """
    cases: dict[int, EditedCase] = {}
    for record in records:
        request, use = request_of(record), record["use"]
        case = cases.get(record["case_id"], EditedCase(record["case_id"], request, ()))
        if case.request != request:
            raise RecordError(
                f"open-ended record: case {case.case_id} has two edits. Keep one config's cases at a time."
            )
        number = sum(prompt.passage == use for prompt in case.prompts)
        prompt = PassagePrompt(use, number, Entity(record.get("subject_id"), request.subject), record["prompt"])
        cases[case.case_id] = replace(case, prompts=(*case.prompts, prompt))
    return list(cases.values())


def cases_of(
    configs: Mapping[str, Sequence[LongformRecord]], limit: int | None = None, seed: int = 0
) -> tuple[list[LongformRecord], list[EditedCase]]:
    """Return the records and the cases that texts are written for, config by config.

    Args:
        configs: Config -> its records.
        limit: Only so many cases of each config.
        seed: Of which.

    Raises:
        RecordError: A case is in two configs, or nothing is to be written.
    """
    records: list[LongformRecord] = []
    cases: list[EditedCase] = []
    for rows in configs.values():
        own = open_ended_cases(rows) if rows and "use" in rows[0] else coupled_cases(rows)
        if limit is not None and limit < len(own):
            own = [own[index] for index in sorted(np.random.default_rng(seed).permutation(len(own))[:limit])]
        ids = {case.case_id for case in own}
        if clash := ids & {case.case_id for case in cases}:
            raise RecordError(f"configs {[*configs]}: case {min(clash)} is in two of them. Run them apart.")
        records += [row for row in rows if row["case_id"] in ids]
        cases += own
    if not cases:
        raise RecordError(f"configs {[*configs]}: nothing to write. Check --data, --config and --limit.")
    return records, cases
