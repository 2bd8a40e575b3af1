"""What is to be written: prompts about edited subjects and their related entities, each sample with its own seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import read_bytes
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.types import Case, EditRequest, Entity
from seesaw_cf.generation.types import Ask, Completion
from seesaw_cf.records.arrow import CASES, read_cases, table_to_cases
from seesaw_cf.records.coupled import coupled_row
from seesaw_cf.records.open_ended import open_ended
from seesaw_cf.records.sample import SAMPLE, path
from seesaw_cf.texts.tables import PassageRow

# The records that long-form texts are written for, as the configs `coupled_*` and `open_ended` hold them.

# Passage -> the field of a record that holds its entity.
SIDES: dict[Literal["subject", "related"], Literal["subject_entity", "related_entity"]] = {
    "subject": "subject_entity",
    "related": "related_entity",
}


# Not a class: a class whose field is named `str` could not use the type.
EntityRecord = TypedDict("EntityRecord", {"id": "str | None", "str": str}, total=False)  # noqa: UP013
"""An entity: its identifier and its name."""


class Rewrite(TypedDict, total=False):
    """An edit request, with CounterFact's field names."""

    prompt: str
    subject: str
    relation_id: str
    target_new: EntityRecord
    target_true: EntityRecord


class Truth(TypedDict):
    """A recorded fact of an entity: a property and its values."""

    property_id: str
    property: str
    values: list[EntityRecord]


class CoupledEntity(TypedDict, total=False):
    """One of two coupled entities: its facts, and its prompt in two wordings."""

    entity: EntityRecord | None
    ground_truth: list[Truth] | None
    essay: str | None
    article: str | None


class LongformRecord(TypedDict, total=False):
    """A row of a config. Those of `coupled_*` have two sides, those of `open_ended` a prompt and its use."""

    case_id: int
    record_format: str
    kind: str
    requested_rewrite: Rewrite
    subject_entity: CoupledEntity | None
    related_entity: CoupledEntity | None
    paraphrase_prompts: list[str] | None
    neighborhood_prompts: list[str] | None
    use: str
    prompt: str
    subject_id: str | None


WORDINGS = ("essay", "article")


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


def read_records(source: str, config: str) -> list[LongformRecord]:
    """Read the rows of a config that long texts are written for: `coupled_*`, `open_ended`, or cases.

    Args:
        source: "sample", a dataset folder, a file (`config` is then not
            needed), or a Hub id.
        config: Name of the config. Of cases, such as a released SEESAW-CF file, the open-ended prompts are read.

    Raises:
        UnknownNameError: The source has no such config.
        RecordError: A file is damaged.
        StorageError: Nothing can be read there.
    """
    local = path() if source == SAMPLE else Path(source)
    if not local.exists():
        from datasets import load_dataset

        try:
            tables = [part.data.table for part in load_dataset(source, config).values()]
            return _longform_rows(pa.concat_tables(tables), config)
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{source!r} is neither {SAMPLE!r}, a file or folder here, nor a data set the "
                f"Hub answers for ({type(error).__name__}: {error}). Check the name, the config {config!r} and the "
                "network."
            ) from error
    files = [local] if local.is_file() else _files(local, config)
    return [row for file in files for row in _file_rows(file, config)]


def coupled_records(records: Sequence[LongformRecord]) -> list[LongformRecord]:
    """Return the records that couple a subject with a related entity."""
    return [record for record in records if "subject_entity" in record]


def entity_name(side: CoupledEntity | None) -> str:
    """Return the name of the entity on one side of a record; "" where there is none."""
    return ((side or {}).get("entity") or {}).get("str") or ""


def _file_rows(file: Path, config: str) -> list[LongformRecord]:
    if read_bytes(file)[:4] != b"PAR1":
        return _case_rows(read_cases(file), config)
    return _longform_rows(read_table(file), config)


