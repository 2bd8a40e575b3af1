"""What a job names, found and read before a weight is loaded, and what can be refused by then.

The model's structure comes from its config alone (`seesaw_cf.models.load.outline_model`), so that layers and the texts
that editors need are known in seconds.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import EditError, RecordError, StorageError
from seesaw_cf.base.files import cache_folder
from seesaw_cf.base.types import Case
from seesaw_cf.editors.control_names import split_control
from seesaw_cf.editors.locate import LocateThenEdit
from seesaw_cf.editors.locate.norms import check_norms
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.editor import Editor, HasLayers, ReadsTexts, WrapsEditor
from seesaw_cf.records.checks import has_special_token
from seesaw_cf.records.groups import AXES
from seesaw_cf.records.load import check_configs, load_revised_cases, unread_keys
from seesaw_cf.run.design import prompt_counts
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.manifest import check_folder
from seesaw_cf.run.questions import count_questions, count_spaced
from seesaw_cf.run.units import Requests, check_numbers, read_requests


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


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a job.

    Attributes:
        everything: All cases.
        cases: Those that are edited, with the prompts about other people that the design asks.
        recorded: How many prompts about how many other people their records have.
        requests: What is asked of models changed elsewhere.
        revision: Of the records, where they come from the Hub.
    """

    everything: Sequence[Case]
    cases: Sequence[Case]
    recorded: Mapping[str, int]
    requests: Requests
    revision: str

    def spare(self) -> list[Case]:
        """Return the cases about people who are not edited."""
        subjects = {case.request.subject for case in self.cases}
        return [case for case in self.everything if case.request.subject not in subjects]


def read_records(job: Job) -> Records:
    """Read the cases of a job and choose those that are edited, and what is asked about them.

    Raises:
        SeesawError: A file or record that cannot be used.
    """
    check_configs(job.data, job.asked_configs)
    read = [load_revised_cases(job.data, config) for config in job.asked_configs]
    cases = [case for records, _ in read for case in _sampled(records, job)]
    recorded = prompt_counts(cases)
    cases = [job.prompt_design.choose(case, job.seed) for case in cases]
    if not cases:
        raise RecordError(f"{job.data} {job.asked_configs}: no cases to run. Check --data, --config and --limit.")
    check_numbers(cases)
    requests = read_requests(job.requests, job.changed, cases)
    everything = [case for records, _ in read for case in records]
    return Records(everything, cases, recorded, requests, ",".join(sorted({revision for _, revision in read})))


def _sampled(cases: Sequence[Case], job: Job) -> list[Case]:
    """Return the first `job.limit` cases of a seeded order, put back into file order; all without a limit."""
    if job.limit is None or job.limit >= len(cases):
        return list(cases)
    chosen = np.random.default_rng(job.seed).permutation(len(cases))[: job.limit]
    return [cases[index] for index in sorted(chosen)]


