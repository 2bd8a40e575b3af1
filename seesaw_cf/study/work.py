"""Run the cells of a study one after another, note those that fail, and report all of them as one."""

from __future__ import annotations

import gc
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import RunFolderError, SeesawError
from seesaw_cf.base.retrying import Bar
from seesaw_cf.report.several import report_several
from seesaw_cf.run.jobs import Workers
from seesaw_cf.run.manifest import RunFolder, differences
from seesaw_cf.run.workers import run_job
from seesaw_cf.study.cells import StudyCell, cells_of, chosen, claim_study, failure, is_finished, job_of, note_failure
from seesaw_cf.study.declared import Study
from seesaw_cf.study.paper import write_papers

log = logging.getLogger(__name__)


def run_study(
    study: Study, out: Path, only: Sequence[str] = (), *, progress: bool = True, workers: Workers | None = None
) -> list[StudyCell]:
    """Run every cell that is not finished; a killed one goes on from its last finished edit.

    Args:
        study: What to run.
        out: Its folder; a study in it is continued, or grows.
        only: Names of cells, `*` stands for anything; all when empty.
        progress: Show progress bars.
        workers: Who does each cell; this process when None.

    Returns:
        The cells that failed; why is kept in the folder.

    Raises:
        RunFolderError: The folder belongs to another study.
        UnknownNameError: `only` matches no cell.
        StorageError: The folder cannot be written.
    """
    cells = chosen(cells_of(study), only)
    claim_study(out, study)
    with Bar[object](total=len(cells), desc="cells", unit="cell", disable=not progress) as bar:
        for cell in cells:
            if not is_finished(cell, out):
                note_failure(cell, out, _run(cell, study=study, out=out, progress=progress, workers=workers))
            bar.update(1)
    return [cell for cell in cells if not is_finished(cell, out)]


def _run(cell: StudyCell, *, study: Study, out: Path, progress: bool, workers: Workers | None) -> str:
    """Run a cell and return why it failed, "" when it did not."""
    try:
        run_job(job_of(cell, study, out), cell.folder(out), progress=progress, workers=workers or Workers())
    except Exception as error:  # whatever it is, the other cells go on and the report says it
        message = str(error) if isinstance(error, SeesawError) else f"{type(error).__name__}: {error}"
        log.warning("cell %s failed: %s", cell.name, message, exc_info=not isinstance(error, SeesawError))
        return message or type(error).__name__
    finally:
        gc.collect()  # the model, before the next one is loaded
    return ""


def report_study(study: Study, out: Path, *, paper: bool = False, pictures: bool = False) -> str:
    """Write the report of what is finished into `OUT/report`.

    Args:
        study: What was declared.
        out: Its folder.
        paper: Write the papers' tables and figures, see `seesaw_cf.study.paper.write_papers`.
        pictures: See `seesaw_cf.report.Report.write`.

    Returns:
        What a terminal shows.

    Raises:
        RunFolderError: No cell is finished, cells disagree in base or records, or the folder is another study's.
    """
    claim_study(out, study)
    cells = cells_of(study)
    finished = [cell for cell in cells if is_finished(cell, out)]
    missing = [
        f"Missing: {cell.name}: {failure(cell, out) or 'not run yet'}." for cell in cells if cell not in finished
    ]
    if not finished:
        raise RunFolderError(f"{out}: no cell of the study is finished.\n  " + "\n  ".join(missing))
    check_study({cell.name: RunFolder.open(cell.folder(out)).manifest for cell in finished})
    folders, names = [cell.folder(out) for cell in finished], [cell.name for cell in finished]
    made = report_several(folders, study.audit, names, [study.title, *missing, *_declared(study)])
    made.write(out / "report", pictures=pictures)
    if paper:
        write_papers(made, out / "report")
    return made.terminal(out / "report")


_MODEL = ("fingerprint", "dtype", "tokenizer")


def check_study(manifests: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse runs of one study that are not about one base and the same records under one name.

    Args:
        manifests: Cell, "MODEL/RECORDS/PROTOCOL/EDITOR" -> what its run recorded.

    Raises:
        RunFolderError: Names two such runs and both values.
    """
    seen: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for cell, manifest in manifests.items():
        model, records, *_ = cell.split("/")
        data = {"data": {"sha256": manifest.get("data", {}).get("sha256")}}
        base = {"model": {key: manifest.get("model", {}).get(key) for key in _MODEL}}
        for name, own in ((model, base), (f"{model}/{records}", data)):
            first, other = seen.setdefault(name, (cell, own))
            for place, old, new in differences(other, own):
                raise RunFolderError(
                    f"{first} and {cell} are of one study, but they differ in {place}: {old!r} and {new!r}. Delete the "
                    "one that is wrong and repeat the `seesaw-cf study` command; compare them as they are with "
                    "`seesaw-cf report RUN RUN`."
                )


def _declared(study: Study) -> list[str]:
    audit = study.audit
    return [
        f"Declared before looking: margin {100 * audit.margin:g} points, {audit.margin_log_odds:g} nats; false claims "
        f"{audit.promise()}."
    ]
