"""Measures of texts without people: those of LEME's appendix I, the short ones alone and those that need a model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of, shown, text
from seesaw_cf.base.errors import MissingExtraError, RecordError
from seesaw_cf.base.text import read_json
from seesaw_cf.effects.leme_auto import text_measures
from seesaw_cf.effects.texts import LABELS, finite_mean, ngram_entropy, reference_score
from seesaw_cf.models.load import load_model
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.classify import EncoderClassifier, load_encoder, longest_input
from seesaw_cf.texts.records import LongformRecord, request_of
from seesaw_cf.texts.report.rows import as_frame
from seesaw_cf.texts.survey import SurveySample

log = logging.getLogger(__name__)

MEASURES: Mapping[str, str] = {
    "nli": "a three-way NLI model: passages against the edit and the recorded facts",
    "bertscore": "an encoder: BERTScore where ROUGE-1 is taken",
    "perplexity": "a causal language model: its mean loss on every passage, in nats per token",
}
_OWN = ("subject", "guided", "free")  # texts about the edit's own subject


def simple_measures(samples: Sequence[SurveySample]) -> pd.DataFrame:
    """Return ROUGE-1 against what a passage should say, and n-gram entropy in bits.

    Args:
        samples: Pairs of passages; a passage that is missing gives NaN.

    Returns:
        editor, case_id, asked, value: one row per sample and measure; none when rouge_score is not installed (with a
        warning).

    Source: LEME, Appendix I.
    """
    columns = passage_columns(samples)
    try:
        measures = text_measures(columns)
    except MissingExtraError as error:
        log.warning("no simple measures: %s", error)
        return _rows(samples, {})
    for size in (2, 3):
        measures[f"entropy_{size}_grams"] = [
            ngram_entropy(own, size) if own.strip() else float("nan") for own in columns.subject_passage
        ]
    return _rows(samples, measures)


def passage_columns(samples: Sequence[SurveySample]) -> pd.DataFrame:
    """Return what the measures of pairs of passages compare."""
    main, related = ([sample.passages.get(side, "") for sample in samples] for side in ("main", "related"))
    columns: dict[str, Sequence[object]] = {
        "case_id": [sample.case_id for sample in samples],
        "subject": [sample.subject for sample in samples],
        "related": [sample.related_entity for sample in samples],
        "subject_passage": main,
        "related_passage": related,
        "new_fact": [sample.new_fact for sample in samples],
        "subject_facts": [sample.old_facts.get("subject", ()) for sample in samples],
        "related_facts": [sample.old_facts.get("related", ()) for sample in samples],
    }
    return pd.DataFrame(columns)


def _rows(samples: Sequence[SurveySample], measures: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    about = {"editor": [sample.editor for sample in samples], "case_id": [sample.case_id for sample in samples]}
    parts = [pd.DataFrame({**about, "asked": name, "value": values}) for name, values in measures.items()]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*about, "asked", "value"])


def own_measures(
    passages: pa.Table, records: Sequence[LongformRecord], references: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return generation entropy of every text about the subject, and the reference score of each case's texts together.

    Args:
        passages: Rows of `seesaw_cf.texts.tables.PASSAGES`.
        records: Of their cases.
        references: See `read_references`; none = no reference score.

    Source: MEMIT appendix C.2, equation 27 and Reference Score.
    """
    frame = _written(passages)
    frame = frame[frame["about"].isin(_OWN)]
    entropy = [2 / 3 * ngram_entropy(own, 2) + 4 / 3 * ngram_entropy(own, 3) for own in frame["text"]]
    parts = [frame[["editor", "case_id"]].assign(asked="generation_entropy", value=entropy)]
    if references:
        target = {record["case_id"]: request_of(record).target_new.id for record in records}
        cases = frame.groupby(["editor", "case_id"], sort=True)["text"].agg(" ".join).reset_index()
        texts = [references.get(target[case] or "", []) for case in cases["case_id"]]
        score = reference_score(cases["text"].tolist(), texts)
        parts.append(cases[["editor", "case_id"]].assign(asked="reference_score", value=score))
    return pd.concat(parts, ignore_index=True)


def _written(passages: pa.Table) -> pd.DataFrame:
    frame = as_frame(passages)
    return frame[(frame["status"] == "ok") & (frame["text"].str.strip() != "")]


def read_references(file: Path) -> dict[str, list[str]]:
    """Read reference texts: identifier of an entity -> texts about it.

    Args:
        file: JSON list of {"target_id", "samples": [{"text"}, ...]}, as CounterFact's `attribute_snippets.json`.

    Raises:
        RecordError: Anything else.
        StorageError: The file cannot be read.
    """
    out: dict[str, list[str]] = {}
    for row in read_json(file, list, expected=_SNIPPETS):
        try:
            texts = [text("reference", sample["text"]) for sample in row["samples"]]
            out.setdefault(text("target_id", row["target_id"]), []).extend(texts)
        except (KeyError, TypeError, RecordError) as error:
            raise RecordError(f"{file}: got {shown(row)}, expected {_SNIPPETS}. Correct or drop the row.") from error
    return out


_SNIPPETS = '{"target_id": "Q142", "samples": [{"text": "France is ..."}]}'


# Measures that need a model.


