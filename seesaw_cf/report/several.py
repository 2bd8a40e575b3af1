"""Several finished runs as one: their frames below each other, and editors that were asked the same side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.editors.control_names import control_name, first_seed, is_control, seed_number, split_control
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.report.build import beyond
from seesaw_cf.report.frame import COLUMNS
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.report import Report, report

_MUST_AGREE = ("dtype", "seed", "version")


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

    def rename(table: pd.DataFrame | None) -> pd.DataFrame | None:
        if table is None:
            return None
        return table.assign(editor=table["editor"].astype(object).map(lambda name: names.get(name, name)))

    edits = run.edits.assign(editor=run.edits["editor"].map(lambda name: names.get(name, name)))
    manifest: Any = dict(run.manifest)
    for part in ("editors", "edited"):
        if part in manifest:
            manifest[part] = {names.get(first_seed(name), name): value for name, value in manifest[part].items()}
    by_editor: list[Any] = [
        {names.get(key, key): value for key, value in own.items()} for own in (run.success, run.local)
    ]
    return replace(
        run,
        manifest=manifest,
        edits=edits,
        people=rename(run.people),
        facts=rename(run.facts),
        efficacy=rename(run.efficacy),
        names=names,
        success=by_editor[0],
        local=by_editor[1],
    )


def _merged(runs: Sequence[RunResult], titles: Sequence[str], notes: Sequence[str]) -> RunResult:
    """Return one run with the questions of all; what they disagree in becomes one of its notes."""
    first = runs[0]
    manifests: list[Any] = [run.manifest for run in runs]
    manifest: Any = {**first.manifest, "notes": [*notes, *disagreements(runs, titles)], "job": {}}  # of no one job
    for part in ("editors", "edited"):
        manifest[part] = {name: value for own in manifests for name, value in own.get(part, {}).items()}
    manifest["model"] = {
        "id": " and ".join(dict.fromkeys(str(run.manifest.get("model", {}).get("id")) for run in runs))
    }

    def together(name: str) -> pd.DataFrame | None:
        tables = [table for run in runs if (table := getattr(run, name)) is not None]
        return pd.concat(tables, ignore_index=True) if tables else None

    return replace(
        first,
        manifest=manifest,
        edits=pd.concat([run.edits for run in runs], ignore_index=True),
        people=together("people"),
        facts=together("facts"),
        efficacy=together("efficacy"),
        success={name: value for run in runs for name, value in run.success.items()},
        local={name: value for run in runs for name, value in run.local.items()},
        unscored=pd.concat([run.unscored for run in runs], ignore_index=True),
        n_rows=sum(run.n_rows for run in runs),
        further_seeds=[name for run in runs for name in run.further_seeds],
    )


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
    for what in _MUST_AGREE:
        values = [_fact(run, what) for run in runs]
        if len(set(values)) > 1:
            listed = "; ".join(f"{value} in {title}" for value, title in zip(values, titles, strict=True))
            yield f"The runs differ in their {what}: {listed}."


def _fact(run: RunResult, what: str) -> str:
    manifest: Any = run.manifest
    places = {"dtype": ("model", "dtype"), "version": ("versions", "seesaw_cf")}
    part, key = places.get(what, ("", what))
    return str((manifest.get(part, {}) if part else manifest).get(key))
