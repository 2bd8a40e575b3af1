"""Runs the cells of a study: any number of processes share them, each cell is one process's, a failed one is noted.

A process holds a lock on the cell that it runs. The system gives the lock back when the process ends, however it ends,
so what a killed one left is taken on by another, from its last finished edit. Workers of
Ray share each cell.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from seesaw_cf.base.errors import RunFolderError, SeesawError
from seesaw_cf.base.locks import file_lock
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.types import JsonObject
from seesaw_cf.report.several import report_several
from seesaw_cf.run.job import run_job
from seesaw_cf.run.jobs import Workers
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.study.cells import StudyCell, cells_of, chosen, claim_study, failure, is_finished, job_of, note_failure
from seesaw_cf.study.declared import Study

log = logging.getLogger(__name__)

_POLL = 1.0  # seconds between looks at cells that other processes run


def run_study(
    study: Study, out: Path, only: Sequence[str] = (), *, progress: bool = True, workers: Workers | None = None
) -> list[StudyCell]:
    """Run every cell that is not finished; return when all are finished or failed, whoever did them.

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
        StorageError: The folder cannot be written, or its file system has no locks.
    """
    run = partial(_run, study=study, out=out, progress=progress, workers=workers or Workers())
    waiting = chosen(cells_of(study), only)
    claim_study(out, study)
    tried: set[str] = set()
    announced = False
    with Bar[object](total=len(waiting), desc="cells", unit="cell", disable=not progress) as bar:
        while waiting:
            held = [cell for cell in waiting if not _try_cell(cell, out, tried, run)]
            bar.update(len(waiting) - len(held))
            if held and not announced:
                log.warning("%d cells are run by other processes, first %s; waiting for them.", len(held), held[0].name)
            waiting, announced = held, bool(held)
            time.sleep(_POLL if held else 0)
    return [cell for cell in chosen(cells_of(study), only) if not is_finished(cell, out)]


def _try_cell(cell: StudyCell, out: Path, tried: set[str], run: Callable[[StudyCell], str]) -> bool:
    """Run a cell unless it is finished or was tried; return False while another process runs it."""
    if is_finished(cell, out) or cell.name in tried:
        return True
    with file_lock(out / "locks" / cell.name) as mine:
        if not mine:
            return False
        if not is_finished(cell, out):
            tried.add(cell.name)
            note_failure(cell, out, run(cell))
    return True


def _run(cell: StudyCell, *, study: Study, out: Path, progress: bool, workers: Workers) -> str:
    """Run a cell and return why it failed, "" when it did not."""
    try:
        run_job(job_of(cell, study, out), cell.folder(out), progress=progress, workers=workers)
    except Exception as error:  # whatever it is, the other cells go on and the report says it
        message = str(error) if isinstance(error, SeesawError) else f"{type(error).__name__}: {error}"
        log.warning("cell %s failed: %s", cell.name, message, exc_info=not isinstance(error, SeesawError))
        return message or type(error).__name__
    finally:
        gc.collect()  # the model, before the next one is loaded
    return ""


def report_study(study: Study, out: Path, *, paper: bool = False, pictures: bool = False) -> str:
    """Write the report of what is finished into `OUT/report`, after any report that another process writes there.

    Args:
        study: What was declared.
        out: Its folder.
        paper, pictures: See `seesaw_cf.report.Report.write`.

    Returns:
        What a terminal shows.

    Raises:
        RunFolderError: No cell is finished, cells disagree in base or records, or the folder is another study's.
    """
    claim_study(out, study)
    with file_lock(out / "locks" / ".report", wait=True):  # no cell has this name
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
        made.write(out / "report", pictures=pictures, paper=paper)
    return made.terminal(out / "report")


# What runs of a study that share a name must share: name -> the part of the manifest and its keys.
_SHARED = {
    "model": ("model", ("fingerprint", "dtype", "tokenizer")),
    "records": ("data", ("sha256",)),
}


def check_study(manifests: Mapping[str, JsonObject]) -> None:
    """Refuse runs of one study that are not about one base and the same records under one name.

    Args:
        manifests: Cell, "MODEL/RECORDS/PROTOCOL/EDITOR" -> what its run recorded.

    Raises:
        RunFolderError: Names two such runs and both values.
    """
    seen: dict[tuple[str, ...], tuple[str, JsonObject]] = {}
    for cell, manifest in manifests.items():
        model, records, *_ = cell.split("/")
        for what, name in (("model", model), ("records", f"{model}/{records}")):
            part, keys = _SHARED[what]
            first, other = seen.setdefault((what, name), (cell, manifest))
            for key in keys:
                old, new = (own.get(part, {}).get(key) for own in (other, manifest))  # type: ignore[attr-defined]
                if old != new:
                    raise RunFolderError(
                        f"{first} and {cell} are of one study, but they differ in the {key} of their {part}: {old!r} "
                        f"and {new!r}. Delete the one that is wrong and repeat the `seesaw-cf study` command; compare "
                        "them as they are with `seesaw-cf report RUN RUN`."
                    )


def _declared(study: Study) -> list[str]:
    audit = study.audit
    return [
        f"Declared before looking: margin {100 * audit.margin:g} points, {audit.margin_log_odds:g} nats; false claims "
        f"{audit.promise()}."
    ]
