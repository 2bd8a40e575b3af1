"""Two or more logs of a harness, compared: rows of the one frame, first screen, page and tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from seesaw_cf.base.checks import brief, check_path
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import checked
from seesaw_cf.base.files import csv_text, sweep, write_text
from seesaw_cf.base.terminal import quantity
from seesaw_cf.effects.means import ALL
from seesaw_cf.logs import CompareSettings, sentences
from seesaw_cf.logs.differences import FAMILIES, GROUPS, LOGS, SCORES, SUMS, differences
from seesaw_cf.logs.formats import read_log
from seesaw_cf.logs.log import EvalLog, Reader
from seesaw_cf.logs.pairing import SIDES, PairedItems, check_fields, pair_logs, wanted_fields
from seesaw_cf.report import figures
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.screen import Part, Screen, render_page
from seesaw_cf.stats.plain import json_text
from seesaw_cf.stats.simple import mcnemar

Place = str | Path
ABOUT: Mapping[str, str] = {
    "scores": "Every metric of every task before and after the change, with its test.",
    "groups": "The same of every group, and the change of each group minus that of the others.",
    "answers": "Whether there is an answer at all, and which is given most.",
    "items": "Items of both logs, and what was left out.",
}
"""Table -> what it holds."""
_READING = (
    "Numbers in brackets hold the true change in 95 % of such comparisons. A point is a hundredth. In the picture "
    "right of 0 is worse, and the band is too small to matter."
)
_METHOD = (
    "An item counts once: epochs are averaged first. Where the change did nothing, before and after of a whole cluster "
    "of items could be exchanged: p and interval come from such flips, alike in all tasks and metrics. A mean over the "
    "scored items is not given where the shares without a score differ by a tenth."
)
_ALARM, _ALARM_P = 0.1, 0.01  # from this change of the share of invalid answers their form is named before any score
_HEADS = ("score", "before", "after", "change", "corrected p", "items", "verdict")


@dataclass(frozen=True, eq=False, repr=False)
class LogComparison:
    """What changed models do otherwise than their base, item by item.

    Attributes:
        models: What is known of each changed model.
        clusters: In words, what keeps items together; "" = each is alone.
        settings: What was declared.
        sources: Where the logs were read, the base first.
    """

    models: Sequence[sentences.ModelChange]
    clusters: str
    settings: CompareSettings
    sources: tuple[str, ...]

    __repr__ = brief

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Rows of `seesaw_cf.logs.differences.differences`; `editor` is the changed model."""
        return pd.concat([model.frame for model in self.models], ignore_index=True)

    @property
    def answers(self) -> pd.DataFrame:
        """The form of answers, by `changed` model and task."""
        return pd.concat([model.answers.assign(changed=model.name) for model in self.models], ignore_index=True)

    @property
    def counts(self) -> pd.DataFrame:
        """Items that were paired and left out, by `changed` model and task."""
        return pd.concat([model.counts.assign(changed=model.name) for model in self.models], ignore_index=True)

    @property
    def notes(self) -> list[str]:
        """Sentences about the logs."""
        return list(dict.fromkeys(note for model in self.models for note in (*model.log_notes, *model.left_out)))

    @cached_property
    def screen(self) -> Screen:
        """The first screen."""
        tested = set(self.frame.loc[self.frame["family"] == SCORES, "relation"])
        counts = self.counts[self.counts["task"].isin(tested) | (not tested)].drop_duplicates("task")
        clusters = f"clusters: {self.clusters}" if self.clusters else "every item is a cluster"
        size = f"{quantity(len(counts), 'task')}, {quantity(float(counts['paired'].sum()), 'item')}"
        changed = " and ".join(model.name for model in self.models)
        named = [(f"{model.name}: " if len(self.models) > 1 else "", model) for model in self.models]
        return Screen(
            about=f"{changed} against {self.models[0].base}: {size}; {clusters}",
            finding=[f"{name}{sentence}" for name, model in named for sentence in sentences.finding(model)],
            missing=" ".join(f"{name}{words}" for name, model in named if (words := sentences.missing(model))),
            columns=SIDES,
            sections={
                f"{name}{title}": rows for name, model in named for title, rows in sentences.sections(model).items()
            },
            notes=[*self.notes, *(f"{name}{note}" for name, model in named for note in sentences.notes(model))],
        )

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Name -> table; those without rows are left out."""
        everybody = self.frame["axis"] == ALL
        tables = {"scores": self.frame[everybody], "groups": self.frame[~everybody]}
        tables = {name: table.dropna(axis=1, how="all") for name, table in tables.items()}
        tables |= {"answers": self.answers, "items": self.counts}
        return {name: table.reset_index(drop=True) for name, table in tables.items() if len(table)}

    def page(self) -> str:
        """Return the page."""
        flips = self.settings.permutations
        how = f"step-down min-p, {flips:,} flips of clusters" if flips else "Holm"
        families = (
            f"At most {100 * self.settings.alpha:g} % of comparisons claim anything false in each of three families: "
            f"{', '.join(FAMILIES)} ({how}). Changes up to {100 * self.settings.margin:g} points, or "
            f"{self.settings.margin_log_odds:g} nats, do not matter."
        )
        listed = {name: ABOUT[name] for name in self.tables}
        return render_page(self.screen, list(self._parts()), tables=listed, foot=[_METHOD, families], reading=_READING)

    def _parts(self) -> Iterator[Part]:
        changes = self.frame[self.frame["family"].isin((SCORES, LOGS)) & self.frame["value"].notna()]
        contrasts = self.frame[self.frame["family"] == GROUPS].sort_values("p_adjusted", kind="stable")
        if len(changes):
            forest = figures.draw_panels(_panels(changes))
            picture = Markup(figures.svg(forest, f"Changes: {', '.join(_names(changes))}"))
            yield Part("What changed", pictures={"": [("", picture)]}, table=_table(changes))
        if len(contrasts):
            text = "The change of each group minus that of the others; the groups' intervals alone are no such test."
            yield Part("Groups beside the others", [text], table=_table(contrasts))

    def record(self) -> Mapping[str, object]:
        """Return the comparison as JSON: the screen, the tests, what was declared and where the logs were."""
        tests = rows_of(self.frame[self.frame["family"].isin(FAMILIES)].dropna(axis=1, how="all"))
        return {"screen": self.screen.record(), "tests": tests, "settings": asdict(self.settings), "logs": self.sources}

    def write(self, folder: Path) -> None:
        """Write `report.html`, `report.json` and the folder `tables`; raise StorageError where that fails."""
        sweep(folder)
        write_text(folder / "report.html", self.page())
        write_text(folder / "report.json", json_text(self.record()))
        for name, table in self.tables.items():
            write_text(folder / "tables" / f"{name}.csv", csv_text(table))

    def terminal(self, folder: Path | None = None) -> str:
        """Return the first screen as text."""
        return self.screen.terminal("" if folder is None else f"See {folder / 'report.html'}")


def _names(rows: pd.DataFrame) -> list[str]:
    """Return what each row is about; the changed model is named where there are several."""
    several = rows["editor"].nunique() > 1
    found = rows["relation"] + " " + rows["asked"]
    found = found.where(rows["axis"] == ALL, rows["group"] + ", " + found)
    return list(rows["editor"] + ": " + found if several else found)


def _panels(rows: pd.DataFrame) -> list[figures.Panel]:
    """Return a forest of changes for each unit, losses to the right."""
    colours, panels = dict(zip(dict.fromkeys(rows["editor"]), figures.COLOURS * len(rows))), []
    for scale, own in rows.groupby("scale", sort=False):
        factor = (100 if scale == "share" else 1) * (1 if scale == SUMS else -1)
        unit = {"share": "points", "score": ""}.get(str(scale), str(scale))
        marks = []
        for at, entry in enumerate(rows_of(own)):
            low, high = sorted((factor * entry["low"], factor * entry["high"]))
            marks.append((at, factor * entry["value"], low, high, colours[entry["editor"]]))
        margin = abs(factor) * float(own["margin"].iloc[0])
        panels.append(figures.Panel("", _names(own), marks, margin, f"worse, {unit} \u2192"))
    return panels


def _table(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame([[name, *_cells(row)] for name, row in zip(_names(rows), rows_of(rows))], columns=list(_HEADS))


def _cells(row: Row) -> list[str]:
    p = f"{row['p_adjusted']:.3g}" if row["p_adjusted"] == row["p_adjusted"] else "\u2013"
    levels = [sentences.level_text(row, side) for side in SIDES]
    return [*levels, sentences.change_text(row), p, f"{row['n']:,}", sentences.badge(row)[0]]


def answer_forms(pairs: PairedItems) -> pd.DataFrame:
    """Return one row per task with answers.

    Returns:
        `task`, `n`; `invalid_before`, `invalid_after` (shares without an answer); `common_before`, `common_after` (the
        most frequent answer) with their `share_before`, `share_after`; `other_answer` (share that is another one after
        the change); `alarm` (whether the form changed).
    """
    rows = []
    for task, own in pairs.frame.groupby("task", observed=True, sort=False):
        answers = own[[f"answer_{side}" for side in SIDES]].astype("str").fillna("").set_axis(SIDES, axis=1)
        invalid = own[[f"invalid_{side}" for side in SIDES]].astype(float).set_axis(SIDES, axis=1) > 0.5
        if not (answers != "").any(axis=None):
            continue
        more, fewer = (int((invalid[side] & ~invalid[other]).sum()) for side, other in (SIDES[::-1], SIDES))
        row: dict[str, object] = {"task": task, "n": len(own)}
        row |= {"other_answer": float((answers["before"] != answers["after"]).mean())}
        row |= {"alarm": abs(more - fewer) >= _ALARM * len(own) and mcnemar(more, fewer) < _ALARM_P}
        for side in SIDES:
            shares = answers[side].value_counts(normalize=True)
            row |= {f"invalid_{side}": float(invalid[side].mean()), f"common_{side}": shares.index[0]}
            row |= {f"share_{side}": float(shares.iloc[0])}
        rows.append(row)
    return pd.DataFrame(rows, columns=None if rows else ["task"])


def _distinct_names(logs: Sequence[EvalLog], paths: Sequence[Path]) -> list[str]:
    """Return the models' names, or where two are equal the parts of their paths that differ."""
    names = [log.name.replace("__", "/").rpartition("/")[2] for log in logs]
    if len(set(names)) == len(names):
        return names
    common = os.path.commonpath([path.parent for path in paths])
    return [os.path.relpath(path, common) for path in paths]


