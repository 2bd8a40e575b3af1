"""`seesaw-cf texts` and `people`: what edited models write, who rates it, and the tables of the papers."""

from __future__ import annotations

from pathlib import Path

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import NameOrPath, OutputFolder, OwnFolder
from seesaw_cf.cli.output import open_page, say, say_left_out
from seesaw_cf.cli.parse import Flat
from seesaw_cf.texts.job import ExportJob, RateJob, TrainJob, WriteJob


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


def report(
    run: Path | None = None,
    /,
    *,
    out: OutputFolder | None = None,
    people: tuple[Path, ...] = (),
    released: tuple[Path, ...] = (),
    judges: tuple[str, ...] = (),
    scores: Path | None = None,
    measures: tuple[NameOrPath, ...] = (),
    references: Path | None = None,
    pictures: bool = False,
    open: bool = False,
) -> None:
    """Write the report of a run of texts, of people and judges, or of released files.

    Args:
        run: Folder that `texts write --out` wrote.
        out: Folder of the report (default: RUN/report).
        people: Answers of people and judges: folders, tables.
        released: CSV files as the papers' authors released.
        judges: Which raters of flaws are models.
        scores: Run of seesaw-cf audit, same edits: short form.
        measures: nli:MODEL, bertscore:ENCODER, perplexity:MODEL.
        references: Texts about new targets (JSON).
        pictures: Write every picture as a file too.
        open: Open the page in the browser.
    """
    from seesaw_cf.texts.report.write import report_people, report_run

    answers = [*people, *released]
    folder = out or (run / "report" if run is not None else None)
    if folder is None or (run is None and not answers):
        raise RecordError("texts report: give RUN, or --people DIR or --released FILE with --out DIR, or both.")
    if run is not None:
        extras = {"scores": scores, "references": references}
        say(report_run(run, folder, measures=measures, pictures=pictures, **extras))
    if answers:
        where = folder if run is None else folder / "people"
        say(report_people(answers, where, run, judges=judges, pictures=pictures))
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
    from seesaw_cf.texts.people import export_people

    number, left_out = export_people(job, out, overwrite=overwrite)
    say_left_out(left_out)
    say(f"{number} tasks in {out}. Label Studio: import tasks.json, and paste config.xml into the labelling")
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
    from seesaw_cf.texts.people import write_people

    say(write_people(results, key, out, rater, overwrite=overwrite))
