"""Encoders that classify claims or rate passages: trained here, or NLI models as they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BatchEncoding,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from seesaw_cf.base.errors import StorageError, UnknownNameError
from seesaw_cf.base.fields import checked
from seesaw_cf.base.text import read_json
from seesaw_cf.effects.texts import LABELS, sentences
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.claims import Classifier, Judgement, Lexical
from seesaw_cf.texts.judge import Answer, Instrument, Rater, TextQuestion

Pair = tuple[str, str]
"""Two texts for an encoder; of a claim its passage and itself."""
Fitted = tuple[PreTrainedModel, PreTrainedTokenizerBase]
MAX_TOKENS = 512
LEARNED = "learned.json"
"""File of a trained model: the digests of its training passages."""
_BATCH = 32
# How models name the three answers, lower case.
_NAMES = {
    "supports": ("supports", "support", "entailment", "entail", "entails", "true"),
    "neutral": ("neutral", "not enough info", "nei", "unknown"),
    "contradicts": ("contradicts", "contradict", "contradiction", "refutes", "refuted", "false"),
}
_MIDDLE, _SPREAD = 4.0, 3.0  # ratings 1 to 7 are learned as -1 to 1


def load_encoder(kind: Any, encoder: str, device: str = "cpu", **options: Any) -> Fitted:
    """Return an encoder in float32, and its tokenizer.

    Args:
        kind: The class of transformers that reads it, such as `AutoModel`.
        encoder: A folder or a Hub id.
        device: A torch device.
        **options: Of `from_pretrained`.

    Raises:
        UnknownNameError: It cannot be loaded.
    """
    with loading("encoder", encoder, "a folder with a transformers encoder and its tokenizer, or an id on the Hub"):
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        return kind.from_pretrained(encoder, dtype=torch.float32, **options).to(device), tokenizer


@contextmanager
def loading(kind: str, name: str, expected: str) -> Iterator[None]:
    """Say which model could not be loaded from the Hub or a folder, and what was expected."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"
        raise UnknownNameError(f"{kind} {name!r} could not be loaded ({why}). Expected {expected}.") from error


def longest_input(model: PreTrainedModel) -> int:
    """Return the most tokens that an encoder is given: 512, or its positions where they are fewer."""
    longest = getattr(model.config, "max_position_embeddings", MAX_TOKENS)
    return min(MAX_TOKENS, longest if longest > 0 else MAX_TOKENS)


def encode_pairs(tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int) -> BatchEncoding:
    """Tokenise pairs so that the second text survives: the first is cut, or both where the second alone is too long."""
    room = max_length - tokenizer.num_special_tokens_to_add(pair=True)
    short = {"add_special_tokens": False, "truncation": True, "max_length": room}
    longest = max(len(tokenizer(second, **short)["input_ids"]) for _, second in pairs)
    cut = "only_first" if longest < room // 2 else "longest_first"
    encoding: BatchEncoding = tokenizer(
        *map(list, zip(*pairs)), truncation=cut, max_length=max_length, padding=True, return_tensors="pt"
    )
    return encoding


def pair_logits(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int = MAX_TOKENS
) -> torch.Tensor:
    """Return the outputs of a classifier for pairs, (n, outputs) in float32 on the CPU."""
    length = min(max_length, longest_input(model))
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]) + len(pairs[i][1]))
    out = torch.zeros(len(pairs), int(model.config.num_labels or 0))
    for start in range(0, len(order), _BATCH):
        rows = order[start : start + _BATCH]
        encoded = encode_pairs(tokenizer, [pairs[i] for i in rows], length).to(model.device)
        with torch.inference_mode():
            out[rows] = model(**encoded).logits.float().cpu()
    return out


def label_order(config: PretrainedConfig, labels: Mapping[str, str] | None = None, name: str = "") -> list[int]:
    """Return which output of a model stands for each of `LABELS`.

    Args:
        config: Of the model; its `id2label` is read.
        labels: The model's own label -> one of `LABELS`, for models that name them otherwise.
        name: Of the model, for the error.

    Raises:
        UnknownNameError: The model has other labels.
    """
    aliases = {alias: label for label, own in _NAMES.items() for alias in own}
    meanings = {name.lower(): label for name, label in (labels or aliases).items()}
    labelled: Mapping[int, str] | Mapping[str, str] = config.id2label or {}
    places = {meanings.get(str(own).lower()): int(index) for index, own in labelled.items()}
    if set(places) != set(LABELS):
        raise UnknownNameError(
            f"model {name!r} answers {sorted(map(str, labelled.values()))}, expected three labels that mean "
            f"supports (entailment), neutral and contradicts (contradiction). Take a three-way NLI model, or say what "
            "they mean: labels={'LABEL_0': 'supports', 'LABEL_1': 'neutral', 'LABEL_2': 'contradicts'}."
        )
    return [places[label] for label in LABELS]


