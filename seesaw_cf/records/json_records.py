"""One JSON record ↔ one `Case`: released SEESAW-CF files, their `_eff` files, CounterFact, zsRE and EasyEdit.

Reading is exact by construction: all that `write_record` would not give back (unknown keys, empty lists) is kept in
`Case.extra`, and a record that still would not come back equal is refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import RecordError, UnknownNameError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import refuse_constant, unique_keys
from seesaw_cf.base.types import Case
from seesaw_cf.records.checks import Record, check_unique, flag_cases, names
from seesaw_cf.records.formats import FORMATS
from seesaw_cf.records.relations import RELATIONS

# The first of these keys that a record has decides its format.
_MARKS = {
    **dict.fromkeys(("attribute_aux_info", "attribute_aux_ent"), "seesaw"),
    **dict.fromkeys(("paraphrase_prompts", "neighborhood_prompts"), "counterfact"),
    "generation_prompts": "seesaw",
    "requested_rewrite": "eff",
    **dict.fromkeys(("src", "rephrase", "loc"), "zsre"),
    "target_new": "easyedit",
}
# Benchmarks with records that are edits of several facts or have other questions -> sets of keys that only they have.
_OTHERS = {
    "MQuAKE": (("new_single_hops",), ("single_hops", "questions")),
    "RippleEdits": (("example_type", "edit"), ("edit", "Relation_Specificity"), ("edit", "Logical_Generalization")),
    "QAEdit": (("perturbed_prompt",), ("loc_answer", "rephrase")),
}


def parse_record(
    record: object, *, where: str = "record", number: int = 0, effect_relation_id: str | None = None
) -> Case:
    """Read one record; its keys tell the format.

    Attribute prompts of SEESAW-CF records get what can be verified from their text: the template that gives exactly
    this text with this name, `living=False` when it is the template's past form and differs from the present one, and
    `holds="target_new"` (the released files ask about people who have the new attribute). The one attribute prompt of
    an `_eff` record is the edit's own prompt and asks about no other people: it becomes no `attribute_prompts` entry;
    `write_record` puts it back. zsRE: target_new is the first answer, target_true is unknown and empty. EasyEdit:
    target_true is "ground_truth" (its first spelling), empty where the file has none.

    Args:
        record: A JSON object.
        where: File and position, for error messages.
        number: Position in the file; the case_id of records that have none (zsRE, EasyEdit).
        effect_relation_id: P2 of a cross-property file, which its records do not carry.

    Raises:
        RecordError: A key is missing or holds the wrong thing, the parallel lists differ in length, a target is empty
            or equals the other, the prompt has no place for the subject.
        UnknownNameError: The relation is not one of the papers' five (CounterFact records: not a property id).

    Deviates: memit's reader gives zsRE the old target "<|endoftext|>"; an unknown target is empty here.
    """
    if not isinstance(record, dict):
        raise RecordError(f"{where}: got {shown(record)}, expected a JSON object (one edit record). Remove it.")
    kind = _format(record, where)
    case_id = record.get("case_id", number)
    if type(case_id) is not int or not -(2**63) <= case_id < 2**63:
        raise RecordError(f"{where}: case_id is {shown(case_id)}, expected a whole number. Number the cases.")
    where = f"{where} (case_id {case_id})"
    if lacking := [key for key in FORMATS[kind].required if key not in record]:
        needed = names(FORMATS[kind].required)
        raise RecordError(f"{where}: missing {names(lacking)}. A record of {kind} needs {needed}. Add what is missing.")
    try:
        case = FORMATS[kind].parse(record, case_id, where)
    except RecordError as error:  # of the request itself
        raise error if str(error).startswith(where) else RecordError(f"{where}: {error}") from error
    case = replace(case, effect_relation_id=effect_relation_id, record_format=kind)
    written = write_record(case)
    case = replace(case, extra=_rest(record, written))
    if _merge(written, case.extra) != record:
        differing = [key for key in written if record.get(key) != written[key]]
        raise RecordError(f"{where}: {names(differing)} cannot be kept exactly, expected what {kind} records have.")
    return case


def write_record(case: Case) -> Record:
    """Turn a case into a record of its `record_format`; the inverse of `parse_record`.

    Args:
        case: The case. What the format has no key for (flags, group tags, candidates, ...) is not written.

    Raises:
        UnknownNameError: `record_format` is none of these.
    """
    one_of("record format", case.record_format, FORMATS)
    return _merge(FORMATS[case.record_format].write(case), case.extra)


def _format(record: Record, where: str) -> str:
    for name, sets in _OTHERS.items():
        if keys := next((keys for keys in sets if set(keys) <= record.keys()), None):
            raise RecordError(
                f"{where}: a record of {name} ({names(keys)}), which is not read. Convert each edit to EasyEdit's form."
            )
    kind = next((kind for key, kind in _MARKS.items() if key in record), None)
    if kind is None:
        raise RecordError(
            f"{where}: the keys {names(record)} belong to no known record. Expected SEESAW-CF or CounterFact "
            "('requested_rewrite', ...), zsRE ('src', 'rephrase', 'loc', ...) or EasyEdit ('prompt', 'target_new')."
        )
    return kind


def _rest(record: Record, written: Record) -> Record:
    """Return what `record` has and `written` has not, object by object."""
    rest = {key: value for key, value in record.items() if key not in written}
    for key, value in written.items():
        inner = record.get(key)
        if isinstance(value, dict) and isinstance(inner, dict) and (more := _rest(inner, value)):
            rest[key] = more
    return rest


def _merge(written: Record, rest: Record) -> Record:
    """Return `written` with what is missing in it filled in from `rest`, object by object."""
    merged = dict(written)
    for key, value in rest.items():
        own = merged.setdefault(key, value)
        if own is not value and isinstance(own, dict) and isinstance(value, dict):
            merged[key] = _merge(own, value)
    return merged


# JSON and JSON-lines files of records; errors are reported with line, character or record.

_PAIR_FILE = re.compile(r"seesaw_cf_(P\d+)_(P\d+)\.jsonl?")


def parse_json(content: bytes, path: Path, skipped: list[str] | None = None) -> list[Case]:
    """Read and flag the cases in the bytes of a JSON list or JSON-lines file.

    Args:
        content: The whole file.
        path: Its name, for messages and for the effect relation of cross-property files.
        skipped: Gets the message of each malformed record, which is left out; None to raise the first.

    Raises:
        RecordError, UnknownNameError: See `read_cases`.
    """
    pair = _PAIR_FILE.fullmatch(path.name)
    edit, effect = pair.groups() if pair and set(pair.groups()) <= set(RELATIONS) else (None, None)
    cases: list[Case] = []
    numbers: set[int] = set()
    for number, (where, record) in enumerate(_records(content, path)):
        try:
            value = _loads(record, where) if isinstance(record, _Line) else record
            case = parse_record(value, where=where, number=number, effect_relation_id=effect)
            if edit is not None and case.request.relation_id != edit:
                is_of = f"(case_id {case.case_id}): the edit is of {case.request.relation_id}"
                raise RecordError(f"{where} {is_of}, but the file's name says {edit}. Correct one of them.")
            if skipped is not None and case.case_id in numbers:
                raise RecordError(f"{where}: case_id {case.case_id} was used before.")
        except (RecordError, UnknownNameError) as error:
            if skipped is None:
                raise
            skipped.append(str(error))
            continue
        numbers.add(case.case_id)
        cases.append(case)
    if not cases:
        first = f"usable records in it. The first: {skipped[0]}" if skipped else "records in it. Take it again."
        raise RecordError(f"{path}: no {first}")
    return flag_cases(check_unique(cases, path))


def write_json(path: str | os.PathLike[str], cases: Iterable[Case]) -> None:
    """Write cases as a JSON list of records, each in its own format.

    A released SEESAW-CF file that was read and is written again has the same bytes.

    Raises:
        StorageError: The disk is full or the folder cannot be written.
    """
    write_text(path, json.dumps([write_record(case) for case in cases], allow_nan=False))


class _Line(str):
    """A line that is not parsed yet: those after a broken one can be read."""


def _records(content: bytes, path: Path) -> Iterator[tuple[str, object]]:
    """Yield (position for messages, JSON value or line); records are counted from 0, lines from 1."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: byte {error.start} is not UTF-8 text. Expected JSON or Parquet.") from error
    if text.startswith("version https://git-lfs"):
        raise RecordError(f"{path}: a Git LFS pointer, not the data. Run `git lfs pull` where it came from.")
    if text.lstrip().startswith("{"):
        # Not splitlines: JSON strings may hold U+2028 and the like as they are.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield f"{path}: line {number}", _Line(line)
        return
    values = _loads(text, str(path))
    if not isinstance(values, list):
        raise RecordError(f"{path}: got {shown(values)}, expected a JSON list of records. Is this the right file?")
    for number, value in enumerate(values):
        yield f"{path}: record {number}", value


def _loads(text: str, where: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 30) : error.pos + 30]
        place = f"line {error.lineno}, column {error.colno} (character {error.pos} of {len(text)}), near {near!r}"
        remedy = "Expected a list of records, or one per line. If the file was cut off, take it again."
        raise RecordError(f"{where}: not whole JSON: {error.msg} at {place}. {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where}: not usable JSON: {error}. Correct the file or take it again.") from error
