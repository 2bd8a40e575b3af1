"""LEME's survey: recorded facts as statements, passages with them as samples, and items about samples as questions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.instruments import DEFAULT, Instruments, Item, Shown
from seesaw_cf.texts.judge import Instrument, Parsed, TextQuestion, is_refusal
from seesaw_cf.texts.records import SIDES, LongformRecord, entity_name
from seesaw_cf.texts.tables import PLACE, RATINGS

# What a rater sees of a sample, and how it is called.
TITLES = {name: name.replace("_", " ").capitalize() for name in ("new_fact", "old_facts", "subject", "related_entity")}
TITLES |= {"main": "Main passage", "related": "Related passage"}
_Place = tuple[str, int, str, str, int]
_PASSAGE = {"main": "subject", "related": "related"}
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_RATING = re.compile(
    rf"(?i:rating)[^\w\n-]{{0,6}}(?:(?i:is|of)\b[^\w\n-]*)?{_NUMBER}(?:\s*(?:-|–|to|or|and|,)\s*{_NUMBER})?"
)
_BARE = re.compile(rf"[\W_]*?{_NUMBER}(?:\s*/\s*7)?[\W_]*")


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about an entity.

    Attributes:
        kind: One of `effects.texts.CLAIM_KINDS`.
        id: "new_fact", "old_fact", or the property of a ground truth such as "P106".
        text: The statement; "" when the record cannot make it.
        status: "ok", or what is missing in the record.
    """

    kind: str
    id: str
    text: str
    status: str = "ok"


@dataclass(frozen=True, slots=True)
class SurveySample:
    """Two passages of one text of one edit, and what is known about their entities.

    Attributes:
        editor, case_id, relation, phase, sample: As in `tables.PASSAGES`.
        subject, related_entity: Names; "" when the record has none.
        new_fact: The edit statement.
        old_facts: "subject" and "related" -> ground truths as statements.
        passages: "main" and "related" -> text.
        missing: "main" and "related" -> why the text is missing, for those without one.
    """

    editor: str
    case_id: int
    relation: str
    phase: str
    sample: int
    subject: str
    related_entity: str
    new_fact: str
    old_facts: Mapping[str, tuple[str, ...]]
    passages: Mapping[str, str]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> TableRow:
        """Which text of which edit."""
        return {name: getattr(self, name) for name in PLACE}


def claims_of(record: LongformRecord, form: str = "{entity} {property} {values}") -> dict[str, list[Claim]]:
    """Return the claims of a Coupled Entity record for its subject passage and its related passage.

    Args:
        record: A row of a `coupled_*` config.
        form: How a recorded fact is said; by default as in the annotated data of LEME.

    Returns:
        "subject" and "related" -> claims. A record without related entity gives one claim on the related passage with a
        status that tells why.

    Raises:
        RecordError: The edit is missing in the record.

    Source: LEME, section 3.3.
    Deviates: ground truths of the related passage name the related entity (the released code names the subject); a
        value listed twice is stated once.
    """
    request = record.get("requested_rewrite")
    if not request or request["prompt"].count("{}") != 1:
        raise RecordError(
            f"coupled record {record.get('case_id')}: requested_rewrite is {request!r}, expected an edit whose prompt "
            "has one '{}'. Make the records with `seesaw-cf build --coupled`."
        )
    facts = []
    for kind, target in (("new_fact", "target_new"), ("old_fact", "target_true")):
        label, missing = _name(request[target]), f"the record has no target for the {kind.replace('_', ' ')}"
        text = f"{request['prompt'].replace('{}', request['subject'])} {label}"
        facts.append(Claim(kind, kind, text) if label else Claim(kind, kind, "", missing))
    claims = {}
    for passage, name in SIDES.items():
        side = record.get(name) or {}
        entity, claims[passage] = entity_name(side).strip(), [*facts]
        if not entity:
            claims[passage] = [Claim("ground_truth", "", "", f"the record has no {passage} entity")]
            continue
        for truth in side.get("ground_truth") or []:
            if values := ", ".join(dict.fromkeys(filter(None, map(_name, truth["values"])))):
                text = form.replace("{property}", truth["property"]).replace("{values}", values)
                claims[passage].append(Claim("ground_truth", truth["property_id"], text.replace("{entity}", entity)))
    return claims


def _name(entity: Mapping[str, Any] | None) -> str:
    return str((entity or {}).get("str") or "").strip()


def survey_samples(passages: pa.Table, records: Sequence[LongformRecord]) -> list[SurveySample]:
    """Put subject and related passages of the same text together with the facts of their record.

    Args:
        passages: `tables.PASSAGES`; other kinds of passages are left out.
        records: Rows of a `coupled_*` config.

    Returns:
        One sample for each (editor, case, phase, sample), in the table's order.

    Raises:
        RecordError: A passage has no record, or is there twice.
    """
    by_case = {record["case_id"]: record for record in records}
    texts: dict[_Place, dict[str, dict[str, Any]]] = {}
    for row in passages.to_pylist():
        if row["passage"] not in SIDES:
            continue
        if row["case_id"] not in by_case:
            raise RecordError(f"passages: case {row['case_id']} has no coupled record. Give the records they are of.")
        place = (row["editor"], row["case_id"], row["relation"], row["phase"], row["sample"])
        if texts.setdefault(place, {}).setdefault(row["passage"], row) is not row:
            raise RecordError(f"passages: two {row['passage']} passages of {place}. Keep one run's passages.")
    return [_sample(place, own, by_case[place[1]]) for place, own in texts.items()]


