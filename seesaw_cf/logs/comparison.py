"""Two or more logs of a harness, compared: tables, page and first screen."""

from __future__ import annotations

import shlex
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import pandas as pd
from markupsafe import escape

from seesaw_cf.base.checks import check_path, one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.terminal import quantity
from seesaw_cf.logs.answers import answer_forms
from seesaw_cf.logs.differences import FAMILIES, SCORES, differences
from seesaw_cf.logs.fields import add_mapping, check_fields, wanted_fields
from seesaw_cf.logs.forest import change_panels
from seesaw_cf.logs.log import EvalLog, Reader
from seesaw_cf.logs.pairing import PairedItems, pair_logs
from seesaw_cf.logs.read import distinct_names, read_log
from seesaw_cf.logs.screen import first_screen
from seesaw_cf.logs.settings import CompareSettings
from seesaw_cf.logs.tables import comparison_tables
from seesaw_cf.logs.title import ChangeFacts
from seesaw_cf.report.forms import Report, findings_report
from seesaw_cf.report.html.findings import Findings, PageSection, findings_page
from seesaw_cf.report.table import Table

Place = str | Path


@dataclass(frozen=True, eq=False)
class LogComparison:
    """What changed models do otherwise than their base, item by item.

    Attributes:
        base: Name of the base.
        differences: Rows of `seesaw_cf.logs.differences.differences`, with `changed`, the changed model.
        answers: The form of answers, per task.
        counts: Items that were paired and left out, per task.
        clusters: In words, what keeps items together; "" = each is alone.
        settings: What was declared.
        sources: Where the logs were read, the base first.
        notes: Sentences about the logs.
    """

    base: str
    differences: pd.DataFrame
    answers: pd.DataFrame
    counts: pd.DataFrame
    clusters: str
    settings: CompareSettings
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def findings(self) -> Findings:
        """The page: first screen, charts, tables, method."""
        tables = comparison_tables(self.differences, self.answers, self.counts)
        groups = change_panels(self.differences, by_group=True)
        names = list(dict.fromkeys(self.differences["changed"]))
        frames = (self.differences, self.answers, self.counts)
        models = [ChangeFacts(name, self.base, *(own[own["changed"] == name] for own in frames)) for name in names]
        about = (
            f"{' and '.join(names)} against {self.base} · {_sizes(self.counts, self.differences)} · {self._clusters}"
        )
        return Findings(
            screen=first_screen(models, self.counts, about, self.notes),
            sections=[
                PageSection(table.name, table.title, [*(groups if table.name == "groups" else ()), table])
                for table in tables
                if table.brief
            ],
            method=[*_METHOD, self._families, *self.notes],
            command=self.command,
            facts=[(field.name, str(getattr(self.settings, field.name))) for field in fields(self.settings)],
            tables=tables,
            first=change_panels(self.differences, by_group=False),
        )

    @property
    def command(self) -> str:
        """What repeats the comparison in a terminal: the logs, and what was declared otherwise than by default."""
        words = ["seesaw-cf", "compare", *self.sources]
        for field in fields(self.settings):
            value = getattr(self.settings, field.name)
            several = isinstance(value, tuple)
            option = f"--{(field.name.removesuffix('s') if several else field.name).replace('_', '-')}"
            entries = [] if value == field.default else value if several else [value]
            words += [word for entry in entries for word in (option, str(entry))]
        return shlex.join([*words, "--out", "DIR"])

    @property
    def _clusters(self) -> str:
        alone = "every item is a cluster (--cluster FIELD where several share a passage)"
        return f"clusters: {self.clusters}" if self.clusters else alone

    @property
    def _families(self) -> str:
        flips = self.settings.permutations
        how = f"step-down min-p, {flips:,} flips of clusters" if flips else "Holm"
        return (
            f"At most {100 * self.settings.alpha:g} % of comparisons claim anything false in each of three families: "
            f"{', '.join(FAMILIES)} ({how}). Changes up to {100 * self.settings.margin:g} points, or "
            f"{self.settings.margin_log_odds:g} nats, do not matter."
        )

    @property
    def conclusion(self) -> str:
        """The first screen as plain text."""
        return self.findings.screen.terminal()

    @property
    def tables(self) -> Mapping[str, Table]:
        """Name -> table of the report."""
        return {table.name: table for table in self.findings.tables}

    def report(self) -> Report:
        """Return the report in its forms."""
        return findings_report(self.findings)

    def to_latex(self, table: str = "scores") -> str:
        """Return a table of the report in LaTeX (booktabs).

        Raises:
            UnknownNameError: The report has no such table.
        """
        return self.tables[one_of("table", table, self.tables)].latex()

    def save(self, folder: str | Path) -> Path:
        """Write the report into a folder and return the path of its page.

        Raises:
            StorageError: The folder cannot be written.
        """
        target = check_path(folder)
        self.report().write(target)
        return target / "report.html"

    def open(self) -> None:
        """Write the report into a temporary folder and show its page in the browser."""
        webbrowser.open(self.save(tempfile.mkdtemp(prefix="seesaw_cf_")).resolve().as_uri())

    def __repr__(self) -> str:
        return f"{self.findings.screen.title}\n{self.findings.screen.about}"[:2000]

    def _repr_html_(self) -> str:
        page = escape(findings_page(self.findings))
        return f'<iframe srcdoc="{page}" title="Findings" style="width:100%;height:44rem;border:0"></iframe>'


