"""Sequence classifiers that read premise and claim as a pair: zero-shot NLI models and encoders trained here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import chain
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
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.leme_annotation import LABELS, sentences
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.annotate import Judgement, Pair, temper, with_evidence
from seesaw_cf.texts.annotate.embed import load_encoder, longest_input, save_encoder
from seesaw_cf.texts.annotate.folder import read_settings, write_settings

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


def windows(premise: str, size: int) -> list[str]:
    """Return runs of `size` sentences, each starting a sentence after the last; 0 or a short premise = all of it."""
    rows = sentences(premise)
    if not size or len(rows) <= size:
        return [premise]
    return [" ".join(rows[start : start + size]) for start in range(len(rows) - size + 1)]


class EncoderAnnotator:
    """Annotator of (premise, claim) with a sequence classifier.

    Windows of a long premise are read apart: it contradicts as much as its most contradicting window, supports as much
    as its most supporting one, and is as neutral as the least neutral one; the three are scaled to sum to 1.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        order: Sequence[int],
        name: str,
        *,
        temperature: float = 1.0,
        window: int = 0,
        max_length: int | None = None,
    ):
        """Put the parts together; `load_nli`, `load_pair` and `fit_pair` make them.

        Args:
            model, tokenizer: Of transformers.
            order: See `label_order`.
            name: What tables call it.
            temperature: Divides the logits.
            window: Sentences per window; 0 = the whole premise, cut where the encoder ends.
            max_length: Tokens of a pair; None = as many as the encoder reads.
        """
        self.model, self.tokenizer, self.order, self.own_name = model.eval(), tokenizer, list(order), name
        self.temperature, self.window = temperature, window
        self.max_length = max_length or longest_input(model)

    @property
    def name(self) -> str:
        """The model's name and the size of windows."""
        return f"{self.own_name} window={self.window}" if self.window else self.own_name

    def _plain(self, pairs: Sequence[Pair]) -> Floats:
        logits = pair_logits(self.model, self.tokenizer, pairs, self.max_length)
        return np.asarray(logits.softmax(-1).numpy()[:, self.order], dtype=np.float64)

    def probabilities(self, pairs: Sequence[Pair]) -> Floats:
        """Return uncalibrated probabilities of `LABELS`, (n, 3)."""
        parts = [[(part, claim) for part in windows(premise, self.window)] for premise, claim in pairs]
        distinct = list(dict.fromkeys(chain(*parts)))
        by_pair = dict(zip(distinct, self._plain(distinct)))
        joined = [_joined(np.stack([by_pair[pair] for pair in rows])) for rows in parts]
        return np.array(joined).reshape(-1, len(LABELS))

    def classify(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return labels with calibrated probabilities; evidence: the sentences that carry the label when read alone."""
        return with_evidence(pairs, temper(self.probabilities(pairs), self.temperature), self._plain)

    def save(self, folder: Path, settings: JsonObject) -> None:
        """Write the model, its tokenizer and the settings into an existing folder."""
        save_encoder(self.model, self.tokenizer, folder)
        numbers = {name: getattr(self, name) for name in ("temperature", "window", "max_length")}
        write_settings(folder, {"kind": "pair", "name": self.own_name, **numbers, **settings})


def _joined(rows: Floats) -> Floats:
    joint = np.array([rows[:, 0].max(), rows[:, 1].min(), rows[:, 2].max()])
    return np.asarray(joint / joint.sum())


def load_nli(
    model: str, *, labels: Mapping[str, str] | None = None, window: int = 3, device: str = "cpu"
) -> EncoderAnnotator:
    """Return a zero-shot NLI model as annotator.

    Args:
        model: A folder or Hub id of a three-way sequence classifier.
        labels: What its labels mean, where their names do not say; see `label_order`.
        window: Sentences per window; 0 = the whole premise at once.
        device: A torch device.

    Raises:
        UnknownNameError: It cannot be loaded, or has other labels.

    Source: LEME, Appendix I.
    Deviates: premise and claim are a pair (the released code joins them into one string), in windows.
    """
    classifier, tokenizer = load_encoder(AutoModelForSequenceClassification, model, device)
    order = label_order(classifier.config, labels, model)
    return EncoderAnnotator(classifier, tokenizer, order, f"nli {Path(model).name}", window=window)


def load_pair(folder: Path, device: str = "cpu") -> EncoderAnnotator:
    """Read what `EncoderAnnotator.save` wrote.

    Raises:
        StorageError: The settings cannot be read.
        UnknownNameError: The encoder cannot be loaded.
    """
    settings = read_settings(folder)
    source = str(folder / "encoder")
    model, tokenizer = load_encoder(AutoModelForSequenceClassification, source, device, name=str(folder))
    order = label_order(model.config, name=str(folder))
    temperature, window, longest = settings["temperature"], settings["window"], settings["max_length"]
    return EncoderAnnotator(
        model, tokenizer, order, settings["name"], temperature=temperature, window=window, max_length=longest
    )
