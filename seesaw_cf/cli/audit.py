"""`seesaw-cf audit`, `report`, `compare`, `ability` and `study`: a change of a model measured, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from seesaw_cf.base.errors import RecordError, RunFolderError, need
from seesaw_cf.base.fields import Count, OneOf, OutputFolder, OwnFolder, Positive
from seesaw_cf.base.files import safe_name
from seesaw_cf.base.retrying import stages
from seesaw_cf.cli.output import open_page, say
from seesaw_cf.cli.parse import Flat
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.logs import CompareSettings
from seesaw_cf.models.names import check_model_name
from seesaw_cf.records.load import check_configs
from seesaw_cf.run.jobs import Job, Workers

if TYPE_CHECKING:
    from seesaw_cf.report import Report


@dataclass(frozen=True)
class Page:
    """What a report is written as.

    Attributes:
        paper: Also the papers' tables and figures.
        pictures: Write every picture as a file too.
        open: Open the page in the browser.
    """

    paper: bool = False
    pictures: bool = False
    open: bool = False


FailIf = Annotated[str, OneOf(("never", "worse"))]


def audit(
    job: Flat[Job],
    *,
    out: OwnFolder | None = None,
    workers: Flat[Workers] = Workers(),
    page: Flat[Page] = Page(),
    fail_if: FailIf = "never",
    keep_deltas: bool = False,
    quiet: bool = False,
) -> None:
    """Run a job, write its report below `out`, and print its first screen.

    Args:
        out: Of run and report; continued (default: audited/MODEL-NAMES).
        fail_if: Exit with 3 where something is shown to be worse.
        keep_deltas: Save every edit, for ability and share.
        quiet: No progress bars.
    """
    check_model_name(job.model)
    check_configs(job.data, job.asked_configs)
    out = out or Path("audited") / safe_name("-".join([Path(job.model).name, *job.names, *job.changed_places]))
    from seesaw_cf.run.workers import run_job

    run_job(job, out, keep_deltas=keep_deltas, progress=not quiet, workers=workers)
    if job.is_dose:
        from seesaw_cf.report.dose import write_dose_report

        say(write_dose_report(out, pictures=page.pictures))
    else:
        from seesaw_cf.report import report as make_report

        with stages("tables", 6, silent=quiet):
            made = make_report(out)
            _write(made, out / "report", page)
        _show(made, out / "report", fail_if)
    if page.open:
        open_page(out / "report" / "report.html")


def _write(made: Report, folder: Path, page: Page) -> None:
    made.write(folder, pictures=page.pictures)
    if page.paper:
        from seesaw_cf.study.paper import write_papers

        write_papers(made, folder)


def _show(made: Report, folder: Path, fail_if: str) -> None:
    say(made.terminal(folder))
    if fail_if == "worse":
        made.check()


def report(
    runs: tuple[Path, ...],
    /,
    *,
    out: OutputFolder | None = None,
    settings: Flat[AuditSettings] = AuditSettings(),
    page: Flat[Page] = Page(),
    fail_if: FailIf = "never",
) -> None:
    """Write the report of finished runs and print its first screen.

    Args:
        runs: Folders that `seesaw-cf audit --out` wrote. Several are reported side by side.
        out: Folder of the report (default: RUN/report; needed for several).
        fail_if: Exit with 3 where something is shown to be worse.
    """
    from seesaw_cf.report import report as make_report
    from seesaw_cf.report.several import report_several

    if len(runs) > 1 and out is None:
        raise RecordError(f"report: got {len(runs)} runs, and --out is missing. Name a folder for their report.")
    folder = out or runs[0] / "report"
    with stages("report", 6):
        made = report_several(runs, settings) if len(runs) > 1 else make_report(runs[0], settings)
        _write(made, folder, page)
    if page.open:
        open_page(folder / "report.html")
    _show(made, folder, fail_if)


def study(
    file: Path,
    /,
    *,
    out: OwnFolder | None = None,
    cells: tuple[str, ...] = (),
    report_only: bool = False,
    workers: Flat[Workers] = Workers(),
    page: Flat[Page] = Page(),
    quiet: bool = False,
) -> None:
    """Run and report a study.

    Args:
        file: YAML: models, editors, controls, records, protocols, margins.
        out: Its folder, continued or extended (default: the file's name without .yaml).
        cells: Only this cell, MODEL/RECORDS/PROTOCOL/EDITOR; * is anything.
        report_only: Report what is finished; run nothing.
        quiet: No progress bars.
    """
    from seesaw_cf.study.declared import read_study
    from seesaw_cf.study.work import report_study, run_study

    declared = read_study(file)
    folder = out or file.with_suffix("")
    failed = [] if report_only else run_study(declared, folder, cells, progress=not quiet, workers=workers)
    say(report_study(declared, folder, paper=page.paper, pictures=page.pictures))
    if page.open:
        open_page(folder / "report" / "report.html")
    if failed:
        raise RunFolderError(
            f"{len(failed)} cells failed: {', '.join(cell.name for cell in failed)}. The report says why; repeat the "
            "command when that is mended, finished cells are kept."
        )


def compare(
    base: Path,
    changed: tuple[Path, ...],
    /,
    *,
    out: OutputFolder = Path("compared"),
    settings: Flat[CompareSettings] = CompareSettings(),
    open: bool = False,
) -> None:
    """Compare logs and write the report.

    Args:
        base: Log of lm_eval or inspect_ai of the model before, a folder of its logs, or a table.
        changed: The same of changed models.
        out: Folder of the report.
        open: Open the page in the browser.
    """
    from seesaw_cf.logs import comparison

    found = comparison.compare(base, [*changed], settings)
    found.write(out)
    say(found.terminal(out))
    if open:
        open_page(out / "report.html")


def ability(
    run: Path,
    /,
    *,
    tasks: tuple[str, ...],
    out: OutputFolder,
    include: tuple[Path, ...] = (),
    per_editor: Positive = 8,
    limit: Positive | None = None,
    shots: Count | None = None,
    device: str = "auto",
) -> None:
    """Ask base and edited models, write their logs, and compare these.

    Args:
        run: Finished run that kept its edits (--keep-deltas).
        tasks: Tasks, groups or tags of lm_eval; * stands for any letters.
        out: Folder of the logs and their report.
        include: Folder of more tasks.
        per_editor: Most edits of an editor.
        limit: Most documents of a task (default: all).
        shots: Examples before a question (default: as the task says).
        device: auto, cpu, cuda:1, ...
    """
    from seesaw_cf.logs import comparison

    with need("lm_eval", extra="harness", what_for="tasks of lm_eval"):
        from seesaw_cf.harnesses.ability import BASE, AbilityJob, run_ability
    logs = run_ability(AbilityJob(run, tasks, out, include, per_editor, limit, shots, device))
    found = comparison.compare(logs.pop(BASE), logs)
    found.write(out / "report")
    say(found.terminal(out / "report"))
