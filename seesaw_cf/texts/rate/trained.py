"""Trained raters: one encoder with one regression head for all items, each item as text next to the passages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.public import checked
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.embed import load_encoder, longest_input
from seesaw_cf.texts.annotate.encoder import pair_logits, weights_digest
from seesaw_cf.texts.annotate.learned import remember
from seesaw_cf.texts.rate.survey import Rating, SurveyQuestion
from seesaw_cf.texts.train.ratings import from_output, rater_texts


class EncoderRater:
    """Rater with an encoder; see `survey.Rater`."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str, items: Sequence[str]):
        """Put the parts together; `load_rater` makes them."""
        self.model, self.tokenizer, self.name, self.items = model.eval(), tokenizer, name, tuple(items)

    def predict(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return ratings of `rater_texts`, from 1 to 7, not rounded."""
        logits = pair_logits(self.model, self.tokenizer, pairs, longest_input(self.model))
        return from_output(logits[:, 0].double().numpy())

    def rate(self, questions: Sequence[SurveyQuestion]) -> list[Rating]:
        """Return one rating per question; items that the rater was not trained on get a status."""
        answerable = [question for question in questions if question.item.name in self.items]
        ratings = iter(self.predict([rater_texts(own.item.name, own.shown) for own in answerable]).tolist())
        unknown = f"the rater was trained on {', '.join(self.items)} only"
        return [
            Rating(next(ratings)) if question.item.name in self.items else Rating(None, status=unknown)
            for question in questions
        ]


@checked
def load_rater(folder: str | os.PathLike[str], device: str = "cpu") -> EncoderRater:
    """Read what `seesaw-cf leme train-rater` wrote.

    Raises:
        StorageError: It holds another kind of model.
        UnknownNameError: It cannot be loaded.
    """
    path = Path(folder)
    model, tokenizer = load_encoder(AutoModelForSequenceClassification, str(path), device)
    items = getattr(model.config, "survey_items", None)
    if not items:
        raise StorageError(f"{path}: no rater. Expected a folder made by `seesaw-cf leme train-rater`.")
    return remember(EncoderRater(model, tokenizer, f"trained {path.name} {weights_digest(model)}", items), path)
