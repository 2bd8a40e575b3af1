"""Fine-tuning an encoder that reads premise and claim as a pair, on transformers' Trainer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForSequenceClassification, EvalPrediction, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import above_zero, field_types
from seesaw_cf.base.errors import need
from seesaw_cf.effects.leme_annotation import LABELS, macro_f1
from seesaw_cf.texts.annotate.annotate import fit_temperature
from seesaw_cf.texts.annotate.embed import load_encoder, longest_input
from seesaw_cf.texts.annotate.encoder import EncoderAnnotator, encode_pairs, weights_digest
from seesaw_cf.texts.train.annotations import AnnotationData
from seesaw_cf.texts.train.scores import grouped_folds

Target = tuple[tuple[str, str], float]  # a pair, and the class or number that it should give


class Outputs(Protocol):
    """What a classifier gives for a batch."""

    logits: Tensor


@dataclass(frozen=True, slots=True)
class EncoderRecipe:
    """How an encoder is fine-tuned.

    Attributes:
        learning_rate, weight_decay: Of AdamW.
        epochs: At most.
        batch_size, accumulation: Rows per step and steps per update.
        warmup: Updates of rising learning rate; below 1 a share of all updates.
        max_length: Tokens of a pair while training.
        frozen_layers: Layers, counted from the embeddings, that stay as they are; -1 = not even the embeddings do.
        class_weights: Weigh classes alike in the loss.
        patience: Stop after this many epochs without a better validation score; 0 = train all epochs, keep the last.
        half: 16-bit floats, on a GPU only.
        window: Sentences read at a time after training; see `EncoderAnnotator`.
    """

    learning_rate: float = 1e-4
    epochs: int = 5
    batch_size: int = 16
    weight_decay: float = 0.01
    warmup: float = 0.1
    accumulation: int = 1
    max_length: int = 256
    frozen_layers: int = 3
    class_weights: bool = True
    patience: int = 2
    half: bool = False
    window: int = 3

    def __post_init__(self) -> None:
        """Refuse numbers that nothing can be trained with.

        Raises:
            RecordError: A field of another type, or a count or rate that is not above 0.
        """
        field_types(self)
        above_zero(self, ("learning_rate", "epochs", "batch_size", "accumulation", "max_length"))


# "leme-deberta": LEME, Appendix B.3 (learning rate, batch, epochs, decay, warm-up, accumulation, fp16); give it
# --encoder microsoft/deberta-v3-large. The paper used no validation part and no class weights.
PRESETS = {
    "small": EncoderRecipe(),
    "whole": EncoderRecipe(window=0, max_length=512),
    "leme-deberta": EncoderRecipe(
        learning_rate=6e-6, epochs=20, batch_size=1, warmup=1000, accumulation=4, max_length=512, frozen_layers=-1,
        class_weights=False, patience=0, half=True, window=0,
    ),
}  # fmt: skip


def validation_part(groups: Sequence[int], seed: int) -> NDArray[np.bool_]:
    """Mark about a quarter of the rows, whole groups, for early stopping and calibration; none of one group alone."""
    folds = min(4, len(set(groups)))
    if folds < 2:
        return np.zeros(len(groups), dtype=bool)
    return np.asarray(np.array(grouped_folds(groups, folds, seed)) == 0)


def fresh_encoder(
    encoder: str, frozen_layers: int, seed: int, **options: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return an encoder with a new classification head, and its tokenizer.

    Args:
        encoder: "minilm", a folder or a Hub id.
        frozen_layers: See `EncoderRecipe`.
        seed: Of the head's weights.
        **options: Of the model's config, such as `num_labels`.

    Raises:
        UnknownNameError: It cannot be loaded.
    """
    torch.manual_seed(seed)
    kind = AutoModelForSequenceClassification
    model, tokenizer = load_encoder(kind, encoder, ignore_mismatched_sizes=True, **options)
    fixed = () if frozen_layers < 0 else ("embeddings.", *(f"layer.{i}." for i in range(frozen_layers)))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(part in name for part in fixed))
    return model, tokenizer


