"""Sequence classifiers that read premise and claim as a pair: zero-shot NLI models and encoders trained here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoModelForSequenceClassification,
    BatchEncoding,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from seesaw_cf.base.errors import UnknownNameError
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.annotate import Judgement, Pair, with_evidence
from seesaw_cf.texts.annotate.embed import load_encoder, longest_input
from seesaw_cf.texts.annotate.learned import remember

_BATCH = 32
# How models name the three answers, lower case.
_NAMES = {
    "supports": ("supports", "support", "entailment", "entail", "entails", "true"),
    "neutral": ("neutral", "not enough info", "nei", "unknown"),
    "contradicts": ("contradicts", "contradict", "contradiction", "refutes", "refuted", "false"),
}


def label_order(config: PretrainedConfig, labels: Mapping[str, str] | None = None, name: str = "") -> list[int]:
    """Return which output of a model stands for each of `LABELS`.

    Args:
        config: Of the model; its `id2label` is read.
        labels: The model's own label -> one of `LABELS`, for models that name them otherwise.
        name: Of the model, for the error.

    Returns:
        The output's index per label.

    Raises:
        UnknownNameError: The model has other labels.
    """
    by_name = {key.lower(): value for key, value in (labels or {}).items()}
    meanings = by_name or {alias: label for label, aliases in _NAMES.items() for alias in aliases}
    labelled: Mapping[int, str] | Mapping[str, str] = config.id2label or {}
    places = {meanings.get(str(own).lower()): int(index) for index, own in labelled.items()}
    if set(places) != set(LABELS):
        raise UnknownNameError(
            f"model {name!r} answers {sorted(map(str, labelled.values()))}, expected three labels that mean "
            f"supports (entailment), neutral and contradicts (contradiction). Take a three-way NLI model, or say what "
            "they mean: labels={'LABEL_0': 'supports', 'LABEL_1': 'neutral', 'LABEL_2': 'contradicts'}."
        )
    return [places[label] for label in LABELS]


def encode_pairs(tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int) -> BatchEncoding:
    """Tokenise pairs so that the claim survives: the premise is cut, or both where the claim alone is too long."""
    room = max_length - tokenizer.num_special_tokens_to_add(pair=True)
    short = {"add_special_tokens": False, "truncation": True, "max_length": room}
    longest = max(len(tokenizer(claim, **short)["input_ids"]) for _, claim in pairs)
    cut = "only_first" if longest < room // 2 else "longest_first"
    premises, claims = [premise for premise, _ in pairs], [claim for _, claim in pairs]
    encoding: BatchEncoding = tokenizer(
        premises, claims, truncation=cut, max_length=max_length, padding=True, return_tensors="pt"
    )
    return encoding


def pair_logits(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int
) -> torch.Tensor:
    """Return the outputs of a classifier for pairs, (n, outputs) in float32 on the CPU."""
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]) + len(pairs[i][1]))
    out = torch.zeros(len(pairs), int(model.config.num_labels or 0))
    for start in range(0, len(order), _BATCH):
        rows = order[start : start + _BATCH]
        encoded = encode_pairs(tokenizer, [pairs[i] for i in rows], max_length).to(model.device)
        with torch.inference_mode():
            out[rows] = model(**encoded).logits.float().cpu()
    return out


def weights_digest(model: PreTrainedModel) -> str:
    """Return the first eight digits of a hash over all weights."""
    digest = hashlib.sha256()
    for _, weights in sorted(model.state_dict().items()):
        digest.update(weights.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:8]


class EncoderAnnotator:
    """Annotator of (premise, claim) with a sequence classifier; the premise is cut where the encoder ends."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, order: Sequence[int], name: str):
        """Put the parts together; `load_classifier` makes them.

        Args:
            model, tokenizer: Of transformers.
            order: See `label_order`.
            name: What tables call it.
        """
        self.model, self.tokenizer, self.order, self.name = model.eval(), tokenizer, list(order), name

    def probabilities(self, pairs: Sequence[Pair]) -> Floats:
        """Return probabilities of `LABELS`, (n, 3)."""
        logits = pair_logits(self.model, self.tokenizer, pairs, longest_input(self.model))
        return np.asarray(logits.softmax(-1).numpy()[:, self.order], dtype=np.float64)

    def classify(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return labels with probabilities; evidence: the sentences that carry the label when read alone."""
        return with_evidence(pairs, self.probabilities(pairs), self.probabilities)


def load_classifier(model: str, *, labels: Mapping[str, str] | None = None, device: str = "cpu") -> EncoderAnnotator:
    """Return a trained classifier of claims, or an NLI model as it is, as annotator.

    Args:
        model: A folder or Hub id of a three-way sequence classifier.
        labels: What its labels mean, where their names do not say; see `label_order`.
        device: A torch device.

    Raises:
        UnknownNameError: It cannot be loaded, or has other labels.

    Source: LEME, section 3.3 and Appendix I.
    Deviates: premise and claim are a pair (the released code joins them into one string).
    """
    classifier, tokenizer = load_encoder(AutoModelForSequenceClassification, model, device)
    order = label_order(classifier.config, labels, model)
    name = f"{Path(model).name} {weights_digest(classifier)}"
    return remember(EncoderAnnotator(classifier, tokenizer, order, name), Path(model))
