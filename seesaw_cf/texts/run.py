"""LEME from end to end: passages before and after edits, ratings, annotations, a report."""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import cast

import numpy as np
import torch

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import EditError, RecordError
from seesaw_cf.base.files import dump_json
from seesaw_cf.base.tables import write_table
from seesaw_cf.base.types import Case, JsonObject
from seesaw_cf.base.urls import hide_secrets
from seesaw_cf.base.versions import versions
from seesaw_cf.editors import load_editor
from seesaw_cf.editors.control_names import planned, split_control
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.generation.cached import CachedGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.models.corpus import corpus_facts, corpus_of
from seesaw_cf.models.editor import LearnsFromCases
from seesaw_cf.models.identity import model_facts
from seesaw_cf.models.load import load_model
from seesaw_cf.run.make_editors import editor_settings, make_editors, moments_facts
from seesaw_cf.run.manifest import RunManifest, public_options
from seesaw_cf.run.prepare import check_texts
from seesaw_cf.texts.annotate.annotate import annotate
from seesaw_cf.texts.annotate.by_name import measured
from seesaw_cf.texts.job import LemeJob
from seesaw_cf.texts.rate.by_name import find_annotator, find_raters, judge_of
from seesaw_cf.texts.rate.rating import rate
from seesaw_cf.texts.rate.survey import survey_samples
from seesaw_cf.texts.report.write import report_run
from seesaw_cf.texts.write.claims import claim_pairs
from seesaw_cf.texts.write.demonstrations import NONE_LEFT, pool_digest, spare_cases
from seesaw_cf.texts.write.generation_settings import Generation
from seesaw_cf.texts.write.passages import (
    EditedCase,
    LongformRecord,
    coupled_cases,
    coupled_records,
    open_ended_cases,
    read_records,
)
from seesaw_cf.texts.write.writing import ApiWriter, LocalWriter, PassageRun, Writer

_TEMPLATE = 64  # tokens that a chat template may add to a prompt

_log = logging.getLogger(__name__)


def run_leme(job: LemeJob, out: Path, *, progress: bool = True, pictures: bool = False) -> str:
    """Run a job into a folder, continuing it when it was interrupted.

    Args:
        job: What to do.
        out: The run folder: passages.parquet, edits.parquet, ratings.parquet, calls.parquet, annotations.parquet,
            and below report/ the report.
        progress: Show progress bars.
        pictures: See `seesaw_cf.texts.report.write.report_run`.

    Returns:
        Plain text for a terminal.

    Raises:
        SeesawError: Any of the package's errors; what was finished is kept.
    """
    job = replace(job, editors=planned(job.editors))
    texts = job.texts()
    _check_editors(job)
    _check_keys(job)
    judge = judge_of(job, out)
    annotator, raters = find_annotator(job, judge), find_raters(job, judge)
    rows = {config: read_records(job.data, config) for config in job.configs}
    records, cases = cases_of_job(job, rows, lead=False)
    spare = spare_cases([row for group in rows.values() for row in group], records)
    writer, model = _writer(job, out, spare, [prompt.text for case in cases for prompt in case.prompts])
    if not model["chat"]:
        records, cases = cases_of_job(job, rows, lead=True)
    manifest = _manifest(job, texts, records, model)
    passages = PassageRun(
        writer, job.editors, cases, manifest, out, texts.samples, texts.sampling, job.seed, job.block, progress
    ).run()
    coupled = coupled_records(records)
    samples = survey_samples(passages, coupled)
    rate(out, raters, samples, manifest)
    annotations = annotate(claim_pairs(passages, coupled), annotator) if annotator is not None else None
    if annotations is not None:
        write_table(out / "annotations.parquet", annotations)
        dump_json(out / "annotator.json", measured(job.annotator))
    return report_run(out, pictures=pictures)


def cases_of_job(
    job: LemeJob, everything: Mapping[str, Sequence[LongformRecord]], lead: bool
) -> tuple[list[LongformRecord], list[EditedCase]]:
    """Return the records, and the cases that texts are written for, config by config.

    Args:
        job: Which of them.
        everything: Config -> its records.
        lead: Prompts end with the entity's name.

    Raises:
        RecordError: A case is in two configs, or nothing is to be written.
    """
    records: list[LongformRecord] = []
    cases: list[EditedCase] = []
    for rows in everything.values():
        config_cases = (
            open_ended_cases(rows) if rows and "use" in rows[0]
            else coupled_cases(rows, job.wording, lead=lead, relationship=job.relationship)
        )  # fmt: skip
        if job.limit is not None and job.limit < len(config_cases):
            chosen = sorted(np.random.default_rng(job.seed).permutation(len(config_cases))[: job.limit])
            config_cases = [config_cases[index] for index in chosen]
        ids = {case.case_id for case in config_cases}
        if clash := ids & {case.case_id for case in cases}:
            raise RecordError(f"configs {job.configs}: case {min(clash)} is in two of them. Run them apart.")
        records += [row for row in rows if row["case_id"] in ids]
        cases += config_cases
    if not cases:
        raise RecordError(f"{job.data} {job.configs}: nothing to write. Check --data, --config and --limit.")
    return records, cases


