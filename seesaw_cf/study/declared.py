"""A study as its file declares it: models, editors, controls, records, protocols, and what counts as an effect."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import yaml

from seesaw_cf.base import checks
from seesaw_cf.base.checks import items, one_of, shown
from seesaw_cf.base.errors import RecordError, SeesawError, UnknownNameError, unknown_name
from seesaw_cf.base.fields import OneOf, Positive, check_value, hints_of
from seesaw_cf.base.text import read_text
from seesaw_cf.base.types import DTYPES, JsonObject
from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.control_names import CONTROLS
from seesaw_cf.effects.audit import FAMILY_COLUMNS, RUN_FAMILY, AuditSettings
from seesaw_cf.models.editor import Overrides, Settings
from seesaw_cf.run.jobs import PROTOCOLS, Job

T = TypeVar("T")

# Reading a YAML file of a user: nothing but plain values, no key twice, no aliases.


class _Plain(yaml.SafeLoader):
    """`yaml.safe_load` that refuses a key that occurs twice, and aliases: a few of them stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose one value of the file; refuse an alias."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.YAMLError(f"line {mark.line + 1}: aliases (*name) are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct an object of the file; refuse a key that occurs twice."""
        keys = [key.value for key, _ in node.value]
        if twice := [key for key, _ in node.value if keys.count(key.value) > 1]:
            line = twice[-1].start_mark.line + 1
            raise yaml.YAMLError(f"line {line}: the key {shown(twice[-1].value)} occurs twice")
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> dict[str, Any]:
    """Read the object in a YAML file.

    Args:
        file: The file.

    Raises:
        StorageError: The file is missing or cannot be read.
        RecordError: Not UTF-8, not YAML, a key twice, an alias, or something else than an object at the top.
    """
    try:
        values = yaml.load(read_text(file), _Plain)  # a SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        reason = " ".join(str(error).split()) or "nested too deeply"
        raise RecordError(f"{file}: not YAML that is read here ({reason}). Correct the file.") from error
    if not isinstance(values, dict):
        raise RecordError(f"{file}: got {shown(values)}, expected keys such as models, editors and records.")
    return values


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?")
_TOP = ("title", "models", "editors", "records")
# Keys that are lists of names -> the known ones.
_LISTS = {"controls": CONTROLS, "protocols": PROTOCOLS, "family": tuple(dict.fromkeys((*RUN_FAMILY, *FAMILY_COLUMNS)))}
# Keys that are fields of `Job`, and of `AuditSettings`.
_OPTIONS = (
    *("seed", "control_seeds", "threads", "block", "max_tokens", "scorer"),
    *("prompts", "prompts_per_person", "people_per_edit", "checkpoints", "orders"),
)
_DECLARED = ("margin", "margin_log_odds", "alpha")


@dataclass(frozen=True, slots=True)
class Base:
    """A model of a study.

    Attributes:
        model: What `seesaw-cf audit --model` takes.
        revision, dtype, device: How it is loaded.
        corpus, corpus_limit, moments: What editors learn from, as in `seesaw_cf.run.job.Job`.
        settings: A JSON file of editors' settings for this model.
    """

    model: str
    revision: str | None = None
    dtype: Annotated[str, OneOf(DTYPES)] = "float32"
    device: str = "auto"
    corpus: str | None = None
    corpus_limit: Positive | None = None
    moments: str | None = None
    settings: str | None = None


@dataclass(frozen=True, slots=True)
class RecordSet:
    """A set of records of a study: where they are, which configs, and how many of each."""

    data: str = "sample"
    configs: tuple[str, ...] = ("cross_subject",)
    limit: Positive | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """Everything a file declares.

    Attributes:
        title: Of its report.
        models, records: Name -> what it stands for.
        editors: Name -> settings that differ from the preset.
        controls: Kinds of controls of every editor.
        protocols: "single", "batch"; or "sequential" alone.
        options: Fields of `seesaw_cf.run.job.Job` that all cells share.
        audit: Margins and level, declared before looking.
        family: Columns that name a family of verdicts.
    """

    title: str
    models: Mapping[str, Base]
    editors: Overrides
    records: Mapping[str, RecordSet]
    controls: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("single",)
    options: dict[str, Any] = field(default_factory=dict)
    audit: AuditSettings = field(default_factory=AuditSettings)
    family: tuple[str, ...] = RUN_FAMILY

    def record(self) -> JsonObject:
        """Return what `study.json` keeps; devices may change."""
        declared = {name: getattr(self.audit, name) for name in _DECLARED}
        return {
            "models": {name: asdict(replace(entry, device="")) for name, entry in self.models.items()},
            "editors": self.editors,
            "records": {name: asdict(entry) for name, entry in self.records.items()},
            "protocols": {name: {} for name in self.protocols},
            "controls": self.controls,
            "options": self.options,
            "declared": declared | {"family": self.family},
        }


def read_study(file: Path) -> Study:
    """Read the file of a study; nothing is loaded.

    Args:
        file: YAML, see docs/study.md.

    Raises:
        StorageError: The file cannot be read.
        RecordError: Not YAML, an empty study, or a value of a wrong type; names the place.
        UnknownNameError: An unknown key, editor, control, protocol or the like; suggests near ones.
    """
    values = _keys(str(file), read_yaml(file), {*_TOP, *_LISTS, *_OPTIONS, *_DECLARED})
    place = f"{file}: "
    parts = {key: _named(str(file), key, values) for key in ("models", "editors", "records")}
    options = _fields(Job, place, _those(values, _OPTIONS))
    study = Study(
        title=checks.text(f"{place}title", values.get("title", file.stem), empty=False),
        models={name: _model(f"{place}models.{name}", value) for name, value in parts["models"].items()},
        editors={name: _editor(f"{place}editors", name, value) for name, value in parts["editors"].items()},
        records={name: _records(f"{place}records.{name}", value) for name, value in parts["records"].items()},
        options=options,
        audit=_made(place, AuditSettings, **_fields(AuditSettings, place, _those(values, _DECLARED))),
        **{name: _names(place + name, values[name], allowed) for name, allowed in _LISTS.items() if name in values},
    )
    if study.protocols != ("sequential",) and {"sequential", "checkpoints", "orders"} & {*study.protocols, *options}:
        raise RecordError(
            f"{place}protocols are {shown([*study.protocols])}: checkpoints and orders are of edits one after another, "
            "which are no mean with other cells. Declare protocols: [sequential] alone, or leave them out."
        )
    for protocol in study.protocols:  # as every cell will
        editors: dict[str, Any] = {"editors": tuple(study.editors), "controls": study.controls}
        _made(place, Job, model="seesaw-tiny", protocol=protocol, **editors, **options)
    return study


def _keys(where: str, values: object, allowed: Collection[str]) -> Mapping[str, object]:
    """Return a mapping of the file; refuse unknown keys."""
    if not isinstance(values, Mapping):
        raise RecordError(f"{where} is {shown(values)}, expected keys out of {', '.join(sorted(allowed))}.")
    for key in values:
        if key not in allowed:
            raise UnknownNameError(f"{where}: {unknown_name('key', key, allowed)}")
    return values


def _those(values: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    return {name: values[name] for name in names if name in values}


def _made(place: str, kind: Callable[..., T], **values: Any) -> T:
    """Return a record of values of the file; an error names the file."""
    try:
        return kind(**values)
    except SeesawError as error:
        raise type(error)(f"{place}{error}") from None


def _fields(kind: Any, place: str, values: Mapping[str, object]) -> dict[str, Any]:
    """Return values that are fields of a dataclass, each checked against its annotation."""
    checked: dict[str, Any] = {}
    for name, value in values.items():
        hint = hints_of(kind)[name]
        if get_origin(hint) is tuple:
            value = _names(place + name, value) if get_args(hint)[0] is str else items(place + name, value)
        checked[name] = value
        check_value(place + name, checked[name], hint)
    return checked


def _names(where: str, value: object, allowed: Collection[str] = ()) -> tuple[str, ...]:
    """Return a list of at least one name, each once, of known ones where there are any."""
    listed = items(where, value, "a list of names")
    names = tuple(_known(where, name, allowed) if allowed else checks.text(where, name, empty=False) for name in listed)
    if not names or len(set(names)) < len(names):
        raise RecordError(f"{where} is {shown(list(names))}, expected at least one name, each once.")
    return names


def _known(where: str, value: object, names: Collection[str]) -> str:
    try:
        return one_of("name", value, names)
    except UnknownNameError as error:
        raise UnknownNameError(f"{where}: {error}") from None


def _named(file: str, key: str, values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the entries of `models`, `editors` or `records`: name -> value, or a list of names."""
    where, entries = f"{file}: {key}", values.get(key)
    if key not in values:
        raise RecordError(f"{file}: {key} is missing, so there is nothing to study. Name at least one.")
    if not isinstance(entries, Mapping):
        listed = checks.each(where, entries, lambda place, value: checks.text(place, value, empty=False))
        entries = {text.rstrip("/").rpartition("/")[2]: text for text in listed}
        if len(entries) < len(listed):
            raise RecordError(f"{where}: {shown(listed)} has two entries of one name. Give each a name: `NAME: ...`.")
    if not entries:
        raise RecordError(f"{where} is empty, so there is nothing to study. Name at least one.")
    for name in entries:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise RecordError(
                f"{where}: the name {shown(name)} is no name of a folder, expected 1 to 64 ASCII letters, digits, '.', "
                "'_' and '-', a letter or digit first and last (in quotes where YAML takes it for something else)."
            )
    return entries


def _model(where: str, value: object) -> Base:
    own = _keys(where, {"model": value} if isinstance(value, str) else value, [entry.name for entry in fields(Base)])
    if "model" not in own:
        raise RecordError(f"{where}: model is missing. Give a Hub id, a folder or a name such as seesaw-tiny.")
    return Base(**_fields(Base, f"{where}.", own))


def _editor(where: str, name: str, value: object) -> Settings:
    _known(where, name, EDITORS.keys() - CONTROLS)
    own = {} if value is None or value == name else value
    settings = _keys(f"{where}.{name}", own, {entry.name for entry in fields(load_editor(name).config_class)})
    try:
        json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RecordError(f"{where}.{name} is {shown(settings)}, expected plain settings ({error}).") from error
    return settings


def _records(where: str, value: object) -> RecordSet:
    entry = {} if value is None else {"data": value} if isinstance(value, str) else value
    own = _keys(where, entry, [entry.name for entry in fields(RecordSet)])
    return RecordSet(**_fields(RecordSet, f"{where}.", own))
