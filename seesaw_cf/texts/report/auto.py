"""The simple measures of LEME's Appendix I that need a model: NLI, BERTScore, perplexity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.leme_annotation import LABELS, sentences
from seesaw_cf.effects.leme_auto import PassageColumns, text_measures
from seesaw_cf.effects.reader import check_lengths
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.embed import Embedder, TextVectors

Columns = dict[str, Sequence[Any]]
"""Columns of `PassageColumns` by name: texts, and lists of texts."""


def bert_score(candidate: TextVectors, reference: TextVectors) -> tuple[float, float, float]:
    """Return precision, recall and F of two texts' token vectors, without idf weights and without rescaling.

    Source: Zhang et al. (2020), section 3: recall is the mean over reference tokens of the largest cosine with a
        candidate token, precision the same the other way round, F their harmonic mean.
    Deviates: last layer, special tokens left out, for any encoder; scores of different encoders do not compare.
    """
    cosine = candidate.tokens @ reference.tokens.T
    precision, recall = float(cosine.max(axis=1).mean()), float(cosine.max(axis=0).mean())
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


def bertscore_measures(columns: Columns, embedder: Embedder) -> dict[str, list[float]]:
    """Return BERTScore F where `text_measures` has ROUGE.

    Args:
        columns: The columns that `text_measures` takes, by name.
        embedder: Any encoder.

    Returns:
        "bertscore_..." -> value per row, NaN where a text is empty.

    Raises:
        RecordError: A column is missing, of another length or of another type.
    """
    _check_columns(columns)
    texts = [text for name in columns if not name.endswith("facts") for text in columns[name]]
    texts += [fact for name in columns if name.endswith("facts") for own in columns[name] for fact in own]
    texts += [
        part for name in columns if name.endswith("passage") for text in columns[name] for part in sentences(text)
    ]
    vectors = embedder.embed([text for text in texts if text.strip()])

    def alike(candidate: str, reference: str) -> float:
        return bert_score(vectors[candidate], vectors[reference])[2]

    return text_measures(PassageColumns(**columns), similarity=alike, prefix="bertscore")


def nli_score(probabilities: Floats) -> Floats:
    """Return P(supports) - P(contradicts), from -1 to 1.

    Args:
        probabilities: (n, 3) of `LABELS`.

    Raises:
        RecordError: Another shape.

    Source: LEME, Appendix I: entailment times 1 plus contradiction times -1.
    """
    values = np.asarray(probabilities)
    if values.ndim != 2 or values.shape[1] != len(LABELS):
        raise RecordError(f"nli_score: probabilities have shape {values.shape}, expected (n, {len(LABELS)}): {LABELS}.")
    return np.asarray(values[:, LABELS.index("supports")] - values[:, LABELS.index("contradicts")])


class Probable(Protocol):
    """An NLI model or a trained annotator."""

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return (n, 3) of `LABELS` for n pairs of premise and claim."""


def nli_measures(columns: Columns, annotator: Probable) -> dict[str, list[float]]:
    """Return the NLI score of each passage with the edit statement, and its mean over ground truths.

    Args:
        columns: The columns that `text_measures` takes, by name.
        annotator: An NLI model or a trained annotator.

    Returns:
        "nli_edit_subject", ... -> value per row, NaN where a text is missing.

    Raises:
        RecordError: A column is missing, of another length or of another type.
    """
    _check_columns(columns)
    questions: dict[str, list[list[tuple[str, str]]]] = {}
    for side in ("subject", "related"):
        passages = columns[f"{side}_passage"]
        questions[f"nli_edit_{side}"] = [_pairs(text, [fact]) for text, fact in zip(passages, columns["new_fact"])]
        questions[f"nli_factual_{side}"] = [_pairs(text, own) for text, own in zip(passages, columns[f"{side}_facts"])]
    pairs = list(dict.fromkeys(pair for rows in questions.values() for row in rows for pair in row))
    scores = dict(zip(pairs, nli_score(annotator.probabilities(pairs)))) if pairs else {}
    return {
        name: [float(np.mean([scores[pair] for pair in row])) if row else float("nan") for row in rows]
        for name, rows in questions.items()
    }


def _check_columns(columns: Columns) -> None:
    """Check that `columns` has what `text_measures` needs."""
    for name in (entry.name for entry in fields(PassageColumns)):
        if name not in columns:
            raise RecordError(f"columns: {name} is missing, expected those of PassageColumns.")
        for row in columns[name]:
            checks.each(f"columns: {name}", row, checks.text) if name.endswith("facts") else checks.text(
                f"columns: {name}", row
            )
    check_lengths(columns)


def _pairs(passage: str, facts: Sequence[str]) -> list[tuple[str, str]]:
    return [(passage, fact) for fact in facts if passage.strip() and fact.strip()]


def perplexities(texts: Sequence[str], model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[float]:
    """Return exp of the mean negative log-likelihood (nats) of each text's tokens after the first; NaN below two.

    Args:
        texts: Any; longer than the model's context, they are read up to there.
        model, tokenizer: A causal language model.

    Source: LEME, Appendix I (loss of a causal model).
    """
    limit = getattr(model.config, "max_position_embeddings", None) or 1024
    out = []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=limit)["input_ids"]
        if ids.shape[1] < 2:
            out.append(float("nan"))
            continue
        with torch.inference_mode():
            logits = model(input_ids=ids.to(model.device)).logits[0, :-1].float()
        loss = torch.nn.functional.cross_entropy(logits, ids[0, 1:].to(logits.device))
        out.append(float(loss.exp()))
    return out