def _longform_rows(table: pa.Table, config: str) -> list[LongformRecord]:
    """Return rows as they are; of cases, their open-ended prompts."""
    if set(CASES.names) <= set(table.column_names):
        return _case_rows(table_to_cases(table), config)
    return cast(list[LongformRecord], table.to_pylist())


def _case_rows(cases: Sequence[Case], config: str) -> list[LongformRecord]:
    """Return what texts are written for of cases: coupled entities where they name them, else open-ended prompts."""
    coupled = [row for case in cases if (row := coupled_row(case)) is not None]
    return cast(list[LongformRecord], coupled or open_ended(config, cases).to_pylist())


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
        raise RecordError("manifest: no job with data and configs in it. Give the folder of `seesaw-cf leme run`.")
    rows = [row for config in job["configs"] for row in read_records(job["data"], config)]
    records = [row for row in rows if row["case_id"] in written]
    if lost := written - {row["case_id"] for row in records}:
        raise RecordError(
            f"{job['data']} {job['configs']}: {len(lost)} of {len(written)} cases of the run are not there any more, "
            f"first {min(lost)}. Put the records back where they were."
        )
    return records


def _files(folder: Path, config: str) -> list[Path]:
    root = folder / "data" if (folder / "data").is_dir() else folder
    files_of = {child.name: sorted(child.glob("*.parquet")) for child in root.iterdir() if child.is_dir()}
    return files_of[one_of(f"config of {folder}", config, [name for name, files in files_of.items() if files])]


def coupled_cases(
    records: Sequence[LongformRecord], wording: str = "essay", *, lead: bool = False, relationship: bool = True
) -> list[EditedCase]:
    """Return the edits of a `coupled_*` config with their two prompts.

    Source: LEME, Figure 2 and Appendix A.1; relationship and lead as in the released code, the first also in the
        instructions that people were given (Table 4).
    Deviates: the released code writes "-relationship" without a space; the other items have one. It puts the lead
        after every prompt.

    Args:
        records: Rows of the config.
        wording: "essay" or "article".
        lead: Put the entity's name after the prompt, for models that continue texts and do not answer; the passage
            then begins with it.
        relationship: End the list of what to include with "- relationship to X", X the other entity of the couple.

    Returns:
        One case per record. A record without related entity keeps a prompt with a status that tells why.

    Raises:
        RecordError: The edit or the subject's prompt is missing in a record, or two share a case id.
        UnknownNameError: Unknown wording.
    """
    one_of("wording of prompts", wording, WORDINGS)
    cases: dict[int, EditedCase] = {}
    for record in records:
        prompts = [_side_prompt(record, passage, wording, lead, relationship) for passage in SIDES]
        if prompts[0].status != "ok":
            raise RecordError(f"coupled record {record.get('case_id')}: {prompts[0].status}. Build the config again.")
        dataset = " ".join(filter(None, (record.get("record_format"), record.get("kind"))))
        case = EditedCase(record["case_id"], request_of(record), tuple(prompts), dataset)
        if cases.setdefault(case.case_id, case) is not case:
            raise RecordError(f"coupled records: case {case.case_id} is there twice. Use one config at a time.")
    return list(cases.values())


def _side_prompt(
    record: LongformRecord, passage: Literal["subject", "related"], wording: str, lead: bool, relationship: bool
) -> PassagePrompt:
    side_record, (other,) = record.get(SIDES[passage]) or {}, (side for name, side in SIDES.items() if name != passage)
    entity, text = side_record.get("entity") or {}, str(side_record.get(wording) or "").strip()
    couple = entity_name(record.get(other))
    if relationship and couple and text:
        text += f"\n- relationship to {couple}"
    if not entity.get("str") or not text:
        return PassagePrompt(passage, 0, Entity(None, ""), "", f"the record has no {passage} entity")
    name = entity["str"]
    whole = f"{text}\n\n{name}" if lead else text
    return PassagePrompt(passage, 0, Entity(entity.get("id"), name), whole, lead=name if lead else "")


