"""`seesaw-cf texts`, `people` and `graph`: what edited models write, who rates it, and the tables of the papers."""

from __future__ import annotations

import sys
from pathlib import Path

from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.fields import OutputFolder, OwnFolder
from seesaw_cf.base.terminal import quantity
from seesaw_cf.cli.output import open_page, say, say_left_out
from seesaw_cf.cli.parse import Flat
from seesaw_cf.texts import ExportJob, RateJob, ReportJob, TrainJob, WriteJob
from seesaw_cf.texts.graph import CompareJob, GraphJob

WARNING = """\
WARNING: these commands make a language model write what it has learnt to say about groups of people. What it writes is
offensive in places, can be upsetting, and is not true of anybody. Do not use it to judge people.
"""


def write(
    job: Flat[WriteJob], *, out: OwnFolder, pictures: bool = False, open: bool = False, quiet: bool = False
) -> None:
    """Write passages before and after edits; rate and report them.

    Args:
        out: Folder of the run; an interrupted run continues.
        pictures: Write every picture as a file too.
        open: Open the report in the browser.
        quiet: No progress bars.
    """
    from seesaw_cf.texts.run import run_write

    say(run_write(job, out, progress=not quiet, pictures=pictures))
    if open and job.report:
        open_page(out / "report" / "report.html")


def rate(job: Flat[RateJob], *, out: OutputFolder | None = None) -> None:
    """Let judges and classifiers rate the texts of a run.

    Args:
        out: Folder of the tables (default: RUN).
    """
    from seesaw_cf.texts.run import run_rate

    say(run_rate(job, out))


def report(job: Flat[ReportJob] = ReportJob(), *, out: OutputFolder | None = None, open: bool = False) -> None:
    """Write the report of a run of texts, of people and judges, or of released files.

    Args:
        out: Folder of the report (default: RUN/report).
        open: Open the page in the browser.
    """
    from seesaw_cf.texts.report import report_people, report_run

    run, answers = job.run, (*job.people, *job.released)
    folder = out or (run / "report" if run else None)
    if folder is None or not (run or answers):
        raise RecordError("texts report: give RUN, or --people FILE or --released FILE with --out DIR, or both.")
    if run:
        extras = {"scores": job.scores, "references": job.references}
        say(report_run(run, folder, measures=job.measures, pictures=job.pictures, **extras))
    if answers:
        where = folder / "people" if run else folder
        say(report_people(answers, where, run, judges=job.judges, pictures=job.pictures))
    if open:
        open_page(folder / "report.html")


def train(job: Flat[TrainJob], *, out: OwnFolder) -> None:
    """Train a classifier of claims or a rater, measured on unseen samples.

    Args:
        out: New folder for the model and report.json.
    """
    from seesaw_cf.texts.train import run_train

    say(run_train(job, out))


def export(job: Flat[ExportJob], *, out: OutputFolder, overwrite: bool = False) -> None:
    """Write tasks from the texts of a run, for Label Studio or a spreadsheet.

    Args:
        out: Folder for tasks, configuration, sheet and key.
        overwrite: Replace files that are there, filled or not.
    """
    from seesaw_cf.texts.exchange import export_people

    number, left_out = export_people(job, out, overwrite=overwrite)
    say_left_out(left_out)
    tasks = quantity(number, "task")
    say(f"{tasks} in {out}. Label Studio: import tasks.json, and paste config.xml into the labelling")
    say("interface. A spreadsheet: give raters sheet.csv and instructions.txt. Keep key.json from them.")


def import_answers(results: Path, /, *, key: Path, out: OutputFolder, rater: str = "", overwrite: bool = False) -> None:
    """Read what people answered into the tables that judges write.

    Args:
        results: JSON export of Label Studio, or a filled sheet (.csv).
        key: The key.json that was written with the tasks.
        out: Folder for the Parquet tables.
        rater: Who filled the sheet, or a word before numbers.
        overwrite: Replace files that are there.
    """
    from seesaw_cf.texts.exchange import write_people

    say(write_people(results, key, out, rater, overwrite=overwrite))


def crawl(job: Flat[GraphJob], *, out: OwnFolder, acknowledge_content: bool = False, quiet: bool = False) -> None:
    """Crawl a model, score it, write the report below `out` and print its first screen.

    Args:
        out: Crawl folder; an interrupted crawl continues.
        acknowledge_content: The warning has been read.
        quiet: No progress bars.
    """
    sys.stderr.write(WARNING)
    if not acknowledge_content:
        raise SeesawError("give --acknowledge-content when you have read the warning above.")
    from seesaw_cf.texts.graph.report import run_graph

    say(run_graph(job, out, progress=not quiet))


def compare_crawls(job: Flat[CompareJob], *, out: OutputFolder | None = None) -> None:
    """Print what an edit changed, identity by identity, against controls.

    Args:
        out: Folder of the report; it is only printed without.
    """
    sys.stderr.write(WARNING)
    from seesaw_cf.texts.graph.report import compare_graphs

    say(compare_graphs(job, out))
