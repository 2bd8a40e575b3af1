"""The first screen of a run, from its frame."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.groups import AXES
from seesaw_cf.report import sentences
from seesaw_cf.report.answers import example
from seesaw_cf.report.levels import BADGES, SEVERITY, Level, level_counts, level_numbers, level_sentence, levels_of
from seesaw_cf.report.pairs import Run
from seesaw_cf.report.screen import Screen, ScreenRow
from seesaw_cf.report.words import control_words


def run_screen(frame: pd.DataFrame, run: Run, settings: AuditSettings, answers: pd.DataFrame, more: str = "") -> Screen:
    """Return what a run found, on one screen.

    Args:
        frame: Its numbers.
        run: The run.
        settings: As declared.
        answers: Rows of `seesaw_cf.report.answers.answers_of`.
        more: What would decide more, a sentence.
    """
    levels = levels_of(frame, run)
    several = len(run.audited) > 1
    sections: dict[str, list[ScreenRow]] = {}
    for level in levels:
        sections.setdefault(level.title, []).extend(_rows(level, run, several))
    if run.people is not None:
        counts = sentences.group_counts(frame, run)
        sections[f"Groups: {', '.join(AXES)}"] = [ScreenRow(counts, badge=sentences.group_badge(frame, run))]
    control = next((control for _, control in run.controls), "")
    first = f"after the {run.noun}" if several or not run.audited else f"after {run.audited[0]}"
    beside = control_words(control, run).removeprefix("a ") if control else ""
    changed = run.manifest.get("edited", {})
    notes = [
        sentences.efficacy_sentence(frame, run),
        sentences.controls_note(run),
        *run.manifest.get("notes", []),
        *(f"{name}: {note}." for name, facts in changed.items() for note in facts.get("notes", ())),
        more,
    ]
    return Screen(
        about=sentences.header(run),
        finding=[sentence for sentence in sentences.finding(frame, run, settings) if sentence],
        missing=sentences.denominators(frame, run),
        columns=[head for head in (first, beside) if head],
        sections=sections,
        example=example(run, levels, answers),
        notes=[note for note in notes if note],
    )


def _rows(level: Level, run: Run, several: bool) -> list[ScreenRow]:
    """Return counts and sizes of a level; of several editors the counts alone, for want of room."""
    numbers = level_numbers(level)
    numbers = numbers[:1] if several else numbers
    of = f"{level.editor}: " if several else ""
    detail = f"{level_sentence(level, run)} ({level_counts(level, run)})"
    rows = [ScreenRow(of + words, [cell for cell in cells if cell]) for words, *cells in numbers]
    last = rows[-1] if rows else ScreenRow(of + "no number")
    badge, severity = BADGES[level.verdict], SEVERITY.get(level.verdict, "open")
    return [*rows[:-1], ScreenRow(last.words, last.cells, badge, severity, detail)]