def open_ended_cases(records: Sequence[LongformRecord]) -> list[EditedCase]:
    """Return the edits of the `open_ended` config with their guided and free prompts.

    Raises:
        RecordError: The edit is missing in a record, or rows of one case name different edits.
    """
    prompts: dict[int, list[PassagePrompt]] = {}
    requests: dict[int, EditRequest] = {}
    for record in records:
        case_id, request = record["case_id"], request_of(record)
        if requests.setdefault(case_id, request) != request:
            raise RecordError(f"open-ended record: case {case_id} has two edits. Keep one config's cases at a time.")
        own = prompts.setdefault(case_id, [])
        number = sum(prompt.passage == record["use"] for prompt in own)
        own.append(
            PassagePrompt(record["use"], number, Entity(record.get("subject_id"), request.subject), record["prompt"])
        )
    return [EditedCase(case_id, requests[case_id], tuple(own)) for case_id, own in prompts.items()]


def request_of(record: LongformRecord) -> EditRequest:
    """Return the edit that a record asks for.

    Raises:
        RecordError: It has none, or one that is not whole.
    """
    rewrite = record.get("requested_rewrite") or {}
    try:
        new, true = (
            Entity(target.get("id"), target["str"]) for target in (rewrite["target_new"], rewrite["target_true"])
        )
        return EditRequest(rewrite["prompt"], rewrite["subject"], rewrite["relation_id"], new, true)
    except (KeyError, AttributeError, TypeError) as error:
        raise RecordError(
            f"record {record.get('case_id')}: requested_rewrite is {rewrite!r} ({type(error).__name__}: {error}), "
            "expected prompt, subject, relation_id, target_new and target_true. Make the data with `seesaw-cf build`."
        ) from error


def sample_seed(seed: int, case_id: int, prompt: PassagePrompt, sample: int) -> int:
    """Return the seed of one sample, the same whatever else is written, before and after an edit, for every editor.

    Texts before and after an edit share their random numbers, so that they differ by the edit and not by luck.

    Args:
        seed: Of the run.
        case_id, prompt, sample: Which text.

    Returns:
        48 bits of a SHA-256, which every server's JSON can carry.
    """
    return seed_of(seed, case_id, prompt.passage, prompt.number, prompt.text, sample)


def asks_of(case: EditedCase, samples: int, seed: int) -> list[Ask]:
    """Return what is asked of a model for one case: every prompt that there is, `samples` times."""
    return [
        Ask(prompt.text, sample_seed(seed, case.case_id, prompt, sample))
        for prompt in case.prompts
        if prompt.status == "ok"
        for sample in range(samples)
    ]


def passage_rows(
    case: EditedCase, editor: str, samples: int, seed: int, completions: Iterable[Completion]
) -> list[PassageRow]:
    """Return the rows of `tables.PASSAGES` for one case.

    Args:
        case: The case.
        editor: Its name, "none" before the edit.
        samples, seed: As given to `asks_of`.
        completions: The answers to `asks_of`, in order. Prompts that do not exist keep a row with their status.
    """
    answers = iter(completions)
    rows: list[PassageRow] = []
    for prompt in case.prompts:
        for sample in range(samples):
            answer = next(answers) if prompt.status == "ok" else Completion("", "", prompt.status)
            rows.append(
                {
                    "editor": editor,
                    "case_id": case.case_id,
                    "relation": case.request.relation_id,
                    "phase": "pre" if editor == "none" else "post",
                    "sample": sample,
                    "passage": prompt.passage,
                    "prompt_id": prompt.number,
                    "entity_id": prompt.entity.id,
                    "entity": prompt.entity.label,
                    "prompt": prompt.text,
                    "seed": sample_seed(seed, case.case_id, prompt, sample),
                    "text": prompt.lead + answer.text if answer.text.strip() else "",
                    "finish": answer.finish,
                    "new_tokens": answer.new_tokens,
                    "status": answer.status,
                }
            )
    return rows