def _check_editors(job: LemeJob) -> None:
    """Refuse names that would be found wrong only after texts were written."""
    one_of("value of chat", job.chat, ("auto", "yes", "no"))
    for name, fields in (job.editor_config or {}).items():
        names = {part for editor in job.editors for part in split_control(editor) if part}
        one_of("editor of this run", name, names)
        if not isinstance(fields, Mapping):
            raise RecordError(f'editor config: {name} is {fields!r:.80}, expected an object such as {{"layers": [3]}}.')
    for name in job.editors:
        load_editor(split_control(name)[0] or name)
        if job.base_url and name != "ike":
            raise EditError(f"{job.model}: editor {name!r} changes weights, which an API does not give. Use ike.")


def _check_keys(job: LemeJob) -> None:
    """Ask for the keys of both servers before a model is loaded for anything."""
    for url, name, key_env in ((job.base_url, job.model, job.key_env), (job.judge_url, job.judge, job.judge_key_env)):
        if url and name:
            OpenAIGenerator(url, name, key_env).check()


def _writer(job: LemeJob, out: Path, spare: Sequence[Case], prompts: Sequence[str]) -> tuple[Writer, JsonObject]:
    """Return the model that writes, and its entry in the manifest."""
    if job.base_url:
        api = OpenAIGenerator(job.base_url, job.model, job.key_env, chat=job.chat != "no")
        return ApiWriter(CachedGenerator(api, out / "cache")), {"id": api.name, "chat": api.chat}
    corpus = corpus_of(job.corpus, job.model, job.corpus_limit, job.seed)
    model, tokenizer = load_model(
        job.model, device=job.device, dtype=job.dtype, revision=job.revision, trust_remote_code=job.trust_remote_code
    )
    chat = job.chat == "yes" or (job.chat == "auto" and bool(tokenizer.chat_template))
    overrides = editor_settings(job.editor_config, job.editors, job.moments, job.seed)
    if "ike" in job.editors:
        longest = max(len(tokenizer(prompt)["input_ids"]) for prompt in prompts)
        room = longest + _TEMPLATE + job.texts().sampling.max_new_tokens
        overrides["ike"] = {"room": room} | overrides.get("ike", {})
    editors = make_editors(job.editors, model, overrides, corpus, spare)
    check_texts(editors, corpus is not None)
    pools = {name: editor.pool for name, editor in editors.items() if isinstance(editor, LearnsFromCases)}
    if pools.get("ike") == ():
        _log.warning(NONE_LEFT)
    facts = {
        **model_facts(job.model, model, tokenizer, job.revision, job.dtype),
        "chat": chat,
        "editors": {
            name: asdict(editor.config) | ({"demonstrations": pool_digest(pools[name])} if name in pools else {})
            for name, editor in editors.items()
        },
    }
    facts |= {**corpus_facts(corpus), **moments_facts(overrides, model, tokenizer)}
    return LocalWriter(HFGenerator(model, tokenizer, chat, job.rows), editors), facts


def _manifest(
    job: LemeJob, texts: Generation, records: Sequence[LongformRecord], model: Mapping[str, object]
) -> RunManifest:
    rows = json.dumps(list(records), sort_keys=True, ensure_ascii=False, default=str)
    written = {"generation": texts.name, "sampling": asdict(texts.sampling), "samples": texts.samples}
    written |= {"wording": job.wording, "relationship": job.relationship}
    batches = {"rows": job.rows, "block": job.block}
    return RunManifest(
        model={key: value for key, value in model.items() if key not in ("editors", "corpus", "moments")},
        editors=cast(JsonObject, model.get("editors", dict.fromkeys(job.editors, "LEME, Appendix B.2"))),
        data={
            "source": hide_secrets(job.data),
            "configs": list(job.configs),
            "records": len(records),
            "sha256": sha256(rows.encode()).hexdigest(),
            **{name: model[name] for name in ("corpus", "moments") if name in model},
        },
        protocol="leme",
        seed=job.seed,
        settings={**written, **batches},
        job=public_options(job),
        machine={"platform": platform.platform(), "threads": torch.get_num_threads()},
        versions=versions(),
    )