def _sample(place: _Place, rows: Mapping[str, dict[str, Any]], record: LongformRecord) -> SurveySample:
    claims = claims_of(record, "The {property} of {entity} is {values}.")
    texts = {name: (rows[side]["text"] or "").strip() if side in rows else "" for name, side in _PASSAGE.items()}
    statuses = {name: rows[side]["status"] if side in rows else "not written" for name, side in _PASSAGE.items()}
    reasons = {name: "" if text else "empty" for name, text in texts.items()}
    reasons |= {name: status for name, status in statuses.items() if status != "ok"}
    old_facts = {
        name: tuple(c.text for c in own if c.kind == "ground_truth" and c.status == "ok")
        for name, own in claims.items()
    }
    missing = {name: f"{name} passage: {why}" for name, why in reasons.items() if why}
    related, new_fact = entity_name(record.get("related_entity")), claims["subject"][0].text
    return SurveySample(*place, record["requested_rewrite"]["subject"], related, new_fact, old_facts, texts, missing)


def survey_questions(samples: Iterable[SurveySample], words: Instruments = DEFAULT) -> list[TextQuestion]:
    """Return every item about every sample."""
    tasks = {item: _task(item, words) for item in words.items.values()}
    return [_question(sample, item, task) for sample in samples for item, task in tasks.items()]


def _question(sample: SurveySample, item: Item, task: str) -> TextQuestion:
    known: dict[str, Any] = {name: getattr(sample, name) for name in ("new_fact", "subject", "related_entity")}
    known |= {"old_facts": sample.old_facts.get(item.old_facts_of, ()), **sample.passages}
    shown = Shown(**{name: known[name] for name in item.fields})
    missing = [sample.missing[name] for name in item.fields if name in sample.missing]
    if item.old_facts_of and not shown.old_facts:
        missing.append(f"the record has no old facts of the {item.old_facts_of} entity")
    return TextQuestion(
        key=(sample.editor, sample.case_id, sample.phase, sample.sample, item.name),
        row=sample.place | {"item": item.name},
        pair=rater_texts(item.name, shown),
        task=task,
        text=f"{_fields(item, shown)}\n\nStatement: {item.statement}\nRating:",
        texts=tuple(filter(None, sample.passages.values())),
        edits=frozenset([sample.case_id, (sample.subject, sample.new_fact)]),
        skip=next(iter(missing), ""),
    )


def _task(item: Item, words: Instruments) -> str:
    """Return task, criterion, examples and scale, as a judge reads them."""
    examples = "\n\n".join(
        f"{kind} example:\n{_fields(item, example)}\nRating: {example.rating} ({words.scale[example.rating]})\n"
        f"Reason: {example.reason}"
        for kind, example in (("Positive", item.good), ("Negative", item.bad))
    )
    degrees = "\n".join(f"{number} = {degree}" for number, degree in words.scale.items())
    return (
        f"{words.instructions['survey'].strip()}\n\n"
        f"You rate one criterion: {item.criterion}\n\n{examples}\n\n"
        f"Scale, for how far you agree with a statement:\n{degrees}\n\n"
        "Answer with one line, such as 'Rating: 4', and nothing else."
    )


def _fields(item: Item, sample: Shown) -> str:
    values = {name: getattr(sample, name) for name in item.fields}
    facts = {name: f" {own}" if isinstance(own, str) else "\n- ".join(["", *own]) for name, own in values.items()}
    return "\n".join(f"{TITLES[name]}:{text}" for name, text in facts.items())


def rater_texts(item: str, sample: Shown) -> tuple[str, str]:
    """Return what an encoder reads: the passages that the item shows, and the item's statement with the facts it shows.

    Args:
        item: Its name.
        sample: What it shows.
    """
    shown = {name: getattr(sample, name) for name in DEFAULT.items[item].fields}
    lines = {name: value if isinstance(value, str) else "; ".join(value) for name, value in shown.items()}
    passages = [f"{TITLES[name]}: {lines[name]}" for name in _PASSAGE if name in lines]
    facts = [f"{TITLES[name]}: {lines[name]}." for name in TITLES if name in lines and name not in _PASSAGE]
    return "\n".join(passages), " ".join([f"{DEFAULT.items[item].statement}.", *facts])


def answered_questions(samples: Iterable[SurveySample], ratings: pa.Table) -> list[tuple[TextQuestion, int]]:
    """Return questions with people's answers.

    Args:
        samples: What was rated.
        ratings: `tables.RATINGS`; rows without a whole rating are left out.
    """
    questions = {question.key: question for question in survey_questions(samples) if not question.skip}
    rows = [row for row in ratings.to_pylist() if row["status"] == "ok" and float(row["rating"] or 0.5).is_integer()]
    keys = [tuple(row[name] for name in ("editor", "case_id", "phase", "sample", "item")) for row in rows]
    return [(questions[key], int(row["rating"])) for key, row in zip(keys, rows) if key in questions]


def survey(words: Instruments = DEFAULT) -> Instrument:
    """Return the survey as an instrument. Source: LEME, Appendices B.3 and D."""
    return Instrument("survey", RATINGS, partial(_parse, words.scale), max_new_tokens=64)


def _parse(scale: Mapping[int, str], question: TextQuestion, reply: str) -> Parsed:
    """Read the rating: exactly one whole number from 1 to 7 is expected."""
    bare = _BARE.fullmatch(reply.strip())
    numbers = [bare[1]] if bare else [number for groups in _RATING.findall(reply) for number in groups if number]
    values = sorted({float(number) for number in numbers})
    if len(values) != 1:
        return {}, "two ratings" if values else "refusal" if is_refusal(reply) else "no rating"
    if values[0] not in scale:
        return {}, f"{'outside 1-7' if values[0].is_integer() else 'not a whole number'}: {values[0]:g}"
    return {"rating": values[0]}, "ok"
