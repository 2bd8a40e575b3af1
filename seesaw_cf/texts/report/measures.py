"""Measures of texts without people: those of LEME's appendix I, the short ones alone and those that need a model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of, shown, text
from seesaw_cf.base.errors import MissingExtraError, RecordError
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.leme_auto import STANDS_FOR, leme_auto, text_measures
from seesaw_cf.effects.texts import LABELS, generation_entropy, reference_score
from seesaw_cf.models.load import load_model
from seesaw_cf.report.frame import Row
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.classify import EncoderClassifier, load_encoder, longest_input
from seesaw_cf.texts.records import LongformRecord, request_of
from seesaw_cf.texts.report.rows import text_row
from seesaw_cf.texts.survey import SurveySample, survey_samples
from seesaw_cf.texts.tables import RunTexts, as_frame

log = logging.getLogger(__name__)

MEASURES = ("nli", "bertscore", "perplexity")
"""What needs a three-way NLI model, an encoder, or a causal language model."""
_OWN = ("subject", "guided", "free")  # texts about the edit's own subject
Pairs = Sequence[tuple[str, str]]


def run_measures(run: RunTexts, models: Sequence[str] = (), references: Path | None = None) -> pd.DataFrame:
    """Return every measure of the texts of a run: editor, case_id, asked, value.

    Args:
        run: The run.
        models: "NAME:MODEL" of measures that need a model.
        references: See `read_references`.
    """
    samples, texts = survey_samples(*run.couples), read_references(references) if references else {}
    parts = [simple_measures(samples), own_measures(run.passages, run.records, texts)]
    parts += [model_measures(given, samples, run.passages) for given in models]
    return pd.concat(parts, ignore_index=True)


def measure_correlations(run: RunTexts, ratings: pd.DataFrame) -> Iterator[Row]:
    """Yield how measures without a model go with what people say, over texts: LEME Table 19, appendix I."""
    samples, place = survey_samples(*run.couples), ["editor", "case_id", "phase", "sample"]
    mean = ratings.dropna(subset="rating").pivot_table(index=place, columns="item", values="rating")
    places = pd.MultiIndex.from_tuples([tuple(getattr(one, name) for name in place) for one in samples], names=place)
    columns = {str(item): own.tolist() for item, own in mean.reindex(places).items()}
    try:
        found: Any = leme_auto(passage_columns(samples), ratings=columns)
    except MissingExtraError as error:
        yield text_row("measure_correlation", Estimate(float("nan"), note=str(error)))
        return
    for name, own in found["correlations"].items():
        rho = Estimate(own["spearman"], **{key: own[key] for key in ("low", "high", "p", "n")})
        more = {"asked": name, "reference": own["item"], "scale": "rho", "n_edits": own["n_cases"]}
        yield text_row("measure_correlation", rho, **more)


def simple_measures(samples: Sequence[SurveySample]) -> pd.DataFrame:
    """Return ROUGE-1 and TF-IDF against what a passage should say, and n-gram entropy in bits.

    Args:
        samples: Pairs of passages; a passage that is missing gives NaN.

    Returns:
        editor, case_id, asked, value: one row per sample and measure; none when rouge_score is not installed (with a
        warning).

    Source: LEME, Appendix I.
    """
    try:
        found: Any = leme_auto(passage_columns(samples)) if samples else {"values": {}}
        return _rows(samples, found["values"])
    except MissingExtraError as error:
        log.warning("no simple measures: %s", error)
        return _rows(samples, {})


def passage_columns(samples: Sequence[SurveySample]) -> pd.DataFrame:
    """Return what the measures of pairs of passages compare."""
    names = {"case_id": "case_id", "subject": "subject", "related": "related_entity", "new_fact": "new_fact"}
    columns = {column: [getattr(sample, name) for sample in samples] for column, name in names.items()}
    for side, passage in (("subject", "main"), ("related", "related")):
        columns[f"{side}_passage"] = [sample.passages.get(passage, "") for sample in samples]
        columns[f"{side}_facts"] = [sample.old_facts.get(side, ()) for sample in samples]
    return pd.DataFrame(columns)


def _rows(samples: Sequence[SurveySample], measures: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    about = {name: [getattr(sample, name) for sample in samples] for name in ("editor", "case_id")}
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
    frame = frame[frame["about"].isin(_OWN)].assign(asked="generation_entropy")
    parts = [frame.assign(value=frame["text"].map(generation_entropy))]
    if references:
        target = {record["case_id"]: request_of(record).target_new.id for record in records}
        cases = frame.groupby(["editor", "case_id"])["text"].agg(" ".join).reset_index()
        texts = [references.get(target[case] or "", []) for case in cases["case_id"]]
        parts.append(cases.assign(asked="reference_score", value=reference_score(cases["text"].tolist(), texts)))
    return pd.concat(parts)[["editor", "case_id", "asked", "value"]]


def _written(passages: pa.Table) -> pd.DataFrame:
    frame = as_frame(passages)
    return frame[(frame["status"] == "ok") & (frame["text"].str.strip() != "")]


_SNIPPETS = '{"target_id": "Q142", "samples": [{"text": "France is ..."}]}'


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
        raise RecordError(f"measure {shown(given)}: no model, expected {name}:MODEL, a Hub id or folder.")
    if name == "perplexity":
        frame = _written(passages)
        nats = np.log(perplexities(frame["text"].tolist(), *load_model(model)))
        return frame[["editor", "case_id"]].assign(asked="log_perplexity", value=nats)
    columns = passage_columns(samples)
    if name == "nli":
        return _rows(samples, nli_measures(columns, EncoderClassifier(model).probabilities))
    return _rows(samples, bertscore_measures(columns, model))


def _by_pairs(
    columns: pd.DataFrame, prefix: str, score: Callable[[Pairs], Mapping[tuple[str, str], float]]
) -> dict[str, list[float]]:
    """Return the measures of LEME's appendix I by a score of all pairs of texts at once; NaN where it has none."""
    pairs: dict[tuple[str, str], float] = {}
    text_measures(columns, similarity=lambda *pair: pairs.setdefault(pair, 0.0))
    scores = score(list(pairs))
    values = text_measures(columns, similarity=lambda *pair: scores.get(pair, float("nan")), prefix=prefix)
    return {name: own for name, own in values.items() if name in STANDS_FOR}


