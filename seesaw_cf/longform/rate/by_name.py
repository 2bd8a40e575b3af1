"""Raters and judges by the names that options give them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.generation.cached import CachedGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import Generator
from seesaw_cf.longform.annotate.annotate import Annotator
from seesaw_cf.longform.annotate.by_name import load_annotator
from seesaw_cf.longform.annotate.llm import GUIDELINES, LLMAnnotator
from seesaw_cf.longform.rate.baselines import LexicalRater, MiniLMRater
from seesaw_cf.longform.rate.from_people import answered_questions
from seesaw_cf.longform.rate.judge import INTRO, Exemplar, LLMJudge
from seesaw_cf.longform.rate.survey import Rater
from seesaw_cf.longform.rate.trained import load_rater
from seesaw_cf.longform.tables import PASSAGES, RATINGS
from seesaw_cf.longform.wording import read_wording
from seesaw_cf.longform.write.passages import read_records
from seesaw_cf.longform.write.records import LongformRecord
from seesaw_cf.models.load import load_model
from seesaw_cf.tables import read_table

if TYPE_CHECKING:
    from seesaw_cf.longform.job import LemeJob

LLM = "llm"  # the annotator that asks the judge


def judge_of(job: LemeJob, out: Path) -> Generator | None:
    """Yield the model that judges, its replies kept in the run folder; None when no judge is named.

    Raises:
        ServiceError: The server's key is missing.
        SeesawError: An optional package is missing, or a model cannot be loaded.
    """
    if not job.judge:
        return None
    if job.judge_url:
        api = OpenAIGenerator(job.judge_url, job.judge, job.judge_key_env)
        api.check()
        return CachedGenerator(api, out / "cache")
    model, tokenizer = load_model(job.judge, device=job.device, dtype=job.dtype)
    return CachedGenerator(HFGenerator(model, tokenizer, rows=job.rows), out / "cache")


def find_annotator(job: LemeJob, judge: Generator | None) -> Annotator | None:
    """Return the annotator of a job; "llm" asks the judge.

    Raises:
        RecordError: "llm" without a judge.
        StorageError, UnknownNameError: See `load_annotator`.
    """
    if job.annotator != LLM:
        return load_annotator(job.annotator) if job.annotator else None
    if judge is None:
        raise RecordError(
            "--annotator llm: no model was named to ask. Give --judge (and --judge-url, --judge-key-env for a server)."
        )
    guidelines = read_wording(job.judge_wording or None).guidelines or GUIDELINES
    return LLMAnnotator(judge, tries=job.judge_tries, seed=job.seed, guidelines=guidelines)


def find_raters(job: LemeJob, judge: Generator | None) -> list[Rater]:
    """Return the raters of a job; made first, so that a wrong name costs nothing.

    Args:
        job: Names them.
        judge: From `judge_of`.

    Raises:
        UnknownNameError: No such rater.
        SeesawError: An optional package is missing, or a model cannot be loaded.
    """
    raters = [_rater(name) for name in job.raters]
    return [*raters, judge_rater(job, judge)] if judge is not None else raters


def _rater(name: str) -> Rater:
    if name == "lexical":
        return LexicalRater()
    if name == "minilm":
        return MiniLMRater()
    if not Path(name).is_dir():
        raise unknown_name("rater (or folder of a trained one)", name, ("lexical", "minilm"))
    return load_rater(name)


def judge_rater(job: LemeJob, generator: Generator) -> LLMJudge:
    """Return the judge of a job as a rater.

    Args:
        job: Its examples, tries and words.
        generator: Who answers.

    Raises:
        RecordError: Examples are wanted and there are none of people.
        StorageError: A file cannot be read.
    """
    pool: tuple[Exemplar, ...] = ()
    if job.judge_shots:
        if not job.judge_examples:
            raise RecordError(
                f"judge_shots is {job.judge_shots}, but judge_examples names no folder of rated passages."
            )
        folder = Path(job.judge_examples)
        records = [row for config in job.configs if config != "open_ended" for row in read_records(job.data, config)]
        ratings = read_table(folder / "ratings.parquet", RATINGS)
        people = any(name.startswith("human") for name in ratings.column("rater").to_pylist())
        if not people and (folder / "manifest.json").exists():
            raise RecordError(
                f"{folder}: the ratings are those of a run's raters, none begins with 'human'. Give a folder with "
                "people's ratings.parquet, as `seesaw-cf annotate export` writes it, and their passages.parquet."
            )
        passages = read_table(folder / "passages.parquet", PASSAGES)
        pool = exemplars(passages, ratings, records, "human" if people else "")
    intro = read_wording(job.judge_wording or None).survey or INTRO
    return LLMJudge(generator, job.judge_shots, pool, tries=job.judge_tries, seed=job.seed, intro=intro)


def exemplars(
    passages: pa.Table, ratings: pa.Table, records: Sequence[LongformRecord], rater: str = "human"
) -> tuple[Exemplar, ...]:
    """Rated questions to show a judge.

    Args:
        passages: `tables.PASSAGES`.
        ratings: `tables.RATINGS`; only whole ratings by raters with a name that begins with `rater` are taken.
        records: Rows of the `coupled_*` config that the passages are of.
        rater: Beginning of the names of the raters to learn from.
    """
    return tuple(answered_questions(passages, ratings, records, rater))
