"""Several finished runs as one: their frames below each other, and editors that were asked the same side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from seesaw_cf.report.pairs import MIXED, RunResult
from seesaw_cf.report.report import Report
from seesaw_cf.report.rows import Manifest, model_name
from seesaw_cf.report.sequence import SequenceReport, last_standing, report, without_collapsed

_MUST_AGREE = {"dtype": ("model", "dtype"), "seed": ("", "seed"), "version": ("versions", "seesaw_cf")}
_TABLES = ("edits", "people", "facts", "efficacy", "unscored", "written")
_BY_EDITOR = ("success", "local")
_RECORDED = ("editors", "edited")  # by editor, too


def report_several(
    folders: Sequence[Path], settings: AuditSettings | None = None, names: Sequence[str] = (), notes: Sequence[str] = ()
) -> Report:
    """Return the report of several runs; an editor of more than one run is named with its run.

    Args:
        folders: Run folders.
        settings: What is declared for all of them.
        names: What the runs are called; their folders' names when empty.
        notes: What a reader must know, besides in what the runs differ.

    Raises:
        RunFolderError: A run is named twice, a folder is not a finished run, the main forms of the runs differ, or only
            some runs made edits one after another, or at different checkpoints.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise RunFolderError(f"report: a run is named twice among {', '.join(map(str, folders))}. Name each once.")
    settings = settings or AuditSettings()
    titles = list(names) or [str(folder) for folder in folders]
    reports = [report(folder, settings) for folder in folders]
    counts = Counter(name for own in reports for name in own.run.editors)
    sequences = [(own, title) for own, title in zip(reports, titles, strict=True) if isinstance(own, SequenceReport)]
    if sequences:
        plans = {(*own.at, own.run.manifest["settings"]["orders"]) for own, _ in sequences}
        if len(sequences) < len(reports) or len(plans) > 1:
            raise RunFolderError(
                "report: edits one after another are no mean with other runs, nor with runs that were looked at after "
                "other numbers of edits, or in another number of orders. Report them apart."
            )
        return _sequences(sequences, counts, notes)
    return _together(list(zip(reports, titles, strict=True)), counts, notes, settings)


def _sequences(
    reports: Sequence[tuple[SequenceReport, str]], counts: Mapping[str, int], notes: Sequence[str]
) -> SequenceReport:
    """Return one report of several runs of edits one after another, checkpoint by checkpoint."""
    first, _ = reports[0]
    curves, standing = list[pd.DataFrame](), dict[str, int]()
    for own, title in reports:
        names = {name: _called(name, title, counts) for name in own.curve["editor"].unique()}
        curves.append(own.curve.replace({"editor": names}))
        standing |= {names[name]: count for name, count in own.standing.items()}
    at, curve = dict[int, Report](), pd.concat(curves)
    for count in first.at:
        together = _together([(own.at[count], title) for own, title in reports], counts, notes, first.settings)
        at[count] = without_collapsed(together, curve, count)
    frame = pd.concat([own.frame.assign(checkpoint=count) for count, own in at.items()], ignore_index=True)
    run = at[last_standing(standing, at)].run
    return SequenceReport(run, first.settings, frame, at=at, curve=curve, standing=standing)


def _together(
    reports: Sequence[tuple[Report, str]], counts: Mapping[str, int], notes: Sequence[str], settings: AuditSettings
) -> Report:
    """Return one report of several in one form, and of their other forms, each with the runs that have it."""
    runs, frames, titles = [], [], [title for _, title in reports]
    for own, title in reports:
        names_of = {name: _called(name, title, counts) for name in own.run.editors}
        runs.append(_renamed(own.run, names_of))
        frames.append(own.frame.replace({"editor": names_of, "control": names_of}))
    if len(forms := {run.form for run in runs}) > 1:
        raise RunFolderError(
            f"report: the runs were asked in the forms {sorted(forms)}, expected one: an answer in chat and one in a "
            "text to continue are never averaged. Report them apart, or run them with the same --form."
        )
    merged = _merged(runs, titles, notes)
    rows = pd.DataFrame([*_side_by_side(runs, merged, settings)], columns=list(COLUMNS)).assign(form=merged.form)
    frame = pd.concat([*frames, *([rows] if len(rows) else [])], ignore_index=True)
    others: dict[str, list[tuple[Report, str]]] = {}
    for own, title in reports:
        for other in own.forms:
            others.setdefault(other.run.form, []).append((other, title))
    together = [_together(same, counts, (), settings) for same in others.values()]
    return Report(merged, settings, frame, tuple(runs), tuple(together))


