"""What several actions of `seesaw-cf flaws` take and do: pairs of passages, other words, a page to open."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from seesaw_cf.cli.options import seed_option
from seesaw_cf.cli.output import say_left_out
from seesaw_cf.cli.paths import source

if TYPE_CHECKING:
    from seesaw_cf.texts.write.pairs import PassagePair


def passages_options(parser: argparse.ArgumentParser) -> None:
    """Which passages are paired."""
    add = parser.add_argument
    add("passages", type=source, metavar="PASSAGES", help="passages.parquet of a run, rated pairs, or a released CSV")
    add("--passage", nargs="+", default=["free", "guided"], help="which kinds of passages to pair")
    add("--flaws", nargs="+", default=[], metavar="FLAW", help="which flaws; all seven by default")
    seed_option(parser, "the order of texts")


def wording_option(parser: argparse.ArgumentParser) -> None:
    """Other words for raters and judges."""
    add = parser.add_argument
    add("--wording", type=source, metavar="FILE", help="JSON or YAML with other words, such as the papers' own")


def pairs_of(args: argparse.Namespace) -> list[PassagePair]:
    """Return the pairs of the named passages; print what is left out."""
    from seesaw_cf.texts.flaws.released import read_pairs

    pairs, left_out = read_pairs(args.passages, args.passage)
    say_left_out(left_out)
    return pairs
