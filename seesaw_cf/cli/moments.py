"""`seesaw-cf moments`: second moments for editors, computed in one pass, kept, and published."""

from __future__ import annotations

import argparse
import re
import shlex

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import EditError
from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.options import CORPUS, load, model_options, quiet_option, seed_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.types import count
from seesaw_cf.run.jobs import Job


def _tokens(text: str) -> int:
    """Return the number that "1M" means."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgG]?)", text.strip())
    number = int(float(match[1]) * 1000 ** " kmg".index(match[2].lower() or " ")) if match else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {shown(text, 80)}, expected a number of tokens such as 1M or 500k")
    return number


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf moments`."""
    model_options(parser)
    add = parser.add_argument
    options_from(parser, Job, CORPUS)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--layers", type=count, nargs="+", metavar="N", help="blocks, from 0")
    chosen.add_argument("--editor", help="the blocks that this editor edits in this model")
    add("--tokens", type=_tokens, help="stop at so many tokens, such as 1M (default: all texts)")
    add("--push", metavar="ORG/NAME", help="publish them as a data set on the Hub, with a card")
    add("--base-model", metavar="ORG/NAME", help="Hub name of the model, when it was loaded from a folder")
    add("--public", action="store_true", help="make a public repository (default: private)")
    add("--overwrite", action="store_true", help="replace what the repository holds")
    seed_option(parser, "the order of the texts")
    quiet_option(parser)


def run(args: argparse.Namespace) -> None:
    """Compute the second moments that are missing, say where they are, and publish them if asked.

    Raises:
        EditError: No texts, texts that are too short, or an editor that needs no second moments.
        SeesawError: See `load_model`, `second_moments` and `push_moments`.
    """
    from seesaw_cf.editors import load_editor
    from seesaw_cf.editors.locate.fitted import check_tokens
    from seesaw_cf.editors.locate.moments import MomentOptions, second_moments
    from seesaw_cf.models.architectures import model_parts
    from seesaw_cf.models.corpus import corpus_of

    corpus = corpus_of(args.corpus, args.model, args.corpus_limit, args.seed)
    if corpus is None:
        raise EditError(
            f"moments: {args.model} comes without texts. Give some that it knows with --corpus: a text file with "
            "one text a line, thousands of lines."
        )
    model, tokenizer = load(args)
    parts = model_parts(model)
    layers = args.layers or getattr(load_editor(args.editor).config_class.for_model(model), "moment_layers", ())
    if not layers:
        raise EditError(f"moments: {args.editor} needs no second moments. Expected rome, memit, emmet or alphaedit.")
    parts.check_layers(layers, "moments")
    how = MomentOptions(args.corpus_limit, seed=args.seed, tokens=args.tokens)
    moments = second_moments(parts, tokenizer, sorted(set(layers)), corpus, how)
    check_tokens(moments, "moments")
    for layer, moment in moments.items():
        say(f"layer {layer}: {moment.n_texts:,} texts, {moment.n_tokens:,} tokens")
    folder = moments[layers[0]].file.parent
    say(f"use them with `--moments {shlex.quote(str(folder))}`; the same texts find them without")
    if args.push:
        from seesaw_cf.sharing.moments import push_moments

        say(push_moments(folder, args.push, base_model=args.base_model, public=args.public, overwrite=args.overwrite))
