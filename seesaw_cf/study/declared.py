"""A study as its file declares it: models, editors, controls, records, protocols, and what counts as an effect."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

import yaml

from seesaw_cf.base import checks
from seesaw_cf.base.checks import items, one_of, shown
from seesaw_cf.base.errors import RecordError, UnknownNameError, unknown_name
from seesaw_cf.base.text import read_text
from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.control_names import CONTROLS
from seesaw_cf.effects.audit import FAMILY_COLUMNS, AuditSettings
from seesaw_cf.run.design import DESIGNS
from seesaw_cf.run.units import PROTOCOLS
from seesaw_cf.scoring import SCORERS
from seesaw_cf.stats.multiple import Correction

# Reading a YAML file of a user: nothing but plain values, no key twice, no aliases.


class _Plain(yaml.SafeLoader):
    """`yaml.safe_load` that refuses a key that occurs twice, and aliases: a few of them stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """One value of the file."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.YAMLError(f"line {mark.line + 1}: aliases (*name) are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """An object of the file."""
        keys = [key.value for key, _ in node.value]
        if twice := [key for key, _ in node.value if keys.count(key.value) > 1]:
            line = twice[-1].start_mark.line + 1
            raise yaml.YAMLError(f"line {line}: the key {shown(twice[-1].value)} occurs twice")
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> dict[str, Any]:
    """The object in a YAML file.

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
_DTYPES = ("float32", "float64", "bfloat16", "float16")
_FAMILY = ("model", "records", "protocol", "editor")
_FAMILIES = (*_FAMILY, *(name for name in FAMILY_COLUMNS if name not in _FAMILY))


@dataclass(frozen=True, slots=True)
class Base:
    """A model of a study.

    Attributes:
        model: What `seesaw-cf run --model` takes.
        revision, dtype, device: How it is loaded.
        corpus, corpus_limit, moments: What editors learn from, as in `seesaw_cf.run.job.Job`.
        settings: A JSON file of editors' settings for this model, such as `seesaw-cf tune` writes.
    """

    model: str
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    corpus: str | None = None
    corpus_limit: int | None = None
    moments: str | None = None
    settings: str | None = None


