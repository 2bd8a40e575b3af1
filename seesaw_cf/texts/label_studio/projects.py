"""Tasks for Label Studio, and the tables of what raters answered: flaws, survey, claims and failure modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict
from xml.etree import ElementTree as ET

import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.effects.survey_items import ITEMS, SCALE
from seesaw_cf.texts.flaws.people import ANSWERS, YES_NO, read_item
from seesaw_cf.texts.label_studio.results import RATERS, Answered, read_results
from seesaw_cf.texts.people.claims import CHOICES, CLAIM_TASK
from seesaw_cf.texts.people.failures import FAILURE_TASK
from seesaw_cf.texts.people.flaws import FLAW_TASK
from seesaw_cf.texts.people.making import Kind, Made, RatedTask
from seesaw_cf.texts.people.study import About, Answer, ItemQuestion, RatingItem, RatingTask, Text
from seesaw_cf.texts.people.survey import SURVEY_TASK
from seesaw_cf.texts.wording import FAILURE_MODES, FLAWS_BY_NAME
from seesaw_cf.texts.write.pairs import showings

_CLAIM = (ItemQuestion("label", "Does the passage support the claim?", CHOICES, shape="claim"),)


class TaskItem(TypedDict):
    """A task: what raters see, field by field, and what un-blinds it."""

    data: dict[str, str]
    about: About


@dataclass(frozen=True)
class Project:
    """What is loaded into Label Studio, and what stays with you.

    Attributes:
        config: The labelling configuration, XML.
        items: Id -> `data`, the fields of its task, and `about`, what un-blinds it.
        kind: "flaws", "survey", "claims" or "failures".
        asked: Names of what was asked.
    """

    kind: str
    config: str
    items: Mapping[str, TaskItem]
    asked: tuple[str, ...] = ()

    def tasks(self) -> list[JsonObject]:
        """Return the tasks as Label Studio imports them."""
        return [{"data": {"item": id, **item["data"]}} for id, item in self.items.items()]

    def key(self) -> JsonObject:
        """Return what `tables_of` needs to read results; keep it from raters of flaws."""
        return {"kind": self.kind, "asked": list(self.asked), "items": self.items}


def project_of(kind: str, material: Made, seed: int = 0, duplicates: float = 0.0) -> Project:
    """Return the items of a kind of task, as the browser shows them, as tasks in random order.

    Args:
        kind: One of `KINDS`.
        material: What `seesaw_cf.texts.people` makes of a run; a task asks about one claim.
        seed: Of the order of tasks, and of the two texts of a pair.
        duplicates: Share of pairs that come a second time, in the other order.

    Raises:
        RecordError: A share outside 0..1.
    """
    items = {item.id: item for item in material.items}
    orders = KINDS[kind][0].orders
    order = showings(list(items), seed, duplicates) if orders else [(id, 1, "") for id in items]
    tasks: dict[str, TaskItem] = {}
    facts_by_field: dict[str, str] = {}
    texts_by_field: dict[str, str] = {}
    for name_of_item, copy, first in order:
        item = items[name_of_item]
        facts = {label: "\n".join(lines) for label, lines in item.told}
        texts = item.shown(first)
        for name, claim in item.about.get("claims", {"": {}}).items():
            own = facts | ({"Claim": claim["claim"]} if claim else {})
            id = f"i{seed_of(seed, kind, item.id, copy, name):012x}"
            about = {**item.about, "item": id, "copy": copy, "first": first, "claims": {name: claim}}
            tasks[id] = {"data": {_field(title): text for title, text in (own | texts).items()}, "about": about}
            facts_by_field |= {_field(title): title for title in own}
        texts_by_field |= {_field(title): title for title in texts}
    names = {name for item in material.items for name in item.ask}
    questions = [question for question in material.questions or _CLAIM if not names or question.name in names]
    blank = dict.fromkeys(facts_by_field | texts_by_field, "-")
    whole: dict[str, TaskItem] = {
        id: {"data": blank | task["data"], "about": task["about"]} for id, task in sorted(tasks.items())
    }
    config = config_of(facts_by_field, texts_by_field, questions)
    return Project(kind, config, whole, tuple(question.name for question in questions))


def _field(title: str) -> str:
    """Return the name of a task's field: "Main passage" -> "main_passage", "Text A" -> "text_A"."""
    return (title[:1].lower() + title[1:]).replace(" ", "_")


