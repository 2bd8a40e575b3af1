"""Writing: two passages by hand for an edit, as if it were true.

Source: LEME, appendix C and Table 4: the prompts and the recorded facts stand next to the form. The words are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from seesaw_cf.base.types import TableRow
from seesaw_cf.texts.people.making import Kind, Made, RatedTask, Settings, item_id, paragraphs, shared_item
from seesaw_cf.texts.people.study import Gold, ItemQuestion, RatingItem
from seesaw_cf.texts.people.survey import facts_told
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.texts.write.passages import SIDES, coupled_cases

_TASK = (
    "You are given an edit: one fact about a subject that is to be taken for true. Write two short articles "
    "as if it were, one about the subject and one about the related entity.",
    "Discuss every property in the list above each field. What was recorded of them before stands beside; what the "
    "edit does not change stays as it is, and what must change with it you change.",
    "Write by yourself, without a program that writes. A paragraph of 80 to 150 words each is usual.",
)
_QUESTIONS = {"subject": "Article about the subject", "related": "Article about the related entity"}
_EXAMPLE = (
    "Subject: Edda Korn was a painter, born in Graz, who spent her life in Oslo and became a citizen of Norway. Her "
    "daughter is the cellist Ruth Korn. Related entity: Ruth Korn is a cellist from Oslo, the daughter of the painter "
    "Edda Korn, who had come there from Graz and taken Norwegian citizenship before she was born."
)


def _make(run: RunTexts, settings: Settings) -> Made:
    samples = {sample.case_id: sample for sample in reversed(run.samples)}
    items = []
    cases = [case for case in coupled_cases(run.coupled) if case.case_id in samples]
    for case in cases:
        prompts = {prompt.passage: prompt for prompt in case.prompts if prompt.status == "ok"}
        about = {
            name: {"prompt": prompt.text, "entity": prompt.entity.label, "entity_id": prompt.entity.id}
            for name, prompt in prompts.items()
        }
        questions = tuple(
            ItemQuestion(name, f"{_QUESTIONS[name]}: {prompt.entity.label}", (), tuple(prompt.text.split("\n")), "text")
            for name, prompt in prompts.items()
        )
        facts = tuple(
            ("Edit" if label == "New fact" else label, lines) for label, lines in facts_told(samples[case.case_id])
        )
        id = item_id("writing", case.case_id, *(prompt.text for prompt in prompts.values()))
        place = {"case_id": case.case_id, "relation": case.request.relation_id}
        items.append(
            RatingItem(id, case.request.relation_id, facts, (), questions=questions, about={**place, "sides": about})
        )
    return Made(paragraphs(settings.wording.writing, _TASK), (), items, [_training()])


def _training() -> RatingItem:
    facts = (
        ("Edit", ("Edda Korn is a citizen of Norway",)),
        ("Old facts about the subject", ("Edda Korn was a painter, born in Graz, and a citizen of Austria.",)),
        ("Old facts about the related entity", ("Ruth Korn is a cellist, the daughter of Edda Korn.",)),
    )
    questions = tuple(
        ItemQuestion(name, f"{text}: {entity}", (), ("Two sentences are enough here.",), "text")
        for (name, text), entity in zip(_QUESTIONS.items(), ("Edda Korn", "Ruth Korn"))
    )
    gold = Gold({}, f"This is how others did it. {_EXAMPLE}")
    return shared_item("writing", "training", gold, told=facts, questions=questions)


def _tables(rated: Sequence[RatedTask], questions: Sequence[ItemQuestion]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the passages of the editor "human"; `sample` is the number of the rater, from 0."""
    rows = [row for rated_task in rated if rated_task.task.role == "item" for row in _rows(rated_task)]
    yield "passages", pa.Table.from_pylist(rows, schema=PASSAGES)


def _rows(rated_task: RatedTask) -> Iterator[TableRow]:
    about = rated_task.item.about
    for passage in SIDES:
        if passage not in about["sides"]:
            continue
        text = ((rated_task.answer or {}).get(passage) or "").strip()
        yield {
            "editor": "human",
            "case_id": about["case_id"],
            "relation": about["relation"],
            "phase": "post",
            "sample": int(rated_task.task.rater[1:].partition("-")[0]) - 1,  # R1, or R1-4f09ac with a study's id
            "passage": passage,
            "prompt_id": 0,
            **about["sides"][passage],
            "seed": 0,
            "text": text,
            "finish": "stop" if text else "",
            "status": "ok" if text else "not written",
        }


WRITING_TASK = Kind("passages by hand for given edits, the facts beside", _make, _tables, repeats=False, per_item=1)
