"""`seesaw-cf flaws`: rate flaws in pairs of texts, validate judges against people, keep a gallery of what was found."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from seesaw_cf.cli import publish
from seesaw_cf.cli.options import (
    AXES,
    at_least_zero,
    load,
    model_options,
    one_of,
    path,
    positive,
    seed_option,
    server_options,
    share,
)
from seesaw_cf.cli.output import say, write_json
from seesaw_cf.io.terminal import wrap

if TYPE_CHECKING:
    from collections import Counter

    from seesaw_cf.generation.types import Generator
    from seesaw_cf.longform.write.pairs import PassagePair

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the actions of `seesaw-cf flaws` and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, (text, configure_one, _) in _ACTIONS.items():
        configure_one(actions.add_parser(name, help=text, description=text))


def run(args: argparse.Namespace) -> None:
    """Runs one action."""
    _ACTIONS[args.action][2](args)


def _passages(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("passages", type=path, metavar="PASSAGES", help="passages.parquet of a long-form run")
    add("--passage", nargs="+", default=["free", "guided"], help="which kinds of passages to pair")
    add("--flaws", nargs="+", default=[], metavar="FLAW", help="which flaws; all seven by default")
    seed_option(parser, "the order of texts")


def _export_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _passages(parser)
    add("--sheet", type=path, required=True, help="CSV for raters, without what would tell them which text is which")
    add("--key", type=path, required=True, help="JSON that tells; keep it from the raters")
    add("--edits", type=path, help="Parquet of the edits, told to raters (default: edits.parquet beside PASSAGES)")
    add("--hide-edit", action="store_true", help="do not tell raters what was edited")
    _wording(parser)
    add("--overwrite", action="store_true", help="replace files that are there, filled or not")
    add("--duplicates", type=share, default=0.1, help="share of pairs that are rated twice (default: 0.1)")


def _wording(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--wording", type=path, metavar="FILE", help="JSON or YAML with other words, such as the papers' own")


def _import_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sheet", type=path, metavar="SHEET", help="the CSV, filled")
    add("--key", type=path, help="the key that was written with it")
    add("--released", action="store_true", help="SHEET is one rater's file as the SEESAW-CF authors released them")
    codings = "of a released file; halves: 1, 1.5, 2; signed: -1, 0, 1 (default: auto)"
    add("--coding", **one_of("auto", "halves", "signed"), default="auto", help=codings)
    blank = "what an empty cell of a released file means (default: equal)"
    add("--blank", **one_of("equal", "missing"), default="equal", help=blank)
    add("--overwrite", action="store_true", help="replace files that are there")
    add("--rater", required=True, help="who rated")
    add(
        "--out",
        type=path,
        required=True,
        help="Parquet file for the ratings; those given twice go to NAME.repeats, "
        "what is said of the edit to NAME.reflected",
    )


def _judge_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _passages(parser)
    model_options(parser, "the judge: 'seesaw-tiny', a Hub id, a folder, or a model's name at --base-url")
    server_options(parser)
    add(
        "--tries",
        type=positive,
        default=3,
        help="asks of a question whose reply cannot be read (default: 3)",
    )
    add("--temperature", type=at_least_zero, default=0.0, help="of the replies (default: 0)")
    add("--swap", type=share, default=0.2, help="share of pairs judged in both orders (default: 0.2)")
    add("--rater", default="", help="name of the judge in the tables")
    _wording(parser)
    add("--names", type=path, help="Parquet of people (the demographics config): also judge copies with their names")
    add("--axis", **one_of(*AXES), default="race", help="whose groups the names are of (default: race)")
    add("--group", action="append", default=[], help="give it again for more (default: all with names)")
    add("--out", type=path, required=True, help="folder for tables and replies; a second run resumes")


def _validate_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("tables", type=path, nargs="+", metavar="TABLE", help="Parquet files of ratings, of people and of the judge")
    add("--judge", required=True, help="which rater is the judge")
    add("--out", type=path, help="JSON file for every number")
    add("--overwrite", action="store_true", help="replace the file when it is there")


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=path, metavar="FOLDER", help="the gallery; made when it is not there")
    add(
        "rows",
        type=path,
        nargs="+",
        metavar="ROWS",
        help="Parquet files of ratings, or JSON lines with pre, post, flaw, ...",
    )
    add("--model", default="", help="the edited model, for rows that do not say")


def _publish_options(parser: argparse.ArgumentParser) -> None:
    publish.configure(parser, "the gallery")


def _pairs(args: argparse.Namespace) -> list[PassagePair]:
    from seesaw_cf.longform.tables import PASSAGES
    from seesaw_cf.longform.write.pairs import passage_pairs
    from seesaw_cf.tables import read_table

    pairs, left_out = passage_pairs(read_table(args.passages, PASSAGES), args.passage)
    _say_left_out(left_out)
    return pairs


def _say_left_out(left_out: Counter[str]) -> None:
    for reason, count in left_out.items():
        say(f"left out: {count}: {reason}")


def _export(args: argparse.Namespace) -> None:
    from seesaw_cf.longform.flaws.rating_sheets import SheetOptions, edit_sentences, export_sheet
    from seesaw_cf.longform.wording import read_wording
    from seesaw_cf.longform.write.writing import EDITS
    from seesaw_cf.tables import read_table

    file = args.edits or args.passages.parent / "edits.parquet"
    told = not args.hide_edit and (args.edits is not None or file.exists())
    if not told:
        say(
            "Raters are not told the edit" + ("." if args.hide_edit else f": there is no {file}. Name it with --edits.")
        )
    rows = export_sheet(
        _pairs(args),
        args.sheet,
        args.key,
        SheetOptions(args.flaws, args.seed, args.duplicates, read_wording(args.wording)),
        edits=edit_sentences(read_table(file, EDITS)) if told else None,
        overwrite=args.overwrite,
        inputs=[read for read in (args.passages, file, args.wording) if read is not None],
    )
    say(f"{rows} rows in {args.sheet}; instructions for raters in {args.sheet}.txt. Keep {args.key} from them.")


def _import(args: argparse.Namespace) -> None:
    from seesaw_cf.errors import RecordError
    from seesaw_cf.io.files import write_new
    from seesaw_cf.longform.flaws.people import import_sheet, intra_rater
    from seesaw_cf.longform.flaws.released import released_work
    from seesaw_cf.tables import table_bytes

    if args.released == (args.key is not None):
        raise RecordError(
            "flaws import: give --key KEY for a sheet of `flaws export`, or --released for a released file."
        )
    if args.released:
        work = released_work(args.sheet, args.rater, blank=args.blank, coding=args.coding)
    else:
        work = import_sheet(args.sheet, args.key, args.rater)
    tables = {"": work.table, ".repeats": work.repeats, ".reflected": work.reflected}
    files = [(args.out.with_suffix(f"{name}{args.out.suffix}"), table_bytes(table)) for name, table in tables.items()]
    write_new(files, inputs=[args.sheet, *([args.key] if args.key else [])], overwrite=args.overwrite)
    missing = work.table.column("change").null_count
    known = f" {work.known} rows repeat others word for word and count once." if work.known else ""
    say(f"{work.table.num_rows - missing} ratings by {args.rater}, {missing} left empty.{known}")
    _say_reflected(work.reflected)
    for flaw, found in intra_rater(work).items():
        if "percent" in found:
            say(f"{flaw}: rated twice {found['n_items']}, the same {found['percent']['first/second']['value']:.1f} %")


def _say_reflected(reflected: object) -> None:
    from seesaw_cf.longform.flaws.people import share_reflected

    found = share_reflected(reflected)
    if found["n"] or found["unsure"]:
        interval = f" = {100 * found['value']:.1f} % [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"
        yes = round(found["value"] * found["n"]) if found["n"] else 0
        say(
            f"edit reflected: {yes} of {found['n']}{interval if found['n'] else ''}; {found['unsure']} unsure, "
            f"{found['not_rated']} left empty; {found['comments']} comments."
        )


def _judge(args: argparse.Namespace) -> None:
    from seesaw_cf.generation import CachedGenerator
    from seesaw_cf.generation.types import Sampling
    from seesaw_cf.longform.flaws.judge import JUDGE_SAMPLING, JudgeOptions, judge_pairs
    from seesaw_cf.longform.flaws.names import group_bias, swap_names
    from seesaw_cf.longform.flaws.validity import position_bias, sign_check
    from seesaw_cf.longform.wording import read_wording
    from seesaw_cf.tables import read_table, write_table

    pairs = _pairs(args)
    generator = CachedGenerator(_generator(args), args.out / "replies")
    sampling = Sampling(JUDGE_SAMPLING.max_new_tokens, args.temperature)
    wording = read_wording(args.wording)
    options = JudgeOptions(args.flaws, args.seed, args.tries, sampling, wording)
    judged = judge_pairs(pairs, generator, options, swap=args.swap, rater=args.rater)
    tables = {"flaws": judged.table, "swapped": judged.swapped, "calls": judged.calls}
    results = {
        "model": generator.name,
        "seed": args.seed,
        "tries": args.tries,
        "temperature": args.temperature,
        "wording": wording.facts(),
        "counts": judged.counts,
        "position_bias": position_bias(judged.table),
        "sign_check": sign_check(judged.table, judged.swapped),
    }
    if args.names:
        people = read_table(args.names).to_pylist()
        copies, left_out = swap_names(pairs, people, args.axis, groups=args.group, seed=args.seed)
        _say_left_out(left_out)
        tables["renamed"] = judge_pairs([one.pair for one in copies], generator, options, rater=args.rater).table
        contrasts = group_bias(tables["renamed"], copies)
        results["group_bias"] = {"axis": args.axis, "left_out": left_out, "rows": contrasts.to_dict("records")}
    for name, table in tables.items():
        write_table(args.out / f"{name}.parquet", table)
    write_json(args.out / "judge.json", results)
    say(f"{judged.table.num_rows} judgements by {generator.name}: {judged.counts}")
    say(f"Tables, every reply, position bias, sign check and more are in {args.out}. Next: seesaw-cf flaws validate.")


def _generator(args: argparse.Namespace) -> Generator:
    if args.base_url:
        from seesaw_cf.generation import OpenAIGenerator

        api = OpenAIGenerator(args.base_url, args.model, api_key_env=args.key_env, chat=True)
        api.check()
        return api
    from seesaw_cf.generation import HFGenerator

    model, tokenizer = load(args)
    return HFGenerator(model, tokenizer, chat=tokenizer.chat_template is not None)


def _validate(args: argparse.Namespace) -> None:
    from seesaw_cf.io.files import write_new
    from seesaw_cf.longform.flaws.validity import validate_judge
    from seesaw_cf.longform.tables import FLAWS
    from seesaw_cf.longform.write.pairs import joined_ratings
    from seesaw_cf.stats.plain import json_text
    from seesaw_cf.tables import read_table

    found = validate_judge(joined_ratings({path: read_table(path, FLAWS) for path in args.tables}), args.judge)
    if args.out:
        write_new([(args.out, json_text(found))], inputs=args.tables, overwrite=args.overwrite)
    for flaw, row in found.items():
        say(wrap(f"{flaw} (n = {row['n']}): {row['verdict']}", indent="  "))


def _add(args: argparse.Namespace) -> None:
    from seesaw_cf.longform.flaws.gallery import add_flaws, read_rows

    rows = [row for path in args.rows for row in read_rows(path)]
    done = add_flaws(args.folder, rows, model=args.model)
    say(f"{done.added} rows added, {done.known} known already, {done.equal} without a change left out.")
    say(f"{args.folder} has {done.total} rows, version {done.version}; open {args.folder / 'gallery.html'}.")


def _publish(args: argparse.Namespace) -> None:
    from seesaw_cf.io.hub import check_repo
    from seesaw_cf.longform.flaws.gallery import merge_published

    check_repo(args.repo)
    if taken := merge_published(args.folder, args.repo):
        say(f"{taken} rows of others taken in from {args.repo}.")
    done = publish.published(args)
    say(f"Version {done.version} is {done.url} at {done.commit}.")


# Action -> (help, its options, what it does).
_ACTIONS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]] = {
    "export": ("write a blind sheet for human raters", _export_options, _export),
    "import": ("read a filled sheet back", _import_options, _import),
    "judge": ("let a language model rate", _judge_options, _judge),
    "validate": ("compare a judge with people", _validate_options, _validate),
    "add": ("add rows to a gallery of flaws", _add_options, _add),
    "publish": ("put a gallery onto the Hugging Face Hub, with what others added", _publish_options, _publish),
}
