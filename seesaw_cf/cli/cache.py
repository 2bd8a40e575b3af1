"""`seesaw-cf cache`: lets `datasets` find the embedded sample by its plain name, from any folder, offline."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.output import say


def configure(parser: argparse.ArgumentParser) -> None:
    """`seesaw-cf cache` itself has no options."""


def run(args: argparse.Namespace) -> None:
    """Load every config of the sample once, so that it lies in the cache of `datasets` under the name "seesaw_cf"."""
    from seesaw_cf.records.sample import configs, load

    for name in configs():
        rows = load(name)
        say(f"cached: {name}, {len(rows):,} rows in {len(rows.cache_files)} files")
    say(
        'load_dataset("seesaw_cf", CONFIG) now works from any folder when HF_HUB_OFFLINE=1 is set. '
        "Run this command again after the package was updated."
    )
