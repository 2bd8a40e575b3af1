"""`seesaw-cf ability`: tasks of lm_eval before and after the edits of a run."""

from __future__ import annotations

import argparse

from seesaw_cf.base.errors import need
from seesaw_cf.cli.options import report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import positive, whole


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf ability`."""
    add = parser.add_argument
    add("run", type=source, metavar="RUN", help="finished run that kept its edits (--keep-deltas)")
    add("--tasks", nargs="+", required=True, metavar="TASK", help="tasks, groups or tags of lm_eval; * for any letters")
    add("--include", type=source, action="append", default=[], metavar="DIR", help="folder of more tasks. Repeatable")
    add("--out", type=output_folder, required=True, metavar="DIR", help="for the logs and the report")
    add("--per-editor", type=positive, default=8, metavar="N", help="most edits of an editor (default: 8)")
    add("--limit", type=positive, metavar="N", help="most documents of a task (default: all)")
    add("--shots", type=whole(), metavar="N", help="examples before a question (default: as the task says)")
    add("--device", default="auto", help="auto, cpu, cuda:1, ... (default: auto)")
    report_options(parser, pictures=False)


def run(args: argparse.Namespace) -> None:
    """Ask base and edited models, write their logs, and compare these."""
    from seesaw_cf.logs import compare_logs

    with need("lm_eval", extra="harness", what_for="tasks of lm_eval"):
        from seesaw_cf.harnesses.ability import BASE, AbilityJob, run_ability
    job = AbilityJob(
        args.run, tuple(args.tasks), args.out, tuple(args.include), args.per_editor, args.limit, args.shots, args.device
    )
    logs = run_ability(job)
    comparison = compare_logs(logs.pop(BASE), logs)
    comparison.write(args.out / "report")
    say(comparison.terminal(args.out / "report"))
    show(args, args.out / "report" / "report.html")
