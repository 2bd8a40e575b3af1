"""`seesaw-cf share RUN --repo|--space ORG/NAME`: an edit of a run, or the page of its report, on the Hub."""

from __future__ import annotations

import argparse

from seesaw_cf.base.errors import RecordError
from seesaw_cf.cli.from_fields import values_of
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import source
from seesaw_cf.cli.types import one_of, positive


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf share`."""
    add = parser.add_argument
    add(
        "source",
        type=source,
        metavar="RUN",
        help="a run (made with --keep-deltas for --repo), or the folder of one delta",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--repo", metavar="ORG/NAME", help="repository to make on the Hub, for an edit")
    page = "static Space to make on the Hub, for the page of a report; private without --public"
    where.add_argument("--space", metavar="ORG/NAME", help=page)
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
    add("--public", action="store_true", help="make a public Space")
    add("--overwrite", action="store_true", help="replace what the repository holds")


def run(args: argparse.Namespace) -> None:
    """Push the edit with its card, or the page, and print the address."""
    from seesaw_cf.sharing import ShareOptions, share, share_page

    if args.space:
        say(share_page(args.source, args.space, public=args.public, overwrite=args.overwrite))
        return
    if args.public:
        raise RecordError(
            "share: --public is for --space. A repository is as your account's default says, or --private."
        )
    options = ShareOptions(**values_of(ShareOptions, args))
    say(share(args.source, args.repo, args.form, options, private=args.private, overwrite=args.overwrite))
