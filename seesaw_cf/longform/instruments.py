"""Raters and judges by the names that options give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.generation.cached import CachedGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import Generator
from seesaw_cf.longform.judges import Exemplar, LLMJudge
from seesaw_cf.longform.judges_text import LexicalRater, MiniLMRater
from seesaw_cf.longform.passages import read_records
from seesaw_cf.longform.raters import load_rater
from seesaw_cf.longform.survey import Question, Rater, survey_samples
from seesaw_cf.longform.survey_items import ITEMS
from seesaw_cf.longform.tables import PASSAGES, RATINGS
from seesaw_cf.pretrained import load_model
from seesaw_cf.tables import read_table

if TYPE_CHECKING:
    from seesaw_cf.longform.run import LemeJob

__all__ = ["exemplars", "find_raters"]


def find_raters(job: LemeJob, out: Path) -> list[Rater]:
    """The raters of a job; made first, so that a wrong name costs nothing.

    Raises:
        UnknownNameError: No such rater.
        SeesawError: An optional package is missing, or a model cannot be loaded.
    """
    raters = [_rater(name) for name in job.raters]
    return [*raters, _judge(job, out)] if job.judge else raters


def _rater(name: str) -> Rater:
    if name == "lexical":
        return LexicalRater()
    if name == "minilm":
        return MiniLMRater()
    if not Path(name).is_dir():
        raise unknown_name("rater (or folder of a trained one)", name, ("lexical", "minilm"))
    return load_rater(name)


def _judge(job: LemeJob, out: Path) -> LLMJudge:
    if job.judge_url:
        generator: Generator = OpenAIGenerator(job.judge_url, job.judge, job.judge_key_env)
    else:
        model, tokenizer = load_model(job.judge, device=job.device, dtype=job.dtype)
        generator = HFGenerator(model, tokenizer, rows=job.rows)
    pool: tuple[Exemplar, ...] = ()
    if job.judge_shots:
        if not job.judge_examples:
            raise RecordError(
                f"judge_shots is {job.judge_shots}, but judge_examples names no folder of rated passages."
            )
        folder = Path(job.judge_examples)
        records = [row for config in job.configs if config != "open_ended" for row in read_records(job.data, config)]
        pool = exemplars(
            read_table(folder / "passages.parquet", PASSAGES), read_table(folder / "ratings.parquet", RATINGS), records
        )
    cached = CachedGenerator(generator, out / "cache")
    return LLMJudge(cached, job.judge_shots, pool, tries=job.judge_tries, seed=job.seed)


def exemplars(
    passages: pa.Table, ratings: pa.Table, records: Sequence[Mapping[str, Any]], rater: str = "human"
) -> tuple[Exemplar, ...]:
    """Rated questions to show a judge.

    Args:
        passages: `tables.PASSAGES`.
        ratings: `tables.RATINGS`; only rows of raters whose name begins with `rater`, with whole ratings, are taken.
        records: Rows of the `coupled_*` config that the passages are of.
        rater: Beginning of the names of the raters to learn from.
    """
    items = {item.name: item for item in ITEMS}
    keys = ("editor", "case_id", "phase", "sample")
    samples = {tuple(getattr(s, key) for key in keys): s for s in survey_samples(passages, records)}
    found = []
    for row in ratings.to_pylist():
        sample = samples.get(tuple(row[key] for key in keys))
        if sample is None or row["status"] != "ok" or not row["rater"].startswith(rater):
            continue
        question = Question(items[row["item"]], sample)
        if not question.obstacle and float(row["rating"]).is_integer():
            found.append(Exemplar(question, int(row["rating"])))
    return tuple(found)