@dataclass(frozen=True, slots=True)
class RecordSet:
    """A set of records of a study: where they are, which configs, and how many of each."""

    data: str = "sample"
    configs: tuple[str, ...] = ("cross_subject",)
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """Everything a file declares.

    Attributes:
        title: Of its report.
        models, records: Name -> what it stands for.
        editors: Name -> settings that differ from the preset.
        controls: Kinds of controls of every editor.
        protocols: "single", "batch".
        options: Fields of `seesaw_cf.run.job.Job` that all cells share.
        audit: Margins, level and correction, declared before looking.
        family: Columns that name a family of verdicts.
    """

    title: str
    models: Mapping[str, Base]
    editors: Mapping[str, Mapping[str, Any]]
    records: Mapping[str, RecordSet]
    controls: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("single",)
    options: Mapping[str, Any] = field(default_factory=dict)
    audit: AuditSettings = field(default_factory=AuditSettings)
    family: tuple[str, ...] = _FAMILY

    def record(self) -> dict[str, Any]:
        """As `study.json` keeps it, plain values; devices may change."""
        declared = {name: getattr(self.audit, name) for name in ("margin", "margin_log_odds", "alpha", "correction")}
        models = {name: asdict(replace(entry, device="")) for name, entry in self.models.items()}
        return {
            "models": models,
            "editors": {name: dict(settings) for name, settings in self.editors.items()},
            "records": {name: asdict(entry) | {"configs": list(entry.configs)} for name, entry in self.records.items()},
            "protocols": {name: {} for name in self.protocols},
            "controls": list(self.controls),
            "options": dict(self.options),
            "declared": declared | {"family": list(self.family)},
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
    values = read_yaml(file)
    place = _YamlMapping(str(file), values, {*_TOP, *_OPTIONS, *_DECLARED, "family"}, ": ")
    audit = {name: check(place, name) for name, check in _DECLARED.items() if name in values}
    family = place.names("family", _FAMILIES) if "family" in values else _FAMILY
    return Study(
        title=place.text("title") if "title" in values else file.stem,
        models=_models(place),
        editors=_editors(place),
        records=_records(place),
        controls=place.names("controls", CONTROLS) if "controls" in values else (),
        protocols=place.names("protocols", PROTOCOLS) if "protocols" in values else ("single",),
        options={name: check(place, name) for name, check in _OPTIONS.items() if name in values},
        audit=AuditSettings(**audit),
        family=family,
    )


@dataclass(frozen=True, slots=True)
class _YamlMapping:
    """A mapping in the file, and where it stands there."""

    where: str
    values: Any
    allowed: set[str]
    joint: str = "."

    def __post_init__(self) -> None:
        """Refuse unknown keys."""
        if not isinstance(self.values, Mapping):
            expected = ", ".join(sorted(self.allowed))
            raise RecordError(f"{self.where} is {shown(self.values)}, expected keys out of {expected}.")
        for key in self.values:
            if key not in self.allowed:
                raise UnknownNameError(f"{self.where}: {unknown_name('key', key, self.allowed)}")

    def at(self, key: str) -> str:
        """How an error names a value: "study.yaml: models.tiny.dtype"."""
        return f"{self.where}{self.joint}{key}"

    def text(self, key: str) -> str:
        return checks.text(self.at(key), self.values[key], empty=False)

    def whole(self, key: str, low: int = 1, high: int = checks.MOST) -> int:
        return checks.whole(self.at(key), self.values[key], low, high)

    def whole_or_all(self, key: str) -> int | str:
        return "all" if self.values[key] == "all" else self.whole(key)

    def number(self, key: str, high: float = float("inf")) -> float:
        return checks.number(self.at(key), self.values[key], 0, high, ends=False)

    def one(self, key: str, names: tuple[str, ...]) -> str:
        return _known(self.at(key), self.values[key], names)

    def flag(self, key: str) -> bool:
        if not isinstance(self.values[key], bool):
            raise RecordError(f"{self.at(key)} is {shown(self.values[key])}, expected true or false.")
        return bool(self.values[key])

    def names(self, key: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """A list of different names out of a known list, at least one."""
        names = tuple(
            _known(self.at(key), name, allowed) for name in items(self.at(key), self.values[key], "a list of names")
        )
        if not names or len(set(names)) < len(names):
            raise RecordError(f"{self.at(key)} is {shown(list(names))}, expected at least one name, each once.")
        return names

    def texts(self, key: str) -> tuple[str, ...]:
        texts = checks.each(self.at(key), self.values[key], lambda where, value: checks.text(where, value, empty=False))
        if not texts:
            raise RecordError(f"{self.at(key)} is an empty list, expected at least one name.")
        return texts


def _known(where: str, value: object, names: tuple[str, ...]) -> str:
    try:
        return one_of("name", value, names)
    except UnknownNameError as error:
        raise UnknownNameError(f"{where}: {error}") from None


def _one(names: tuple[str, ...]) -> Callable[[_YamlMapping, str], str]:
    return lambda place, key: place.one(key, names)


_TOP = ("title", "models", "editors", "controls", "records", "protocols")
# Keys that are fields of `Job`, and of `AuditSettings` -> how they are read.
_OPTIONS: dict[str, Callable[[_YamlMapping, str], Any]] = {
    "seed": lambda place, key: place.whole(key, 0, checks.LAST_SEED),
    "threads": lambda place, key: place.whole(key, 1, checks.MOST_THREADS),
    "block": _YamlMapping.whole,
    "max_tokens": _YamlMapping.whole,
    "scorer": _one(SCORERS),
    "leave_out_tuned": _YamlMapping.flag,
    "design": _one(tuple(DESIGNS)),
    "prompts_per_person": _YamlMapping.whole_or_all,
    "holders": _YamlMapping.whole_or_all,
}
_DECLARED: dict[str, Callable[[_YamlMapping, str], Any]] = {
    "margin": _YamlMapping.number,
    "margin_log_odds": _YamlMapping.number,
    "alpha": lambda place, key: place.number(key, 1),
    "correction": _one(get_args(Correction)),
}
_BASE: dict[str, Callable[[_YamlMapping, str], Any]] = {
    "model": _YamlMapping.text,
    "revision": _YamlMapping.text,
    "dtype": _one(_DTYPES),
    "device": _YamlMapping.text,
    "corpus": _YamlMapping.text,
    "corpus_limit": _YamlMapping.whole,
    "moments": _YamlMapping.text,
    "settings": _YamlMapping.text,
}
_RECORDS: dict[str, Callable[[_YamlMapping, str], Any]] = {
    "data": _YamlMapping.text,
    "configs": _YamlMapping.texts,
    "limit": _YamlMapping.whole,
}


def _named(place: _YamlMapping, key: str) -> dict[str, Any]:
    """The entries of `models`, `editors` or `records`: name -> value, or a list of names."""
    if key not in place.values:
        raise RecordError(f"{place.where}: {key} is missing, so there is nothing to study. Name at least one.")
    entries = place.values[key]
    where = place.at(key)
    if not isinstance(entries, Mapping):
        listed = [
            checks.text(f"{where}[{n}]", entry, empty=False) for n, entry in enumerate(items(where, entries, "a list"))
        ]
        if len({_short(entry) for entry in listed}) < len(listed):
            raise RecordError(f"{where}: {shown(listed)} has two entries of one name. Give each a name: `NAME: ...`.")
        entries = {_short(entry): entry for entry in listed}
    if not entries:
        raise RecordError(f"{where} is empty, so there is nothing to study. Name at least one.")
    for name in entries:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise RecordError(
                f"{where}: the name {shown(name)} is no name of a folder, expected 1 to 64 ASCII letters, digits, '.', "
                "'_' and '-', a letter or digit first and last (in quotes where YAML takes it for something else)."
            )
    return dict(entries)


def _short(text: str) -> str:
    """What an entry of a list is called: the last part of a path or a Hub id."""
    return text.rstrip("/").rpartition("/")[2]


def _models(place: _YamlMapping) -> dict[str, Base]:
    models = {}
    for name, value in _named(place, "models").items():
        entry = {"model": value} if isinstance(value, str) else value
        own = _YamlMapping(f"{place.at('models')}.{name}", entry, set(_BASE))
        if "model" not in own.values:
            raise RecordError(f"{own.where}: model is missing. Give a Hub id, a folder or a name such as seesaw-tiny.")
        models[name] = Base(**{key: _BASE[key](own, key) for key in own.values})
    return models


def _editors(place: _YamlMapping) -> dict[str, dict[str, Any]]:
    editors: dict[str, dict[str, Any]] = {}
    for name, value in _named(place, "editors").items():
        where = place.at("editors")
        _known(where, name, tuple(option for option in EDITORS if option not in CONTROLS))
        settings = {} if value is None or value == name else value
        options = {option.name for option in fields(load_editor(name).config_class)}
        editors[name] = dict(_YamlMapping(f"{where}.{name}", settings, options).values)
        try:
            json.dumps(settings, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise RecordError(f"{where}.{name} is {shown(settings)}, expected plain settings ({error}).") from error
    return editors


def _records(place: _YamlMapping) -> dict[str, RecordSet]:
    records = {}
    for name, value in _named(place, "records").items():
        entry = {} if value is None else {"data": value} if isinstance(value, str) else value
        own = _YamlMapping(f"{place.at('records')}.{name}", entry, set(_RECORDS))
        records[name] = RecordSet(**{key: _RECORDS[key](own, key) for key in own.values})
    return records
