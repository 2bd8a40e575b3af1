"""LEME's survey: two passages about coupled entities, nine statements, agreement from 1 to 7.

Source: LEME, appendix D. Training items are the published examples of four criteria; attention items are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.survey_items import ITEMS, SCALE, Shown
from seesaw_cf.report.table import Row
from seesaw_cf.texts.people.making import (
    GuideExample,
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
from seesaw_cf.texts.people.study import Answer, Gold, ItemQuestion, RatingItem, Text, ToldFacts
from seesaw_cf.texts.rate.judge import INTRO
from seesaw_cf.texts.rate.survey import SurveyQuestion, SurveySample
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.tables import RATINGS

_CHOICES = tuple((str(number), words) for number, words in SCALE.items())
_KEYS = "1 to 7; J and K for the next and the previous statement."
_HELP = "Some samples may be very similar or the same; that is on purpose."
_TRAINING = (
    ("new_fact_main_passage", "good"),
    ("main_passage_old_facts", "bad"),
    ("main_passage_consistency", "bad"),
    ("cross_passage_consistency", "bad"),
)
_ATTENTION = (
    ("2", "This sample is here to see that the passages are read. Please choose 2 (Disagree) for every statement."),
    ("6", "Please choose 6 (Agree) for every statement about this sample, whatever it says."),
)


def _make(run: RunTexts, settings: Settings) -> Made:
    items, left_out = [], Counter[str]()
    for sample in run.samples:
        if sample.missing:
            left_out[next(iter(sample.missing.values()))] += 1
        else:
            items.append(_item(sample, settings.blind_edit))
    shared = [*_training(), *_attention()]
    task = (*paragraphs(settings.wording.survey or INTRO), _HELP)
    return Made(task, _questions(settings), items, shared, left_out)


def _questions(settings: Settings) -> tuple[ItemQuestion, ...]:
    statements = settings.wording.items
    return tuple(
        ItemQuestion(item.name, statements.get(item.name, item.statement), _CHOICES, (f"Criterion: {item.criterion}",))
        for item in ITEMS
    )


def facts_told(sample: SurveySample, blind_edit: bool = False) -> ToldFacts:
    """Return the new fact, and the old facts about both entities."""
    facts = [
        ("New fact", (sample.new_fact,) if not blind_edit else ()),
        ("Subject", (sample.subject,)),
        ("Related entity", (sample.related_entity,)),
        ("Old facts about the subject", tuple(sample.old_facts.get("subject", ()))),
        ("Old facts about the related entity", tuple(sample.old_facts.get("related", ()))),
    ]
    return _without_empty(facts)


def _without_empty(facts: Iterable[tuple[str, tuple[str, ...]]]) -> ToldFacts:
    return tuple((label, lines) for label, lines in facts if any(lines))


def _item(sample: SurveySample, blind_edit: bool) -> RatingItem:
    skipped = {item.name: SurveyQuestion(item, sample).skip_reason for item in ITEMS}
    if blind_edit:
        skipped |= {item.name: "the edit was not told" for item in ITEMS if "new_fact" in item.fields}
    place, texts = sample_fields(sample), two_passages(**sample.passages)
    return RatingItem(
        item_id("survey", *place.values(), *(text.body for text in texts)),
        sample.relation,
        facts_told(sample, blind_edit),
        texts,
        tuple(name for name, why in skipped.items() if not why),
        about={"sample": place, "skipped": {name: why for name, why in skipped.items() if why}},
    )


def _training() -> list[RatingItem]:
    by_name = {item.name: item for item in ITEMS}
    items = []
    for name, which in _TRAINING:
        example: Shown = getattr(by_name[name], which)
        gold, texts = Gold({name: str(example.rating)}, example.reason), two_passages(example.main, example.related)
        told = _facts_of(example)
        items.append(shared_item("survey", "training", gold, name, which, told=told, texts=texts, ask=(name,)))
    return items


def _facts_of(example: Shown) -> ToldFacts:
    return _without_empty([("New fact", (example.new_fact,)), ("Old facts", example.old_facts)])


def _examples() -> tuple[GuideExample, ...]:
    """Return the published example of a high and of a low rating, item by item."""
    examples = []
    for item in ITEMS:
        for example in (item.good, item.bad):
            texts = ((text.title, (text.body,)) for text in two_passages(example.main, example.related))
            rows = (*_facts_of(example), *texts, ("Reason", (example.reason,)))
            examples.append(GuideExample(item.criterion, f"{example.rating} ({SCALE[example.rating]})", rows))
    return tuple(examples)


def _attention() -> list[RatingItem]:
    names = tuple(item.name for item in ITEMS)
    context = (("New fact", ("The lighthouse of Norrvik is in Chile",)),)
    items = []
    for rating, text in _ATTENTION:
        texts = two_passages(text, f"Norrvik is a harbour town. {text}")
        gold = Gold(dict.fromkeys(names, rating))
        items.append(shared_item("survey", "attention", gold, rating, told=context, texts=texts, ask=names))
    return items


def two_passages(main: str, related: str) -> tuple[Text, ...]:
    """Return the passages about an edit's subject and about a related entity, as raters see them; no empty one."""
    titles = ("Main passage", "Related passage")
    return tuple(Text(title, body) for title, body in zip(titles, (main, related)) if body)


def _rows(rated_task: RatedTask) -> Iterator[TableRow]:
    skipped = rated_task.item.about["skipped"]
    for item in ITEMS:
        value = (rated_task.answer or {}).get(item.name)
        status = skipped.get(item.name) or ("ok" if value else "not rated")
        yield {
            **rated_task.item.about["sample"],
            "item": item.name,
            "rater": rated_task.task.rater,
            "rating": float(value) if value and status == "ok" else None,
            "reply": value or "",
            "status": status,
            "tries": 1 if value else 0,
        }


def _gold(item: RatingItem, rows: Sequence[Row]) -> Answer:
    return {row["item"]: f"{row['rating']:g}" for row in rows if of_sample(row, item) and row["rating"] is not None}


SURVEY_TASK = Kind(
    "two passages, the nine statements of LEME, 1 to 7",
    _make,
    by_role("ratings", _rows, RATINGS),
    _gold,
    _KEYS,
    _examples(),
)