def compare_logs(
    base: Place, changed: Place | Sequence[Place] | Mapping[str, Place], settings: CompareSettings | None = None
) -> LogComparison:
    """Compare what a model and its changed versions answered to the same items, as an evaluation harness logged it.

    Args:
        base: Log of the model before the change: see `seesaw_cf.logs.read_log` for formats.
        changed: Log of the model after it, several of them, or name -> log.
        settings: What is declared before; None = the defaults.

    Returns:
        The comparison. Items are paired by id and content; what only one log has is counted.

    Raises:
        StorageError: A log cannot be read.
        RecordError: A log is none, was cut, is given twice, or was made otherwise than the base's in what
            `settings.allow` does not name.
        UnknownNameError: `settings.allow` names no difference.
    """
    settings = settings or CompareSettings()
    given = changed if isinstance(changed, Mapping) else {}
    several = (
        changed.values() if isinstance(changed, Mapping) else [changed] if isinstance(changed, str | Path) else changed
    )
    paths = [check_path(path) for path in (base, *several)]
    logs = [_read(path, settings) for path in paths]
    names = distinct_names(logs, paths)
    names[1:] = list(given) or names[1:]
    if twice := next((name for name in names[1:] if names[1:].count(name) > 1), None):
        raise RecordError(f"compare: the changed log {twice} is given twice, expected several. Name each once.")
    logs = [replace(log, name=name) for log, name in zip(logs, names)]
    for log in logs:
        check_fields(log, settings.groups, settings.clusters)
    pairs = [pair_logs(logs[0], log, settings.allow, settings.errors) for log in logs[1:]]
    for pair in pairs:
        if settings.metrics and not set(settings.metrics) & set(pair.metrics):
            raise RecordError(
                f"compare: none of the metrics {list(settings.metrics)} is in both logs, which have "
                f"{list(pair.metrics)[:20]}. Name one of them."
            )
    results = [differences(pair, settings) for pair in pairs]
    notes = tuple(dict.fromkeys(note for pair in pairs for note in pair.notes))
    return LogComparison(
        names[0],
        _named([table for table, _ in results], pairs),
        _named([answer_forms(pair) for pair in pairs], pairs),
        _named([pair.counts for pair in pairs], pairs),
        results[0][1],
        settings,
        tuple(map(str, paths)),
        notes,
    )


def _read(path: Path, settings: CompareSettings) -> EvalLog:
    reader = Reader(wanted_fields(settings.groups, settings.clusters), settings.allow)
    log = read_log(path, reader)
    return add_mapping(log, settings.mapping) if settings.mapping else log


def _named(tables: Sequence[pd.DataFrame], pairs: Sequence[PairedItems]) -> pd.DataFrame:
    named = [table.assign(changed=pair.name) for table, pair in zip(tables, pairs)]
    return pd.concat(named, ignore_index=True)


def _sizes(counts: pd.DataFrame, differences: pd.DataFrame) -> str:
    own = counts[(counts["changed"] == counts["changed"].iloc[0]) & counts["task"].isin(differences["task"])]
    own = own[own["task"].isin(differences.loc[differences["family"] == SCORES, "task"])]
    return f"{quantity(len(own), 'task')}, {quantity(float(own['paired'].sum()), 'item')}"


_METHOD = (
    "An item counts once: epochs are averaged first. Items are paired by id where what was asked is equal.",
    "Errors are clustered (CR2, Satterthwaite degrees of freedom). Where the change did nothing, before and after of a "
    "whole cluster could be exchanged: p and interval come from such flips, alike in all tasks and metrics.",
    "A contrast flips what is left after the mean change of the task (the wild cluster bootstrap).",
    "Invalid answers and items without a score are counted before and after; a mean over the scored ones is not given "
    "where their shares differ by a tenth.",
)
