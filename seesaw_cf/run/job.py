"""A run described by plain values: loads the model, the cases and the editors, then hands over to the runner."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.checks import one_of
from seesaw_cf.editors.control_names import planned
from seesaw_cf.errors import RecordError
from seesaw_cf.models.corpus import LIMIT, corpus_facts, corpus_of
from seesaw_cf.models.editor import Editor
from seesaw_cf.models.load import load_model, outline_model
from seesaw_cf.models.weights import fingerprint
from seesaw_cf.records.load import load_revised_cases
from seesaw_cf.run.candidates import candidates_of
from seesaw_cf.run.explain import announce, log_prefix
from seesaw_cf.run.given import find_all, moved_by, read_all, read_requests, requests_facts
from seesaw_cf.run.make_editors import make_editor, moments_facts, read_settings, settings_of, with_moments
from seesaw_cf.run.manifest import RunManifest, read_manifest
from seesaw_cf.run.preflight import Plan, check_places, check_plan, data_notes
from seesaw_cf.run.questions import some_clozes
from seesaw_cf.run.runner import PROTOCOLS, Run
from seesaw_cf.run.tuned import held_out
from seesaw_cf.run.workers import ENGINES, local_device, rank_and_world, run_on_ray, run_share
from seesaw_cf.scoring import SCORERS, Scorer, make_scorer
from seesaw_cf.scoring.memory import logit_bytes, token_bytes
from seesaw_cf.scoring.noise import measure_noise
from seesaw_cf.scoring.pre_scores import tokenizer_hash
from seesaw_cf.types import Case
from seesaw_cf.versions import versions

__all__ = ["Job", "make_editor", "make_run", "run_job", "settings_of"]

_NOISE_CLOZES = 24
_COUNTS = ("limit", "corpus_limit", "max_tokens", "block", "threads")


@dataclass(frozen=True, slots=True)
class Job:
    """What `seesaw-cf run` does; the fields are its options.

    Attributes:
        model: "seesaw-tiny", a Hub id or a folder.
        editors: Names out of `seesaw_cf.editors.EDITORS`. A kind of control among them is one of `controls`.
        controls: Kinds of controls, out of `seesaw_cf.editors.control_names.CONTROLS`: one of each for every editor.
            Models that somebody else edited have "random" only.
        edited: Models that somebody else edited, "NAME=WHERE" each: folders with a checkpoint, a LoRA adapter or a
            saved delta, or Hub ids.
        requests: The facts that they were edited for, a record file; None: nobody says, and no efficacy is claimed.
        data: "sample", a dataset folder, a record file or a Hub id.
        configs: Which of its configs.
        protocol: "single" or "batch".
        editor_config: JSON file with fields to change, by editor name.
        leave_out_tuned: Leave out cases about people on whom the settings of `editor_config` were tuned; otherwise they
            are refused.
        corpus: Texts for second moments, as `seesaw_cf.models.corpus.Corpus` reads them; the embedded
            texts when None and the model is embedded.
        corpus_limit: Most texts of it that are used, drawn with `seed`.
        moments: Second moments that are used in place of texts, by every editor that needs some; see
            `seesaw_cf.editors.locate.moment_sets.find_set`.
        limit: Keep this many cases of each config, sampled with `seed`; cases about other subjects that are left over
            give in-context editing its demonstrations.
        revision, dtype, device, trust_remote_code: How the model is loaded.
        seed: Seed of the sampling.
        scorer: "auto", "trie" or "plain"; see `seesaw_cf.scoring.make_scorer`.
        max_tokens: Tokens in one forward pass; None = what suits the device.
        memory: Bytes that scoring may take beside the model; None = what `max_tokens` needs.
        block: Edits that are made and scored together; also what is redone after a kill.
        threads: CPU threads of torch; None = as many as it has. Another number rounds sums differently, so it is part
            of the run's identity.
        checkpoints: Also write every edit as a model of its own, which `from_pretrained` loads.

    Raises:
        RecordError: `limit`, `max_tokens`, `block` or `threads` is no whole number of at least 1, or there is nothing
            to audit.
    """

    model: str
    editors: tuple[str, ...]
    controls: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    requests: Path | None = None
    data: str = "sample"
    configs: tuple[str, ...] = ("cross_subject",)
    protocol: str = "single"
    editor_config: Path | None = None
    leave_out_tuned: bool = False
    corpus: str | Path | None = None
    corpus_limit: int = LIMIT
    moments: str | None = None
    limit: int | None = None
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    trust_remote_code: bool = False
    seed: int = 0
    scorer: str = "auto"
    max_tokens: int | None = None
    block: int = 8
    memory: int | None = None
    threads: int | None = None
    checkpoints: bool = False

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise RecordError(
                    f"job: {name} is {value!r}, expected a whole number of at least 1. Leave it out for the default."
                )
        if not self.editors and not self.edited:
            raise RecordError(
                "job: neither an editor nor an edited model, so nothing is audited. Name one with --editor NAME (see "
                "`seesaw-cf list editors`), or with --edited NAME=FOLDER."
            )


def run_job(
    job: Job,
    out: Path,
    *,
    keep_deltas: bool = False,
    progress: bool = True,
    engine: str = "local",
    actors: int | None = None,
    gpus: float | None = None,
    address: str | None = None,
) -> bool:
    """Runs a job into a run folder, continuing it when it was interrupted.

    Under `torchrun` every process does its share, and the first one merges.

    Args:
        job: What to do.
        out: The run folder.
        keep_deltas: Also save each edit, for `seesaw-cf share`.
        progress: Show progress bars.
        engine: "local", or "ray" for Ray actors.
        actors, gpus, address: See `seesaw_cf.run.workers.run_on_ray`.

    Returns:
        True in the process that wrote the merged tables.

    Raises:
        SeesawError: Any of the package's errors; what was finished is kept.
    """
    one_of("engine", engine, ENGINES)
    if engine == "ray":
        make = functools.partial(make_run, job, out.resolve(), keep_deltas=keep_deltas)
        return run_on_ray(make, actors=actors, gpus=gpus, address=address, progress=progress)
    rank, world = rank_and_world()
    run = make_run(job, out, keep_deltas=keep_deltas, progress=progress and rank == 0)
    if rank == 0:
        announce([*run.manifest.notes, *run.notes])
    return run_share(run, rank, world)


def make_run(job: Job, out: Path, *, keep_deltas: bool = False, progress: bool = False) -> Run:
    """Loads everything a job names and sets torch's threads; no edit is made and nothing is written yet.

    What can be asked before the weights are loaded is asked before, see `seesaw_cf.run.preflight`.

    Raises:
        SeesawError: A name, file, record or amount of memory that cannot be used.
    """
    one_of("protocol", job.protocol, PROTOCOLS)
    one_of("scorer", job.scorer, SCORERS)
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    names = planned(job.editors, job.controls if job.editors else ())
    random = ("random",) if job.edited and "random" in job.controls else ()
    overrides = with_moments(read_settings(job.editor_config, (*names, *random)), names, job.moments)
    check_places(out)
    edited = find_all(job.edited, job.controls, names)
    corpus = corpus_of(job.corpus, job.model, job.corpus_limit, job.seed)
    loaded = {config: load_revised_cases(job.data, config) for config in job.configs}
    everything = {config: found for config, (found, _) in loaded.items()}
    cases = [case for found in everything.values() for case in _sampled(found, job)]
    cases = held_out(cases, job.editor_config, job.leave_out_tuned)
    if not cases:
        raise RecordError(f"{job.data} {job.configs}: no cases to run. Check --data, --config and --limit.")
    examined = read_requests(job.requests, job.edited, cases)
    asked = {case.request.subject for case in cases}
    spare = [case for found in everything.values() for case in found if case.request.subject not in asked]

    def make(like: PreTrainedModel) -> dict[str, Editor]:
        made: dict[str, Editor] = {}
        for name in names:
            made[name] = make_editor(name, like, settings_of(name, overrides), corpus, spare, cases, made)
        return made

    source: dict[str, Any] = {"revision": job.revision, "trust_remote_code": job.trust_remote_code}
    outline = outline_model(job.model, **source)
    editors = make(outline) if outline is not None else {}
    if outline is not None:
        for one in edited.values():
            one.check(outline)
    device = local_device(job.device)
    notes = check_plan(_plan(job, out, outline, editors, cases, corpus is not None, keep_deltas))
    model, tokenizer = load_model(job.model, device=device, dtype=job.dtype, progress=progress, **source)
    _check_memory(job.memory, model)
    editors = editors or make(model)
    given, said = read_all(edited, model, tokenizer, job.controls, overrides, examined)
    scorer, scoring = make_scorer(model, tokenizer, job.scorer, job.max_tokens, job.memory)
    scoring |= {"threads": torch.get_num_threads()}
    manifest = _manifest(job, model, tokenizer, editors, cases, scoring)
    manifest.editors.update({name: dict(one.config) for name, one in given.items()})
    manifest.edited.update(moved_by(given, edited))
    manifest.data.update(requests_facts(job.requests, examined))
    manifest.data["revision"] = ",".join(sorted({revision for _, revision in loaded.values()}))
    manifest.data.update({**corpus_facts(corpus), **moments_facts(overrides, model, tokenizer)})
    manifest.machine["noise"] = _noise(job, out, scorer, cases)
    candidates = candidates_of((case for found in everything.values() for case in found), job.seed)
    return Run(
        model,
        tokenizer,
        scorer,
        editors,
        cases,
        manifest,
        out,
        keep_deltas,
        progress,
        [*notes, *said],
        given,
        examined,
        job.checkpoints,
        candidates,
    )


def _noise(job: Job, out: Path, scorer: Scorer, cases: Sequence[Case]) -> dict[str, Any]:
    """How far scores move when only the batch changes: measured once for a run, whoever continues or joins it."""
    known = (read_manifest(out).get("machine") or {}).get("noise")
    if isinstance(known, dict):
        return known
    with log_prefix("noise floor"):
        return measure_noise(scorer, some_clozes(cases, _NOISE_CLOZES, job.seed), job.seed, quick=True).record()


def _plan(
    job: Job,
    out: Path,
    outline: PreTrainedModel | None,
    editors: Mapping[str, Editor],
    cases: Sequence[Case],
    corpus: bool,
    keep_deltas: bool,
) -> Plan:
    named = getattr(outline, "dtype", torch.float32) if job.dtype == "auto" else getattr(torch, job.dtype, None)
    dtype = named if isinstance(named, torch.dtype) else torch.float32
    on_cpu = job.device == "cpu" or (job.device == "auto" and not torch.cuda.is_available())
    batch, kept = job.protocol == "batch", (keep_deltas, job.checkpoints)
    return Plan(outline, dtype, on_cpu, editors, corpus, cases, batch, out, *kept, bool(job.edited))


def _check_memory(memory: int | None, model: PreTrainedModel) -> None:
    """Refuses a budget in which not even one token can be scored."""
    least = token_bytes(model) + logit_bytes(model)
    if memory is not None and memory < least:
        raise RecordError(
            f"--memory: got {memory:,} bytes, but one token of {model.name_or_path} and its logits take {least:,}. "
            f"Give at least {math.ceil(least / 2**10)}KiB, better some hundred times as much, or leave it out."
        )


def _sampled(cases: Sequence[Case], job: Job) -> list[Case]:
    """The first cases in a seeded order, put back into file order."""
    if job.limit is None or job.limit >= len(cases):
        return list(cases)
    chosen = np.random.default_rng(job.seed).permutation(len(cases))[: job.limit]
    return [cases[index] for index in sorted(chosen)]


def _manifest(
    job: Job,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    editors: Mapping[str, Editor],
    cases: Sequence[Case],
    scoring: dict[str, object],
) -> RunManifest:
    from seesaw_cf.records.parquet import cases_to_table

    rows = json.dumps(cases_to_table(cases).to_pylist(), sort_keys=True, ensure_ascii=False)
    commit = getattr(model.config, "_commit_hash", None)
    return RunManifest(
        model={
            "id": job.model,
            "revision": job.revision or commit or "",
            "dtype": job.dtype,
            "fingerprint": fingerprint(model),
            "tokenizer": tokenizer_hash(tokenizer),
        },
        editors={name: asdict(editor.config) for name, editor in editors.items()},
        data={
            "source": job.data,
            "configs": list(job.configs),
            "cases": len(cases),
            "sha256": hashlib.sha256(rows.encode()).hexdigest(),
        },
        protocol=job.protocol,
        seed=job.seed,
        settings={"block": job.block},
        scoring=scoring,
        job=json.loads(json.dumps(asdict(job), default=str)),
        machine={"platform": platform.platform(), "device": str(model.device)},
        versions=versions(),
        notes=data_notes(cases),
    )
