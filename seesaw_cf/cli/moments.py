"""`seesaw-cf moments make|push|pull|list`: second moments for editors: computed, published, fetched, listed."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import EditError, StorageError
from seesaw_cf.base.terminal import description_list
from seesaw_cf.cli.actions import command
from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.options import CORPUS, MODEL, load, model_options, quiet_option, seed_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import name_or_source, own_folder
from seesaw_cf.cli.types import above_zero, count
from seesaw_cf.run.jobs import Job, Workers

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from seesaw_cf.editors.locate.moment_files import MomentFiles
    from seesaw_cf.editors.locate.moment_sets import MomentSet

_MAKE_OPTIONS = (*MODEL, *CORPUS, "layers", "editor", "tokens", "sampling_error", "seed")


def _tokens(text: str) -> int:
    """Return the number that "1M" means."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgG]?)", text.strip())
    number = int(float(match[1]) * 1000 ** ("kmg".find(match[2].lower()) + 1 if match[2] else 0)) if match else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {shown(text, 80)}, expected a number of tokens such as 1M or 500k")
    return number


def _options_of_make(parser: argparse.ArgumentParser) -> None:
    model_options(parser)
    add = parser.add_argument
    options_from(parser, Job, CORPUS)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--layers", type=count, nargs="+", metavar="N", help="blocks, from 0")
    chosen.add_argument("--editor", help="the blocks that this editor edits in this model")
    add("--tokens", type=_tokens, help="stop at so many tokens, such as 1M (default: all texts)")
    error = "stop, after the next thousand texts, at this relative standard error of C, such as 0.02"
    add("--sampling-error", type=above_zero, help=f"{error} (default: all texts)")
    add("--out", type=own_folder, help="also write the set into this folder, which must be empty or new")
    seed_option(parser, "the order of the texts")
    options_from(parser, Workers, ("engine", "actors", "gpus", "ray_address"))
    quiet_option(parser)