def _called(name: str, title: str, counts: Mapping[str, int]) -> str:
    """Return what an editor is called among several runs; a control is called after its editor."""
    kind, of = split_control(name)
    if kind and of:
        return control_name(kind, _called(of, title, counts), seed_number(name))
    return f"{name} [{title}]" if counts[name] > 1 else name


def _renamed(run: RunResult, names: Mapping[str, str]) -> RunResult:
    """Return a run whose editors are called otherwise."""

    def own(by_editor: Mapping[str, Any]) -> dict[str, Any]:
        return {names.get(first_seed(name), name): value for name, value in by_editor.items()}

    manifest = {**run.manifest, **{part: own(run.manifest[part]) for part in _RECORDED if part in run.manifest}}
    parts: dict[str, Any] = {part: own(getattr(run, part)) for part in _BY_EDITOR}
    for part in _TABLES:
        if (table := getattr(run, part)) is not None:
            parts[part] = table.assign(editor=table["editor"].astype(object).replace(names))
    return replace(run, manifest=manifest, names=names, **parts)


def _merged(runs: Sequence[RunResult], titles: Sequence[str], notes: Sequence[str]) -> RunResult:
    """Return one run with the questions of all; what they disagree in becomes one of its notes."""
    manifests = [run.manifest for run in runs]
    manifest = {**manifests[0], "notes": [*notes, *_disagreements(manifests, titles)], "job": {}}  # of no one job
    manifest |= {part: _joined(own.get(part, {}) for own in manifests) for part in _RECORDED}
    manifest["protocol"] = runs[0].protocol if len({run.protocol for run in runs}) == 1 else MIXED
    manifest["protocols"] = {name: run.protocol for run in runs for name in run.editors}
    manifest["model"] = {"id": " and ".join(dict.fromkeys(map(model_name, manifests)))}
    together: dict[str, Any] = {part: _joined(getattr(run, part) for run in runs) for part in _BY_EDITOR}
    for part in _TABLES:
        tables = [table for run in runs if (table := getattr(run, part)) is not None]
        together[part] = pd.concat(tables, ignore_index=True) if tables else None
    return replace(runs[0], n_rows=sum(run.n_rows for run in runs), manifest=manifest, **together)


def _joined(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return dict(item for part in parts for item in part.items())


def _side_by_side(runs: Sequence[RunResult], merged: RunResult, settings: AuditSettings) -> Iterator[dict[str, Any]]:
    """Yield what an editor of one run did beyond that of another, where both were asked the same records."""
    for first, second in combinations(runs, 2):
        data = [run.manifest.get("data", {}).get("sha256") for run in (first, second)]
        alike = data[0] == data[1] and first.protocol == second.protocol
        if data[0] is None or not alike or merged.people is None:
            continue
        pairs = [(a, b) for a in first.audited for b in second.audited if not is_control(a) and not is_control(b)]
        yield from beyond(merged.people, pairs, first, settings)


def _disagreements(manifests: Sequence[Manifest], titles: Sequence[str]) -> Iterator[str]:
    """Yield in what runs differ that their numbers should not depend on: a sentence each."""
    for what, (part, name) in _MUST_AGREE.items():
        values = [str((own.get(part, {}) if part else own).get(name)) for own in manifests]
        if len(set(values)) > 1:
            listed = "; ".join(f"{value} in {title}" for value, title in zip(values, titles, strict=True))
            yield f"The runs differ in their {what}: {listed}."
