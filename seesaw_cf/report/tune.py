"""The page of a search for an editor's settings: what was tried, what came out, what it was found on."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypedDict

import pandas as pd

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.terminal import printable, quantity
from seesaw_cf.base.text import read_json
from seesaw_cf.models.editor import Settings
from seesaw_cf.report import text
from seesaw_cf.report.forms import findings_report
from seesaw_cf.report.html.findings import Findings, FirstScreen, PageSection, Panels, TitleRules, title_by
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.report.table import Column, Row, Table, word_column
from seesaw_cf.run.tune import TrialRow

_PARTS = {"efficacy": "takes", "paraphrase": "paraphrases", "neighborhood": "neighbours", "fluency": "fluency"}
_METHOD = (
    "Trial 0 is the preset; the others are drawn from the space with a seed. Each is tried on a few edits, the best "
    "and the preset again on more. Intervals: 95 %, Wilson, over edits.",
    "People of these edits are left out of, or refused in, a run with these settings.",
)


class TrialRecord(TrialRow):
    """A trial with its settings."""

    settings: Settings


class Search(TypedDict):
    """What is read of `tune.json`."""

    editor: str
    model: dict[str, str]
    data: dict[str, str]
    plan: PlanRecord
    objective: str
    settings: Settings
    trials: list[TrialRecord]
    best: TrialRow
    subjects: list[str]


class PlanRecord(TypedDict):
    """What was searched, and on how many edits."""

    trials: int
    first_edits: int
    final_edits: int
    space: dict[str, list[object]]


@dataclass(frozen=True, slots=True)
class TuneSummary:
    """What a title is made of: editor, model, the number of settings, the best and the preset on the same edits."""

    editor: str
    model: str
    n: int
    best: Row
    preset: Row

    @property
    def parts(self) -> str:
        """The parts of the objective of the best with their intervals."""
        return ", ".join(
            f"{head} {_part(name, self.best)}" for name, head in _PARTS.items() if self.best[name]["value"]
        )


_TITLE: Sequence[TitleRules[TuneSummary]] = (
    (
        (lambda tune: not tune.best["score"], "No setting out of {0.n} makes {0.editor} work on {0.model}."),
        (
            lambda tune: tune.best["trial"] == 0 or tune.best["score"] <= tune.preset["score"],
            "No setting out of {0.n} is better than the preset of {0.editor} on {0.model}: score {0.best[score]:.2f}.",
        ),
        (
            lambda tune: True,
            "Trial {0.best[trial]} out of {0.n} settings of {0.editor} is the best on {0.model}: score "
            "{0.best[score]:.2f}, the preset {0.preset[score]:.2f}.",
        ),
    ),
    ((lambda tune: tune.best["score"], "Of the best: {0.parts}."),),
)


def write_tune_report(folder: str | os.PathLike[str], *, full: bool = False) -> str:
    """Write the report of a finished search into its folder `report`.

    Args:
        folder: The search.
        full: Return every table; else one screen.

    Returns:
        Plain text for a terminal: what was found, and how to use the settings.

    Raises:
        RunFolderError: Not a finished search.
        StorageError: A file could not be written.
    """
    out = Path(folder)
    if not (out / "tune.json").is_file():
        raise RunFolderError(f"{out}: there is no tune.json, expected a finished search. Run `seesaw-cf tune` again.")
    search: Search = read_json(out / "tune.json")
    report = findings_report(tune_findings(search), "\n\n".join([*_METHOD, text.fence(_settings(search, 1))]))
    use = (
        f"  seesaw-cf run --model {printable(search['model']['id'])} --editor {search['editor']} --leave-out-tuned "
        f"--out RUN \\\n      --editor-config {printable(out / 'settings.json')}"
    )
    return f"{report.write(out / 'report', full=full)}\n\n{use}"


def tune_findings(search: Search) -> Findings:
    """Return what the page shows; `search` is the content of `tune.json`."""
    plan, trials = search["plan"], _trials(search)
    final = [row for row in search["trials"] if row["round"] == "final"]
    preset = next(row for row in final if row["trial"] == 0)
    summary = TuneSummary(search["editor"], search["model"]["id"], plan["trials"], search["best"], preset)
    data = search["data"].get("source", "records")
    refused = sum(sum(row["refused"].values()) for row in search["trials"])
    screen = FirstScreen(
        f"{summary.model} · {summary.editor} · {quantity(plan['trials'], 'setting')} on "
        f"{quantity(plan['first_edits'], 'edit')}, {len(final)} of them again on {plan['final_edits']} · "
        f"{quantity(len(search['subjects']), 'person', 'people')} of {data}",
        title_by(_TITLE, summary),
        {
            "Best settings": _settings(search),
            "Objective": f"{search['objective']}.",
            "Not known": "What the best is worth on other edits: these numbers are those it was chosen by, so a little "
            "too good. A run with --leave-out-tuned measures it on other people.",
            "Refused": f"{quantity(refused, 'edit')}." if refused else "",
        },
    )
    space = _space(search)
    return Findings(
        screen=screen,
        sections=[
            PageSection("finalists", "Finalists", [_finalists(trials)]),
            PageSection("trials", "Trials", [trials]),
            PageSection("space", "Space", [space]),
        ],
        method=_METHOD,
        tables=[trials, space],
        first=[_plot(final, search["best"]["trial"])],
    )


def _settings(search: Search, indent: int | None = None) -> str:
    return json.dumps({search["editor"]: search["settings"]}, ensure_ascii=False, indent=indent)


def _plot(rows: Sequence[Row], best: int) -> Panels:
    """Plot every finalist and the preset, part by part."""
    axis = Axis(0.0, 1.0)
    names = [name for name in _PARTS if any(row[name]["value"] for row in rows)]

    def mark(name: str, row: Row, label: str) -> Mark | None:
        part = row[name]
        if part["value"] is None:
            return None
        ends = [float("nan") if part[end] is None else part[end] for end in ("low", "high")]
        return Mark(
            axis.at(part["value"]),
            axis.span(*ends),
            int(row["trial"] != best),
            f"{label}: {_PARTS[name]} {_part(name, row)}",
        )

    lines = []
    for row in sorted(rows, key=lambda row: -row["score"]):
        label = ("preset" if not row["trial"] else f"trial {row['trial']}") + " (best)" * (row["trial"] == best)
        lines.append(ForestRow(label, f"{row['score']:.2f}", [mark(name, row, label) for name in names]))
    columns = [ForestColumn(_PARTS[name], axis) for name in names]
    about, heads = "Shares, 95 % intervals; right is better", ("settings", "score")
    return Panels([Panel("The same edits for all", about, heads, columns, "share", lines)])


def _finalists(trials: Table) -> Table:
    final = trials.frame[trials.frame["round"] == "final"]
    about = "All on the same edits."
    return replace(trials, name="finalists", title="Finalists", about=about, columns=trials.columns[1:], frame=final)


def _space(search: Search) -> Table:
    rows = [{"setting": name, "values": json.dumps(values)} for name, values in search["plan"]["space"].items()]
    return Table("space", "Space", "", [word_column("setting"), word_column("values")], pd.DataFrame(rows))


def _trials(search: Search) -> Table:
    """Return every trial: its score and the parts of the objective with their intervals and numbers of prompts."""
    columns = [
        word_column("round"),
        word_column(
            "settings",
            lambda row: ", ".join(f"{name} {json.dumps(value)}" for name, value in row["settings"].items()) or None,
        ),
        word_column("trial", lambda row: row["trial"] or "preset"),
        Column("score"),
        *(Column(head, partial(_part, name)) for name, head in _PARTS.items()),
        Column("edits", "n"),
        Column("refused", lambda row: sum(row["refused"].values())),
    ]
    rows = sorted(search["trials"], key=lambda row: (row["round"], -row["score"], row["trial"]))
    return Table("trials", "Trials", "", columns, pd.DataFrame(rows))


def _part(name: str, row: Row) -> str:
    part = row[name]
    count = "" if part["value"] is None else f" (n={part['n']})"
    return text.estimate(part["value"], part["low"], part["high"]) + count