def check_places(out: Path) -> None:
    """Refuse a run folder or a cache folder that cannot be written.

    Raises:
        RunFolderError: `out` is a file, or holds something else.
        StorageError: No right to write there; the message names the variable or option that chooses another place.
    """
    check_folder(out)
    try:
        cache = cache_folder()
    except RuntimeError as error:  # no home folder
        raise StorageError(f"no folder for the cache ({error}). Set SEESAW_CF_CACHE to a folder.") from error
    for folder, remedy in ((out, "Choose another with --out."), (cache, "Set SEESAW_CF_CACHE to another folder.")):
        path = folder.absolute()
        there = next(place for place in (path, *path.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise StorageError(f"{folder} cannot be written (no right to write in {there}). {remedy}")


def check_editors(job: Job, editors: Mapping[str, Editor], outline: PreTrainedModel | None, texts: bool) -> None:
    """Refuse editors that cannot do what a job asks.

    Args:
        job: The job.
        editors: Name -> editor, not fitted.
        outline: The model without weights; None when its class cannot be built so.
        texts: There are texts that editors can learn from.

    Raises:
        EditError: An editor needs texts and there are none, or a control or a checkpoint cannot be made.
        UnsupportedModelError: No row for the architecture, a missing layer, or a norm behind the MLP through which an
            editor cannot write.
    """
    if ("random", "ike") in map(split_control, editors):
        raise EditError(
            "random(ike): in-context editing changes no weights, so there is no norm that a random change could "
            "match. Use the controls identity or unrelated for ike."
        )
    check_texts(editors, texts)
    if job.checkpoints and "ike" in editors:
        raise EditError(
            "--checkpoints: ike puts a text before every prompt and changes no weights, so there is no checkpoint to "
            "write. Leave out --checkpoints or --editor ike."
        )
    if job.checkpoints and not editors:
        raise EditError(
            "--checkpoints: the models of --changed are checkpoints already, and this run makes no edits. Leave it "
            "out, or name an --editor."
        )
    for editor in _methods(editors).values():
        if outline is not None and isinstance(config := editor.config, HasLayers):
            parts = model_parts(outline, config.architecture)
            parts.check_layers(config.layers, type(config).__name__)
            if isinstance(editor, LocateThenEdit):
                check_norms(parts, config.layers, type(editor).__name__)


def check_texts(editors: Mapping[str, Editor], texts: bool) -> None:
    """Refuse editors that learn from texts where there are none.

    Raises:
        EditError: Names the editors, and tells how texts are given.
    """
    configs = {name: editor.config for name, editor in _methods(editors).items()}
    needy = [name for name, config in configs.items() if isinstance(config, ReadsTexts) and config.needs_texts]
    if needy and not texts:
        raise EditError(
            f"{', '.join(needy)}: texts are needed (second moments of the edited layers, or training), got none. Give "
            "some that the model knows with --corpus: a text file with one text a line, thousands of lines."
        )


def _methods(editors: Mapping[str, Editor]) -> dict[str, Editor]:
    """Return the editors, with controls replaced by what they wrap."""
    return {
        split_control(name)[1] or name: editor.inner or editor if isinstance(editor, WrapsEditor) else editor
        for name, editor in editors.items()
    }


_TAG = "`seesaw-cf tag RECORDS --source wikidata --out DIR`"


def data_notes(cases: Sequence[Case]) -> list[str]:
    """Say what records lack, what a report cannot show without it and what adds it, and where white space is odd.

    Args:
        cases: The run's.

    Returns:
        Sentences; none for records with everything that was asked of them.
    """
    people = [prompt for case in cases for prompt in case.attribute_prompts]
    lacking = [axis for axis in AXES if not any(getattr(prompt, axis) for prompt in people)]
    other = [case for case in cases if case.effect_relation_id not in (None, case.request.relation_id)]
    complete = [case for case in other if case.effect_prompts and case.candidates]
    notes = []
    if not people and not other:
        notes.append(
            f"None of the {len(cases):,} records asks about other people or another property: the report will have "
            "neither groups nor verdicts. `seesaw-cf build --edits FILE` makes such prompts."
        )
    if people and lacking:
        notes.append(
            f"None of the {len(people):,} prompts about other people has a recorded {' or '.join(lacking)}: effects "
            f"are shown for 'unknown' only there, without groups and verdicts. {_TAG} adds what a source records."
        )
    if other and len(complete) < len(other):
        notes.append(
            f"{len(other) - len(complete):,} of {len(other):,} cross-property cases have no candidates or no prompts "
            "about the other property: their answers are not compared, and the cross-property accuracy lacks them. "
            f"{_TAG} adds both where the edited person is found."
        )
    if silent := sum(not case.gold for case in complete):
        notes.append(
            f"{silent:,} of {len(complete):,} cross-property cases do not say which candidate is true: they are left "
            f"out of the cross-property accuracy. {_TAG} adds the true one where a source knows it."
        )
    if odd := sum(map(count_spaced, cases)):
        notes.append(
            f"{odd:,} of {sum(map(count_questions, cases)):,} prompts with an answer have white space at an end or two "
            "spaces in a row: to a model that is another text, by up to 20 nats. "
            "`seesaw-cf build --records` flags such records."
        )
    if special := sum(map(has_special_token, cases)):
        notes.append(
            f"{special:,} of {len(cases):,} records hold text such as <s> or </s> in a prompt or answer, which "
            "tokenizers read as their own signs: the model reads two of them, or an end. Remove it from the records."
        )
    for key, number in Counter(key for case in cases for key in unread_keys(case)).items():
        notes.append(f"The key {key!r} of {number:,} of {len(cases):,} records is not read: nothing of it is asked.")
    return notes
