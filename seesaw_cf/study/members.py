"""Finished runs side by side: what each is called in a comparison, and in what they disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.audit import RUN_FAMILY, AuditSettings
from seesaw_cf.report.results import Results, read_results
from seesaw_cf.study.people import people_facts, people_of

NAMES = RUN_FAMILY
"""What tells one line of a comparison from another; columns of its tables."""


@dataclass(frozen=True, slots=True)
class Member:
    """A finished run of a comparison.

    Attributes:
        folder: The run folder.
        title: What the run is called.
        model, records: What its base and its records are called.
        results: What the run found, without `prompts` and `answers`.
        editors: Editor in the run's tables -> what it is called.
        people: Rows of `seesaw_cf.study.people.people_of`.
    """

    folder: Path
    title: str
    model: str
    records: str
    results: Results
    editors: Mapping[str, str]
    people: pd.DataFrame

    @property
    def protocol(self) -> str:
        """ "single" or "batch"."""
        return str(self.results.manifest.get("protocol"))

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The run's."""
        return self.results.manifest

    def named(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table of the run with the names of the comparison in front; an editor without one keeps its own."""
        if frame.empty:
            return frame
        out = frame.assign(editor=[self.editors.get(name, name) for name in frame["editor"]])
        return out.assign(model=self.model, records=self.records, protocol=self.protocol)[
            [*NAMES, *(name for name in frame.columns if name not in NAMES)]
        ]


@dataclass(frozen=True, slots=True)
class ComparedEditor:
    """An editor of a run: what is compared.

    Attributes:
        member: The run.
        name: The editor in the run's tables.
    """

    member: Member
    name: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Model, records, protocol, editor."""
        return (self.member.model, self.member.records, self.member.protocol, self.member.editors[self.name])

    @property
    def names(self) -> dict[str, str]:
        """`NAMES` -> the key."""
        return dict(zip(NAMES, self.key, strict=True))


def varying(lines: Sequence[ComparedEditor]) -> list[str]:
    """Return which of `NAMES` are not the same in all lines."""
    return [name for name in NAMES if len({line.names[name] for line in lines}) > 1]


def read_members(
    folders: Sequence[Path],
    settings: AuditSettings | None = None,
    names: Mapping[Path, tuple[str, str, str]] | None = None,
) -> list[Member]:
    """Read finished runs.

    Args:
        folders: Run folders.
        settings: What is declared for their verdicts.
        names: Folder -> what the run, its model and its records are called; None: as the manifests name them, with
            what tells them apart.

    Raises:
        RunFolderError: A folder is named twice.
        SeesawError: A folder is not a finished run; see `seesaw_cf.report.read_results`.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise RunFolderError(f"compare: a run is named twice among {', '.join(map(str, folders))}. Name each once.")
    members = []
    for folder in folders:
        results = read_results(folder, settings=settings)
        people = people_of(results.prompts)
        results = replace(results, prompts=None, answers=None)
        called = (names or {}).get(folder) or (str(folder), _model(results), _records(results))
        members.append(Member(folder, *called, results, {name: name for name in results.editors}, people))
    return members if names is not None else _make_unique(members)


def _model(results: Results) -> str:
    name = str(results.manifest.get("model", {}).get("id", "a model"))
    return Path(name).name if Path(name).is_absolute() else name


def _records(results: Results) -> str:
    data = results.manifest.get("data", {})
    source = str(data.get("source", "records"))
    return f"{Path(source).name if Path(source).is_absolute() else source} {'+'.join(data.get('configs', []))}"


# What a name stands for -> the part of the manifest and its keys; runs of one name that differ there get longer names.
_TAGS = {"model": ("model", ("fingerprint", "dtype")), "records": ("data", ("sha256",))}


def _make_unique(members: Sequence[Member]) -> list[Member]:
    """Give distinct names to different weights, different records and an editor that occurs twice."""
    renamed = list(members)
    for field, (part, keys) in _TAGS.items():
        tags = [", ".join(str(member.manifest.get(part, {}).get(key, ""))[:8] for key in keys) for member in renamed]
        names = [getattr(member, field) for member in renamed]
        many = {name for name in names if len({tag for other, tag in zip(names, tags) if other == name}) > 1}
        renamed = [
            replace(member, **{field: f"{name} ({tag})"}) if name in many else member  # type: ignore[arg-type]
            for member, name, tag in zip(renamed, names, tags)
        ]
    counts = Counter(line.key for line in lines_of(renamed, controls=True))
    return [
        replace(member, editors={name: _own_name(member, name, counts) for name in member.editors})
        for member in renamed
    ]


def _own_name(member: Member, name: str, counts: Mapping[tuple[str, str, str, str], int]) -> str:
    twice = counts[member.model, member.records, member.protocol, name] > 1
    return f"{name} [{member.title}]" if twice else name


def joined(members: Iterable[Member], table: Callable[[Member], pd.DataFrame]) -> pd.DataFrame:
    """Return one table of all runs, in their order.

    Args:
        members: The runs.
        table: What to take of each; it has a column "editor".
    """
    frames = [member.named(table(member)) for member in members]
    there = [frame for frame in frames if len(frame)]
    return pd.concat(there, ignore_index=True) if there else pd.DataFrame()


def lines_of(members: Iterable[Member], *, controls: bool = False) -> list[ComparedEditor]:
    """Return the editors of all runs, in their order.

    Args:
        members: The runs.
        controls: With controls.
    """
    return [
        ComparedEditor(member, name)
        for member in members
        for name in member.editors
        if controls or not is_control(name)
    ]


def disagreements(members: Sequence[Member]) -> list[str]:
    """Say what differs between runs that their numbers should not depend on: a sentence each, with the runs' names."""
    sentences = []
    for what, runs in differing(members).items():
        listed = "; ".join(f"{value} in {', '.join(names)}" for value, names in runs.items())
        sentences.append(f"The runs disagree in {what}: {listed}.")
    return sentences


def differing(members: Sequence[Member]) -> dict[str, dict[str, list[str]]]:
    """Return what differs between runs that their numbers should not depend on -> value -> the runs' names."""
    facts = {}
    for what, values in _facts(members).items():
        runs = {
            value: [member.title for member, own in zip(members, values) if own == value] for value in values if value
        }
        if len(runs) > 1:
            facts[what] = runs
    return facts


def _facts(members: Sequence[Member]) -> dict[str, list[str]]:
    """Return what is compared -> its value in each run; "" in a run that it is not about."""
    scoring: list[JsonObject] = [member.manifest.get("scoring", {}) for member in members]
    keys = dict.fromkeys(key for part in scoring for key in part)
    models: list[JsonObject] = [member.manifest.get("model", {}) for member in members]
    facts = {
        f"the {part} of {name}": [str(card.get(part))[:12] if card.get("id") == name else "" for card in models]
        for name in dict.fromkeys(card.get("id") for card in models)
        for part in ("fingerprint", "tokenizer")
    }
    facts |= people_facts([member.people for member in members])
    facts |= {"dtype": [str(card.get("dtype")) for card in models]}
    facts |= {"seed": [str(member.manifest.get("seed")) for member in members]}
    facts |= {"version": [str(member.manifest.get("versions", {}).get("seesaw_cf")) for member in members]}
    facts |= {
        "records": [f"{member.records}, {member.manifest.get('data', {}).get('cases')} cases" for member in members]
    }
    return facts | {f"scoring ({key})": [str(part.get(key)) for part in scoring] for key in keys}


def check_study(members: Iterable[Member]) -> None:
    """Refuse runs of one study that are not about one base, one editor and the same records under one name.

    Raises:
        RunFolderError: Names two such runs and both values.
    """
    seen: dict[tuple[str, ...], Member] = {}
    for member in members:
        about: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
            (("model", member.model), "model", ("fingerprint", "dtype", "tokenizer")),
            (("records", member.model, member.records), "data", ("sha256",)),
            (("corpus", member.model, *member.editors), "data", ("corpus",)),
            *((("settings", member.model, name), "editors", (name,)) for name in member.editors),
        ]
        for key, part, names in about:
            first = seen.setdefault(key, member)
            for name in names:
                old, new = (run.manifest.get(part, {}).get(name) for run in (first, member))
                if old != new:
                    raise RunFolderError(
                        f"{first.title} and {member.title} are of one study, but they differ in the {name} of their "
                        f"{part}: {old!r} and {new!r}. Delete the one that is wrong and repeat the `seesaw-cf study` "
                        "command; compare them as they are with `seesaw-cf report RUN RUN`."
                    )
