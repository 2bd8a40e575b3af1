"""`seesaw-cf annotate`: people rate, highlight and write in the browser."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.cli.actions import command
from seesaw_cf.cli.options import json_option, seed_option, wording_option
from seesaw_cf.cli.output import say, say_left_out, write_numbers
from seesaw_cf.cli.paths import name_or_source, output_file, output_folder, source
from seesaw_cf.cli.types import count, one_of, positive, seconds, share, whole

if TYPE_CHECKING:
    from seesaw_cf.texts.people.security import Place

_KINDS = ("flaws", "survey", "claims", "writing", "failures")


def _tasks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", type=source, metavar="TASKS", help="file that `seesaw-cf annotate make` wrote")


def _make_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("kind", **one_of(*_KINDS), help="what raters do")
    add("run", type=source, metavar="RUN", help="run of `leme run`; flaws: also rated pairs, or a released CSV")
    add("--out", type=output_file, required=True, metavar="TASKS", help="file for tasks and answers; moves as one")
    add("--raters", type=positive, default=3, help="how many people (default: 3)")
    add("--per-item", type=positive, help="raters of each item (default: all; writing: 1)")
    sample = "items in all; 'published' (252 pairs of three relations); or P27=10, again for more relations"
    add("--sample", action="append", metavar="N", help=f"{sample} (default: flaws 252, failures 200, else all)")
    add("--duplicates", type=share, default=0.1, help="share of a rater's items that come twice (default: 0.1)")
    add("--attention", type=count, default=2, help="hidden items that see whether texts are read (default: 2)")
    add("--no-training", dest="training", action="store_false", help="without the training round")
    add("--gold", type=source, metavar="TABLE", help="table of right answers; its items come first and qualify raters")
    add("--qualify", type=share, default=0.7, help="share of gold answers that must be right (default: 0.7)")
    add("--blind-edit", action="store_true", help="do not tell raters what was edited")
    protocol = "flaws; published: raters know which text is from after the edit (default: blind)"
    add("--protocol", **one_of("blind", "published"), default="blind", help=protocol)
    add("--passage", nargs="+", default=["free", "guided"], help="flaws: which kinds of passages to pair")
    add("--breaks", type=count, default=20, help="offer a break after so many items; 0 = never (default: 20)")
    add("--consent", type=source, metavar="FILE", help="plain text shown first, with your content warning and contact")
    wording_option(parser)
    seed_option(parser, "sample, design and order")


def _place_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _tasks(parser)
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine alone)")
    add("--port", type=whole(0, 65535), default=8000, help="0 takes a free one (default: 8000)")
    add("--url", default="", help="address that raters use, when it is another: https://study.example.org")


def _serve_options(parser: argparse.ArgumentParser) -> None:
    _place_options(parser)
    no_links = "print the address alone, no secret links; `annotate links` prints them"
    parser.add_argument("--no-links", dest="tell_links", action="store_false", help=no_links)
    parser.add_argument("--idle", type=seconds, metavar="SECONDS", help="also stop when nobody has asked for so long")


def _export_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _tasks(parser)
    add("--out", type=output_folder, required=True, help="folder for the tables")
    least = "leave out raters with a lower share of attention answers right (default: 0, nobody)"
    add("--min-attention", type=share, default=0.0, help=least)
    add("--overwrite", action="store_true", help="replace tables that are there")


def _status_options(parser: argparse.ArgumentParser) -> None:
    _tasks(parser)
    json_option(parser)


def _merge_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("tasks", type=source, nargs="+", metavar="TASKS", help="copies of one study; a single one is copied whole")
    add("--out", type=output_file, required=True, help="file to write")
    prefer = "which copy counts where answers differ: about all, or about an ITEM, RATER or RATER/TASK; repeatable"
    add("--prefer", action="append", type=name_or_source, default=[], metavar="[WHAT=]TASKS", help=prefer)


def _sample(words: list[str] | None) -> int | dict[str, int] | None:
    from seesaw_cf.base.checks import shown
    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.texts.people.make import PUBLISHED

    counts: dict[str, int] = {}
    for word in words or ():
        name, equals, number = word.rpartition("=")
        if word == "published":
            counts |= PUBLISHED
        elif (
            not number.isdecimal()
            or len(number) > 9
            or bool(equals) != bool(name)
            or (not equals and len(words or ()) > 1)
        ):
            raise RecordError(
                f"--sample {shown(word)}: expected a number, 'published', or RELATION=NUMBER such as P27=10."
            )
        elif not equals:
            return int(number)
        else:
            counts[name] = int(number)
    return counts or None


def _make(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.people.design import RaterDesign
    from seesaw_cf.texts.people.make import KINDS, StudyPlan, make_study
    from seesaw_cf.texts.people.making import Settings
    from seesaw_cf.texts.wording import read_wording

    per_item = args.per_item or KINDS[args.kind].per_item or args.raters
    plan = StudyPlan(
        args.kind,
        RaterDesign(args.raters, per_item, args.duplicates, args.attention, seed=args.seed),
        _sample(args.sample),
        Settings(args.blind_edit, tuple(args.passage), read_wording(args.wording), args.protocol),
        training=args.training,
        gold=args.gold,
        qualify=args.qualify,
        breaks=args.breaks,
        consent=args.consent,
    )
    study = make_study(args.run, plan, args.out)
    say_left_out(study.left_out)
    groups = ", ".join(f"{name} {number}" for name, number in study.groups.items())
    say(
        f"{study.items} of {study.of} items ({groups}), each to {per_item} of {args.raters} raters: "
        f"{study.tasks} tasks."
    )
    say(f"{args.out} holds tasks and answers. Next: seesaw-cf annotate serve {args.out}")


def _place(args: argparse.Namespace) -> Place:
    from seesaw_cf.texts.people.security import Place

    return Place(args.host, args.port, args.url)


def _say_links(addresses: dict[str, str]) -> None:
    width = max(map(len, addresses))
    say("\n".join(f"{name:{width}}  {link}" for name, link in addresses.items()))


def _serve(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.people.serving import serve

    def tell(addresses: dict[str, str]) -> None:
        if args.tell_links:
            _say_links(addresses)
            say("Give each rater one link; keep the last one. Ctrl-C stops; what was answered is kept.")
        else:
            say(f"Serving {addresses['status'].partition('/status/')[0]}; `seesaw-cf annotate links` prints the links.")

    serve(args.tasks, _place(args), tell, idle=args.idle or math.inf)


def _links(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.people.serving import links
    from seesaw_cf.texts.people.store import StudyStore

    with StudyStore(args.tasks, readonly=True) as store:
        _say_links(links(store, _place(args)))


def _export(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.people.export import export_study
    from seesaw_cf.texts.people.store import StudyStore

    with StudyStore(args.tasks, readonly=True) as store:
        tables = export_study(store, args.out, attention=args.min_attention, overwrite=args.overwrite)
    for name, why in tables.left_out.items():
        say(f"left out: {name}: {why}")
    rows = ", ".join(f"{name} ({number} rows)" for name, number in tables.rows.items())
    say(f"{args.out}: {rows} by {', '.join(tables.raters) or 'nobody'}; raters.json says how well they rated.")


def _status(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.people.status import status_of, status_table
    from seesaw_cf.texts.people.store import StudyStore

    with StudyStore(args.tasks, readonly=True) as store:
        progress, study = status_of(store), store.study
    say(status_table(study, progress).terminal())
    write_numbers(args, {"study": study.id, "kind": study.kind, "raters": [row.row() for row in progress]})


def _merge(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.people.merge import merge_studies

    files = {str(file): file for file in args.tasks}
    split = [("", "", word) if word in files else word.partition("=") for word in args.prefer]
    prefer = {what: Path(file) for what, _, file in split}
    merger = merge_studies(args.tasks, args.out, prefer=prefer)
    for conflict, file in merger.conflicts.items():
        say(f"{file} counts: {conflict}")
    for name, number in merger.new.items():
        say(f"{name}: {number} entries that no file before it has")
    say(f"{args.out}: {merger.entries} entries. Links are the same.")


configure, run = command(
    {
        "make": ("sample items from a run and deal them to raters", _make_options, _make),
        "serve": ("serve the pages until Ctrl-C; prints one secret link for each rater", _serve_options, _serve),
        "links": ("print the links once more", _place_options, _links),
        "status": ("how far everybody is, also while it serves", _status_options, _status),
        "export": ("the tables that judges write, from people's answers", _export_options, _export),
        "merge": ("one file from copies of a study on several machines", _merge_options, _merge),
    }
)
