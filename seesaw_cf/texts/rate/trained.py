"""Trained raters: one encoder with one regression head for all items, each item as text next to the passages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, EvalPrediction, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.arguments import checked
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import atomic_folder, write_text
from seesaw_cf.base.types import JsonObject
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts.annotate.embed import load_encoder, longest_input, save_encoder
from seesaw_cf.texts.annotate.encoder import pair_logits, weights_digest
from seesaw_cf.texts.annotate.folder import read_settings, remember, write_learned, write_settings
from seesaw_cf.texts.rate.survey import Rating, SurveyQuestion
from seesaw_cf.texts.train.encoder import EncoderRecipe, Outputs, fit_trainer, fresh_encoder, validation_part
from seesaw_cf.texts.train.ratings import (
    RatingData,
    RatingScores,
    passages_of,
    rater_texts,
    rating_scores,
    read_ratings,
)
from seesaw_cf.texts.train.scores import grouped_folds

_MIDDLE, _SPREAD = 4.0, 3.0  # ratings 1 to 7 are learned as -1 to 1


class RaterReport(TypedDict, total=False):
    """What `train_rater` found: figures per classifier and item, only where it measured the rater."""

    encoder: str
    seed: int
    folds: int
    n: int
    figures: dict[str, dict[str, RatingScores]]


class EncoderRater:
    """Rater with an encoder; see `survey.Rater`."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        items: Sequence[str],
        max_length: int,
    ):
        """Put the parts together; `fit_rater` and `load_rater` make them."""
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name
        self.items, self.max_length = tuple(items), max_length

    def predict(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return ratings of `rater_texts`, from 1 to 7, not rounded."""
        scaled = pair_logits(self.model, self.tokenizer, pairs, self.max_length)[:, 0].double().numpy()
        return np.asarray(np.clip(_MIDDLE + _SPREAD * scaled, 1.0, 7.0))

    def rate(self, questions: Sequence[SurveyQuestion]) -> list[Rating]:
        """Return one rating per question; items that the rater was not trained on get a status."""
        answerable = [question for question in questions if question.item.name in self.items]
        ratings = iter(self.predict([rater_texts(own.item.name, own.shown) for own in answerable]).tolist())
        unknown = f"the rater was trained on {', '.join(self.items)} only"
        return [
            Rating(next(ratings)) if question.item.name in self.items else Rating(None, status=unknown)
            for question in questions
        ]

    def save(self, folder: Path, settings: JsonObject) -> None:
        """Write the encoder, its tokenizer and the settings into an existing folder."""
        save_encoder(self.model, self.tokenizer, folder)
        own = {"kind": "rater", "name": self.name, "items": self.items, "max_length": self.max_length}
        write_settings(folder, {**own, **settings})


@checked
def load_rater(folder: str | os.PathLike[str], device: str = "cpu") -> EncoderRater:
    """Read what `train_rater` wrote.

    Raises:
        StorageError: The folder is missing, damaged, or holds another kind of instrument.
        UnknownNameError: Its encoder cannot be loaded.
    """
    path = Path(folder)
    settings = read_settings(path)
    if settings["kind"] != "rater":
        raise StorageError(
            f"{path}: holds an annotator ({settings['kind']}), expected a rater. Give a folder made by "
            "`seesaw-cf leme train-rater`."
        )
    source = str(path / "encoder")
    model, tokenizer = load_encoder(AutoModelForSequenceClassification, source, device, name=str(path))
    rater = EncoderRater(model, tokenizer, settings["name"], settings["items"], settings["max_length"])
    return remember(rater, path)


def fit_rater(data: RatingData, encoder: str, recipe: EncoderRecipe | None = None, seed: int = 0) -> EncoderRater:
    """Fine-tune an encoder on ratings; a quarter of the rows, whole groups, stops the training.

    Args:
        data: What to train on.
        encoder: "minilm", a folder or a Hub id.
        recipe: How; by default that of small data.
        seed: Of everything random.

    Raises:
        UnknownNameError: The encoder cannot be loaded.
        SeesawError: accelerate is missing.

    Source: LEME, section 3.2 and Appendix B.3.
    Deviates: one model for all items, which reads the item, and a number instead of seven classes; the published
        recipe trains one classifier per item.
    """
    recipe = recipe or EncoderRecipe()
    left_out = validation_part(data.groups, seed)
    train, validation = data.split(left_out)
    model, tokenizer = fresh_encoder(encoder, recipe.frozen_layers, seed, num_labels=1, problem_type="regression")

    def loss(outputs: Outputs, labels: Tensor) -> Tensor:
        return torch.nn.functional.mse_loss(outputs.logits[:, 0].float(), labels)

    def score(predictions: EvalPrediction) -> dict[str, float]:
        return {"score": -float(np.square(np.asarray(predictions.predictions)[:, 0] - predictions.label_ids).mean())}

    parts = [
        [(pair, (rating - _MIDDLE) / _SPREAD) for pair, rating in zip(part.pairs, part.ratings)]
        for part in (train, validation)
    ]
    fit_trainer(model, tokenizer, parts[0], parts[1], recipe, seed, loss, score)
    name = f"trained {Path(encoder).name} {weights_digest(model)}"
    return EncoderRater(
        model.cpu(), tokenizer, name, sorted(set(data.items)), min(recipe.max_length, longest_input(model))
    )


def _constant(train: RatingData, test: RatingData) -> Floats:
    """Return the training part's mean rating of each item; of all items for a missing one."""
    items, ratings = np.array(train.items), np.array(train.ratings)
    means = {name: float(ratings[items == name].mean()) for name in set(train.items)}
    return np.array([means.get(name, float(ratings.mean())) for name in test.items])


def train_rater(
    data: RatingData | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    encoder: str = "minilm",
    recipe: EncoderRecipe | None = None,
    folds: int = 4,
    seed: int = 0,
) -> RaterReport:
    """Measure a rater on unseen samples, then fit it on everything and save it.

    Args:
        data: A CSV file as `read_ratings` describes, or what it returns.
        out: New folder: the rater for `load_rater`, and report.json.
        encoder: "minilm", a folder or a Hub id.
        recipe: How to train; by default that of small data.
        folds: Grouped folds that measure it; 0 = do not measure.
        seed: Of folds, weights and order.

    Returns:
        The report: `figures` of the rater and of a constant per item, over all items and for each.

    Raises:
        RecordError, UnknownNameError, StorageError: See `read_ratings`; the folder is not empty.
    """
    rows = data if isinstance(data, RatingData) else read_ratings(data)
    if len(set(rows.groups)) < max(folds, 2):
        raise RecordError(
            f"rating data: {len(set(rows.groups))} independent samples, expected at least {max(folds, 2)}. Bring more "
            "samples or ask for fewer folds."
        )
    report: RaterReport = {"encoder": encoder, "seed": seed, "folds": folds, "n": len(rows.ratings)}
    with atomic_folder(out) as folder:
        if folds:
            predictions = {name: np.zeros(len(rows.ratings)) for name in ("rater", "constant")}
            fold = np.array(grouped_folds(rows.groups, folds, seed))
            for number in range(folds):
                train, test = rows.split(fold == number)
                predictions["rater"][fold == number] = fit_rater(train, encoder, recipe, seed).predict(test.pairs)
                predictions["constant"][fold == number] = _constant(train, test)
            report["figures"] = {name: _by_item(rows, values) for name, values in predictions.items()}
        fit_rater(rows, encoder, recipe, seed).save(folder, {"seed": seed, "n": len(rows.ratings)})
        write_learned(folder, (text for pair in rows.pairs for text in passages_of(pair)))
        write_text(folder / "report.json", json_text(report))
    return report


def _by_item(data: RatingData, predictions: Floats) -> dict[str, RatingScores]:
    out = {"all": rating_scores(data.ratings, predictions.tolist(), data.groups)}
    for name in sorted(set(data.items)):
        rows = [i for i, item in enumerate(data.items) if item == name]
        part = data.take(rows)
        out[name] = rating_scores(part.ratings, predictions[rows].tolist(), part.groups)
    return out
