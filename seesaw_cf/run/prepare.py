"""The records of a job: which are edited, whom they ask about, what they lack; read before a weight is loaded."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import Case
from seesaw_cf.records.checks import has_special_token
from seesaw_cf.records.groups import AXES
from seesaw_cf.records.load import check_configs, load_revised_cases, unread_keys
from seesaw_cf.run.external import Requests, read_requests
from seesaw_cf.run.jobs import Job, PromptDesign
from seesaw_cf.run.questions import count_questions, count_spaced
from seesaw_cf.run.units import check_numbers


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
    cases = [choose_prompts(case, job.prompt_design, job.seed) for case in cases]
    if not cases:
        raise RecordError(f"{job.data} {job.asked_configs}: no cases to run. Check --data, --config and --limit.")
    check_numbers(cases)
    requests = read_requests(job.requests, job.changed, cases)
    everything = [case for records, _ in read for case in records]
    return Records(everything, cases, recorded, requests, ",".join(sorted({revision for _, revision in read})))


def choose_prompts(case: Case, design: PromptDesign, seed: int) -> Case:
    """Return a case with the prompts about other people that a design asks, in the order of the record.

    Prompts about one person repeat each other, and a template moves all people alike. So templates and people are drawn
    once for an edit: who is asked with fewer prompts is asked with some of the same templates, and fewer people are
    some of the same people. Source: docs/statistics.md, "Whom to ask".

    Args:
        case: As it is recorded. A prompt without a name counts as one more person.
        design: How many.
        seed: Of both draws.
    """
    prompts, request = case.attribute_prompts, case.request
    rng = random.Random(seed_of("people", seed, request.relation_id, request.text, request.target_new.label))
    people: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, prompt in enumerate(prompts):
        people[prompt.holds, prompt.subject.id or prompt.subject.label or str(place)].append(place)
    # In files that do not name it, the place among the prompts about a person stands for a template.
    templates = {
        place: prompts[place].template_id or f"prompt {number:05d}"
        for own in people.values()
        for number, place in enumerate(own)
    }
    names = sorted(set(templates.values()))
    ranks = {template: rank for rank, template in enumerate(rng.sample(names, len(names)))}
    strata: dict[tuple[str, tuple[str, ...]], list[list[int]]] = defaultdict(list)
    for (holds, _), own in people.items():
        strata[holds, prompts[own[0]].gender].append(sorted(own, key=lambda place: ranks[templates[place]]))
    most, several = (None if n == "all" else n for n in (design.people_per_edit, design.prompts_per_person))
    chosen = [own for stratum in strata.values() for own in rng.sample(stratum, len(stratum))[:most]]
    places = sorted(place for own in chosen for place in own[:several])
    return replace(case, attribute_prompts=tuple(prompts[place] for place in places))


def prompt_counts(cases: Sequence[Case]) -> dict[str, int]:
    """Return how many prompts about how many other people there are."""
    prompts = [prompt for case in cases for prompt in case.attribute_prompts]
    return {"prompts": len(prompts), "people": len({prompt.subject.id or prompt.subject.label for prompt in prompts})}


def _sampled(cases: Sequence[Case], job: Job) -> list[Case]:
    """Return the first `job.limit` cases of a seeded order, put back into file order; all without a limit."""
    if job.limit is None or job.limit >= len(cases):
        return list(cases)
    chosen = np.random.default_rng(job.seed).permutation(len(cases))[: job.limit]
    return [cases[index] for index in sorted(chosen)]


def data_notes(cases: Sequence[Case]) -> list[str]:
    """Say what records lack, what a report cannot show without it and what adds it, and where white space is odd.

    Args:
        cases: The run's.

    Returns:
        Sentences; none for records with everything that was asked of them.
    """
    tag, n = "`seesaw-cf tag RECORDS --source wikidata --out DIR`", f"{len(cases):,}"
    people = [prompt for case in cases for prompt in case.attribute_prompts]
    lacking = [axis for axis in AXES if not any(getattr(prompt, axis) for prompt in people)]
    other = [case for case in cases if case.effect_relation_id not in (None, case.request.relation_id)]
    complete = [case for case in other if case.effect_prompts and case.candidates]
    odd, special = sum(map(count_spaced, cases)), sum(map(has_special_token, cases))
    silent = sum(not case.gold for case in complete)
    notes = {
        f"None of the {n} records asks about other people or another property: the report will have neither groups "
        "nor verdicts. `seesaw-cf build --edits FILE` makes such prompts.": not people and not other,
        f"None of the {len(people):,} prompts about other people has a recorded {' or '.join(lacking)}: effects are "
        f"shown for 'unknown' only there, without groups and verdicts. {tag} adds what a source records.": (
            people and lacking
        ),
        f"{len(other) - len(complete):,} of {len(other):,} cross-property cases have no candidates or no prompts about "
        "the other property: their answers are not compared, and the cross-property accuracy lacks them. "
        f"{tag} adds both where the edited person is found.": len(complete) < len(other),
        f"{silent:,} of {len(complete):,} cross-property cases do not say which candidate is true: they are left out "
        f"of the cross-property accuracy. {tag} adds the true one where a source knows it.": silent,
        f"{odd:,} of {sum(map(count_questions, cases)):,} prompts with an answer have white space at an end or two "
        "spaces in a row: to a model that is another text, by up to 20 nats. `seesaw-cf build --records` flags such "
        "records.": odd,
        f"{special:,} of {n} records hold text such as <s> or </s> in a prompt or answer, which tokenizers read as "
        "their own signs: the model reads two of them, or an end. Remove it from the records.": special,
    }
    unread = Counter(key for case in cases for key in unread_keys(case))
    ignored = [
        f"The key {key!r} of {k:,} of {n} records is not read: nothing of it is asked." for key, k in unread.items()
    ]
    return [*(note for note, applies in notes.items() if applies), *ignored]