@checked
def compare(
    base: Place,
    changed: Place | Sequence[Place] | Mapping[str, Place],
    settings: CompareSettings | None = None,
    *,
    groups: Sequence[str] = (),
    clusters: Sequence[str] = (),
) -> LogComparison:
    """Compare what a model and its changed versions answered to the same items, as an evaluation harness logged it.

    Args:
        base: Log of the model before the change: see `read_log` for formats.
        changed: Log of the model after it, several of them, or name -> log.
        settings: What is declared before; None = the defaults.
        groups, clusters: In place of those of `settings`.

    Returns:
        The comparison. Items are paired by id and content; what only one log has is counted.

    Raises:
        StorageError: A log cannot be read.
        RecordError: A log is none, was cut, is given twice, or was made otherwise than the base's in what
            `settings.allow` does not name.
    """
    settings = settings or CompareSettings()
    settings = replace(settings, groups=tuple(groups) or settings.groups, clusters=tuple(clusters) or settings.clusters)
    named = changed if isinstance(changed, Mapping) else {}
    several = named.values() if named else [changed] if isinstance(changed, str | Path) else changed
    paths = [check_path(path) for path in (base, *several)]
    logs = [read_log(path, Reader(wanted_fields(settings), settings.allow)) for path in paths]
    names = _distinct_names(logs, paths)
    names[1:] = list(named) or names[1:]
    if twice := next((name for name in names[1:] if names[1:].count(name) > 1), None):
        raise RecordError(f"compare: the changed log {twice} is given twice, expected several. Name each once.")
    logs = [replace(log, name=name) for log, name in zip(logs, names)]
    for log in logs:
        check_fields(log, settings)
    models, about = [], ""
    for log in logs[1:]:
        pairs = pair_logs(logs[0], log, settings)
        frame, about, left_out = differences(pairs, settings)
        forms = answer_forms(pairs)
        found = sentences.ModelChange(log.name, names[0], frame, forms, pairs.counts, pairs.notes, left_out)
        models.append(found)
    return LogComparison(models, about, settings, tuple(map(str, paths)))
