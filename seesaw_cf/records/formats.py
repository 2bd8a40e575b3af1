"""The five record formats: how each becomes a `Case` and is written back. `json_records` chooses among them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, UnknownNameError
from seesaw_cf.base.types import AttributePrompt, Case, EditRequest, Entity, TableRow
from seesaw_cf.records.checks import (
    Record,
    entity,
    known_relation,
    names,
    past_everywhere,
    template,
    text,
    texts,
)
from seesaw_cf.records.relations import Template, templates

_SEESAW = ("generation_prompts", "attribute_prompts", "attribute_aux_info", "attribute_aux_ent")
# Lists of prompts that a Case holds under the same name.
_LISTS = ("generation_prompts", "paraphrase_prompts", "neighborhood_prompts")
_PROPERTY = re.compile(r"P\d+")


def _parse_rewrite(record: Record, case_id: int, where: str) -> Case:
    """Return what SEESAW-CF, `_eff` and CounterFact records share."""
    rewrite = record["requested_rewrite"]
    record_where, where = where, f"{where}: requested_rewrite"
    keys = ("prompt", "subject", "relation_id", "target_new", "target_true")
    if not isinstance(rewrite, dict) or any(key not in rewrite for key in keys):
        raise RecordError(f"{where} is {shown(rewrite)}, expected an object with {names(keys)}. Complete it.")
    new, true = (entity(rewrite[key], f"{where}.{key}") for key in ("target_new", "target_true"))
    if new.id is not None and new.id == true.id:
        raise RecordError(f"{where}: both targets are {new.id} ({new.label!r}), so nothing is edited. Drop the record.")
    prompt, subject, relation_id = (text(rewrite[key], f"{where}.{key}") for key in keys[:3])
    lists: Any = {key: texts(record.get(key, []), f"{record_where}: {key}") for key in _LISTS}
    return Case(case_id, EditRequest(prompt, subject, relation_id, new, true), **lists)


def _parse_seesaw(record: Record, case_id: int, where: str) -> Case:
    case = _parse_rewrite(record, case_id, where)
    known_relation(case.request.relation_id, where)
    ids = record["attribute_aux_info"]
    known = [id for id in ids if id is not None] if isinstance(ids, list) else ids
    texts(known, f"{where}: attribute_aux_info")
    prompts, labels = (texts(record[key], f"{where}: {key}") for key in ("attribute_prompts", "attribute_aux_ent"))
    if not len(prompts) == len(ids) == len(labels):
        lengths = ", ".join(f"{key} has {len(record[key])}" for key in _SEESAW[1:])
        raise RecordError(f"{where}: {lengths} entries; expected one per prompt in all three. Take the file again.")
    listed = templates(case.request.relation_id, "cloze")
    rows = (_attribute(prompt, Entity(id, label), listed) for prompt, id, label in zip(prompts, ids, labels))
    return replace(case, attribute_prompts=tuple(rows))


def _attribute(text: str, subject: Entity, listed: tuple[Template, ...]) -> AttributePrompt:
    """Return a prompt about someone who has the new attribute, with the template and tense that its text proves."""
    bare = text.rstrip(" ")
    for row in listed:
        present, past = (row.fill(subject.label, living=living) for living in (None, False))
        if bare in (present, past, past_everywhere(present)):
            return AttributePrompt(text, subject, row.id, "target_new", living=None if bare == present else False)
    return AttributePrompt(text, subject, "", "target_new")


def _parse_eff(record: Record, case_id: int, where: str) -> Case:
    case = _parse_rewrite(record, case_id, where)
    known_relation(case.request.relation_id, where)
    if record["attribute_prompts"] != [case.request.text]:
        raise RecordError(
            f"{where}: attribute_prompts is {shown(record['attribute_prompts'])}, expected the edit's own prompt "
            f"[{case.request.text!r}]. Prompts about other people need attribute_aux_info and attribute_aux_ent."
        )
    return case


def _parse_counterfact(record: Record, case_id: int, where: str) -> Case:
    case = _parse_rewrite(record, case_id, where)
    if not _PROPERTY.fullmatch(case.request.relation_id):
        raise UnknownNameError(
            f"{where}: unknown relation {case.request.relation_id!r}, expected a Wikidata property such as 'P27'."
        )
    prompts = texts(record.get("attribute_prompts", []), f"{where}: attribute_prompts")
    return replace(case, attribute_prompts=tuple(AttributePrompt(prompt, Entity(None, "")) for prompt in prompts))


def _parse_zsre(record: Record, case_id: int, where: str) -> Case:
    keys = ("subject", "src", "rephrase", "loc")
    subject, source, rephrase, location = (text(record[key], f"{where}: {key}") for key in keys)
    answers = texts(record["answers"], f"{where}: answers")
    if not answers:
        raise RecordError(f"{where}: answers is empty, expected at least one: the first is the target. Drop it.")
    prompt, new = template(source, subject, "src", where), Entity(None, answers[0])
    request = EditRequest(prompt, subject, "", new, Entity(None, ""))
    return Case(case_id, request, paraphrase_prompts=(rephrase,), neighborhood_prompts=(location,))


def _parse_easyedit(record: Record, case_id: int, where: str) -> Case:
    """Parse an EasyEdit request: a whole prompt, no relation, and an old target in some files only ("ground_truth")."""
    subject, prompt, new = (text(record[key], f"{where}: {key}") for key in ("subject", "prompt", "target_new"))
    old: object = record.get("ground_truth")
    while isinstance(old, list) and old:  # other spellings follow the first
        old = old[0]
    true = Entity(None, old if isinstance(old, str) else "")
    request = EditRequest(template(prompt, subject, "prompt", where), subject, "", Entity(None, new), true)
    rephrased = record.get("rephrase_prompt")
    paraphrases = (rephrased,) if isinstance(rephrased, str) and rephrased.strip() else ()
    return Case(case_id, request, paraphrase_prompts=paraphrases)


def entity_row(entity: Entity) -> dict[str, str | None]:
    """Return an entity as a value of a table, see `seesaw_cf.records.arrow.ENTITY`."""
    return {"str": entity.label, "id": entity.id}


def request_row(request: EditRequest) -> TableRow:
    """Return an edit request as a value of a table, see `seesaw_cf.records.arrow.REQUEST`."""
    targets = {"target_new": entity_row(request.target_new), "target_true": entity_row(request.target_true)}
    return {"prompt": request.prompt, "relation_id": request.relation_id, **targets, "subject": request.subject}


def _write_rewrite(case: Case) -> Record:
    rewrite = request_row(case.request)
    for name in ("target_new", "target_true"):
        row = entity_row(getattr(case.request, name))
        rewrite[name] = {key: value for key, value in row.items() if value is not None}
    lists = {key: list(getattr(case, key)) for key in _LISTS if getattr(case, key)}
    return {"case_id": case.case_id, "requested_rewrite": rewrite, **lists}


def _write_seesaw(case: Case) -> Record:
    rows = case.attribute_prompts
    columns = ([row.text for row in rows], [row.subject.id for row in rows], [row.subject.label for row in rows])
    return _write_rewrite(case) | dict(zip(_SEESAW[1:], columns))


def _write_eff(case: Case) -> Record:
    return _write_rewrite(case) | {"attribute_prompts": [case.request.text]}


def _write_counterfact(case: Case) -> Record:
    prompts = [row.text for row in case.attribute_prompts]
    return _write_rewrite(case) | ({"attribute_prompts": prompts} if prompts else {})


def _write_zsre(case: Case) -> Record:
    prompts = {"rephrase": case.paraphrase_prompts, "loc": case.neighborhood_prompts}
    single = {key: values[0] for key, values in prompts.items() if values}
    return {"subject": case.request.subject, "src": case.request.text, **single}


def _write_easyedit(case: Case) -> Record:
    request = case.request
    record = {"subject": request.subject, "prompt": request.text, "target_new": request.target_new.label}
    return record | ({"rephrase_prompt": case.paraphrase_prompts[0]} if case.paraphrase_prompts else {})


class Format(NamedTuple):
    """A format of records.

    Attributes:
        required: Keys that every record has.
        parse: Record, case_id and place for messages -> its case.
        write: The inverse.
    """

    required: tuple[str, ...]
    parse: Callable[[Record, int, str], Case]
    write: Callable[[Case], Record]


_NUMBERED = ("case_id", "requested_rewrite")
FORMATS: dict[str, Format] = {
    "seesaw": Format((*_NUMBERED, *_SEESAW), _parse_seesaw, _write_seesaw),
    "counterfact": Format((*_NUMBERED, *_LISTS[1:]), _parse_counterfact, _write_counterfact),
    "eff": Format((*_NUMBERED, "attribute_prompts"), _parse_eff, _write_eff),
    "zsre": Format(("subject", "src", "rephrase", "answers", "loc", "loc_ans"), _parse_zsre, _write_zsre),
    "easyedit": Format(("subject", "prompt", "target_new"), _parse_easyedit, _write_easyedit),
}