def _options_of_push(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", type=name_or_source, metavar="SET", help="a set of `moments list`, or a folder")
    add("--repo", required=True, metavar="ORG/NAME", help="data set to make on the Hub")
    add("--base-model", metavar="ORG/NAME", help="Hub name of the model, when the set was made with a local folder")
    add("--public", action="store_true", help="make a public repository (default: private)")
    add("--overwrite", action="store_true", help="replace what the repository holds")


def _options_of_pull(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("repo", metavar="ORG/NAME", help="data set that `moments push` made")
    add("--revision", help="branch, tag or commit (default: the newest)")
    add("--model", type=name_or_source, help="also check that they are this model's: a name, a folder or a Hub id")


def _options_of_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repo", nargs="?", metavar="ORG/NAME", help="what this data set on the Hub has, instead")


def _make(args: argparse.Namespace) -> None:
    from seesaw_cf.editors.locate.fitted import check_tokens
    from seesaw_cf.editors.locate.moment_sets import read_set
    from seesaw_cf.editors.locate.moment_sums import SHARES
    from seesaw_cf.run.workers import call_on_actors, rank_and_world

    make_files = partial(_make_files, {name: getattr(args, name) for name in _MAKE_OPTIONS})
    if args.engine == "ray":
        many = min(args.actors or SHARES, SHARES)  # more would load a model and find no share
        moments = call_on_actors(make_files, actors=many, gpus=args.gpus, address=args.ray_address)
    else:
        moments = make_files()
    if rank_and_world()[0] > 0:
        return  # the first process of a torchrun says it
    sets = [read_set(folder) for folder in dict.fromkeys(files.folder for files in moments.values())]
    if args.out and len(sets) > 1:
        raise StorageError(
            f"could not write {args.out}: layers {[*sets[1].layers]} are there from all texts already, the others are "
            "not. Leave out --sampling-error, and all are taken from all texts."
        )
    for moment_set in (sets[0].copy(args.out),) if args.out else sets:
        say(_shown(moment_set))
        name = shlex.quote(str(args.out or moment_set.name))
        say(f"use it with `--moments {name}`, publish it with `seesaw-cf moments push {name} --repo ORG/NAME`")
    check_tokens({layer: files.load(layer) for layer, files in moments.items()}, "moments make")


def _make_files(options: Mapping[str, Any]) -> dict[int, MomentFiles]:
    """Make the moments that options ask for, or what other processes leave of them, and return where they are."""
    from seesaw_cf.editors.locate.moments import MomentOptions, ensure_moments
    from seesaw_cf.models.architectures import model_parts
    from seesaw_cf.models.corpus import corpus_of
    from seesaw_cf.run.workers import local_device

    args = argparse.Namespace(**options)
    corpus = corpus_of(args.corpus, args.model, args.corpus_limit, args.seed)
    if corpus is None:
        raise EditError(
            f"moments make: {args.model} comes without texts. Give some that it knows with --corpus: a text file with "
            "one text a line, thousands of lines."
        )
    args.device = local_device(args.device)
    model, tokenizer = load(args)
    parts = model_parts(model)
    layers = sorted(set(args.layers or _layers(args.editor, model)))
    for layer in layers:
        parts.block(layer)
    how = MomentOptions(args.corpus_limit, seed=args.seed, tokens=args.tokens, sampling_error=args.sampling_error)
    return ensure_moments(parts, tokenizer, layers, corpus, how)


def _layers(editor: str, model: PreTrainedModel) -> tuple[int, ...]:
    """Return the layers of a model for which an editor needs second moments."""
    from seesaw_cf.editors import load_editor
    from seesaw_cf.models.editor import HasMoments

    config = load_editor(editor).config_class.for_model(model)
    if not isinstance(config, HasMoments) or not config.moment_layers:
        raise EditError(f"moments make: {editor} needs no second moments. Expected rome, memit, emmet or alphaedit.")
    return config.moment_layers


def _push(args: argparse.Namespace) -> None:
    from seesaw_cf.sharing.moments import push_moments

    options = {name: getattr(args, name) for name in ("base_model", "public", "overwrite")}
    say(push_moments(args.name, args.repo, **options))


def _pull(args: argparse.Namespace) -> None:
    from seesaw_cf.sharing.moments import pull_moments

    moment_set = pull_moments(args.repo, args.revision)
    if args.model:
        from seesaw_cf.models.load import load_model

        dtype = moment_set.record["facts"]["dtype"].removeprefix("torch.")
        revision = moment_set.record["model"].get("revision") or None
        moment_set.check(*load_model(args.model, dtype=dtype, revision=revision, progress=False))
    say(_shown(moment_set))
    say(f"use it with `--moments {args.repo}`")


def _list(args: argparse.Namespace) -> None:
    if args.repo:
        from seesaw_cf.sharing.moments import described, published_set

        record, commit = published_set(args.repo)
        files = {"files": ", ".join(sorted(record.get("files", ()))), "commit": commit}
        say(f"{args.repo}:\n{_rows({**described(record), **files})}")
        return
    from seesaw_cf.editors.locate.moment_sets import sets, sets_folder

    moment_sets = sets()
    say("\n".join(map(_shown, moment_sets)) or f"no second moments in {sets_folder()}; make some with `moments make`")


def _shown(moment_set: MomentSet) -> str:
    """Describe a set in words."""
    from seesaw_cf.sharing.moments import described

    layers = {
        f"layer {layer}": "{n_texts:,} texts, {n_tokens:,} tokens, sampling error {relative_error:.2%}".format(
            **moment_set.files.outline(layer)
        )
        for layer in moment_set.layers
    }
    origin = moment_set.origin
    fetched = {"from": f"{origin['repository']} at {origin['revision']}"} if origin else {}
    facts = {**described(moment_set.record), **layers, **fetched, "in": str(moment_set.folder)}
    return f"{moment_set.files.key}:\n{_rows(facts)}"


def _rows(named: Mapping[str, str]) -> str:
    return description_list(list(named.items()), indent="  ")


configure, run = command(
    {
        "make": ("compute them from texts, in one pass for all layers", _options_of_make, _make),
        "push": ("publish a set as a data set on the Hub, with a card", _options_of_push, _push),
        "pull": ("fetch a published set, checked, into the cache", _options_of_pull, _pull),
        "list": ("the sets of this machine, or what a data set on the Hub has", _options_of_list, _list),
    }
)
