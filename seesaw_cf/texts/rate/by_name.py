"""Raters and judges by the names that options give them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.tables import read_table
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.generation.cached import CachedGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import Generator
from seesaw_cf.models.load import load_model
from seesaw_cf.texts.annotate.annotate import Annotator
from seesaw_cf.texts.annotate.by_name import load_annotator
from seesaw_cf.texts.annotate.llm import GUIDELINES, LLMAnnotator
from seesaw_cf.texts.rate.from_people import answered_questions
from seesaw_cf.texts.rate.judge import INTRO, Exemplar, LLMJudge
from seesaw_cf.texts.rate.survey import Rater
from seesaw_cf.texts.rate.trained import load_rater
from seesaw_cf.texts.tables import PASSAGES, RATINGS
from seesaw_cf.texts.wording import read_wording
from seesaw_cf.texts.write.passages import coupled_records, read_records

if TYPE_CHECKING:
    from seesaw_cf.texts.job import LemeJob


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
        job: Names the folders of trained raters.
        judge: From `judge_of`.

    Raises:
        StorageError: No trained rater in a folder.
    """
    raters: list[Rater] = [load_rater(folder) for folder in job.raters]
    return [*raters, judge_rater(job, judge)] if judge is not None else raters


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
        records = coupled_records([row for config in job.configs for row in read_records(job.data, config)])
        ratings = read_table(folder / "ratings.parquet", RATINGS)
        people = any(name.startswith("human") for name in ratings.column("rater").to_pylist())
        if not people and (folder / "manifest.json").exists():
            raise RecordError(
                f"{folder}: the ratings are those of a run's raters, none begins with 'human'. Give a folder with "
                "people's ratings.parquet, as `seesaw-cf people import` writes it, and their passages.parquet."
            )
        passages = read_table(folder / "passages.parquet", PASSAGES)
        pool = tuple(answered_questions(passages, ratings, records, "human" if people else ""))
    intro = read_wording(job.judge_wording or None).survey or INTRO
    return LLMJudge(generator, job.judge_shots, pool, tries=job.judge_tries, seed=job.seed, intro=intro)