def bertscore_measures(columns: pd.DataFrame, encoder: str) -> dict[str, list[float]]:
    """Return BERTScore F where `text_measures` has ROUGE, as "bertscore_..."; NaN where a text is empty."""

    def score(pairs: Pairs) -> dict[tuple[str, str], float]:
        vectors = token_vectors([text for pair in pairs for text in pair], encoder)
        return {(one, two): bert_score(vectors[one], vectors[two]) for one, two in pairs}

    return _by_pairs(columns, "bertscore", score)


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


Probabilities = Callable[[Pairs], Floats]
"""(n pairs of premise and claim) -> (n, 3) of `LABELS`."""


def nli_measures(columns: pd.DataFrame, probabilities: Probabilities) -> dict[str, list[float]]:
    """Return the NLI score of each passage with the edit statement, and its mean over recorded facts.

    The score is P(supports) - P(contradicts), from -1 to 1.

    Returns:
        "nli_edit_subject", ... -> value per row, NaN where a text is missing.

    Source: LEME, Appendix I: entailment times 1 plus contradiction times -1.
    """
    claims = {*columns["new_fact"], *columns["subject_facts"].explode(), *columns["related_facts"].explode()}

    def score(pairs: Pairs) -> dict[tuple[str, str], float]:
        asked = [pair for pair in pairs if pair[0] in claims]
        chances = probabilities([(passage, claim) for claim, passage in asked]) if asked else np.zeros((0, 3))
        return dict(
            zip(asked, (chances[:, LABELS.index("supports")] - chances[:, LABELS.index("contradicts")]).tolist())
        )

    return _by_pairs(columns, "nli", score)


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
