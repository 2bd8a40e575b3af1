"""`seesaw-cf cache`: lets `datasets` find the embedded sample by its plain name, and drops unused entries."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from seesaw_cf.base.files import cache_folder, last_use, remove, size, sweep
from seesaw_cf.cli.output import say
from seesaw_cf.cli.types import at_least_zero

# Folders of the cache, each with entries that are computed, downloaded or asked again when they are gone.
_FOLDERS = ("mend", "models", "null_spaces", "pre", "replies", "second_moments")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf cache`."""
    parser.add_argument(
        "--prune", type=at_least_zero, metavar="DAYS",
        help="delete from the cache of this package what nobody used for so many days: scores before edits, second "
        "moments, null spaces, trained MEND, replies of endpoints, converted models",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Load every config of the sample once, so that `datasets` has it under the name "seesaw_cf"; or prune."""
    if args.prune is not None:
        say(prune(cache_folder(), args.prune))
        return
    from seesaw_cf.records.sample import configs, load

    for name in configs():
        rows = load(name)
        say(f"cached: {name}, {len(rows):,} rows in {len(rows.cache_files)} files")
    say(
        'load_dataset("seesaw_cf", CONFIG) now works from any folder when HF_HUB_OFFLINE=1 is set. '
        "Run this command again after the package was updated."
    )


def prune(cache: Path, days: float) -> str:
    """Delete entries of the cache that were not used for so many days, and say what that freed."""
    freed = left = 0
    for folder in (cache / name for name in _FOLDERS if (cache / name).is_dir()):
        sweep(folder)
        for entry in sorted(folder.iterdir()):
            n_bytes = sum(file.stat().st_size for file in (entry, *entry.rglob("*")) if file.is_file())
            old = time.time() - last_use(entry) > days * 86_400
            freed, left = (freed + n_bytes, left) if old else (freed, left + n_bytes)
            if old:
                remove(entry)
    return f"{cache}: {size(freed)} deleted, unused for {days:g} days; {size(left)} left"
