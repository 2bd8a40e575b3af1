"""`seesaw-cf publish`: a dataset folder onto the Hugging Face Hub."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import source

if TYPE_CHECKING:
    from seesaw_cf.builder_scripts.dataset.publish import Published


def configure(parser: argparse.ArgumentParser, what: str = "dataset folder made by seesaw-cf build") -> None:
    """Adds the options of `seesaw-cf publish`; `what` the folder is."""
    add = parser.add_argument
    add("folder", type=source, metavar="FOLDER", help=what)
    add("--repo", required=True, metavar="ORG/NAME", help="dataset repository; made when it does not exist")
    add("--private", action="store_true", default=None, help="make a new repository private")
    add("--note", default="", help="a line for the changelog")


def published(args: argparse.Namespace) -> Published:
    """Publishes the folder that the options name, and says which rows were loaded back."""
    from seesaw_cf.builder_scripts.dataset.publish import publish

    done = publish(args.folder, args.repo, private=args.private, note=args.note)
    for name, rows in done.rows.items():
        say(f"{name}: {rows:,} rows, loaded back and the same")
    return done


def run(args: argparse.Namespace) -> None:
    """Publishes, and says how to load it."""
    done = published(args)
    say(f"\nVersion {done.version} is {done.url} at {done.commit}. Use it with:")
    say(f'load_dataset("{args.repo}", "{next(iter(done.rows))}", revision="v{done.version}")')