def fit_trainer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Target],
    validation: Sequence[Target],
    recipe: EncoderRecipe,
    seed: int,
    loss: Callable[[Outputs, Tensor], Tensor],
    score: Callable[[EvalPrediction], dict[str, float]],
) -> None:
    """Train in place; with a validation part and patience, the best epoch's weights are kept.

    Args:
        model, tokenizer: What to train.
        rows, validation: Pairs with their targets; whole numbers for classes.
        recipe: How.
        seed: Of the order and dropout.
        loss: (outputs, labels) -> scalar tensor.
        score: Predictions of the validation part -> {"score": higher is better}.

    Raises:
        MissingExtraError: accelerate is missing; install `seesaw_cf[longform]`.
    """
    from transformers import EarlyStoppingCallback, PrinterCallback, Trainer, TrainingArguments

    class Own(Trainer):
        def compute_loss(self, model: Any, inputs: Any, return_outputs: Any = False, *_: Any, **__: Any) -> Any:
            labels = inputs.pop("labels")
            outputs = model(**inputs)
            value = loss(outputs, labels)
            return (value, {"logits": outputs.logits}) if return_outputs else value

    def collate(batch: Sequence[Target]) -> dict[str, Tensor]:
        encoded = encode_pairs(tokenizer, [pair for pair, _ in batch], min(recipe.max_length, longest_input(model)))
        return {**encoded, "labels": torch.tensor([target for _, target in batch])}

    stopping = bool(recipe.patience and validation)
    with tempfile.TemporaryDirectory() as folder:
        with need("accelerate", extra="longform", what_for="training"):
            arguments = TrainingArguments(
                output_dir=folder, num_train_epochs=recipe.epochs, learning_rate=recipe.learning_rate,
                per_device_train_batch_size=recipe.batch_size, per_device_eval_batch_size=32, seed=seed,
                gradient_accumulation_steps=recipe.accumulation, weight_decay=recipe.weight_decay,
                warmup_steps=recipe.warmup, fp16=recipe.half and torch.cuda.is_available(), report_to=[],
                eval_strategy="epoch" if stopping else "no", save_strategy="epoch" if stopping else "no",
                load_best_model_at_end=stopping, metric_for_best_model="score", save_total_limit=1,
                save_only_model=True, remove_unused_columns=False, logging_strategy="no", disable_tqdm=True,
                label_names=["labels"], dataloader_pin_memory=False,
            )  # fmt: skip
        trainer = Own(
            model=model, args=arguments, train_dataset=list(rows), eval_dataset=list(validation) or None,
            data_collator=collate, compute_metrics=score if stopping else None,
            callbacks=[EarlyStoppingCallback(recipe.patience)] if stopping else [],
        )  # fmt: skip
        trainer.model_accepts_loss_kwargs = False  # the loss is a mean per step, to be divided by the accumulation
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    model.eval()


def fit_pair(data: AnnotationData, encoder: str, recipe: EncoderRecipe, seed: int = 0) -> EncoderAnnotator:
    """Fine-tune an encoder on pairs of premise and claim.

    A quarter of the rows, whole groups, stops the training and sets the temperature; it is never trained on.

    Args:
        data: What to train on.
        encoder: "minilm", a folder or a Hub id.
        recipe: How.
        seed: Of everything random.

    Raises:
        RecordError: A class has no row outside the validation part.
        UnknownNameError: The encoder cannot be loaded.
        SeesawError: accelerate is missing.

    Source: LEME, section 3.3 and Appendix B.4.
    Deviates: premise and claim are a pair with the premise cut, not one text that cuts the claim; at most 512
        tokens.
    """
    left_out = validation_part(data.groups, seed)
    train, validation = data.split(left_out)
    train.check_classes("training part beside the validation part")
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    model, tokenizer = fresh_encoder(encoder, recipe.frozen_layers, seed, num_labels=len(LABELS), **names)
    counts = np.bincount(train.labels, minlength=len(LABELS))
    weights = len(train.labels) / (len(LABELS) * counts) if recipe.class_weights else np.ones(len(LABELS))
    weight = torch.tensor(weights, dtype=torch.float32)

    def loss(outputs: Outputs, labels: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(outputs.logits.float(), labels, weight=weight.to(labels.device))

    parts = [list(zip(part.pairs, part.labels)) for part in (train, validation)]
    fit_trainer(model, tokenizer, parts[0], parts[1], recipe, seed, loss, _f1)
    name = f"pair {Path(encoder).name} {weights_digest(model)}"
    longest = min(recipe.max_length, longest_input(model))
    annotator = EncoderAnnotator(
        model.cpu(), tokenizer, range(len(LABELS)), name, window=recipe.window, max_length=longest
    )
    if validation.labels:
        annotator.temperature = fit_temperature(np.array(validation.labels), annotator.probabilities(validation.pairs))
    return annotator


def _f1(predictions: EvalPrediction) -> dict[str, float]:
    confusion = np.zeros((len(LABELS), len(LABELS)))
    np.add.at(confusion, (predictions.label_ids, np.argmax(predictions.predictions, axis=-1)), 1.0)
    return {"score": float(macro_f1(confusion))}
