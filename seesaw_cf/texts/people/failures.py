"""Failure modes: what went wrong in two passages of an edited model, by LEME's categories.

Source: LEME, section 5.6 and Table 20. Training and attention items are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from seesaw_cf.base.types import TableRow
from seesaw_cf.report.table import Row
from seesaw_cf.texts.people.making import (
    Kind,
    Made,
    RatedTask,
    Settings,
    by_role,
    item_id,
    of_sample,
    paragraphs,
    sample_fields,
    shared_item,
)
from seesaw_cf.texts.people.study import Answer, Gold, ItemQuestion, RatingItem
from seesaw_cf.texts.people.survey import facts_told, two_passages
from seesaw_cf.texts.rate.survey import SurveySample
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.tables import FAILURES
from seesaw_cf.texts.wording import FAILURE_MODES

_TASK = (
    "A language model was taught a new fact and then wrote about its subject (the main passage) and about "
    "a related entity (the related passage). Say how the passages fail.",
    "Choose everything that you find; where nothing is wrong and the edit is there, choose \u201cGood edit\u201d. Do "
    "not judge whether the new fact is true in the world.",
)
_COMMENT = ItemQuestion("comment", "What you saw, in a few words", shape="line", needed=False)
_TRAINING = (
    "Ida Moor was born in Turin in 1901. She grew up in Turin, where her father kept a shop. Born in Lyon in 1911, she "
    "never saw Italy.",
    "Paul Moor, the brother of Ida Moor, was a printer.",
)
_ATTENTION = "This sample is here to see that the passages are read. Please choose only \u201cTopic drift\u201d."


def _make(run: RunTexts, settings: Settings) -> Made:
    items, left_out = [], Counter[str]()
    for sample in run.samples:
        if sample.phase == "pre":
            left_out["written before the edit"] += 1
        elif not any(sample.passages.values()):
            left_out[next(iter(sample.missing.values()))] += 1
        else:
            items.append(_item(sample, settings.blind_edit))
    task = paragraphs(settings.wording.failures, _TASK)
    return Made(task, _questions(settings.wording.items), items, [_training(), _attention()], left_out)


def _questions(meanings: Mapping[str, str]) -> tuple[ItemQuestion, ...]:
    choices = tuple((name, f"{title}: {meanings.get(name, means)}") for name, (title, means) in FAILURE_MODES.items())
    return (ItemQuestion("modes", "What do you find in the passages?", choices, shape="several"), _COMMENT)


def _item(sample: SurveySample, blind_edit: bool) -> RatingItem:
    place = sample_fields(sample)
    return RatingItem(
        item_id("failures", *place.values(), *sample.passages.values()),
        sample.relation,
        facts_told(sample, blind_edit),
        two_passages(**sample.passages),
        about={"sample": place},
    )


def _training() -> RatingItem:
    why = (
        "The passage says Turin and then Lyon, 1901 and then 1911: it contradicts itself, and holds the old and the "
        "new fact together."
    )
    context = (
        ("New fact", ("Ida Moor was born in Turin",)),
        ("Old facts about the subject", ("Ida Moor was born in Lyon.",)),
    )
    gold = Gold({"modes": ["internal_contradiction", "old_and_new"]}, why)
    return shared_item("failures", "training", gold, told=context, texts=two_passages(*_TRAINING))


def _attention() -> RatingItem:
    context = (("New fact", ("The lighthouse of Norrvik is in Chile",)),)
    gold = Gold({"modes": ["topic_drift"]})
    return shared_item("failures", "attention", gold, told=context, texts=two_passages(_ATTENTION, _ATTENTION))


def _rows(rated_task: RatedTask) -> Iterator[TableRow]:
    answer = rated_task.answer or {}
    modes, comment = answer.get("modes"), answer.get("comment", "")
    for mode in FAILURE_MODES:
        yield {
            **rated_task.item.about["sample"],
            "mode": mode,
            "rater": rated_task.task.rater,
            "present": None if modes is None else mode in modes,
            "comment": comment,
            "status": "not rated" if modes is None else "ok",
        }


def _gold(item: RatingItem, rows: Sequence[Row]) -> Answer:
    judgements = [row for row in rows if of_sample(row, item) and row["present"] is not None]
    return {"modes": [row["mode"] for row in judgements if row["present"]]} if judgements else {}


FAILURE_TASK = Kind(
    "what fails in passages after an edit, LEME's Table 20",
    _make,
    by_role("failures", _rows, FAILURES),
    _gold,
    sample=200,
)
