"""What the training of an annotator found, as its `report.json` keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class Interval(TypedDict):
    """A figure and the ends of its interval; None where there is none."""

    value: float | None
    low: float | None
    high: float | None


class ClassifierScores(TypedDict, total=False):
    """How good a classifier is on some rows; see `seesaw_cf.texts.train.scores.classifier_scores`.

    `ece_raw` is the calibration error before tempering, where it was measured.
    """

    accuracy: Interval
    macro_f1: Interval
    recall: list[Interval]
    cohen_kappa: float | None
    krippendorff_alpha: float | None
    ece: float
    confusion: list[list[int]]
    n: int
    n_groups: int
    ece_raw: float


Figures = dict[str, ClassifierScores]
"""Kind of premises ("paragraph", "sentence", "sentence_decided" or "all") -> how good a classifier is on them."""


class SampleAccuracy(TypedDict):
    """Accuracy of each classifier on one sample, with the interval of the last one."""

    sample: str
    unit: str
    n: int
    accuracy: dict[str, float]
    low: float
    high: float


class AnnotatorReport(TypedDict, total=False):
    """What `train_annotator` found: figures and samples only where it measured the recipe."""

    recipe: str
    encoder: str
    seed: int
    folds: int
    notes: Sequence[str]
    n: int
    n_groups: int
    labels: Sequence[str]
    figures: dict[str, Figures]
    samples: list[SampleAccuracy]


class NamedReport(TypedDict):
    """An annotator's name, and the report of its training, empty when it was not trained."""

    name: str
    report: AnnotatorReport
