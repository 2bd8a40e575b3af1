"""Train a classifier of claims or a rater of the survey, measured on samples that it has not seen."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from transformers import AutoModelForSequenceClassification, EarlyStoppingCallback, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.fields import AboveZero, Positive
from seesaw_cf.base.files import atomic_folder, write_text
from seesaw_cf.base.terminal import interval
from seesaw_cf.base.types import JsonObject
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts import TrainJob
from seesaw_cf.texts.classify import (
    LEARNED,
    Fitted,
    Pair,
    encode_pairs,
    from_output,
    load_encoder,
    longest_input,
    pair_logits,
    to_output,
)
from seesaw_cf.texts.judge import digest
from seesaw_cf.texts.tables import RunTexts
from seesaw_cf.texts.training import classes_of, label_scores, people_training, rating_scores, read_training

Numbers = NDArray[np.intp]
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

    learning_rate: AboveZero = 5e-5
    epochs: Positive = 5
    batch_size: Positive = 16
    accumulation: Positive = 1
    weight_decay: float = 0.01
    warmup: float = 0.1
    patience: int = 2
    max_length: Positive = 512
    half: bool = False


# "leme": LEME, Appendix B.3, for microsoft/deberta-v3-large and a GPU.
RECIPES = {"small": Recipe(), "leme": Recipe(6e-6, 20, 1, 4, warmup=1000, patience=0, half=True)}


def fit(data: pd.DataFrame, encoder: str, recipe: Recipe, seed: int = 0) -> Fitted:
    """Fine-tune an encoder with a new head.

    Args:
        data: What to train on.
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
    names = dict(enumerate(classes_of(data)))
    labels = {"id2label": names, "label2id": {name: at for at, name in names.items()}} if names else {"num_labels": 1}
    model, tokenizer = load_encoder(AutoModelForSequenceClassification, encoder, ignore_mismatched_sizes=True, **labels)
    length = min(recipe.max_length, longest_input(model))
    targets = data["target"].astype(int) if names else to_output(data["target"])
    rows = pd.Series([*zip(data["pair"], targets)])
    folds = min(_VALIDATION, data["group"].nunique()) if recipe.patience else 0
    train, held = _folds(data, folds, seed)[0] if folds > 1 else (rows.index, rows.index[:0])

    def collate(batch: Sequence[tuple[Pair, float]]) -> dict[str, torch.Tensor]:
        encoded = encode_pairs(tokenizer, [pair for pair, _ in batch], length)
        return {**encoded, "labels": torch.tensor([target for _, target in batch])}

    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model, _arguments(folder, recipe, seed, len(held) > 0), collate, rows[train].tolist(),
            rows[held].tolist() or None, callbacks=[EarlyStoppingCallback(recipe.patience)] if len(held) else [],
        )  # fmt: skip
        trainer.model_accepts_loss_kwargs = False  # the loss is a mean per step, to be divided by the accumulation
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return model.cpu().eval(), tokenizer


def _arguments(folder: str, recipe: Recipe, seed: int, stops_early: bool) -> TrainingArguments:
    each_epoch = "epoch" if stops_early else "no"
    with need("accelerate", extra="longform", what_for="training"):
        return TrainingArguments(
            folder, num_train_epochs=recipe.epochs, learning_rate=recipe.learning_rate, seed=seed,
            per_device_train_batch_size=recipe.batch_size, gradient_accumulation_steps=recipe.accumulation,
            weight_decay=recipe.weight_decay, warmup_steps=recipe.warmup,
            fp16=recipe.half and torch.cuda.is_available(), save_total_limit=1, save_only_model=True,
            remove_unused_columns=False, label_names=["labels"], report_to=[], disable_tqdm=True,
            logging_strategy="no", dataloader_pin_memory=False, eval_strategy=each_epoch, save_strategy=each_epoch,
            load_best_model_at_end=stops_early,
        )  # fmt: skip


def _folds(data: pd.DataFrame, folds: int, seed: int) -> list[tuple[Numbers, Numbers]]:
    with need("scikit-learn", extra="longform", what_for="training"):
        from sklearn.model_selection import GroupKFold
    return list(GroupKFold(folds, shuffle=True, random_state=seed).split(data, groups=data["group"]))


def predict(data: pd.DataFrame, fitted: Fitted, max_length: int) -> Floats:
    """Return the likeliest class of each row, or its rating."""
    logits = pair_logits(*fitted, data["pair"].tolist(), max_length).double().numpy()
    return np.asarray(logits.argmax(axis=1) if classes_of(data) else from_output(logits[:, 0]))


