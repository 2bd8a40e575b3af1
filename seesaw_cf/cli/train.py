"""`seesaw-cf leme train-annotator` and `train-rater`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.terminal import column_table, interval
from seesaw_cf.cli.options import seed_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import name_or_source, own_folder, source
from seesaw_cf.cli.types import count, one_of, positive

if TYPE_CHECKING:
    from seesaw_cf.texts.train.recipe import TrainingReport
    from seesaw_cf.texts.train.rows import TrainingRows


def training_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `train-annotator` and `train-rater`."""
    add = parser.add_argument
    data = "CSV file (docs/instruments.md has its columns), or a folder of people's tables about the texts of --run"
    add("--data", type=source, required=True, help=data)
    add("--run", type=source, metavar="RUN", help="run folder of `seesaw-cf leme run` that people answered about")
    add("--out", type=own_folder, required=True, help="new folder for the model and report.json")
    add("--encoder", type=name_or_source, required=True, help="a folder or a Hub id")
    recipe = "leme: the settings of the paper, for microsoft/deberta-v3-large and a GPU (default: small)"
    add("--recipe", **one_of("small", "leme"), default="small", help=recipe)
    add("--epochs", type=positive, help="at most this many passes over the data (default: of the recipe)")
    add("--folds", type=count, default=4, help="grouped folds that measure it; 0 = do not (default: 4)")
    seed_option(parser, "folds, weights and order")


def train(args: argparse.Namespace) -> None:
    """Train what the action names and print its figures."""
    from dataclasses import replace

    from seesaw_cf.texts.train.annotations import read_annotations
    from seesaw_cf.texts.train.ratings import read_ratings
    from seesaw_cf.texts.train.recipe import RECIPES
    from seesaw_cf.texts.train.recipe import train as train_model

    claims = args.action == "train-annotator"
    read = read_annotations if claims else read_ratings
    rows = _people(args) if args.data.is_dir() else read(args.data)
    recipe = RECIPES[args.recipe]
    recipe = replace(recipe, epochs=args.epochs or recipe.epochs)
    report = train_model(rows, args.encoder, args.out, recipe, folds=args.folds, seed=args.seed)
    say(_table(report, ("accuracy",) if claims else ("spearman", "within_one")))
    say(f"saved in {args.out}")


def _people(args: argparse.Namespace) -> TrainingRows:
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


def _table(report: TrainingReport, measured: Sequence[str]) -> str:
    """Return the figures, one line per classifier and part."""
    if "figures" not in report:
        return f"{report['n']} rows; not measured (--folds 0)"
    rows = [
        [name, part, *(_figure(figures[one]) for one in measured), figures["n"]]
        for name, parts in report["figures"].items()
        for part, figures in parts.items()
    ]
    about = f"{report['n']} rows, {report['folds']} grouped folds; 95 % intervals resample whole samples."
    return f"{about}\n{column_table(['classifier', 'part', *measured, 'n'], rows, 2)}"


def _figure(figure: Mapping[str, Any]) -> str:
    ends = interval(figure["low"], figure["high"], spec=".3f")
    return "-" if figure["value"] is None else f"{figure['value']:.3f} {ends}".removesuffix(" -")
