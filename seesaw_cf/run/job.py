"""A run described by plain values: loads the model, the cases and the editors, then hands over to the runner."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from seesaw_cf.base.errors import hide_secrets
from seesaw_cf.base.system import versions
from seesaw_cf.base.types import Case, JsonObject
from seesaw_cf.editors.control_names import planned
from seesaw_cf.editors.plugins import code_facts
from seesaw_cf.models.changed import ChangedModel
from seesaw_cf.models.corpus import corpus_facts, corpus_of
from seesaw_cf.models.editor import Editor
from seesaw_cf.models.identity import model_facts
from seesaw_cf.models.load import load_model
from seesaw_cf.models.trial import check_model
from seesaw_cf.records.arrow import cases_to_table
from seesaw_cf.run.external import find_external, read_external
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import (
    check_editors,
    check_texts,
    editor_settings,
    make_editors,
    moments_facts,
    object_facts,
)
from seesaw_cf.run.manifest import RunManifest, check_places, public_options, read_manifest
from seesaw_cf.run.prepare import LoadedModel, data_notes, prompt_counts, read_records
from seesaw_cf.run.questions import Candidates, candidates_of, choose_forms, sample_clozes
from seesaw_cf.run.runner import Run
from seesaw_cf.run.sequence import sequence_units
from seesaw_cf.run.units import ANSWERS, PANEL, PEOPLE, Unit, checkpoint_units
from seesaw_cf.scoring import make_scorer
from seesaw_cf.scoring.noise import measure_noise

_NOISE_CLOZES = 24
_ROWS = 1000  # cases whose rows are in memory together


def make_run(
    job: Job,
    out: Path,
    *,
    keep_deltas: bool = False,
    progress: bool = False,
    loaded: LoadedModel | None = None,
    held: Mapping[str, ChangedModel] | None = None,
    objects: Mapping[str, Editor] = {},
) -> Run:
    """Load everything a job names and set torch's threads; no edit is made and nothing is written yet.

    Records, texts, names and settings are read before the weights; layers and what editors need are checked after.

    Args:
        job: What to do.
        out: The run folder.
        keep_deltas, progress: See `seesaw_cf.run.workers.run_job`.
        loaded: A model in memory in place of the one that the job names, with the dtype that it has.
        held: Name -> changed model in memory, in place of the one that the job names.
        objects: Name -> editor to use as it is.

    Raises:
        SeesawError: A name, file or record that cannot be used.
    """
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    if loaded is not None:
        job = replace(job, dtype=str(loaded.model.dtype).removeprefix("torch."))
    where: dict[str, Any] = {"revision": job.revision, "trust_remote_code": job.trust_remote_code}
    is_sequence = job.protocol == "sequential"  # each order draws a control of its own
    names = planned(job.names, job.editor_controls, 1 if is_sequence else job.control_seeds)
    overrides = editor_settings(job.editor_config, (*names, *job.changed_controls), job.moments, job.seed)
    check_places(out)
    changed = find_external(job, names, held)
    corpus = loaded.corpus if loaded is not None else None
    if corpus is None:
        corpus = corpus_of(job.corpus, job.model, job.corpus_limit, job.seed)
    if corpus is None:
        check_texts(names, overrides, objects)
    records = read_records(job)
    settings: dict[str, Any] = {"block": job.block, "design": asdict(job.prompt_design)}
    protocol, plan, checkpoints = job.protocol, list[Unit](), list[object]()
    if is_sequence:
        plan = sequence_units(records.cases, job.checkpoints, job.orders, job.seed)
        checkpoints = [unit.labels["checkpoint"] for unit in plan if unit.labels["order"] == 0]
        settings |= {"checkpoints": checkpoints, "orders": job.orders}
    elif job.is_dose:
        plan = checkpoint_units(records.cases, job.checkpoints, job.orders, job.mixes)
        checkpoints = [*sorted({len(unit.cases) for unit in plan})]
        limits = {"people": PEOPLE, "panel": PANEL, "answers": ANSWERS, "block": 1}
        settings = {"checkpoints": checkpoints, "orders": job.orders, "pairs": job.mixes, **limits}
        protocol = "dose"
    noise = (read_manifest(out).get("machine") or {}).get("noise")
    if loaded is None:
        model, tokenizer = load_model(job.model, device=job.device, dtype=job.dtype, progress=progress, **where)
    else:
        model, tokenizer = loaded.model, loaded.tokenizer
        check_model(model, tokenizer)
    editors = make_editors(names, model, overrides, corpus, records.spare(), records.cases, objects)
    check_editors(editors, model)
    external, edited = read_external(changed, model, tokenizer, job, overrides)
    forms, form_facts, form_notes = choose_forms(job.form, tokenizer)
    settings |= form_facts | ({"answers": job.answers} if job.answers else {})
    scorer, scoring = make_scorer(model, tokenizer, job.scorer, job.max_tokens, job.memory_bytes)
    if not isinstance(noise, dict):  # measured once per run, whoever continues or joins it
        asked = sample_clozes(records.cases, _NOISE_CLOZES, job.seed)
        noise = measure_noise(scorer, asked, job.seed).record()
    configs: JsonObject = {
        name: asdict(editor.config) | code_facts(name) | (object_facts(editor) if name in objects else {})
        for name, editor in editors.items()
    }
    data = {
        "source": hide_secrets(job.data),
        "configs": list(job.asked_configs),
        "cases": len(records.cases),
        "sha256": _checksum(records.cases),
        "revision": records.revision,
        "others": {"asked": prompt_counts(records.cases), "recorded": dict(records.recorded)},
        **records.requests.facts(job.requests),
        **corpus_facts(corpus),
        **moments_facts(overrides, model, tokenizer),
    }
    manifest = RunManifest(
        model=model_facts(job.model, model, tokenizer, job.revision, job.dtype),
        editors=configs | {name: dict(entry.config) for name, entry in external.items()},
        data=data,
        protocol=protocol,
        seed=job.seed,
        settings=settings,
        scoring=scoring | {"threads": torch.get_num_threads()},
        job=public_options(job),
        machine={"platform": platform.platform(), "device": str(model.device), "noise": noise},
        versions=versions(),
        edited=dict(edited),
        notes=[*data_notes(records.cases), *form_notes],
    )
    known = candidates_of(records.everything if job.answers or not plan else (), job.seed, next(iter(forms)))
    return Run(
        *(model, tokenizer, scorer, editors, records.cases, manifest, out),
        external=external,
        requests=records.requests,
        plan=plan,
        candidates=Candidates() if plan else known,
        known=known,
        forms=forms,
        answers=job.answers,
        keep_deltas=keep_deltas,
        save_checkpoints=job.save_checkpoints,
        ignore_damage=job.ignore_damage,
        progress=progress,
        notes=[f"{name}: {note}." for name, facts in edited.items() for note in facts["notes"]],
    )


def _checksum(cases: Sequence[Case]) -> str:
    """Return the SHA-256 of a JSON list of the cases' rows."""
    digest = hashlib.sha256(b"[")
    for at in range(0, len(cases), _ROWS):
        rows = cases_to_table(cases[at : at + _ROWS]).to_pylist()
        text = json.dumps(rows, sort_keys=True, ensure_ascii=False)[1:-1]
        digest.update(f", {text}".encode() if at else text.encode())
    digest.update(b"]")
    return digest.hexdigest()