def cross_validate(data: pd.DataFrame, encoder: str, recipe: Recipe, folds: int = 4, seed: int = 0) -> JsonObject:
    """Return figures of rows whose groups were left out of the training, beside a constant answer.

    Args:
        data, encoder, recipe, seed: See `fit`.
        folds: Grouped folds.

    Returns:
        "trained" and "constant" (the commonest class, the mean rating of each part of the training rows) -> "all" and
        each part -> what `label_scores` or `rating_scores` returns.
    """
    classes, answers = classes_of(data), data.assign(trained=0.0, constant=0.0)
    for train, test in _folds(data, folds, seed):
        unseen, known = data.iloc[test], data.iloc[train]
        premises = set(unseen["pair"].str[0])  # those that are too short to join groups
        known = known[~known["pair"].str[0].isin(premises)]
        answers.loc[unseen.index, "trained"] = predict(unseen, fit(known, encoder, recipe, seed), recipe.max_length)
        constants = known.groupby("part")["target"].agg(_commonest if classes else "mean")
        rest = _commonest(known["target"]) if classes else known["target"].mean()
        answers.loc[unseen.index, "constant"] = unseen["part"].map(constants).fillna(rest)
    parts = {"all": answers} | (dict(list(answers.groupby("part"))) if answers["part"].nunique() > 1 else {})
    return {
        name: {part: _figures(rows, name, classes) for part, rows in parts.items()} for name in ("trained", "constant")
    }


def _commonest(targets: pd.Series) -> float:
    return float(targets.mode().iloc[0])


def _figures(rows: pd.DataFrame, name: str, classes: Sequence[str]) -> JsonObject:
    truth, answers, groups = (rows[column].tolist() for column in ("target", name, "group"))
    return label_scores(truth, answers, groups, classes) if classes else rating_scores(truth, answers, groups)


def train(
    data: pd.DataFrame, encoder: str, out: str | os.PathLike[str], recipe: Recipe, *, folds: int = 4, seed: int = 0
) -> dict[str, Any]:
    """Measure a recipe on unseen samples, then fit it on everything and save it.

    Args:
        data, encoder, recipe: See `fit`.
        out: New folder: the model, its tokenizer, what it has learned from, and report.json.
        folds: Grouped folds that measure it; 0 = do not measure.
        seed: Of folds, weights and order.

    Returns:
        The report, with `figures` as of `cross_validate`.

    Raises:
        RecordError: Fewer independent groups than folds, or a class without a row.
        StorageError: The folder is not empty.
    """
    groups, classes = data["group"].nunique(), classes_of(data)
    if folds == 1 or groups < max(folds, 2):
        raise RecordError(
            f"training data: {folds} folds of {groups} independent samples, expected 0 or 2 to {groups}. Bring more."
        )
    for missing in sorted(set(range(len(classes))) - set(data["target"])):
        raise RecordError(f"training data: no row says {classes[missing]}. Bring rows of the missing class.")
    report: dict[str, Any] = {"encoder": encoder, "seed": seed, "folds": folds, "n": len(data), "n_groups": groups}
    with atomic_folder(out) as folder:
        if folds:
            report["figures"] = cross_validate(data, encoder, recipe, folds, seed)
        model, tokenizer = fit(data, encoder, recipe, seed)
        if not classes:
            model.config.survey_items = sorted(set(data["part"]))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        learned = sorted({digest(text) for text in data["passages"].explode()})
        write_text(folder / LEARNED, json.dumps(learned) + "\n")
        write_text(folder / "report.json", json_text(report))
    return report


def run_train(job: TrainJob, out: Path) -> str:
    """Train what a job describes; return its figures as text for a terminal.

    Raises:
        RecordError: Answers of people, and no run whose texts they are about.
        SeesawError: See `train`.
    """
    people = job.data.suffix.lower() == ".parquet"
    if people and job.run is None:
        raise RecordError(f"{job.data}: answers of people have no texts. Name their run with --run RUN.")
    data = people_training(job.data, RunTexts(cast(Path, job.run))) if people else read_training(job.data)
    report = train(data, job.encoder, out, RECIPES[job.recipe], folds=job.folds, seed=job.seed)
    return f"{_lines(report, 'accuracy' if classes_of(data) else 'within_one')}\nsaved in {out}"


def _lines(report: dict[str, Any], measure: str) -> str:
    if "figures" not in report:
        return f"{report['n']} rows; not measured (folds 0)"
    lines = [f"On unseen samples ({report['n']} rows, {report['folds']} grouped folds), {measure} with 95 % interval:"]
    for name, parts in report["figures"].items():
        for part, figures in parts.items():
            share = figures[measure]
            ends = interval(share["low"], share["high"], spec=".3f")
            lines.append(f"  {name:8} {part:24} {share['value']:.3f} {ends}  (n = {figures['n']})")
    return "\n".join(lines)