def model_measures(given: str, samples: Sequence[SurveySample], passages: pa.Table) -> pd.DataFrame:
    """Return a measure that needs a model, as `simple_measures` does.

    Args:
        given: "NAME:MODEL", NAME out of `MEASURES`, MODEL a folder or Hub id.
        samples: Pairs of passages.
        passages: All texts.

    Raises:
        UnknownNameError: No such measure or model.
        RecordError: No model is named.
    """
    name, _, model = given.partition(":")
    one_of("measure", name, MEASURES)
    if not model:
        raise RecordError(
            f"measure {shown(given)}: no model, expected {name}:MODEL, a Hub id or folder ({MEASURES[name]})."
        )
    if name == "perplexity":
        frame = _written(passages)
        nats = np.log(perplexities(frame["text"].tolist(), *load_model(model)))
        return frame[["editor", "case_id"]].assign(asked="log_perplexity", value=nats)
    columns = passage_columns(samples)
    if name == "nli":
        return _rows(samples, nli_measures(columns, EncoderClassifier(model).probabilities))
    return _rows(samples, bertscore_measures(columns, model))


def token_vectors(texts: Sequence[str], encoder: str, device: str = "cpu") -> dict[str, Floats]:
    """Return the vectors of each text's tokens, of length 1; texts longer than the encoder takes are seen up to there.

    Args:
        texts: Any.
        encoder: A folder or a Hub id.
        device: A torch device.

    Raises:
        UnknownNameError: The encoder cannot be loaded.
    """
    model, tokenizer = load_encoder(AutoModel, encoder, device)
    how = {"truncation": True, "max_length": longest_input(model), "return_tensors": "pt"}
    out = {}
    for words in dict.fromkeys(texts):
        encoded = tokenizer(words, return_special_tokens_mask=True, **how).to(model.device)
        special = encoded.pop("special_tokens_mask")[0].bool().cpu()
        with torch.inference_mode():
            states = model.eval()(**encoded).last_hidden_state[0].float().cpu()
        own = states[special if special.all() else ~special].numpy().astype(np.float64)
        out[words] = own / np.maximum(np.linalg.norm(own, axis=-1, keepdims=True), 1e-12)
    return out


def bert_score(candidate: Floats, reference: Floats) -> float:
    """Return F of two texts' token vectors, without idf weights and without rescaling.

    Source: Zhang et al. (2020), section 3: recall is the mean over reference tokens of the largest cosine with a
        candidate token, precision the same the other way round, F their harmonic mean.
    Deviates: last layer, special tokens left out, for any encoder; scores of different encoders do not compare.
    """
    cosine = candidate @ reference.T
    precision, recall = float(cosine.max(axis=1).mean()), float(cosine.max(axis=0).mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def bertscore_measures(columns: pd.DataFrame, encoder: str) -> dict[str, list[float]]:
    """Return BERTScore F where `text_measures` has ROUGE, as "bertscore_..."; NaN where a text is empty."""
    texts: dict[str, None] = {}
    text_measures(columns, similarity=lambda *pair: float(texts.update(dict.fromkeys(pair)) or 0))
    vectors = token_vectors(list(texts), encoder)
    return text_measures(
        columns, similarity=lambda one, two: bert_score(vectors[one], vectors[two]), prefix="bertscore"
    )


def nli_score(probabilities: Floats) -> Floats:
    """Return P(supports) - P(contradicts), from -1 to 1, of (n, 3) probabilities of `LABELS`.

    Source: LEME, Appendix I: entailment times 1 plus contradiction times -1.
    """
    values = np.asarray(probabilities)
    return np.asarray(values[:, LABELS.index("supports")] - values[:, LABELS.index("contradicts")])


Probabilities = Callable[[Sequence[tuple[str, str]]], Floats]
"""(n pairs of premise and claim) -> (n, 3) of `LABELS`."""


def nli_measures(columns: pd.DataFrame, probabilities: Probabilities) -> dict[str, list[float]]:
    """Return the NLI score of each passage with the edit statement, and its mean over recorded facts.

    Returns:
        "nli_edit_subject", ... -> value per row, NaN where a text is missing.
    """
    edit = [[fact] for fact in columns.new_fact]
    sides = {
        "subject": (columns.subject_passage, columns.subject_facts),
        "related": (columns.related_passage, columns.related_facts),
    }
    pairs = {
        f"nli_{about}_{side}": [
            [(text, fact) for fact in own if text.strip() and fact.strip()] for text, own in zip(passages, asked)
        ]
        for side, (passages, facts) in sides.items()
        for about, asked in (("edit", edit), ("factual", facts))
    }
    asked = list(dict.fromkeys(pair for rows in pairs.values() for row in rows for pair in row))
    scores = dict(zip(asked, nli_score(probabilities(asked)))) if asked else {}
    return {name: [finite_mean(scores[pair] for pair in row) for row in rows] for name, rows in pairs.items()}


def perplexities(texts: Sequence[str], model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[float]:
    """Return exp of the mean negative log-likelihood (nats) of each text's tokens after the first; NaN below two.

    Args:
        texts: Any; longer than the model's context, they are read up to there.
        model, tokenizer: A causal language model.

    Source: LEME, Appendix I (loss of a causal model).
    """
    limit = getattr(model.config, "max_position_embeddings", None) or 1024
    out = []
    for own in texts:
        ids = tokenizer(own, return_tensors="pt", truncation=True, max_length=limit)["input_ids"].to(model.device)
        with torch.inference_mode():
            out.append(float(model(input_ids=ids, labels=ids).loss.exp()) if ids.shape[1] > 1 else float("nan"))
    return out
