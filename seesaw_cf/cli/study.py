"""`seesaw-cf study`: several models and editors, declared in a file and reported as one."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.from_fields import options_from, values_of
from seesaw_cf.cli.options import paper_option, quiet_option, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import own_folder, source
from seesaw_cf.run.jobs import Workers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf study`."""
    add = parser.add_argument
    add("file", metavar="STUDY.yaml", type=source, help="models, editors, controls, records, protocols, margins")
    add("--out", type=own_folder, help="its folder, continued or extended (default: the file's name without .yaml)")
    add("--cell", action="append", metavar="NAME", help="only this cell, MODEL/RECORDS/PROTOCOL/EDITOR; * is anything")
    add("--report-only", action="store_true", help="report what is finished; runs nothing")
    options_from(parser, Workers)
    paper_option(parser)
    quiet_option(parser)
    report_options(parser)


def run(args: argparse.Namespace) -> None:
    """Run and report."""
    from seesaw_cf.base.errors import RunFolderError
    from seesaw_cf.study.declared import read_study
    from seesaw_cf.study.work import report_study, run_study

    study = read_study(args.file)
    out = args.out or args.file.with_suffix("")
    failed = []
    if not args.report_only:
        workers = Workers(**values_of(Workers, args))
        failed = run_study(study, out, args.cell or (), progress=not args.quiet, workers=workers)
    say(report_study(study, out, paper=args.paper, pictures=args.pictures))
    show(args, out / "report" / "report.html")
    if failed:
        raise RunFolderError(
            f"{len(failed)} cells failed: {', '.join(cell.name for cell in failed)}. The report says why; repeat the "
            "command when that is mended, finished cells are kept."
        )
