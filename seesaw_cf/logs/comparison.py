"""Two or more logs of a harness, compared: rows of the one frame, first screen, page and tables."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd
from markupsafe import Markup, escape

from seesaw_cf.base.checks import brief, check_path
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.fields import checked
from seesaw_cf.base.files import csv_text, sweep, write_text
from seesaw_cf.base.terminal import quantity
from seesaw_cf.effects.groups import ALL
from seesaw_cf.logs import sentences
from seesaw_cf.logs.differences import FAMILIES, GROUPS, SCORES, SUMS, differences
from seesaw_cf.logs.inspect_log import is_inspect, read_inspect
from seesaw_cf.logs.lm_eval import is_lm_eval, read_lm_eval
from seesaw_cf.logs.log import EvalLog, Reader, read_tables, sample_errors
from seesaw_cf.logs.pairing import add_mapping, check_fields, pair_logs, wanted_fields
from seesaw_cf.logs.settings import LOGLIK, CompareSettings
from seesaw_cf.report import figures
from seesaw_cf.report.render import PageRow, PageTable, Part, render_page
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.screen import Screen
from seesaw_cf.stats.plain import plain

Place = str | Path
ABOUT: Mapping[str, str] = {
    "scores": "Every metric of every task before and after the change, with its test.",
    "groups": "The same of every group, and the change of each group minus that of the others.",
    "answers": "Whether there is an answer at all, and which is given most.",
    "items": "Items of both logs, and what was left out.",
}
"""Table -> what it holds."""
_READING = (
    "Numbers in brackets hold the true change in 95 % of such comparisons. A point is a hundredth. In the pictures "
    "right of 0 is worse, and the band is too small to matter."
)
_METHOD = (
    "An item counts once: epochs are averaged first. Where the change did nothing, before and after of a whole cluster "
    "of items could be exchanged: p and interval come from such flips, alike in all tasks and metrics. A mean over the "
    "scored items is not given where the shares without a score differ by a tenth."
)
_HEADS = ("score", "before", "after", "change", "corrected p", "items", "verdict")


@dataclass(frozen=True, eq=False, repr=False)
class LogComparison:
    """What changed models do otherwise than their base, item by item.

    Attributes:
        base: Name of the base.
        frame: Rows of `seesaw_cf.logs.differences.differences`; `editor` is the changed model.
        answers: The form of answers, by `changed` model and task.
        counts: Items that were paired and left out, by `changed` model and task.
        clusters: In words, what keeps items together; "" = each is alone.
        settings: What was declared.
        sources: Where the logs were read, the base first.
        notes: Sentences about the logs.
    """

    base: str
    frame: pd.DataFrame
    answers: pd.DataFrame
    counts: pd.DataFrame
    clusters: str
    settings: CompareSettings
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    __repr__ = brief

    @cached_property
    def models(self) -> list[sentences.ModelChange]:
        """What is known of each changed model."""
        return [
            sentences.ModelChange(
                str(name),
                self.base,
                own,
                self.answers[self.answers["changed"] == name],
                self.counts[self.counts["changed"] == name],
            )
            for name, own in self.frame.groupby("editor", sort=False)
        ]

    @cached_property
    def screen(self) -> Screen:
        """The first screen."""
        several = len(self.models) > 1
        tested = set(self.frame.loc[self.frame["family"] == SCORES, "relation"])
        counts = self.counts[self.counts["task"].isin(tested) | (not tested)].drop_duplicates("task")
        clusters = f"clusters: {self.clusters}" if self.clusters else "every item is a cluster"
        size = f"{quantity(len(counts), 'task')}, {quantity(float(counts['paired'].sum()), 'item')}"
        named = [(f"{model.name}: " * several, model) for model in self.models]
        return Screen(
            about=f"{' and '.join(model.name for model in self.models)} against {self.base}: {size}; {clusters}",
            finding=[f"{name}{sentence}" for name, model in named for sentence in sentences.finding(model)],
            missing=" ".join(f"{name}{words}" for name, model in named if (words := sentences.missing(model))),
            columns=["before", "after"],
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
        changes = self.frame[(self.frame["what"] == "change") & self.frame["value"].notna()]
        tests, groups = changes[changes["decides"].astype(bool)], changes[changes["axis"] != ALL]
        for title, own in (("What changed", tests), ("Were some groups hit harder?", groups)):
            drawn = {str(axis): list(_pictures(rows)) for axis, rows in own.groupby("axis", sort=False)}
            if drawn:
                yield Part(
                    title, pictures={"" if axis == ALL else axis: own for axis, own in drawn.items()}, table=_table(own)
                )
        contrasts = self.frame[self.frame["family"] == GROUPS].sort_values("p_adjusted", kind="stable")
        if len(contrasts):
            text = "The change of each group minus that of the others; the groups' intervals alone are no such test."
            yield Part("Groups beside the others", [text], table=_table(contrasts))

    def record(self) -> Mapping[str, object]:
        """Return the comparison as plain JSON: the screen, the tests, what was declared and where the logs were."""
        settings = asdict(self.settings) | {"mapping": str(self.settings.mapping or "")}
        tests = rows_of(self.frame[self.frame["family"].isin(FAMILIES)].dropna(axis=1, how="all"))
        return dict(plain({"screen": self.screen.record(), "tests": tests, "settings": settings, "logs": self.sources}))

    def write(self, folder: Path) -> None:
        """Write `report.html`, `report.json` and the folder `tables`; raise StorageError where that fails."""
        sweep(folder)
        write_text(folder / "report.html", self.page())
        write_text(folder / "report.json", json.dumps(self.record(), ensure_ascii=False, indent=1) + "\n")
        for name, table in self.tables.items():
            write_text(folder / "tables" / f"{name}.csv", csv_text(table))

    def terminal(self, folder: Path | None = None) -> str:
        """Return the first screen as text."""
        return self.screen.terminal("" if folder is None else f"See {folder / 'report.html'}")

    def _repr_html_(self) -> str:
        page = escape(self.page())
        return f'<iframe srcdoc="{page}" title="Findings" style="width:100%;height:44rem;border:0"></iframe>'


def _name(row: Mapping[str, object], several: bool) -> str:
    group = "" if row["axis"] == ALL else f"{row['group']}, "
    return f"{row['editor']}: " * several + f"{group}{row['relation']} {row['asked']}"


def _pictures(rows: pd.DataFrame) -> Iterator[tuple[str, Markup]]:
    """Yield a forest of changes for each unit, losses to the right."""
    several = rows["editor"].nunique() > 1
    colours = dict(zip(dict.fromkeys(rows["editor"]), figures.COLOURS * len(rows)))
    for scale, own in rows[rows["asked"] != LOGLIK].groupby("scale", sort=False):
        sign = 1 if scale == SUMS else -1
        factor, unit = (100 * sign, "points") if scale == "share" else (sign, "" if scale == "score" else str(scale))
        labels, marks = [], []
        for number, row in enumerate(rows_of(own)):
            value, low, high = (factor * float(row[name]) for name in ("value", "low", "high"))
            labels.append(_name(row, several))
            marks.append((number, value, min(low, high), max(low, high), colours[row["editor"]]))
        margin = abs(factor) * float(own["margin"].iloc[0])
        figure = figures.draw_panels([figures.Panel("", labels, marks, margin, f"worse, {unit} \u2192")])
        yield "", Markup(figures.svg(figure, f"Changes, {unit}: {', '.join(labels)}"))


def _table(rows: pd.DataFrame) -> PageTable:
    several = rows["editor"].nunique() > 1
    body = [
        PageRow(
            [
                _name(row, several),
                *(sentences.level_text(row, when) for when in ("before", "after")),
                sentences.change_text(row),
                f"{row['p_adjusted']:.3g}" if row["p_adjusted"] == row["p_adjusted"] else "\u2013",
                f"{row['n']:,}",
                sentences.badge(row)[0],
            ]
        )
        for row in rows_of(rows)
    ]
    return PageTable(_HEADS, [False, True, True, True, True, True, False], body)


# Reading.

_HARNESSES: Mapping[str, tuple[Callable[[Path], bool], Callable[[Path, Sequence[Path], Reader], EvalLog]]] = {
    "lm_eval": (is_lm_eval, read_lm_eval),
    "inspect_ai": (is_inspect, read_inspect),
}
_TABLES = (".csv", ".tsv", ".parquet")  # which may lie beside a log


@checked
def read_log(path: Place, reader: Reader | None = None) -> EvalLog:
    """Return the items of a log.

    Args:
        path: A file, or a folder of one model's logs: of lm_eval (`--log_samples`), inspect_ai (`.eval`, `.json`),
            or a CSV or Parquet table.
        reader: What is kept and allowed; None = the defaults.

    Raises:
        StorageError: There is no such file, or it cannot be read.
        RecordError: It is no log, or a sample cannot be used.
    """
    place, reader = check_path(path), reader or Reader()
    if not place.exists():
        raise StorageError(f"{place}: no such file or folder. Name a log or a folder of logs.")
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    logs = {name: [file for file in files if is_log(file)] for name, (is_log, _) in _HARNESSES.items()}
    if len(found := [name for name, own in logs.items() if own]) > 1:
        raise RecordError(f"{place}: logs of {' and '.join(found)}, expected one harness. Name the folder of one.")
    with sample_errors(place, "values as the format has them. Write the log again."):
        if found:
            return _HARNESSES[found[0]][1](place, logs[found[0]], reader)
        if tables := [file for file in files if file.suffix in _TABLES]:
            return read_tables(place, tables, reader)
    raise RecordError(
        f"{place}: no log among {len(files)} files, expected samples of lm_eval (--log_samples), a log of inspect_ai, "
        "or a CSV or Parquet table."
    )


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
    if settings.mapping:
        logs = [add_mapping(log, settings.mapping) for log in logs]
    names = _distinct_names(logs, paths)
    names[1:] = list(named) or names[1:]
    if twice := next((name for name in names[1:] if names[1:].count(name) > 1), None):
        raise RecordError(f"compare: the changed log {twice} is given twice, expected several. Name each once.")
    logs = [replace(log, name=name) for log, name in zip(logs, names)]
    for log in logs:
        check_fields(log, settings)
    pairs = [pair_logs(logs[0], log, settings) for log in logs[1:]]
    found = [differences(pair, settings) for pair in pairs]
    notes = dict.fromkeys(note for pair, (_, _, own) in zip(pairs, found) for note in (*pair.notes, *own))
    return LogComparison(
        names[0],
        pd.concat([frame for frame, *_ in found], ignore_index=True),
        pd.concat([sentences.answer_forms(pair).assign(changed=pair.name) for pair in pairs], ignore_index=True),
        pd.concat([pair.counts.assign(changed=pair.name) for pair in pairs], ignore_index=True),
        found[0][1],
        settings,
        tuple(map(str, paths)),
        tuple(notes),
    )