class _Encoder(Rater):
    """A sequence classifier that was trained here, or comes from elsewhere."""

    def __init__(self, source: str, device: str, prefix: str = "") -> None:
        model, self.tokenizer = load_encoder(AutoModelForSequenceClassification, source, device)
        self.model = model.eval()
        weights = hashlib.sha256()
        for _, tensor in sorted(model.state_dict().items()):
            weights.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        self.name = f"{prefix}{Path(source).name} {weights.hexdigest()[:8]}"
        file = Path(source) / LEARNED
        self.source = source
        self.learned = frozenset(read_json(file, list)) if file.exists() else frozenset()


class EncoderClassifier(_Encoder, Classifier):
    """Classifier of claims with an encoder; the premise is cut where the encoder ends."""

    def __init__(self, source: str, labels: Mapping[str, str] | None = None, device: str = "cpu") -> None:
        """Load it; see `load_classifier`."""
        super().__init__(source, device)
        self.order = label_order(self.model.config, labels, source)

    def probabilities(self, pairs: Sequence[Pair]) -> Floats:
        """Return probabilities of `LABELS`, (n, 3)."""
        logits = pair_logits(self.model, self.tokenizer, pairs)
        return np.asarray(logits.softmax(-1).numpy()[:, self.order], dtype=np.float64)

    def classify(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return labels with probabilities; evidence: the sentences that carry the label when read alone."""
        chances = self.probabilities(pairs)
        labels = [LABELS[place] for place in chances.argmax(axis=1)]
        parts = [sentences(premise) if label != "neutral" else [] for (premise, _), label in zip(pairs, labels)]
        alone = list(dict.fromkeys((row, claim) for rows, (_, claim) in zip(parts, pairs) for row in rows))
        by_question = dict(zip(alone, self.probabilities(alone) if alone else ()))
        judgements = []
        for (_, claim), label, row, rows in zip(pairs, labels, chances.tolist(), parts, strict=True):
            carried = [float(by_question[part, claim][LABELS.index(label)]) for part in rows]
            least = min(0.5, max(carried, default=0.5))
            evidence = tuple(part for part, p in zip(rows, carried) if p >= least)
            judgements.append(Judgement(label, tuple(row), evidence))
        return judgements


class EncoderRater(_Encoder):
    """Rater of the survey: one encoder with one regression head for all items, each item as text."""

    kinds = ("survey",)

    def __init__(self, source: str, device: str = "cpu") -> None:
        """Load it; see `load_rater`."""
        super().__init__(source, device, "trained ")
        self.items = tuple(getattr(self.model.config, "survey_items", None) or ())
        if not self.items:
            raise StorageError(f"{source}: no rater. Expected a folder made by `seesaw-cf texts train`.")

    def predict(self, pairs: Sequence[Pair]) -> Floats:
        """Return ratings of pairs of `seesaw_cf.texts.survey.rater_texts`, from 1 to 7, not rounded."""
        return from_output(pair_logits(self.model, self.tokenizer, pairs)[:, 0].double().numpy())

    def answer(self, instrument: Instrument, questions: Sequence[TextQuestion]) -> list[Answer]:
        """Return one answer per question; items that the rater was not trained on get a status."""
        known = [question.row["item"] in self.items for question in questions]
        ratings = iter(self.predict([question.pair for question, own in zip(questions, known) if own]).tolist())
        unknown = Answer(status=f"the rater was trained on {', '.join(self.items)} only")
        return [Answer({"rating": next(ratings)}) if own else unknown for own in known]


def to_output(rating: pd.Series) -> pd.Series:
    """Return what an encoder learns of a rating."""
    return (rating - _MIDDLE) / _SPREAD


def from_output(outputs: Floats) -> Floats:
    """Return ratings from 1 to 7, not rounded."""
    return np.asarray(np.clip(_MIDDLE + _SPREAD * outputs, 1.0, 7.0))


@checked
def load_classifier(
    name: str | os.PathLike[str], *, labels: Mapping[str, str] | None = None, device: str = "cpu"
) -> Lexical | EncoderClassifier:
    """Load a classifier of claims.

    Args:
        name: "lexical", or the folder or Hub id of a three-way sequence classifier: one that `seesaw-cf texts train`
            made, or an NLI model as it is.
        labels: What its labels mean, where their names do not say; see `label_order`.
        device: A torch device.

    Raises:
        UnknownNameError: It cannot be loaded, or has other labels.

    Source: LEME, section 3.3 and Appendix I.
    Deviates: premise and claim are a pair (the released code joins them into one string).
    """
    return Lexical() if str(name) == Lexical.name else EncoderClassifier(str(name), labels, device)


@checked
def load_rater(folder: str | os.PathLike[str], device: str = "cpu") -> EncoderRater:
    """Read a rater of the survey that `seesaw-cf texts train` made.

    Raises:
        StorageError: It is another kind of model.
        UnknownNameError: It cannot be loaded.
    """
    return EncoderRater(str(folder), device)
