"""A run described by plain values: loads the model, the cases and the editors, then hands over to the runner."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Case, Cloze, JsonObject
from seesaw_cf.base.versions import versions
from seesaw_cf.editors.plugins import code_facts
from seesaw_cf.models.changed import ChangedModel
from seesaw_cf.models.corpus import corpus_facts
from seesaw_cf.models.editor import Editor
from seesaw_cf.models.identity import model_facts
from seesaw_cf.models.load import load_model
from seesaw_cf.models.trial import check_model
from seesaw_cf.run.candidates import candidates_of
from seesaw_cf.run.design import prompt_counts
from seesaw_cf.run.external import read_external
from seesaw_cf.run.jobs import Job, Workers
from seesaw_cf.run.make_editors import moments_facts, object_facts
from seesaw_cf.run.manifest import RunManifest, read_manifest
from seesaw_cf.run.preflight import check_plan, data_notes
from seesaw_cf.run.prepare import LoadedModel, prepare
from seesaw_cf.run.questions import sample_clozes
from seesaw_cf.run.requests import requests_facts
from seesaw_cf.run.runner import Run
from seesaw_cf.run.units import PROTOCOLS
from seesaw_cf.run.workers import run_on_ray
from seesaw_cf.scoring import SCORERS, Scorer, make_scorer
from seesaw_cf.scoring.forward import logit_bytes, token_bytes
from seesaw_cf.scoring.noise import measure_noise

_NOISE_CLOZES = 24
_ROWS = 1000  # cases whose rows are in memory together


def run_job(
    job: Job,
    out: Path,
    *,
    keep_deltas: bool = False,
    progress: bool = True,
    workers: Workers | None = None,
) -> None:
    """Run a job into a run folder, continuing it when it was interrupted.

    Args:
        job: What to do.
        out: The run folder.
        keep_deltas: Also save each edit, for `seesaw-cf share`.
        progress: Show progress bars.
        workers: Who does it; this process when None.

    Raises:
        SeesawError: Any of the package's errors; what was finished is kept.
    """
    if workers is not None and workers.engine == "ray":
        make = functools.partial(make_run, job, out.resolve(), keep_deltas=keep_deltas)
        cpus, gpus, address = job.threads or 1, workers.gpus, workers.ray_address
        run_on_ray(make, out, cpus=cpus, gpus=gpus, address=address, progress=progress)
        return
    run = make_run(job, out, keep_deltas=keep_deltas, progress=progress)
    run.announce()
    run.complete()


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

    `loaded` takes the place of the model that the job names, with the dtype that it has, `held` that of changed models,
    `objects` that of editors.

    What can be asked before the weights are loaded is asked before, see `seesaw_cf.run.preflight`.

    Raises:
        SeesawError: A name, file, record or amount of memory that cannot be used.
    """
    one_of("protocol", job.protocol, PROTOCOLS)
    one_of("scorer", job.scorer, SCORERS)
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    if loaded is not None:
        job = replace(job, dtype=str(loaded.model.dtype).removeprefix("torch."))
    ready = prepare(job, out, loaded, held, objects)
    cases = ready.cases
    notes = check_plan(ready.plan(job, out, keep_deltas))
    asked = sample_clozes(cases, _NOISE_CLOZES, job.seed)
    earlier = read_manifest(out)
    if loaded is None:
        model, tokenizer = load_named(job, progress)
    else:
        model, tokenizer = loaded.model, loaded.tokenizer
        check_model(model, tokenizer)
    editors = ready.editors or ready.make(model)
    external, changed = read_external(ready.external, model, tokenizer, job, ready.overrides)
    _check_memory(job.memory, model)
    scorer, scoring = make_scorer(model, tokenizer, job.scorer, job.max_tokens, job.memory)
    scoring |= {"threads": torch.get_num_threads()}
    manifest = _manifest(job, model, tokenizer, editors, objects, cases, scoring)
    manifest.editors.update({name: dict(entry.config) for name, entry in external.items()})
    manifest.edited.update(changed)
    manifest.data.update(requests_facts(job.requests, ready.requests))
    manifest.data["revision"] = ready.revision
    manifest.data["others"] = {"asked": prompt_counts(cases), "recorded": dict(ready.recorded)}
    manifest.data.update({**corpus_facts(ready.corpus), **moments_facts(ready.overrides, model, tokenizer)})
    manifest.machine["noise"] = _noise(earlier, job, scorer, asked)
    return Run(
        model=model,
        tokenizer=tokenizer,
        scorer=scorer,
        editors=editors,
        cases=cases,
        manifest=manifest,
        out=out,
        keep_deltas=keep_deltas,
        progress=progress,
        notes=[*notes, *(f"{name}: {note}." for name, facts in changed.items() for note in facts["notes"])],
        external=external,
        requests=ready.requests,
        checkpoints=job.checkpoints,
        candidates=candidates_of(ready.everything, job.seed),
        anyway=job.anyway,
    )


def load_named(job: Job, progress: bool) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model that a job names, and its tokenizer.

    Raises:
        SeesawError: See `load_model`.
    """
    return load_model(
        job.model,
        device=job.device,
        dtype=job.dtype,
        revision=job.revision,
        trust_remote_code=job.trust_remote_code,
        progress=progress,
    )


def _noise(earlier: Mapping[str, Any], job: Job, scorer: Scorer, clozes: Sequence[Cloze]) -> JsonObject:
    """Return how far scores move when only the batch changes; measured once per run, whoever continues or joins it."""
    measured = (earlier.get("machine") or {}).get("noise")
    if isinstance(measured, dict):
        return measured
    return measure_noise(scorer, clozes, job.seed, quick=True).record()


def _check_memory(memory: int | None, model: PreTrainedModel) -> None:
    """Refuse a budget in which not even one token can be scored."""
    least = token_bytes(model) + logit_bytes(model)
    if memory is not None and memory < least:
        raise RecordError(
            f"--memory: got {memory:,} bytes, but one token of {model.name_or_path} and its logits take {least:,}. "
            f"Give at least {math.ceil(least / 2**10)}KiB, better some hundred times as much, or leave it out."
        )


def _checksum(cases: Sequence[Case]) -> str:
    """Return the SHA-256 of a JSON list of the cases' rows."""
    from seesaw_cf.records.arrow import cases_to_table

    digest = hashlib.sha256(b"[")
    for at in range(0, len(cases), _ROWS):
        rows = cases_to_table(cases[at : at + _ROWS]).to_pylist()
        text = json.dumps(rows, sort_keys=True, ensure_ascii=False)[1:-1]
        digest.update(f", {text}".encode() if at else text.encode())
    digest.update(b"]")
    return digest.hexdigest()


def _manifest(
    job: Job,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    editors: Mapping[str, Editor],
    objects: Collection[str],
    cases: Sequence[Case],
    scoring: JsonObject,
) -> RunManifest:
    return RunManifest(
        model=model_facts(job.model, model, tokenizer, job.revision, job.dtype),
        editors={
            name: asdict(editor.config) | code_facts(name) | (object_facts(editor) if name in objects else {})
            for name, editor in editors.items()
        },
        data={"source": job.data, "configs": list(job.configs), "cases": len(cases), "sha256": _checksum(cases)},
        protocol=job.protocol,
        seed=job.seed,
        settings={"block": job.block, "design": asdict(job.prompt_design)},
        scoring=scoring,
        job=json.loads(json.dumps(asdict(job), default=str)),
        machine={"platform": platform.platform(), "device": str(model.device)},
        versions=versions(),
        notes=data_notes(cases),
    )
