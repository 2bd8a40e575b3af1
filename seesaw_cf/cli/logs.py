"""`seesaw-cf compare` and `ability`: what evaluation harnesses ask, before and after a change of the model."""

from __future__ import annotations

from pathlib import Path

from seesaw_cf.base.errors import need
from seesaw_cf.base.fields import Count, OutputFolder, Positive
from seesaw_cf.cli.output import open_page, say
from seesaw_cf.cli.parse import Flat
from seesaw_cf.logs import CompareSettings


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
