"""Several finished runs as one: their frames below each other, and editors that were asked the same side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import pandas as pd

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.editors.control_names import control_name, first_seed, is_control, seed_number, split_control
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.report.build import beyond
from seesaw_cf.report.frame import COLUMNS
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.report import Report, report

_MUST_AGREE = {"dtype": ("model", "dtype"), "seed": ("seed",), "version": ("versions", "seesaw_cf")}
_TABLES = ("edits", "people", "facts", "efficacy")
_BY_EDITOR = ("editors", "edited")  # parts of a manifest


def report_several(
    folders: Sequence[Path],
    settings: AuditSettings | None = None,
    names: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Report:
    """Return the report of several runs; an editor of more than one run is named with its run.

    Args:
        folders: Run folders.
        settings: What is declared for all of them.
        names: What the runs are called; their folders' names when empty.
        notes: What a reader must know, besides in what the runs differ.

    Raises:
        RunFolderError: A run is named twice, or a folder is not a finished run.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise RunFolderError(f"report: a run is named twice among {', '.join(map(str, folders))}. Name each once.")
    settings = settings or AuditSettings()
    titles = list(names) or [str(folder) for folder in folders]
    reports = [report(folder, settings) for folder in folders]
    counts = Counter(name for own in reports for name in own.run.editors)
    called = [
        {name: _called(name, title, counts) for name in own.run.editors}
        for own, title in zip(reports, titles, strict=True)
    ]
    runs = [renamed(own.run, names) for own, names in zip(reports, called, strict=True)]
    frames = [
        own.frame.assign(**{key: own.frame[key].map(lambda name, names=names: names.get(name, name)) for key in _NAMES})
        for own, names in zip(reports, called, strict=True)
    ]
    merged = _merged(runs, titles, notes)
    rows = pd.DataFrame([*_side_by_side(runs, merged, settings)], columns=list(COLUMNS))
    frame = pd.concat([*frames, *([rows] if len(rows) else [])], ignore_index=True)
    return Report(merged, settings, frame, tuple(runs))


_NAMES = ("editor", "control")


def _called(name: str, title: str, counts: Mapping[str, int]) -> str:
    """Return what an editor is called among several runs; a control is called after its editor."""
    kind, of = split_control(name)
    if kind and of:
        return control_name(kind, _called(of, title, counts), seed_number(name))
    return f"{name} [{title}]" if counts[name] > 1 else name


def renamed(run: RunResult, names: Mapping[str, str]) -> RunResult:
    """Return a run whose editors are called otherwise."""
    tables: dict[str, Any] = {}
    for part in _TABLES:
        table = getattr(run, part)
        if table is not None:
            tables[part] = table.assign(editor=table["editor"].astype(object).map(lambda name: names.get(name, name)))
    manifest: Any = dict(run.manifest)
    for part in _BY_EDITOR:
        if part in manifest:
            manifest[part] = {names.get(first_seed(name), name): value for name, value in manifest[part].items()}
    for part in ("success", "local"):
        tables[part] = {names.get(name, name): value for name, value in getattr(run, part).items()}
    return replace(run, manifest=manifest, names=names, **tables)


def _merged(runs: Sequence[RunResult], titles: Sequence[str], notes: Sequence[str]) -> RunResult:
    """Return one run with the questions of all; what they disagree in becomes one of its notes."""
    manifests: list[Any] = [run.manifest for run in runs]
    manifest: Any = {**manifests[0], "notes": [*notes, *disagreements(runs, titles)], "job": {}}  # of no one job
    for part in _BY_EDITOR:
        manifest[part] = {name: value for own in manifests for name, value in own.get(part, {}).items()}
    models = dict.fromkeys(str(own.get("model", {}).get("id")) for own in manifests)
    together: dict[str, Any] = {"manifest": manifest | {"model": {"id": " and ".join(models)}}}
    for part in (*_TABLES, "unscored"):
        tables = [table for run in runs if (table := getattr(run, part)) is not None]
        together[part] = pd.concat(tables, ignore_index=True) if tables else None
    for part in ("success", "local"):
        together[part] = {name: value for run in runs for name, value in getattr(run, part).items()}
    seeds = [name for run in runs for name in run.further_seeds]
    return replace(runs[0], n_rows=sum(run.n_rows for run in runs), further_seeds=seeds, **together)


def _side_by_side(runs: Sequence[RunResult], merged: RunResult, settings: AuditSettings) -> Iterator[dict[str, Any]]:
    """Yield what an editor of one run did beyond that of another, where both were asked the same records."""
    for first, second in combinations(runs, 2):
        data = [run.manifest.get("data", {}).get("sha256") for run in (first, second)]
        if data[0] is None or data[0] != data[1] or merged.people is None:
            continue
        pairs = [(a, b) for a in first.audited for b in second.audited if not is_control(a) and not is_control(b)]
        yield from beyond(merged.people, pairs, merged, settings)


def disagreements(runs: Sequence[RunResult], titles: Sequence[str]) -> Iterator[str]:
    """Yield in what runs differ that their numbers should not depend on: a sentence each."""
    for what, path in _MUST_AGREE.items():
        values = [str(reduce(lambda part, key: (part or {}).get(key), path, cast(Any, run.manifest))) for run in runs]
        if len(set(values)) > 1:
            listed = "; ".join(f"{value} in {title}" for value, title in zip(values, titles, strict=True))
            yield f"The runs differ in their {what}: {listed}."
