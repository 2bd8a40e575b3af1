"""Texts from end to end: passages before and after edits, and what judges and classifiers make of them."""

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

from seesaw_cf.base.errors import EditError, RecordError, hide_secrets
from seesaw_cf.base.system import versions
from seesaw_cf.base.types import Case, JsonObject
from seesaw_cf.editors import load_editor
from seesaw_cf.editors.control_names import planned, split_control
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.generation.cached import CachedGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.models.corpus import corpus_facts, corpus_of
from seesaw_cf.models.editor import Example, LearnsFromCases
from seesaw_cf.models.identity import model_facts
from seesaw_cf.models.load import load_model
from seesaw_cf.run.make_editors import check_texts, editor_settings, make_editors, moments_facts
from seesaw_cf.run.manifest import RunManifest, public_options
from seesaw_cf.texts.job import Generation, RateJob, WriteJob
from seesaw_cf.texts.prompts import EditedCase, coupled_cases, open_ended_cases
from seesaw_cf.texts.rate import find_raters, rate_run
from seesaw_cf.texts.records import LongformRecord, read_records, spare_cases, usual_configs
from seesaw_cf.texts.write import ApiWriter, LocalWriter, PassageRun, Writer

_TEMPLATE = 64  # tokens that a chat template may add to a prompt
_NO_DEMONSTRATIONS = (
    "IKE was given no demonstrations: a text is written about the subject of every record. Its edits are zero-shot. "
    "Keep some records back with --limit."
)
_log = logging.getLogger(__name__)


def run_write(job: WriteJob, out: Path, *, progress: bool = True, pictures: bool = False) -> str:
    """Write passages before and after edits into a run folder, continuing it when it was interrupted; rate and report.

    Args:
        job: What to do.
        out: The run folder: passages.parquet and edits.parquet, with `rate` what `run_rate` writes, and with `report`
            the folder report.
        progress: Show progress bars.
        pictures: See `seesaw_cf.texts.report.write.report_run`.

    Returns:
        Plain text for a terminal.

    Raises:
        SeesawError: Any of the package's errors; what was finished is kept.
    """
    job = replace(job, editors=planned(job.editors), configs=job.configs or usual_configs(job.data))
    texts, writer = job.texts(), OpenAIGenerator(job.base_url, job.model, job.key_env, chat=True)
    for name in job.editors:
        load_editor(split_control(name)[0] or name)
        if job.base_url and name != "ike":
            raise EditError(f"{job.model}: editor {name!r} changes weights, which an API does not give. Use ike.")
    if job.base_url:
        writer.check()
    rating = RateJob(out, raters=job.rate, device=job.device, dtype=job.dtype, seed=job.seed) if job.rate else None
    raters = find_raters(rating, out) if rating else []
    rows = read_records(job.data, job.configs)
    records, cases = cases_of_job(job, rows, lead=False)
    model: JsonObject
    if job.base_url:
        api: Writer = ApiWriter(CachedGenerator(writer, out / "cache"))
        model = {"id": writer.name, "chat": writer.chat}
    else:
        spare = spare_cases([row for group in rows.values() for row in group], records)
        api, model = _local_writer(job, spare, [prompt.text for case in cases for prompt in case.prompts])
    if not model["chat"]:
        records, cases = cases_of_job(job, rows, lead=True)
    manifest = _manifest(job, texts, records, model)
    PassageRun(
        api, job.editors, cases, manifest, out, texts.samples, texts.sampling, job.block, progress
    ).run()  # fmt: skip
    lines = [f"{len(cases)} edits by {', '.join(job.editors)}: passages.parquet and edits.parquet are in {out}."]
    if rating:
        lines.append(rate_run(rating, raters, out))
    if job.report:
        from seesaw_cf.texts.report.write import report_run

        lines.append(report_run(out, pictures=pictures))
    return "\n".join(lines)


def run_rate(job: RateJob, out: Path | None = None) -> str:
    """Rate the texts of a finished run: its survey, claims and flaws.

    Args:
        job: What to do.
        out: Folder of the tables: ratings.parquet, annotations.parquet, flaws.parquet, swapped.parquet and
            calls.parquet; the run's own when None. Rows of other raters that are there stay.

    Returns:
        Plain text for a terminal.

    Raises:
        SeesawError: Any of the package's errors; every reply is kept and not asked for again.
    """
    if out is None and not job.run.is_dir():
        raise RecordError(f"{job.run}: pairs from a file have no run folder. Say where the tables go with --out.")
    out = out or job.run
    return rate_run(job, find_raters(job, out), out)


def cases_of_job(
    job: WriteJob, everything: Mapping[str, Sequence[LongformRecord]], lead: bool
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
            else coupled_cases(rows, lead=lead)
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


def _local_writer(job: WriteJob, spare: Sequence[Case], prompts: Sequence[str]) -> tuple[Writer, JsonObject]:
    """Return the model that writes, and its entry in the manifest."""
    corpus = corpus_of(job.corpus, job.model, job.corpus_limit, job.seed)
    overrides = editor_settings(job.editor_config, job.editors, job.moments, job.seed)
    model, tokenizer = load_model(
        job.model, device=job.device, dtype=job.dtype, revision=job.revision, trust_remote_code=job.trust_remote_code
    )
    chat = bool(tokenizer.chat_template)
    if "ike" in job.editors:
        longest = max(len(tokenizer(prompt)["input_ids"]) for prompt in prompts)
        room = longest + _TEMPLATE + job.texts().sampling.max_new_tokens
        overrides["ike"] = {"room": room} | overrides.get("ike", {})
    editors = make_editors(job.editors, model, overrides, corpus, spare)
    check_texts(editors, corpus is not None)
    pools = {name: editor.pool for name, editor in editors.items() if isinstance(editor, LearnsFromCases)}
    if pools.get("ike") == ():
        _log.warning(_NO_DEMONSTRATIONS)
    configs = {
        name: asdict(editor.config) | ({"demonstrations": _digest(pools[name])} if name in pools else {})
        for name, editor in editors.items()
    }
    facts = {**model_facts(job.model, model, tokenizer, job.revision, job.dtype), "chat": chat, "editors": configs}
    facts |= {**corpus_facts(corpus), **moments_facts(overrides, model, tokenizer)}
    return LocalWriter(HFGenerator(model, tokenizer, chat), editors), facts


def _digest(pool: Sequence[Example]) -> str:
    return sha256(json.dumps([example.text for example in pool]).encode()).hexdigest()[:16]


def _manifest(
    job: WriteJob, texts: Generation, records: Sequence[LongformRecord], model: Mapping[str, object]
) -> RunManifest:
    rows = json.dumps(list(records), sort_keys=True, ensure_ascii=False, default=str)
    written = {"generation": texts.name, "sampling": asdict(texts.sampling), "samples": texts.samples}
    written |= {"wording": "essay", "block": job.block}
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
        settings=written,
        job=public_options(job),
        machine={"platform": platform.platform(), "threads": torch.get_num_threads()},
        versions=versions(),
    )
