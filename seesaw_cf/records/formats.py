"""The five record formats: how each becomes a `Case` and is written back. `json_records` chooses among them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from seesaw_cf.base.errors import RecordError, UnknownNameError
from seesaw_cf.base.types import AttributePrompt, Case, EditRequest, Entity, TableRow
from seesaw_cf.records.checks import (
    Record,
    edit_request,
    entity,
    known_relation,
    names,
    past_everywhere,
    short,
    template,
    text,
    texts,
    texts_or_nulls,
)
from seesaw_cf.records.relations import Template, templates

_SEESAW = ("generation_prompts", "attribute_prompts", "attribute_aux_info", "attribute_aux_ent")
REQUIRED: dict[str, tuple[str, ...]] = {
    "seesaw": ("case_id", "requested_rewrite", *_SEESAW),
    "counterfact": ("case_id", "requested_rewrite", "paraphrase_prompts", "neighborhood_prompts"),
    "eff": ("case_id", "requested_rewrite", "attribute_prompts"),
    "zsre": ("subject", "src", "rephrase", "answers", "loc", "loc_ans"),
    "easyedit": ("subject", "prompt", "target_new"),
}
# Lists of prompts that a Case holds under the same name.
_LISTS = ("generation_prompts", "paraphrase_prompts", "neighborhood_prompts")
_PROPERTY = re.compile(r"P\d+")


def _parse_rewrite(record: Record, case_id: int, where: str) -> Case:
    """Return what SEESAW-CF, `_eff` and CounterFact records share."""
    rewrite = record["requested_rewrite"]
    record_where, where = where, f"{where}: requested_rewrite"
    keys = ("prompt", "subject", "relation_id", "target_new", "target_true")
    if not isinstance(rewrite, dict) or any(key not in rewrite for key in keys):
        raise RecordError(f"{where} is {short(rewrite)}, expected an object with {names(keys)}. Complete it.")
    new, true = (entity(rewrite[key], f"{where}.{key}") for key in ("target_new", "target_true"))
    if new.id is not None and new.id == true.id:
        raise RecordError(f"{where}: both targets are {new.id} ({new.label!r}), so nothing is edited. Drop the record.")
    prompt, subject, relation_id = (text(rewrite[key], f"{where}.{key}") for key in keys[:3])
    request = edit_request(prompt, subject, relation_id, new, true, where)
    generation, paraphrase, neighborhood = (texts(record.get(key, []), f"{record_where}: {key}") for key in _LISTS)
    return Case(
        case_id,
        request,
        generation_prompts=generation,
        paraphrase_prompts=paraphrase,
        neighborhood_prompts=neighborhood,
    )


def _parse_seesaw(record: Record, case_id: int, where: str) -> Case:
    case = _parse_rewrite(record, case_id, where)
    known_relation(case.request.relation_id, where)
    prompts, ids, labels = (record[key] for key in _SEESAW[1:])
    columns = (
        texts(prompts, f"{where}: attribute_prompts"),
        texts_or_nulls(ids, f"{where}: attribute_aux_info"),
        texts(labels, f"{where}: attribute_aux_ent"),
    )
    if len(set(map(len, columns))) != 1:
        lengths = ", ".join(f"{key} has {len(column)}" for key, column in zip(_SEESAW[1:], columns))
        raise RecordError(
            f"{where}: {lengths} entries; expected the same number in all three, one per prompt. "
            "The file is damaged: take the original again."
        )
    listed = templates(case.request.relation_id, "cloze")
    rows = tuple(_attribute(prompt, Entity(id_, label), listed) for prompt, id_, label in zip(*columns))
    return replace(case, attribute_prompts=rows)


def _attribute(text: str, subject: Entity, listed: tuple[Template, ...]) -> AttributePrompt:
    """Return a prompt about someone who has the new attribute, with the template and tense that its text proves."""
    bare = text.rstrip(" ")
    for row in listed:
        present, past = (row.fill(subject.label, living=living) for living in (None, False))
        if bare == present:
            return AttributePrompt(text, subject, row.id, "target_new")
        if bare in (past, past_everywhere(present)):
            return AttributePrompt(text, subject, row.id, "target_new", living=False)
    return AttributePrompt(text, subject, "", "target_new")


def _parse_eff(record: Record, case_id: int, where: str) -> Case:
    case = _parse_rewrite(record, case_id, where)
    known_relation(case.request.relation_id, where)
    if record["attribute_prompts"] != [case.request.text]:
        raise RecordError(
            f"{where}: attribute_prompts is {short(record['attribute_prompts'])}, expected the edit's own prompt "
            f"[{case.request.text!r}] as in every _eff record. Prompts about other people need attribute_aux_info and "
            "attribute_aux_ent."
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
    subject, source, rephrase, location = (
        text(record[key], f"{where}: {key}") for key in ("subject", "src", "rephrase", "loc")
    )
    answers = texts(record["answers"], f"{where}: answers")
    if not answers:
        raise RecordError(
            f"{where}: answers is empty, expected at least one: the first is the target. Drop the record."
        )
    request = edit_request(
        template(source, subject, "src", where), subject, "", Entity(None, answers[0]), Entity(None, ""), where
    )
    return Case(case_id, request, paraphrase_prompts=(rephrase,), neighborhood_prompts=(location,))


def _parse_easyedit(record: Record, case_id: int, where: str) -> Case:
    """Parse an EasyEdit request: a whole prompt, no relation, and an old target in some files only ("ground_truth")."""
    subject, prompt, new = (text(record[key], f"{where}: {key}") for key in REQUIRED["easyedit"])
    old: object = record.get("ground_truth")
    while isinstance(old, list) and old:  # other spellings follow the first
        old = old[0]
    true = Entity(None, old if isinstance(old, str) else "")
    request = edit_request(template(prompt, subject, "prompt", where), subject, "", Entity(None, new), true, where)
    rephrased = record.get("rephrase_prompt")
    paraphrases = (rephrased,) if isinstance(rephrased, str) and rephrased.strip() else ()
    return Case(case_id, request, paraphrase_prompts=paraphrases)


def entity_row(entity: Entity) -> dict[str, str | None]:
    """Return an entity as a value of a table, see `seesaw_cf.records.arrow.ENTITY`."""
    return {"str": entity.label, "id": entity.id}


def request_row(request: EditRequest) -> TableRow:
    """Return an edit request as a value of a table, see `seesaw_cf.records.arrow.REQUEST`."""
    return {
        "prompt": request.prompt,
        "relation_id": request.relation_id,
        "target_new": entity_row(request.target_new),
        "target_true": entity_row(request.target_true),
        "subject": request.subject,
    }


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


PARSERS: dict[str, Callable[[Record, int, str], Case]] = {
    "seesaw": _parse_seesaw,
    "eff": _parse_eff,
    "counterfact": _parse_counterfact,
    "zsre": _parse_zsre,
    "easyedit": _parse_easyedit,
}
WRITERS: dict[str, Callable[[Case], Record]] = {
    "seesaw": _write_seesaw,
    "eff": _write_eff,
    "counterfact": _write_counterfact,
    "zsre": _write_zsre,
    "easyedit": _write_easyedit,
}
