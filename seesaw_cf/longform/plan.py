"""What the judge of a LEME run will be asked, before it is asked and before anything is written."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pyarrow as pa

from seesaw_cf.editors.control_names import planned
from seesaw_cf.errors import RecordError
from seesaw_cf.generation.types import Completion
from seesaw_cf.longform.annotate.annotate import annotate
from seesaw_cf.longform.cost import Counted
from seesaw_cf.longform.job import LemeJob
from seesaw_cf.longform.rate.by_name import LLM, find_annotator, judge_rater
from seesaw_cf.longform.rate.survey import survey, survey_samples
from seesaw_cf.longform.run import cases_of_job
from seesaw_cf.longform.tables import PASSAGES, PassageRow
from seesaw_cf.longform.write.claims import claim_pairs
from seesaw_cf.longform.write.passages import EditedCase, asks_of, passage_rows, read_records
from seesaw_cf.tables import read_table

_LIKE = "the "  # a word that is one token to most tokenizers, and four bytes


def judge_questions(job: LemeJob, out: Path) -> tuple[int, dict[int, list[str]]]:
    """Return every question to the judge: of the survey and, where it annotates, about claims.

    Args:
        job: The run.
        out: Its folder. Texts that are written there are asked about; where there are none yet, all that will be
            written are taken to be as long as they may be.

    Returns:
        How many pairs of passages are judged; and longest reply in tokens -> prompts.

    Raises:
        RecordError: The job has no judge, or no coupled records that it could rate.
        SeesawError: Records or examples cannot be read.
    """
    if not job.judge:
        raise RecordError("leme run --plan: no judge is named, and nothing else costs. Give --judge.")
    rows = {config: read_records(job.data, config) for config in job.configs}
    records, cases = cases_of_job(job, rows, lead=False)
    coupled = [record for record in records if "subject_entity" in record]
    if not coupled:
        raise RecordError(f"leme run --plan: {job.configs} has no coupled records; a judge rates no other texts.")
    file, case_ids = out / "passages.parquet", {record["case_id"] for record in coupled}
    written = read_table(file, PASSAGES) if file.exists() else _expected(job, cases)
    passages = written.filter([case in case_ids for case in written["case_id"].to_pylist()])
    samples, judge = survey_samples(passages, coupled), Counted(job.judge)
    survey(samples, judge_rater(job, judge))
    if job.annotator == LLM and (annotator := find_annotator(job, judge)) is not None:
        annotate(claim_pairs(passages, coupled), annotator)
    return len(samples), judge.prompts


def _expected(job: LemeJob, cases: list[EditedCase]) -> pa.Table:
    """Texts of full length; every one differs, as those of a model will."""
    texts, number = job.texts(), count(1)
    length = texts.sampling.max_new_tokens - 1
    rows: list[PassageRow] = []
    for editor in ("none", *planned(job.editors)):
        phase = "pre" if editor == "none" else "post"
        for case in cases:
            completions = [
                Completion(f"{next(number)} {_LIKE * length}") for _ in asks_of(case, texts.samples, job.seed)
            ]
            rows += passage_rows(case, editor, phase, texts.samples, job.seed, completions)
    return pa.Table.from_pylist(rows, PASSAGES)
