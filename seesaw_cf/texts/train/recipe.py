"""Train a classifier of claims or a rater of passages, measured on samples that it has not seen."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from transformers import (
    AutoModelForSequenceClassification,
    EarlyStoppingCallback,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from seesaw_cf.base.checks import above_zero
from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.fields import field_types
from seesaw_cf.base.files import atomic_folder, write_text
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts.annotate.embed import load_encoder, longest_input
from seesaw_cf.texts.annotate.encoder import encode_pairs, pair_logits
from seesaw_cf.texts.annotate.learned import write_learned
from seesaw_cf.texts.train.ratings import from_output, passages_of, to_output
from seesaw_cf.texts.train.rows import TrainingRows
from seesaw_cf.texts.train.scores import Figures, label_scores, rating_scores


class TrainingReport(TypedDict, total=False):
    """What `train` found; `figures` only where it measured the recipe."""

    encoder: str
    seed: int
    folds: int
    n: int
    n_groups: int
    figures: dict[str, Figures]


Fitted = tuple[PreTrainedModel, PreTrainedTokenizerBase]
_VALIDATION = 4  # one of so many parts of the groups stops the training


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an encoder is fine-tuned.

    Attributes:
        learning_rate, weight_decay: Of AdamW.
        epochs: At most.
        batch_size, accumulation: Rows per step and steps per update.
        warmup: Updates of rising learning rate; below 1 a share of all updates.
        patience: Stop after this many epochs without a smaller loss on a quarter of the groups; 0 = train all epochs on
            all rows, keep the last.
        max_length: Tokens of a pair.
        half: 16-bit floats, on a GPU only.
    """

    learning_rate: float = 5e-5
    epochs: int = 5
    batch_size: int = 16
    accumulation: int = 1
    weight_decay: float = 0.01
    warmup: float = 0.1
    patience: int = 2
    max_length: int = 512
    half: bool = False

    def __post_init__(self) -> None:
        """Refuse numbers that nothing can be trained with.

        Raises:
            RecordError: A field of another type, or a count or rate that is not above 0.
        """
        field_types(self)
        above_zero(self, ("learning_rate", "epochs", "batch_size", "accumulation", "max_length"))


# "leme": LEME, Appendix B.3, for microsoft/deberta-v3-large and a GPU.
RECIPES = {"small": Recipe(), "leme": Recipe(6e-6, 20, 1, 4, warmup=1000, patience=0, half=True)}


def fit(rows: TrainingRows, encoder: str, recipe: Recipe, seed: int = 0) -> Fitted:
    """Fine-tune an encoder with a new head.

    Args:
        rows: What to train on.
        encoder: A folder or a Hub id.
        recipe: How.
        seed: Of everything random.

    Raises:
        UnknownNameError: The encoder cannot be loaded.
        MissingExtraError: accelerate or scikit-learn is missing; install `seesaw_cf[longform]`.

    Source: LEME, sections 3.2 and 3.3, Appendices B.3 and B.4.
    Deviates: two texts are a pair of which the first is cut, not one text that cuts the claim; one rater for all items,
        which reads the item, and a number instead of seven classes.
    """
    torch.manual_seed(seed)
    names = dict(enumerate(rows.classes))
    labels = {"id2label": names, "label2id": {name: at for at, name in names.items()}} if names else {"num_labels": 1}
    model, tokenizer = load_encoder(AutoModelForSequenceClassification, encoder, ignore_mismatched_sizes=True, **labels)
    length = min(recipe.max_length, longest_input(model))
    outputs = [int(target) if names else to_output(target) for target in rows.targets]
    data = list(zip(rows.pairs, outputs, strict=True))
    folds = min(_VALIDATION, len(set(rows.groups))) if recipe.patience else 0
    train, held = _folds(rows, folds, seed)[0] if folds > 1 else (range(len(data)), [])

    def collate(batch: Sequence[tuple[tuple[str, str], float]]) -> dict[str, torch.Tensor]:
        return {
            **encode_pairs(tokenizer, [pair for pair, _ in batch], length),
            "labels": torch.tensor([y for _, y in batch]),
        }

    each_epoch = "epoch" if held else "no"
    with tempfile.TemporaryDirectory() as folder:
        with need("accelerate", extra="longform", what_for="training"):
            arguments = TrainingArguments(
                folder, num_train_epochs=recipe.epochs, learning_rate=recipe.learning_rate, seed=seed,
                per_device_train_batch_size=recipe.batch_size, gradient_accumulation_steps=recipe.accumulation,
                weight_decay=recipe.weight_decay, warmup_steps=recipe.warmup,
                fp16=recipe.half and torch.cuda.is_available(), save_total_limit=1, save_only_model=True,
                remove_unused_columns=False, label_names=["labels"], report_to=[], disable_tqdm=True,
                logging_strategy="no", dataloader_pin_memory=False, eval_strategy=each_epoch, save_strategy=each_epoch,
                load_best_model_at_end=bool(held),
            )  # fmt: skip
        trainer = Trainer(
            model, arguments, collate, [data[row] for row in train], [data[row] for row in held] or None,
            callbacks=[EarlyStoppingCallback(recipe.patience)] if held else [],
        )  # fmt: skip
        trainer.model_accepts_loss_kwargs = False  # the loss is a mean per step, to be divided by the accumulation
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return model.cpu().eval(), tokenizer


