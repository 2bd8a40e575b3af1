"""Several finished runs as one: their frames below each other, and editors that were asked the same side by side."""

from __future__ import annotations

from collections import ChainMap, Counter
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
from seesaw_cf.report.rows import model_name

_MUST_AGREE = {"dtype": ("model", "dtype"), "seed": ("seed",), "version": ("versions", "seesaw_cf")}
_TABLES = ("edits", "people", "facts", "efficacy", "unscored")
_BY_EDITOR = ("success", "local")


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
    runs, frames = [], []
    for own, title in zip(reports, titles, strict=True):
        names_of = {name: _called(name, title, counts) for name in own.run.editors}
        runs.append(renamed(own.run, names_of))
        frames.append(own.frame.replace({"editor": names_of, "control": names_of}))
    merged = _merged(runs, titles, notes)
    rows = pd.DataFrame([*_side_by_side(runs, merged, settings)], columns=list(COLUMNS))
    frame = pd.concat([*frames, *([rows] if len(rows) else [])], ignore_index=True)
    return Report(merged, settings, frame, tuple(runs))


def _called(name: str, title: str, counts: Mapping[str, int]) -> str:
    """Return what an editor is called among several runs; a control is called after its editor."""
    kind, of = split_control(name)
    if kind and of:
        return control_name(kind, _called(of, title, counts), seed_number(name))
    return f"{name} [{title}]" if counts[name] > 1 else name


def renamed(run: RunResult, names: Mapping[str, str]) -> RunResult:
    """Return a run whose editors are called otherwise."""
    parts: dict[str, Any] = {}
    for part in _TABLES:
        if (table := getattr(run, part)) is not None:
            parts[part] = table.assign(editor=table["editor"].astype(object).replace(names))
    for part in _BY_EDITOR:
        parts[part] = {names.get(name, name): value for name, value in getattr(run, part).items()}
    manifest = {
        part: {names.get(first_seed(name), name): value for name, value in own.items()}
        for part, own in run.manifest.items()
        if part in ("editors", "edited")
    }
    return replace(run, manifest={**run.manifest, **manifest}, names=names, **parts)


def _merged(runs: Sequence[RunResult], titles: Sequence[str], notes: Sequence[str]) -> RunResult:
    """Return one run with the questions of all; what they disagree in becomes one of its notes."""
    manifests = [run.manifest for run in runs]
    manifest = {**manifests[0], "notes": [*notes, *disagreements(runs, titles)], "job": {}}  # of no one job
    for part in ("editors", "edited"):
        manifest[part] = dict(ChainMap(*(own.get(part, {}) for own in reversed(manifests))))
    manifest["model"] = {"id": " and ".join(dict.fromkeys(map(model_name, manifests)))}
    together: dict[str, Any] = {"manifest": manifest}
    for part in _TABLES:
        tables = [table for run in runs if (table := getattr(run, part)) is not None]
        together[part] = pd.concat(tables, ignore_index=True) if tables else None
    for part in _BY_EDITOR:
        together[part] = {name: value for run in runs for name, value in getattr(run, part).items()}
    return replace(runs[0], n_rows=sum(run.n_rows for run in runs), **together)


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
