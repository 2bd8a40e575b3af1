"""Who rates the texts of a run, and the tables of what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from transformers import AutoConfig

from seesaw_cf.base.errors import RecordError, UnknownNameError
from seesaw_cf.base.files import dump_json
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.base.text import read_json
from seesaw_cf.effects.instruments import read_instruments
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.generation.cached import CachedGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import Generator
from seesaw_cf.models.load import load_model
from seesaw_cf.models.names import EMBEDDED
from seesaw_cf.texts.claims import Claims, answered_claims, claim_pairs
from seesaw_cf.texts.classify import load_classifier, load_rater
from seesaw_cf.texts.job import RATED, RateJob
from seesaw_cf.texts.judge import Instrument, Judge, Rater, digest, rate
from seesaw_cf.texts.lexical import Lexical
from seesaw_cf.texts.pairs import Flaws, flaw_questions, sample_pairs
from seesaw_cf.texts.released import read_pairs
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.survey import Survey, answered_questions, survey_questions
from seesaw_cf.texts.tables import ANNOTATIONS, CALLS, FLAWS, RATINGS

_SCHEMAS = {"ratings": RATINGS, "annotations": ANNOTATIONS, "flaws": FLAWS, "swapped": FLAWS, "calls": CALLS}


def find_raters(job: RateJob, out: Path) -> list[Rater]:
    """Return the raters of a job; found first, so that a wrong name costs nothing.

    Args:
        job: Names them.
        out: Folder in which replies of judges are kept.

    Raises:
        UnknownNameError: No such model.
        ServiceError: The server's key is missing.
        RecordError: Answered examples are wanted, and there are none.
    """
    return [_rater(job, name, out) for name in job.raters]


def _rater(job: RateJob, name: str, out: Path) -> Rater:
    if name == Lexical.name:
        return Lexical()
    if not job.base_url and name not in EMBEDDED:
        try:
            config = AutoConfig.from_pretrained(name)
        except (OSError, ValueError) as error:
            why = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise UnknownNameError(
                f"rater {name!r} could not be loaded ({type(error).__name__}: {why}). Expected 'lexical', the folder "
                "or Hub id of a classifier or a language model, or with --base-url the name of a model there."
            ) from error
        if any("SequenceClassification" in kind for kind in config.architectures or ()):
            device = "cpu" if job.device == "auto" else job.device
            trained = hasattr(config, "survey_items")
            return load_rater(name, device) if trained else load_classifier(name, device=device)
    if job.base_url:
        generator: Generator = OpenAIGenerator(job.base_url, name, job.key_env, chat=True)
        generator.check()  # type: ignore[attr-defined]
    else:
        model, tokenizer = load_model(name, device=job.device, dtype=job.dtype)
        generator = HFGenerator(model, tokenizer, chat=bool(tokenizer.chat_template))
    examples = _examples(job.examples, job.shots)
    texts: set[str] = set()
    instruments: tuple[Instrument[Any], ...] = (Survey(), Claims())
    for instrument in instruments:
        texts.update(text for question, _ in examples.get(instrument.name, ()) for text in instrument.texts(question))
    wording = read_instruments(job.wording).sha256
    return Judge(
        CachedGenerator(generator, out / "cache"), job.shots, examples, frozenset(map(digest, texts)),
        job.temperature, seed=job.seed, wording=wording,
    )  # fmt: skip


def _examples(places: Sequence[Path], shots: int) -> dict[str, list[tuple[Any, Any]]]:
    """Return questions that people answered: the first place is their run, the others have their tables."""
    if not shots:
        return {}
    if len(places) < 2:
        raise RecordError(f"{shots} answered examples are wanted. Name a run and people's answers: --examples RUN DIR.")
    run, *folders = places
    texts = RunTexts(run)
    examples: dict[str, list[tuple[Any, Any]]] = {"survey": [], "claims": []}
    for folder in folders:
        if (file := folder / "ratings.parquet").exists():
            examples["survey"] += answered_questions(texts.samples, read_table(file, RATINGS))
        if (file := folder / "annotations.parquet").exists():
            pairs = claim_pairs(texts.coupled_passages, texts.coupled)
            examples["claims"] += answered_claims(pairs, read_table(file, ANNOTATIONS))
    if not any(examples.values()):
        raise RecordError(
            f"{', '.join(map(str, folders))}: no answers about texts of {run}. Give folders that `people import` wrote."
        )
    return examples


def rate_run(job: RateJob, raters: Sequence[Rater], out: Path) -> str:
    """Ask raters about the texts of a run, and write the tables.

    Args:
        job: What is rated, and how.
        raters: Of `find_raters`.
        out: Folder of the tables. Rows of other raters that are there stay.

    Returns:
        One line per table.

    Raises:
        RecordError: A rater cannot do what is asked, or the run has no texts for it.
    """
    words, run, file = read_instruments(job.wording), RunTexts(job.run), job.run.is_file()
    pairs, _ = read_pairs(job.run if file else job.run / "passages.parquet")
    coupled = not file and bool(run.coupled)
    present = {"survey": coupled, "claims": coupled, "flaws": bool(pairs)}
    tables: dict[str, list[pa.Table]] = {name: [] for name in _SCHEMAS}
    for rater in raters:
        able = [kind for kind in rater.kinds if kind in (job.what or RATED) and present[kind]]
        if not able:
            raise RecordError(
                f"{job.run}: nothing that {rater.name!r} can rate. It does {', '.join(rater.kinds)}; "
                f"the run has texts for {', '.join(kind for kind in RATED if present[kind]) or 'nothing'}."
            )
        for kind in able:
            if kind == "flaws":
                first, again = flaw_questions(
                    sample_pairs(pairs, job.limit, job.seed), words, job.seed, job.duplicates, job.protocol
                )
                rows, calls = rate(Flaws(words, job.protocol), [*first, *again], rater)
                tables["swapped"].append(rows.slice(len(first)))
                tables["flaws"].append(rows.slice(0, len(first)))
            elif kind == "survey":
                rows, calls = rate(Survey(words), survey_questions(run.samples, words), rater)
                tables["ratings"].append(rows)
            else:
                rows, calls = rate(Claims(words), claim_pairs(run.coupled_passages, run.coupled), rater)
                tables["annotations"].append(rows)
                _write_facts(out, rater)
            tables["calls"].append(calls)
    filled = {name: parts for name, parts in tables.items() if any(part.num_rows for part in parts)}
    return "\n".join(_write(out / f"{name}.parquet", parts, _SCHEMAS[name]) for name, parts in filled.items())


def _write_facts(out: Path, rater: Rater) -> None:
    """Keep the name of a classifier, and the report of its training, empty without one."""
    file = Path(rater.source) / "report.json"
    report = read_json(file, any_number=True) if rater.source and file.is_file() else {}
    dump_json(out / "annotator.json", {"name": rater.name, "report": report})


def _write(file: Path, parts: Sequence[pa.Table], schema: pa.Schema) -> str:
    """Write rows beside those of other raters that are there."""
    column = "annotator" if "annotator" in schema.names else "rater"
    table = pa.concat_tables(parts)
    if file.exists():
        before = read_table(file, schema)
        names = pa.array(sorted(set(table[column].to_pylist())), pa.string())
        table = pa.concat_tables([before.filter(pc.invert(pc.is_in(before[column], names))), table])
    write_table(file, table)
    statuses = table["status"].to_pylist()
    return f"{file}: {table.num_rows} rows, {len(statuses) - statuses.count('ok')} without an answer."
