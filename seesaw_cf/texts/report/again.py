"""The papers' tables of a finished run once more, with what a run alone does not have: the short form of the same
edits, measures that need a model, reference texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.checks import one_of, shown, text
from seesaw_cf.base.errors import RecordError, RunFolderError
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.text import read_json
from seesaw_cf.effects.texts import ngram_entropy, reference_score
from seesaw_cf.models.load import load_model
from seesaw_cf.texts.annotate.embed import Embedder
from seesaw_cf.texts.annotate.encoder import load_classifier
from seesaw_cf.texts.rate.survey import SurveySample
from seesaw_cf.texts.report.auto import bertscore_measures, nli_measures, perplexities
from seesaw_cf.texts.report.page import write_leme_report
from seesaw_cf.texts.report.simple import measure_rows, passage_columns, simple_metrics
from seesaw_cf.texts.report.tables import longform_sections
from seesaw_cf.texts.report.values import as_frame
from seesaw_cf.texts.runs import RunTexts, finished_manifest
from seesaw_cf.texts.write.passages import LongformRecord, request_of

MEASURES: Mapping[str, str] = {
    "nli": "a three-way NLI model: passages against the edit and the recorded facts",
    "bertscore": "an encoder: BERTScore where ROUGE-1 is taken",
    "perplexity": "a causal language model: its mean loss on every passage, in nats per token",
}
# Texts about the edit's own subject.
_OWN = ("subject", "guided", "free")


def report_leme(
    folder: Path,
    out: Path | None = None,
    *,
    scores: Path | None = None,
    measures: Sequence[str] = (),
    references: Path | None = None,
    pictures: bool = False,
) -> str:
    """Write the tables of a finished run of `seesaw-cf leme run` with more in them.

    Args:
        folder: The run.
        out: Where the report goes; `FOLDER/report` when None, in place of the run's own.
        scores: A run folder of `seesaw-cf audit` over the same edits by the same model: the short form, kinds of edits,
            and how far the short form predicts the long one.
        measures: "NAME:MODEL", NAME out of `MEASURES`.
        references: Texts about new targets, for the reference score; see `read_references`.
        pictures: See `write_leme_report`.

    Returns:
        Plain text for a terminal.

    Raises:
        RunFolderError: A folder is not that of a finished run, or the two are of other models.
        RecordError: No edit is in both runs, or the records differ from those of the run.
        SeesawError: A model or file that cannot be used.
    """
    named = [_measure(measure) for measure in measures]
    run = RunTexts(folder)
    short = _short(scores, run.manifest) if scores is not None else None
    texts = read_references(references) if references is not None else {}
    if short is not None:
        _check_shared(short, run.passages)
    parts = [simple_metrics(run.samples), _qualities(run.passages, run.records, texts)]
    parts += [_MEASURED[name](model, run.samples, run.passages) for name, model in named]
    simple = pd.concat([part for part in parts if part is not None and len(part)], ignore_index=True)
    factual = {record["case_id"] for record in run.coupled if record["kind"] == "factual"}
    tables = run.passages, run.ratings, run.annotations
    sections = longform_sections(*tables, scores=short, simple=simple, factual=factual, edits=run.edits)
    return write_leme_report(folder, out or folder / "report", sections, pictures=pictures)


def _measure(given: str) -> tuple[str, str]:
    name, _, model = given.partition(":")
    one_of("measure", name, MEASURES)
    if not model:
        raise RecordError(
            f"measure {shown(given)}: no model, expected {name}:MODEL, a Hub id or folder ({MEASURES[name]})."
        )
    return name, model


def _short(folder: Path, long: Mapping[str, Any]) -> pa.Table:
    """Read the score table of a run, and check that its model is that of the long texts."""
    short = finished_manifest(folder, "scores.parquet", "run")
    for name in ("fingerprint", "dtype"):
        one, other = (found.get("model", {}).get(name) for found in (long, short))
        if one != other:
            raise RunFolderError(
                f"{folder}: its model has the {name} {other}, that of the long texts {one}; expected one model. "
                "Run `seesaw-cf audit` with the same --model, --revision and --dtype."
            )
    return read_table(folder / "scores.parquet", SCORES)


def _check_shared(short: pa.Table, passages: pa.Table) -> None:
    """Refuse a run without a text written after one of its edits."""
    edits = [set(zip(table["editor"].to_pylist(), table["case_id"].to_pylist())) for table in (short, passages)]
    if not edits[0] & edits[1]:
        editors, cases = (sorted({edit[place] for edit in edits[0]}) for place in (0, 1))
        raise RecordError(
            f"scores: no edit by the same editor is in both runs; the scores are of {editors} and {len(cases)} cases "
            f"from {cases[:1]}. Run `seesaw-cf audit` with --config, --limit, --seed and --editor of the long texts."
        )


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


def _qualities(
    passages: pa.Table, records: Sequence[LongformRecord], references: Mapping[str, list[str]]
) -> pd.DataFrame:
    """Return generation entropy of every text about the subject and reference score of each case's texts together."""
    frame = _texts(passages)
    frame = frame[frame["passage"].isin(_OWN)]
    entropy = [2 / 3 * ngram_entropy(text, 2) + 4 / 3 * ngram_entropy(text, 3) for text in frame["text"]]
    parts = [frame[["method", "case_id"]].assign(metric="generation_entropy", value=entropy)]
    if references:
        about = {record["case_id"]: request_of(record).target_new.id for record in records}
        cases = frame.groupby(["method", "case_id"], sort=True)["text"].agg(" ".join).reset_index()
        texts = [references.get(about[case] or "", []) for case in cases["case_id"]]
        score = reference_score(cases["text"].tolist(), texts)
        parts.append(cases[["method", "case_id"]].assign(metric="reference_score", value=score))
    return pd.concat(parts, ignore_index=True)


def _texts(passages: pa.Table) -> pd.DataFrame:
    frame = as_frame(passages)
    return frame[(frame["status"] == "ok") & (frame["text"].str.strip() != "")]


def _perplexity(model: str, samples: Sequence[SurveySample], passages: pa.Table) -> pd.DataFrame:
    frame = _texts(passages)
    nats = np.log(perplexities(frame["text"].tolist(), *load_model(model)))
    return frame[["method", "case_id"]].assign(metric="log_perplexity", value=nats)


_MEASURED: Mapping[str, Callable[[str, Sequence[SurveySample], pa.Table], pd.DataFrame]] = {
    "nli": lambda name, samples, _: measure_rows(
        samples, nli_measures(asdict(passage_columns(samples)), load_classifier(name))
    ),
    "bertscore": lambda name, samples, _: measure_rows(
        samples, bertscore_measures(asdict(passage_columns(samples)), Embedder(name))
    ),
    "perplexity": _perplexity,
}
