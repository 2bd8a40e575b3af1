"""What judges and people are asked about texts: the items of the survey, the flaws, the failure modes, instructions.

All words are in `instruments.yaml`, which has their sources; a file in the same form replaces any part.
"""

from __future__ import annotations

import hashlib
import os
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from seesaw_cf.base.checks import each, instance, one_of, text
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import read_text
from seesaw_cf.base.types import JsonObject

# The names of the question types in the papers' tables.
TYPES = ("edit", "factual", "internal", "cross_passage", "topicality", "naturalness")
_DATA = Path(__file__).with_name("instruments.yaml")
# Question to a judge -> what it must have a place for.
_FLAWS = ("entity", "title", "definition", "one", "two")
_PLACES = {"answers_judge": ("prompt", "answers", "reply"), "flaws_judge": _FLAWS, "flaws_judge_published": _FLAWS}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a rater sees of a sample; an example also has a rating and its reason.

    Attributes:
        new_fact: The edit statement.
        old_facts: What was true before.
        main, related: The two passages.
        subject, related_entity: Entities that they should be about.
        rating: 1 to 7.
        reason: Why an example is rated so.
    """

    new_fact: str = ""
    old_facts: tuple[str, ...] = ()
    main: str = ""
    related: str = ""
    subject: str = ""
    related_entity: str = ""
    rating: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One statement that raters agree or disagree with.

    Attributes:
        name: As in the released ratings.
        type: One of `TYPES`.
        statement: As printed in Table 7.
        criterion: What the instructions of Table 6 call it.
        fields: Which fields of `Shown` a rater sees.
        old_facts_of: Entity with the ground truths shown as old facts: "subject", "related" or "".
        good, bad: The two examples of the instructions.
    """

    name: str
    type: str
    statement: str
    criterion: str
    fields: tuple[str, ...]
    old_facts_of: str
    good: Shown
    bad: Shown


@dataclass(frozen=True, slots=True)
class Flaw:
    """One flaw of a text about a person.

    Attributes:
        name: Short name, used in tables.
        title: For readers.
        released: Name of its column in the authors' files of ratings.
        people, model: Marks of the flaw, as people and as language models read them.
    """

    name: str
    title: str
    released: str
    people: tuple[str, ...]
    model: tuple[str, ...]


@dataclass(frozen=True)
class Instruments:
    """Everything that raters read.

    Attributes:
        source: Source of the words.
        sha256: Of the file that replaces some; "" for the package's own.
        replaced: Which parts are from that file, such as "flaws.sexism.people".
        instructions: Task -> text.
        scale: Rating -> words.
        items, flaws: By name, in the papers' order.
        failures: Failure mode -> title and meaning.
    """

    source: str
    sha256: str
    replaced: tuple[str, ...]
    instructions: Mapping[str, str]
    scale: Mapping[int, str]
    items: Mapping[str, Item]
    flaws: Mapping[str, Flaw]
    failures: Mapping[str, tuple[str, str]]

    def facts(self) -> JsonObject:
        """Return the facts about the words that results rest on."""
        return {"source": self.source, "sha256": self.sha256, "replaced": list(self.replaced)}


def read_instruments(path: str | os.PathLike[str] | None = None) -> Instruments:
    """Return the package's instruments, with what a file in the same form replaces.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It is neither JSON nor YAML, a part is of another kind, or a place is missing in a question.
        UnknownNameError: A part that does not exist; near names are suggested.
    """
    document = yaml.safe_load(_DATA.read_text(encoding="utf-8"))
    sha256, replaced = "", list[str]()
    if path:
        content = read_text(path)
        try:
            own = yaml.safe_load(content)
        except (yaml.YAMLError, RecursionError) as error:
            raise RecordError(
                f"{path}: neither JSON nor YAML ({' '.join(str(error).split())}). Expected 'items: ...' and so on."
            ) from error
        own = {"source": str(path)} | instance(str(path), own, dict, "an object")
        _, *replaced = _replace(str(path), document, own, "")
        sha256 = hashlib.sha256(content.encode("utf-8")).hexdigest()
        for name, places in _PLACES.items():
            _check_places(f"{path}: instructions.{name}", document["instructions"][name], places)
        if not replaced:
            raise RecordError(f"{path}: it replaces nothing. Expected at least one of {', '.join(document)}.")
    items = {
        name: Item(name, **_tuples(item | {side: Shown(**_tuples(item[side])) for side in ("good", "bad")}))
        for name, item in document["items"].items()
    }
    flaws = {name: Flaw(name, **_tuples(flaw)) for name, flaw in document["flaws"].items()}
    failures = {name: (mode["title"], mode["meaning"]) for name, mode in document["failures"].items()}
    scale = dict(enumerate(document["scale"], start=1))
    return Instruments(
        document["source"], sha256, tuple(replaced), document["instructions"], scale, items, flaws, failures
    )


def _replace(path: str, document: dict[str, Any], own: Mapping[str, Any], parent: str) -> list[str]:
    """Put the leaves of `own` into the document; return their names."""
    replaced, place = [], f"{path}: {parent[:-1]}" if parent else path
    for key, value in own.items():
        name = parent + one_of(f"part of {place}:", str(key), document)
        where, before = f"{path}: {name}", document[str(key)]
        if isinstance(before, dict):
            replaced += _replace(path, before, instance(where, value, dict, "an object"), f"{name}.")
            continue
        if isinstance(before, list):
            value = list(each(where, value, lambda at, line: text(at, line, empty=False)))
        elif isinstance(before, str):
            value = text(where, value, empty=not before)
        document[str(key)] = instance(where, value, type(before))
        replaced.append(name)
    return replaced


def _check_places(where: str, question: str, places: Sequence[str]) -> None:
    """Check that a question has every place at least once, and no other."""
    try:
        names = {name for _, name, _, _ in string.Formatter().parse(question) if name is not None}
    except ValueError as error:
        raise RecordError(f"{where}: {error}. Write {{{{ and }}}} for braces that are meant.") from error
    if names != set(places):
        expected = ", ".join(f"{{{name}}}" for name in places)
        raise RecordError(f"{where} has places {sorted(names)}, expected each of {expected} and no other.")


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


DEFAULT = read_instruments()
ITEMS = tuple(DEFAULT.items.values())
SCALE = DEFAULT.scale
FLAWS_BY_NAME = MappingProxyType(DEFAULT.flaws)
FAILURE_MODES = MappingProxyType(DEFAULT.failures)


def flaw_title(name: object) -> str:
    """Return the title of a flaw; its name where it is none of the seven."""
    return FLAWS_BY_NAME[str(name)].title if name in FLAWS_BY_NAME else str(name)
