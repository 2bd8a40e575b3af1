"""`seesaw-cf flaws export` and `import`: blind sheets for people, out and back."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.options import pairs_of, passages_options, wording_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import output_file, source
from seesaw_cf.cli.types import one_of, share


def export_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `export`."""
    add = parser.add_argument
    passages_options(parser)
    add("--sheet", type=output_file, required=True, help="CSV for raters, without what would tell which text is which")
    add("--key", type=output_file, required=True, help="JSON that tells; keep it from the raters")
    add("--edits", type=source, help="Parquet of the edits, told to raters (default: edits.parquet beside PASSAGES)")
    add("--hide-edit", action="store_true", help="do not tell raters what was edited")
    wording_option(parser)
    add("--overwrite", action="store_true", help="replace files that are there, filled or not")
    add("--duplicates", type=share, default=0.1, help="share of pairs that are rated twice (default: 0.1)")


def import_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import`."""
    add = parser.add_argument
    add("sheet", type=source, metavar="SHEET", help="the CSV, filled")
    add("--key", type=source, help="the key that was written with it")
    add("--released", action="store_true", help="SHEET is one rater's file as the SEESAW-CF authors released them")
    codings = "of a released file; halves: 1, 1.5, 2; signed: -1, 0, 1 (default: auto)"
    add("--coding", **one_of("auto", "halves", "signed"), default="auto", help=codings)
    like = "ratings of another rater of the same study, as imported: a released file must be about the same pairs"
    add("--like", type=source, metavar="TABLE", help=like)
    blank = "what an empty cell of a released file means (default: equal)"
    add("--blank", **one_of("equal", "missing"), default="equal", help=blank)
    add("--overwrite", action="store_true", help="replace files that are there")
    add("--rater", required=True, help="who rated")
    add(
        "--out",
        type=output_file,
        required=True,
        help="Parquet file for the ratings; those given twice go to NAME.repeats, "
        "what is said of the edit to NAME.reflected",
    )


def export_sheets(args: argparse.Namespace) -> None:
    """Write a sheet and its key."""
    from seesaw_cf.base.files import reading
    from seesaw_cf.base.tables import read_table
    from seesaw_cf.texts.flaws.rating_sheets import SheetOptions, edit_sentences, export_sheet
    from seesaw_cf.texts.wording import read_wording
    from seesaw_cf.texts.write.writing import EDITS

    file = args.edits or args.passages.parent / "edits.parquet"
    with_edits = not args.hide_edit and (args.edits is not None or file.exists())
    if not with_edits:
        say(
            "Raters are not told the edit" + ("." if args.hide_edit else f": there is no {file}. Name it with --edits.")
        )
    with reading([file]):
        rows = export_sheet(
            pairs_of(args),
            args.sheet,
            args.key,
            SheetOptions(args.flaws, args.seed, args.duplicates, read_wording(args.wording)),
            edits=edit_sentences(read_table(file, EDITS)) if with_edits else None,
            overwrite=args.overwrite,
        )
    say(f"{rows} rows in {args.sheet}; instructions for raters in {args.sheet}.txt. Keep {args.key} from them.")


def import_sheets(args: argparse.Namespace) -> None:
    """Write the ratings of a filled sheet."""
    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.base.files import write_new
    from seesaw_cf.base.tables import read_table, table_bytes
    from seesaw_cf.texts.flaws.people import import_sheet, intra_rater
    from seesaw_cf.texts.flaws.released import released_work
    from seesaw_cf.texts.tables import FLAWS

    if args.released == (args.key is not None):
        raise RecordError(
            "flaws import: give --key KEY for a sheet of `flaws export`, or --released for a released file."
        )
    if args.released:
        like = read_table(args.like, FLAWS) if args.like else None
        work = released_work(args.sheet, args.rater, blank=args.blank, coding=args.coding, like=like)
    else:
        work = import_sheet(args.sheet, args.key, args.rater)
    tables = {"": work.table, ".repeats": work.repeats, ".reflected": work.reflected}
    files = [(args.out.with_suffix(f"{name}{args.out.suffix}"), table_bytes(table)) for name, table in tables.items()]
    write_new(files, overwrite=args.overwrite)
    missing = work.table.column("change").null_count
    repeats = f" {work.known} rows repeat others word for word and count once." if work.known else ""
    say(f"{work.table.num_rows - missing} ratings by {args.rater}, {missing} left empty.{repeats}")
    _say_reflected(work.reflected)
    for flaw, agreement in intra_rater(work).items():
        if "percent" in agreement:
            percent = agreement["percent"]["first/second"]["value"]
            say(f"{flaw}: rated twice {agreement['n_items']}, the same {percent:.1f} %")


def _say_reflected(reflected: object) -> None:
    from seesaw_cf.report.text import percent_interval
    from seesaw_cf.texts.flaws.people import share_reflected

    answers = share_reflected(reflected)
    if answers["n"] or answers["unsure"]:
        interval = f" = {percent_interval(answers['value'], answers['low'], answers['high'])}"
        yes = round(answers["value"] * answers["n"]) if answers["n"] else 0
        say(
            f"edit reflected: {yes} of {answers['n']}{interval if answers['n'] else ''}; {answers['unsure']} unsure, "
            f"{answers['not_rated']} left empty; {answers['comments']} comments."
        )
