"""`seesaw-cf share RUN --repo ORG/NAME`: an edit of a run as a repository on the Hub."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.options import fields_of, one_of, path, positive
from seesaw_cf.cli.output import say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf share`."""
    add = parser.add_argument
    add("source", type=path, metavar="RUN", help="a run made with --keep-deltas, or the folder of one delta")
    add("--repo", required=True, metavar="ORG/NAME", help="repository to make on the Hub")
    forms = "delta: small; adapter: LoRA, for peft; checkpoint: the whole model (default: delta)"
    add("--as", dest="form", **one_of("delta", "adapter", "checkpoint"), default="delta", help=forms)
    add("--editor", help="which editor of the run")
    add("--unit", help="which edit of the run: the name of its folder below RUN/deltas/EDITOR")
    add("--base-model", metavar="ORG/NAME", help="Hub name of the unedited model, when the run used a local folder")
    add(
        "--rank",
        type=positive,
        metavar="N",
        help="rank of an adapter (zero-padded); the largest of its updates when left out",
    )
    add("--private", action="store_true", default=None, help="make a private repository")
    add("--overwrite", action="store_true", help="replace what the repository holds")


def run(args: argparse.Namespace) -> None:
    """Pushes the edit with its card and prints the address."""
    from seesaw_cf.sharing import ShareOptions, share

    say(
        share(
            args.source,
            args.repo,
            args.form,
            ShareOptions(**fields_of(ShareOptions, args)),
            private=args.private,
            overwrite=args.overwrite,
        )
    )
