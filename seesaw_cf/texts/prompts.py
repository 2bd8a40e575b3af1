"""What is to be written: prompts about edited subjects and their related entities, each sample with its own seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import EditRequest, Entity
from seesaw_cf.generation.types import Ask, Completion
from seesaw_cf.texts.records import SIDES, LongformRecord, entity_name, request_of
from seesaw_cf.texts.tables import PassageRow


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
    """
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


def _side_prompt(record: LongformRecord, passage: str, wording: str, lead: bool, relationship: bool) -> PassagePrompt:
    side, (other,) = record.get(SIDES[passage]) or {}, (field for name, field in SIDES.items() if name != passage)
    name, text = entity_name(side), str(side.get(wording) or "").strip()
    if not name or not text:
        return PassagePrompt(passage, 0, Entity(None, ""), "", f"the record has no {passage} entity")
    couple = entity_name(record.get(other))
    text += f"\n- relationship to {couple}" if relationship and couple else ""
    text += f"\n\n{name}" if lead else ""
    entity = Entity((side.get("entity") or {}).get("id"), name)
    return PassagePrompt(passage, 0, entity, text, lead=name if lead else "")


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
        own, entity = prompts.setdefault(case_id, []), Entity(record.get("subject_id"), request.subject)
        number = sum(prompt.passage == record["use"] for prompt in own)
        own.append(PassagePrompt(record["use"], number, entity, record["prompt"]))
    return [EditedCase(case_id, requests[case_id], tuple(own)) for case_id, own in prompts.items()]


def _sample_seed(seed: int, case_id: int, prompt: PassagePrompt, sample: int) -> int:
    """Return the seed of one text, the same before and after an edit: they differ by the edit and not by luck."""
    return seed_of(seed, case_id, prompt.passage, prompt.number, prompt.text, sample)


def asks_of(case: EditedCase, samples: int, seed: int) -> list[Ask]:
    """Return what is asked of a model for one case: every prompt that there is, `samples` times."""
    return [
        Ask(prompt.text, _sample_seed(seed, case.case_id, prompt, sample))
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
                    "seed": _sample_seed(seed, case.case_id, prompt, sample),
                    "text": prompt.lead + answer.text if answer.text.strip() else "",
                    "finish": answer.finish,
                    "new_tokens": answer.new_tokens,
                    "status": answer.status,
                }
            )
    return rows
