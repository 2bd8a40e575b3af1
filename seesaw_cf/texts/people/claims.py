"""Claims: does a passage support or contradict each recorded fact, and which of its sentences say so?

Source: LEME, section 3.3 and appendix E. Deviates: all claims of a passage are asked on one page (published: pairs),
whole sentences can be marked by their numbers; training and attention items are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.report.table import Row
from seesaw_cf.texts.annotate.annotate import foreign
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
from seesaw_cf.texts.people.spans import marked
from seesaw_cf.texts.people.study import Answer, Gold, ItemQuestion, RatingItem, Text
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.tables import ANNOTATIONS, SPANS
from seesaw_cf.texts.write.claims import ClaimPair, claim_pairs

CHOICES = (("supports", "supports"), ("neutral", "neither"), ("contradicts", "contradicts"))
_KEYS = (
    "S supports, C contradicts, N neither; 1 to 9 mark a sentence; J and K for the next and the previous claim. W goes "
    "to the words: arrows choose one, with Shift several, Enter marks them or takes the mark away, Escape goes back."
)
_TASK = (
    "You read a passage and claims. Say of each claim whether the passage supports it, contradicts it, or neither. "
    "Claims are in short form: \u201cLena Arvid occupation engineer\u201d says that the occupation of Lena Arvid is "
    "that of an engineer.",
    "Supports: there is evidence for the claim in the passage, even if only for a part of it. Contradicts: there is "
    "evidence against it; a passage that contradicts a claim even a little, and supports it elsewhere, contradicts it. "
    "Neither: the passage has no evidence. What you know yourself does not count.",
    "Where a claim is supported or contradicted, mark all that is evidence or that the evidence needs: whole sentences "
    "by their numbers, or only some words, by selecting them in the passage. Several stretches may be marked.",
)
_PASSAGE = (
    "Lena Arvid was a Norwegian engineer. She built bridges in Bergen for thirty years. In old age she moved to "
    "Lisbon, where she took Portuguese citizenship."
)
_ATTENTION = (
    "This passage is here to see that it is read. Please choose \u201ccontradicts\u201d for the claim and mark the "
    "second sentence. Marten Hale was a painter. This is the second sentence from the end. He lived in Ghent."
)
# Claim, label and sentences of the training passage.
_TRAINING: tuple[tuple[str, str, list[int]], ...] = (
    ("Lena Arvid worked as an engineer", "supports", [1, 2]),
    ("Lena Arvid was born in Bergen", "neutral", []),
    ("Lena Arvid is a citizen of Norway only", "contradicts", [3]),
)


def _make(run: RunTexts, settings: Settings) -> Made:
    groups: dict[tuple[object, ...], list[ClaimPair]] = {}
    left_out = Counter[str]()
    for pair in claim_pairs(run.coupled_passages, run.coupled):
        why = pair.status if pair.status != "ok" else "not English" if foreign(pair.premise) else ""
        if why:
            left_out[why] += 1
        elif not (settings.blind_edit and pair.claim_kind == "new_fact"):
            groups.setdefault((*sample_fields(pair).values(), pair.passage), []).append(pair)
    items = [claim_item(pairs) for pairs in groups.values()]
    return Made(paragraphs(settings.wording.guidelines, _TASK), (), items, [_training(), _attention()], left_out)


def claim_item(pairs: Sequence[ClaimPair]) -> RatingItem:
    """Return a passage with all its claims."""
    first = pairs[0]
    claims = {f"c{number}": pair for number, pair in enumerate(pairs, 1)}
    about = {
        name: {key: getattr(pair, key) for key in ("claim_kind", "claim_id", "claim")} for name, pair in claims.items()
    }
    return RatingItem(
        item_id("claims", *sample_fields(first).values(), first.passage, first.premise),
        first.relation,
        (),
        (Text("Passage", first.premise, marked=True),),
        questions=_questions({name: pair.claim for name, pair in claims.items()}),
        about={"sample": sample_fields(first), "passage": first.passage, "claims": about},
    )


def _questions(claims: Mapping[str, str]) -> tuple[ItemQuestion, ...]:
    return tuple(ItemQuestion(name, claim, CHOICES, shape="claim") for name, claim in claims.items())


def _training() -> RatingItem:
    answers = {f"c{n}": {"choice": label, "sentences": marked} for n, (_, label, marked) in enumerate(_TRAINING, 1)}
    why = (
        "Sentence 1 says what she was and sentence 2 what she did. Where she was born is not said: to have worked "
        "in Bergen is no evidence. Sentence 3 gives her another citizenship."
    )
    questions = _questions({f"c{number}": claim for number, (claim, _, _) in enumerate(_TRAINING, 1)})
    texts = (Text("Passage", _PASSAGE, marked=True),)
    return shared_item("claims", "training", Gold(answers, why), texts=texts, questions=questions)


def _attention() -> RatingItem:
    gold, questions = Gold({"c1": {"choice": "contradicts", "sentences": [2]}}), {"c1": "Marten Hale lived in Ghent"}
    texts = (Text("Passage", _ATTENTION, marked=True),)
    return shared_item("claims", "attention", gold, texts=texts, questions=_questions(questions))


def _tables(rated: Sequence[RatedTask], questions: Sequence[ItemQuestion]) -> Iterator[tuple[str, pa.Table]]:
    yield from by_role("annotations", _rows, ANNOTATIONS)(rated, questions)
    spans = [row for rated_task in rated if rated_task.task.role == "item" for row in _spans(rated_task)]
    yield "annotations.spans", pa.Table.from_pylist(spans, schema=SPANS)


def _labels(rated_task: RatedTask) -> Iterator[tuple[TableRow, list[TableRow]]]:
    """Yield for each claim the common part of its rows, with its label, and its marked stretches."""
    about, body = rated_task.item.about, rated_task.item.texts[0].body
    place = {**about["sample"], "passage": about["passage"], "annotator": rated_task.task.rater}
    for name, claim in about["claims"].items():
        answer = (rated_task.answer or {}).get(name) or {"choice": "", "sentences": []}
        label = answer["choice"] if answer["choice"] in LABELS else None
        spans: list[TableRow] = [
            {"start": start, "end": end, "text": body[start:end]} for start, end in marked(body, answer)
        ]
        yield {**place, **claim, "label": label}, spans


def _rows(rated_task: RatedTask) -> Iterator[TableRow]:
    for row, spans in _labels(rated_task):
        status = "ok" if row["label"] else "not rated"
        yield {**row, "evidence": [span["text"] for span in spans], "reply": "", "status": status}


def _spans(rated_task: RatedTask) -> Iterator[TableRow]:
    for row, spans in _labels(rated_task):
        yield from (row | {"label": row["label"] or ""} | span for span in spans)


def _gold(item: RatingItem, rows: Sequence[Row]) -> Answer:
    keys = ("claim_kind", "claim_id", "claim")
    names = {tuple(claim[key] for key in keys): name for name, claim in item.about["claims"].items()}
    labelled = [
        row for row in rows if of_sample(row, item) and row["passage"] == item.about["passage"] and row["label"]
    ]
    labels = {names.get(tuple(row[key] for key in keys), ""): row["label"] for row in labelled}
    return {name: {"choice": label, "sentences": []} for name, label in labels.items() if name}


CLAIM_TASK = Kind("what a passage supports or contradicts, its evidence marked", _make, _tables, _gold, _KEYS)