def _folds(rows: TrainingRows, folds: int, seed: int) -> list[tuple[Sequence[int], Sequence[int]]]:
    with need("scikit-learn", extra="longform", what_for="training"):
        from sklearn.model_selection import GroupKFold
    splits = GroupKFold(folds, shuffle=True, random_state=seed).split(rows.pairs, groups=rows.groups)
    return [(train.tolist(), test.tolist()) for train, test in splits]


def predict(rows: TrainingRows, fitted: Fitted, max_length: int) -> Floats:
    """Return the likeliest class of each row, or its rating."""
    model, tokenizer = fitted
    logits = pair_logits(model, tokenizer, rows.pairs, min(max_length, longest_input(model))).double().numpy()
    return np.asarray(logits.argmax(axis=1) if rows.classes else from_output(logits[:, 0]))


def cross_validate(
    rows: TrainingRows, encoder: str, recipe: Recipe, folds: int = 4, seed: int = 0
) -> dict[str, Figures]:
    """Return figures of rows whose groups were left out of the training, beside a constant answer.

    Args:
        rows, encoder, recipe, seed: See `fit`.
        folds: Grouped folds.

    Returns:
        "trained" and "constant" (the commonest class, the mean rating of each part of the training rows) -> "all" and
        each of `rows.parts` -> figures.
    """
    with need("scikit-learn", extra="longform", what_for="training"):
        from sklearn.dummy import DummyClassifier, DummyRegressor
    answers = {name: np.zeros(len(rows.pairs)) for name in ("trained", "constant")}
    for train, test in _folds(rows, folds, seed):
        known = {rows.pairs[row][0] for row in test}  # premises too short to join groups
        part, unseen = rows.take([row for row in train if rows.pairs[row][0] not in known]), rows.take(test)
        answers["trained"][test] = predict(unseen, fit(part, encoder, recipe, seed), recipe.max_length)
        dummy = DummyClassifier() if rows.classes else DummyRegressor()
        for name in set(unseen.parts):
            own = [at for at, other in enumerate(part.parts) if other == name] or range(len(part.parts))
            dummy.fit(np.zeros((len(own), 1)), [part.targets[at] for at in own])
            asked = [row for row in test if rows.parts[row] == name]
            answers["constant"][asked] = dummy.predict(np.zeros((len(asked), 1)))
    return {name: _figures(rows, values) for name, values in answers.items()}


def _figures(rows: TrainingRows, answers: Floats) -> Figures:
    names = sorted(set(rows.parts))
    places = {"all": list(range(len(rows.parts)))}
    places |= {name: [at for at, part in enumerate(rows.parts) if part == name] for name in names if len(names) > 1}
    out: Figures = {}
    for name, own in places.items():
        truth, groups = [rows.targets[at] for at in own], [rows.groups[at] for at in own]
        values = answers[own].tolist()
        out[name] = (
            label_scores(truth, values, groups, rows.classes) if rows.classes else rating_scores(truth, values, groups)
        )
    return out


def train(
    rows: TrainingRows,
    encoder: str,
    out: str | os.PathLike[str],
    recipe: Recipe = RECIPES["small"],
    *,
    folds: int = 4,
    seed: int = 0,
) -> TrainingReport:
    """Measure a recipe on unseen samples, then fit it on everything and save it.

    Args:
        rows, encoder, recipe: See `fit`.
        out: New folder: the model, its tokenizer, what it has learned from, and report.json.
        folds: Grouped folds that measure it; 0 = do not measure.
        seed: Of folds, weights and order.

    Returns:
        The report, with `figures` as of `cross_validate`.

    Raises:
        RecordError: Fewer independent groups than folds, or a class without a row.
        StorageError: The folder is not empty.
    """
    groups = len(set(rows.groups))
    if folds == 1 or groups < max(folds, 2):
        raise RecordError(
            f"training data: {folds} folds of {groups} independent samples, expected 0 or 2 to {groups} folds. Bring "
            "more samples or ask for other folds."
        )
    for missing in sorted(set(range(len(rows.classes))) - {int(target) for target in rows.targets}):
        raise RecordError(f"training data: no row says {rows.classes[missing]}. Bring rows of the missing class.")
    report: TrainingReport = {
        "encoder": encoder,
        "seed": seed,
        "folds": folds,
        "n": len(rows.pairs),
        "n_groups": groups,
    }
    with atomic_folder(out) as folder:
        if folds:
            report["figures"] = cross_validate(rows, encoder, recipe, folds, seed)
        model, tokenizer = fit(rows, encoder, recipe, seed)
        if not rows.classes:
            model.config.survey_items = sorted(set(rows.parts))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_learned(folder, (text for pair in rows.pairs for text in passages_of(pair)))
        write_text(Path(folder) / "report.json", json_text(report))
    return report
