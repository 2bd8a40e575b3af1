"""A run described by plain values, and what it names: found and read before a weight is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Case
from seesaw_cf.editors.control_names import planned
from seesaw_cf.models.changed import ChangedModel
from seesaw_cf.models.corpus import corpus_of
from seesaw_cf.models.editor import Editor, Overrides
from seesaw_cf.models.load import outline_model
from seesaw_cf.records.load import check_configs, load_revised_cases
from seesaw_cf.run.design import prompt_counts
from seesaw_cf.run.external import find_external
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import (
    make_editor,
    read_settings,
    settings_of,
    with_cases,
    with_corpus,
    with_moments,
    with_seed,
)
from seesaw_cf.run.preflight import RunPlan, check_places
from seesaw_cf.run.requests import Requests, read_requests
from seesaw_cf.run.units import check_numbers


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job before its model is loaded.

    Attributes:
        names: Of its editors, controls among them.
        overrides: Editor or kind of control -> setting -> value.
        external: Name -> model changed elsewhere.
        corpus: Texts; None without any.
        everything: All cases of the records.
        cases: Those that are edited, with the prompts about other people that the design asks.
        recorded: How many prompts about how many other people their records have.
        requests: What is asked of models changed elsewhere.
        revision: Of the records, where they come from the Hub.
        outline: The model without weights; None when its class cannot be built so.
        editors: Name -> editor, not fitted; {} without an outline.
        objects: Name -> editor that was given as an object.
    """

    names: Sequence[str]
    overrides: Overrides
    external: Mapping[str, ChangedModel]
    corpus: Sequence[str] | None
    everything: Sequence[Case]
    cases: Sequence[Case]
    recorded: Mapping[str, int]
    requests: Requests
    revision: str
    outline: PreTrainedModel | None
    editors: Mapping[str, Editor]
    objects: Mapping[str, Editor]

    def make(self, like: PreTrainedModel) -> dict[str, Editor]:
        """Make the editors for a model of this structure."""
        subjects = {case.request.subject for case in self.cases}
        spare = [case for case in self.everything if case.request.subject not in subjects]
        editors: dict[str, Editor] = {}
        for name in self.names:
            if name in self.objects:
                editors[name] = with_cases(with_corpus(self.objects[name], self.corpus), spare, self.cases)
                continue
            settings = settings_of(name, self.overrides)
            editors[name] = make_editor(name, like, settings, self.corpus, spare, self.cases, editors)
        return editors

    def plan(self, job: Job, out: Path, keep_deltas: bool = False) -> RunPlan:
        """Return what the job will need."""
        named = getattr(self.outline, "dtype", None) if job.dtype == "auto" else getattr(torch, job.dtype, None)
        dtype = named if isinstance(named, torch.dtype) else torch.float32
        on_cpu = job.device == "cpu" or (job.device == "auto" and not torch.cuda.is_available())
        batch, storage = job.protocol == "batch", (keep_deltas, job.checkpoints)
        texts = None if self.corpus is None else len(self.corpus)
        return RunPlan(
            self.outline, dtype, on_cpu, self.editors, texts, self.cases, batch, out, *storage, bool(job.changed)
        )


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is in memory already, in place of the one that a job names.

    Attributes:
        model, tokenizer: As `seesaw_cf.models.load_model` returns them.
        corpus: Texts for editors, in place of the job's.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    corpus: Sequence[str] | None = None


def prepare(
    job: Job,
    out: Path,
    loaded: LoadedModel | None = None,
    held: Mapping[str, ChangedModel] | None = None,
    objects: Mapping[str, Editor] = {},
) -> Prepared:
    """Find and read everything that a job names, except weights.

    Args:
        job: What to do.
        out: The run folder.
        loaded: The model, where it is in memory.
        held: Name -> changed model in memory, in place of the one that the job names.
        objects: Name -> editor to use as it is.

    Raises:
        SeesawError: A name, file or record that cannot be used.
    """
    names = planned(job.names, job.editor_controls, job.control_seeds)
    settings = read_settings(job.editor_config, (*names, *job.changed_controls))
    overrides = with_seed(with_moments(settings, names, job.moments), (*names, *job.changed_controls), job.seed)
    check_places(out)
    external = find_external(job, names, held)
    check_configs(job.data, job.configs)  # before a corpus of some minutes is read
    texts = loaded.corpus if loaded is not None else None
    corpus = texts if texts is not None else corpus_of(job.corpus, job.model, job.corpus_limit, job.seed)
    read = [load_revised_cases(job.data, config) for config in job.configs]
    cases = [case for records, _ in read for case in _sampled(records, job)]
    recorded = prompt_counts(cases)
    cases = [job.prompt_design.choose(case, job.seed) for case in cases]
    if not cases:
        raise RecordError(f"{job.data} {job.configs}: no cases to run. Check --data, --config and --limit.")
    check_numbers(cases)
    requests = read_requests(job.requests, job.changed, cases)
    if loaded is not None:
        outline: PreTrainedModel | None = loaded.model
    else:
        outline = outline_model(job.model, revision=job.revision, trust_remote_code=job.trust_remote_code)
    everything = [case for records, _ in read for case in records]
    revision = ",".join(sorted({revision for _, revision in read}))
    ready = Prepared(
        names, overrides, external, corpus, everything, cases, recorded, requests, revision, outline, {}, objects
    )
    return ready if outline is None else replace(ready, editors=ready.make(outline))


def _sampled(cases: Sequence[Case], job: Job) -> list[Case]:
    """Return the first `job.limit` cases of a seeded order, put back into file order; all without a limit."""
    if job.limit is None or job.limit >= len(cases):
        return list(cases)
    chosen = np.random.default_rng(job.seed).permutation(len(cases))[: job.limit]
    return [cases[index] for index in sorted(chosen)]