def tables_of(results: Path, key: Path, raters: str = RATERS) -> dict[str, pa.Table]:
    """Return the tables of what raters answered, as judges write them.

    Args:
        results: JSON export of Label Studio.
        key: `key.json` that was written with the tasks.
        raters: See `read_results`.

    Returns:
        Name of a Parquet file -> its rows. What a rater left open has the status "not rated"; tasks that a rater
        did not see have no rows.

    Raises:
        StorageError: A file cannot be read.
        RecordError: Not these files, or not about the same texts; the message names the task.
    """
    record = read_json(key, dict)
    try:
        kind, answer = KINDS[checks.one_of("kind of tasks", record["kind"], KINDS)]
        items = {name: checks.instance("item", item, dict) for name, item in record["items"].items()}
        data = {name: item["data"] for name, item in items.items()}
        about = {name: item["about"] for name, item in items.items()}
        questions = [ItemQuestion(name, "") for name in record["asked"]]
    except (LookupError, AttributeError, TypeError, RecordError) as error:
        raise RecordError(f"{key}: not the key of tasks ({error}). Give the key.json written with them.") from error
    rated = []
    for entry in read_results(results, data, raters):
        own = about[entry.item]
        item = RatingItem(entry.item, "", (), (Text("", data[entry.item].get("passage", "")),), about=own)
        role = "repeat" if own.get("copy") == 2 else "item"
        task = RatingTask(entry.rater, 0, entry.item, role, own.get("first", ""))
        rated.append(RatedTask(item, task, answer(entry, own, questions)))
    return {name: table for name, table in kind.tables(rated, questions) if table.num_rows or "." not in name}


def _flaws(entry: Answered, about: About, questions: Sequence[ItemQuestion]) -> Answer:
    read_item(about)
    flaws = [question.name for question in questions if question.name in FLAWS_BY_NAME]
    labels = {flaw: entry.choice(flaw, ANSWERS) for flaw in flaws}
    return labels | {"edit_reflected": entry.choice("edit_reflected", YES_NO), "comment": entry.comment}


def _survey(entry: Answered, about: About, _: Sequence[ItemQuestion]) -> Answer:
    names = [item.name for item in ITEMS if item.name not in about["skipped"]]
    return {name: _DEGREES.get(entry.choice(name, _DEGREES), "") for name in names}


def _claims(entry: Answered, about: About, _: Sequence[ItemQuestion]) -> Answer:
    marked = {label for span in entry.spans for label in span.labels}
    label = entry.choice("label", LABELS) or (marked.pop() if len(marked) == 1 else "")
    if marked - {label}:
        raise RecordError(
            f"{entry.where}: words are highlighted as {', '.join(sorted(marked))}, but the label is "
            f"{label or 'missing'}. Expected one label, and highlights of the same."
        )
    return {
        name: {"choice": label, "sentences": [], "spans": [highlight.span for highlight in entry.spans]}
        for name in about["claims"]
    }


def _failures(entry: Answered, about: About, _: Sequence[ItemQuestion]) -> Answer:
    for name in entry.choices.get("modes", ()):
        checks.one_of(f"failure mode in {entry.where}:", name, FAILURE_MODES)
    return {"modes": entry.choices.get("modes"), "comment": entry.comment}


_DEGREES = {str(number): str(number) for number in SCALE} | {words: str(number) for number, words in SCALE.items()}
_Answer = Callable[[Answered, About, Sequence[ItemQuestion]], Answer]
KINDS: dict[str, tuple[Kind, _Answer]] = {
    "flaws": (FLAW_TASK, _flaws),
    "survey": (SURVEY_TASK, _survey),
    "claims": (CLAIM_TASK, _claims),
    "failures": (FAILURE_TASK, _failures),
}


SPANS = "evidence"
"""Name of what is highlighted."""
_COLOURS = {"supports": "#1b7837", "contradicts": "#b2182b"}


def config_of(facts: Mapping[str, str], texts: Mapping[str, str], questions: Sequence[ItemQuestion]) -> str:
    """Return the configuration of tasks.

    Args:
        facts: Field of a task -> title of what stands above the texts.
        texts: The same of the texts; answers belong to the first.
        questions: What is asked; of a claim, words of the first text are highlighted as well.
    """
    view, first = ET.Element("View"), next(iter(texts))
    _texts(view, facts)
    if any(question.shape == "claim" for question in questions):
        labels = ET.SubElement(view, "Labels", name=SPANS, toName=first)
        for name, colour in _COLOURS.items():
            ET.SubElement(labels, "Label", value=name, background=colour)
    _texts(view, texts)
    for question in questions:
        _header(view, question.text)
        for line in question.help:
            _header(view, f"- {line}", size="6")
        if question.choices:
            how = "multiple" if question.shape == "several" else "single-radio"
            parent = ET.SubElement(view, "Choices", name=question.name, toName=first, choice=how, showInline="true")
            for value, words in question.choices:
                ET.SubElement(parent, "Choice", value=words, alias=value)
        else:
            ET.SubElement(view, "TextArea", name=question.name, toName=first, rows="1", maxSubmissions="1")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _texts(view: ET.Element, texts: Mapping[str, str]) -> None:
    """Add the texts of a task: plain `Text`, never `HyperText`, and never taken for an address to load."""
    for name, title in texts.items():
        _header(view, title)
        ET.SubElement(view, "Text", name=name, value=f"${name}", valueType="text", granularity="word")


def _header(view: ET.Element, text: str, size: str = "4") -> None:
    # "$" would name a field of the task.
    ET.SubElement(view, "Header", value=text.replace("$", "\uff04"), size=size)
