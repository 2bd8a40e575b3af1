"""The simple measures of LEME's Appendix I that need a model: NLI, BERTScore, perplexity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from seesaw_cf.effects.leme_auto import text_measures
from seesaw_cf.longform.annotate import LABELS, sentences
from seesaw_cf.longform.annotators_embed import Embedder, TextVectors
from seesaw_cf.stats.bootstrap import Floats

__all__ = ["bert_score", "bertscore_measures", "nli_measures", "nli_score", "perplexities"]


def bert_score(candidate: TextVectors, reference: TextVectors) -> tuple[float, float, float]:
    """Precision, recall and F of two texts' token vectors, without idf weights and without rescaling.

    Source: Zhang et al. (2020), section 3: recall is the mean over reference tokens of the largest cosine with a
        candidate token, precision the same the other way round, F their harmonic mean.
    Deviates: last layer, special tokens left out, whatever the encoder; scores of different encoders do not compare.
    """
    cosine = candidate.tokens @ reference.tokens.T
    precision, recall = float(cosine.max(axis=1).mean()), float(cosine.max(axis=0).mean())
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


def bertscore_measures(columns: dict[str, Sequence[Any]], embedder: Embedder) -> dict[str, list[float]]:
    """BERTScore F where `text_measures` has ROUGE.

    Args:
        columns: The columns that `text_measures` takes, by name.
        embedder: Any encoder.

    Returns:
        "bertscore_..." -> value per row, NaN where a text is empty.
    """
    texts = [text for name in columns if not name.endswith("facts") for text in columns[name]]
    texts += [fact for name in columns if name.endswith("facts") for own in columns[name] for fact in own]
    texts += [
        part for name in columns if name.endswith("passage") for text in columns[name] for part in sentences(text)
    ]
    vectors = embedder.embed([text for text in texts if text.strip()])

    def alike(candidate: str, reference: str) -> float:
        return bert_score(vectors[candidate], vectors[reference])[2]

    return text_measures(**columns, similarity=alike, prefix="bertscore")


def nli_score(probabilities: Floats) -> Floats:
    """P(supports) - P(contradicts), from -1 to 1.

    Args:
        probabilities: (n, 3) of `LABELS`.

    Source: LEME, Appendix I: entailment times 1 plus contradiction times -1.
    """
    return np.asarray(probabilities[:, LABELS.index("supports")] - probabilities[:, LABELS.index("contradicts")])


def nli_measures(columns: dict[str, Sequence[Any]], annotator: Any) -> dict[str, list[float]]:
    """The NLI score of each passage with the edit statement, and its mean over ground truths.

    Args:
        columns: The columns that `text_measures` takes, by name.
        annotator: With `probabilities(pairs)`: an NLI model or a trained annotator.

    Returns:
        "nli_edit_subject", ... -> value per row, NaN where a text is missing.
    """
    asked: dict[str, list[list[tuple[str, str]]]] = {}
    for side in ("subject", "related"):
        passages = columns[f"{side}_passage"]
        asked[f"nli_edit_{side}"] = [_pairs(text, [fact]) for text, fact in zip(passages, columns["new_fact"])]
        asked[f"nli_factual_{side}"] = [_pairs(text, own) for text, own in zip(passages, columns[f"{side}_facts"])]
    pairs = list(dict.fromkeys(pair for rows in asked.values() for row in rows for pair in row))
    scores = dict(zip(pairs, nli_score(annotator.probabilities(pairs)))) if pairs else {}
    return {
        name: [float(np.mean([scores[pair] for pair in row])) if row else float("nan") for row in rows]
        for name, rows in asked.items()
    }


def _pairs(passage: str, facts: Sequence[str]) -> list[tuple[str, str]]:
    return [(passage, fact) for fact in facts if passage.strip() and fact.strip()]


def perplexities(texts: Sequence[str], model: Any, tokenizer: Any) -> list[float]:
    """exp of the mean negative log-likelihood (nats) of each text's tokens after the first; NaN below two tokens.

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
