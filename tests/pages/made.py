"""One of every kind of page that is a file, from small invented tables with names that a hostile user would choose."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from seesaw_cf.base.tables import write_table
from seesaw_cf.logs import CompareSettings, compare
from seesaw_cf.report import AuditSettings, report
from seesaw_cf.report.several import report_several
from seesaw_cf.texts.pairs import flaw_row
from seesaw_cf.texts.report import report_people, report_run
from seesaw_cf.texts.tables import ANNOTATIONS, RATINGS
from tests.logs.made import Made, items, write_log
from tests.longform.analysis_samples import flaw_table, pair
from tests.longform.test_report_pages import long_run
from tests.longform.test_report_people import labels, ratings, rows_of
from tests.report.runs import cases, property_cases, write_run

HOSTILE = "<img src=x onerror=alert(1)>\u202e =1+1 \N{FACE WITH TEARS OF JOY} " + "w" * 120
QUICK = AuditSettings(permutations=99)


def _run(folder: Path) -> str:
    """Two editors of which one has a control; a case was refused."""
    made = cases(("P27",), 10, 12) + property_cases(1)
    return report(write_run(folder / "run", made, ("memit", HOSTILE, "random(memit)"), refused=1), QUICK).page()


def _no_control(folder: Path) -> str:
    """One editor, no control, one case."""
    return report(write_run(folder / "one", cases(("P27",), 1, 6)), QUICK).page()


def _several(folder: Path) -> str:
    names = {"memit": ("memit", "random(memit)"), "other": (HOSTILE,)}
    made = cases(("P27",), 6, 6) + property_cases(1)
    runs = [write_run(folder / "several" / name, made, editors) for name, editors in names.items()]
    return report_several(runs, QUICK, list(names), [f"The cell {HOSTILE} was not run."]).page()


def _page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def _leme(folder: Path) -> str:
    report_run(long_run(folder / "long", f" {HOSTILE}", HOSTILE))
    return _page(folder / "long" / "report")


def _raters(folder: Path) -> str:
    """People's ratings and claims; two agree mostly."""
    given = ratings({"A": [7, 6, 5, 4, 3, 2], HOSTILE: [7, 6, 5, 4, 3, None]})
    marked = labels({"A": "ssnncc", HOSTILE: "ssnns-"})
    write_table(folder / "raters" / "ratings.parquet", rows_of(RATINGS, given))
    write_table(folder / "raters" / "annotations.parquet", rows_of(ANNOTATIONS, marked))
    report_people([folder / "raters"], folder / "raters" / "report")
    return _page(folder / "raters" / "report")


def _flaws(folder: Path) -> str:
    """Two people and a judge who all see a flaw in some pairs."""
    rows = [
        flaw_row(pair(case, post=f"Ada Oak is a nun. {HOSTILE}", editor=HOSTILE), "sexism", rater, "pre", answer)
        | {"quote": rater}
        for case in range(12)
        for rater, answer in (("A", case % 2), (HOSTILE, 1), ("gpt", 0))
    ]
    write_table(folder / "flaws" / "flaws.parquet", flaw_table(rows))
    report_people([folder / "flaws"], folder / "flaws" / "report", judges=["gpt"])
    return _page(folder / "flaws" / "report")


def _logs(folder: Path) -> str:
    """Logs of two changed models: of one every answer is invalid, and a group has a hostile name."""
    logs = []
    for name, shift, invalid in (("base", 0.0, 0.0), ("b", -1.0, 0.0), ("c", 0.0, 1.0)):
        rows = [replace(item, gender=HOSTILE if item.gender == "man" else "woman")
                for item in items(40, shift=shift, invalid=invalid)]  # fmt: skip
        logs.append(write_log(folder / "logs" / name, rows, Made(task=HOSTILE, model=name), "inspect_json"))
    settings = CompareSettings(clusters=("passage",), permutations=99)
    return compare(logs[0], {HOSTILE: logs[1], "c": logs[2]}, settings).page()


# Name of a page -> its HTML, made in a folder that all may share.
MADE: Mapping[str, Callable[[Path], str]] = {
    "report": _run,
    "report-one-case": _no_control,
    "several": _several,
    "leme": _leme,
    "leme-raters": _raters,
    "flaws": _flaws,
    "compare": _logs,
}
