"""One of every kind of page that is a file, from small invented tables with names that a hostile user would choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from seesaw_cf.texts.report.flaw_page import flaw_findings
from seesaw_cf.texts.report.people_page import people_findings
from seesaw_cf.texts.report.people_survey import people_sections

from seesaw_cf.logs import CompareSettings, compare_logs
from seesaw_cf.report import AuditSettings, Report, report
from seesaw_cf.report.html.findings import findings_page
from seesaw_cf.report.several import report_several
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.report.flaws import flaw_sections
from seesaw_cf.texts.tables import ANNOTATIONS, RATINGS
from tests.logs.made import Made, items, write_log
from tests.longform import test_flaw_page, test_leme_page
from tests.longform.test_people_report import labels, ratings, rows_of
from tests.report.runs import cases, property_cases, write_run

__all__ = ["HOSTILE", "MADE", "run_folder"]

HOSTILE = "<img src=x onerror=alert(1)>\u202e =1+1 \N{FACE WITH TEARS OF JOY} " + "w" * 120
EDITORS = ("memit", HOSTILE, "random(memit)")


@cache
def run_folder(folder: Path) -> Path:
    """A run of two editors of which one has a control; a case was refused."""
    made = cases(("P27",), 10, 12) + property_cases(1)
    return write_run(folder / "run", made, EDITORS, refused=1)


@cache
def _made(folder: Path) -> Report:
    return report(run_folder(folder), AuditSettings(permutations=99))


def _no_control(folder: Path) -> str:
    """One editor, no control, one case."""
    return report(write_run(folder / "one", cases(("P27",), 1, 6)), AuditSettings(permutations=99)).page()


def _several(folder: Path) -> str:
    names = {"memit": ("memit", "random(memit)"), "other": (HOSTILE,)}
    made = cases(("P27",), 6, 6) + property_cases(1)
    runs = [write_run(folder / "several" / name, made, editors) for name, editors in names.items()]
    return report_several(
        runs, AuditSettings(permutations=99), list(names), [f"The cell {HOSTILE} was not run."]
    ).page()


def _raters(folder: Path) -> str:
    """People's ratings and claims; two agree mostly."""
    given = ratings({"A": [7, 6, 5, 4, 3, 2], HOSTILE: [7, 6, 5, 4, 3, None]})
    marked = labels({"A": "ssnncc", HOSTILE: "ssnns-"})
    people = Collected({"ratings": rows_of(RATINGS, given), "annotations": rows_of(ANNOTATIONS, marked)})
    return findings_page(people_findings(people, people_sections(people, None, draws=40), {"by": HOSTILE}))


def _flaws(folder: Path) -> str:
    table = test_flaw_page.ratings(said=f"Ada Oak is a nun. {HOSTILE}", editor=HOSTILE)
    return findings_page(flaw_findings(table, flaw_sections(Collected({"flaws": table}), draws=40), {"model": HOSTILE}))


# Name of a page -> its HTML, made in a folder that all may share.
def _logs(folder: Path) -> str:
    """Logs of two changed models: of one every answer is invalid, and a group has a hostile name."""
    logs = []
    for name, shift, invalid in (("base", 0.0, 0.0), ("b", -1.0, 0.0), ("c", 0.0, 1.0)):
        rows = [replace(item, gender=HOSTILE if item.gender == "man" else "woman")
                for item in items(40, shift=shift, invalid=invalid)]  # fmt: skip
        logs.append(write_log(folder / "logs" / name, rows, Made(task=HOSTILE, model=name), "inspect_json"))
    settings = CompareSettings(clusters=("passage",), permutations=99)
    return compare_logs(logs[0], {HOSTILE: logs[1], "c": logs[2]}, settings).page()


MADE: Mapping[str, Callable[[Path], str]] = {
    "report": lambda folder: _made(folder).page(),
    "report-one-case": _no_control,
    "several": _several,
    "leme": lambda folder: test_leme_page.written(
        test_leme_page.write_run(folder / "leme", editor=HOSTILE, said=f" {HOSTILE}")
    ),
    "leme-raters": _raters,
    "flaws": _flaws,
    "compare": _logs,
}
