"""`seesaw-cf publish`: a dataset folder onto the Hugging Face Hub."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import source


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf publish`."""
    add = parser.add_argument
    add("folder", type=source, metavar="FOLDER", help="dataset folder made by seesaw-cf build")
    add("--repo", required=True, metavar="ORG/NAME", help="dataset repository; made when it does not exist")
    add("--private", action="store_true", default=None, help="make a new repository private")


def run(args: argparse.Namespace) -> None:
    """Publish, and say which rows were loaded back and how to load them."""
    from seesaw_cf.builder_scripts.dataset.publish import publish

    version = publish(args.folder, args.repo, private=args.private)
    for name, rows in version.rows.items():
        say(f"{name}: {rows:,} rows, loaded back and the same")
    say(f"\nVersion {version.version} is {version.url} at {version.commit}. Use it with:")
    say(f'load_dataset("{args.repo}", "{next(iter(version.rows))}", revision="v{version.version}")')
