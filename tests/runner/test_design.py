"""Whom an edit's prompts are about: drawn once for an edit, alike for all of its people."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.errors import RecordError, RunFolderError, UnknownNameError
from seesaw_cf.base.types import AttributePrompt, Case, EditRequest, Entity
from seesaw_cf.records.load import load_cases
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import DESIGNS, Job, Number, PromptDesign
from seesaw_cf.run.manifest import claim_folder
from seesaw_cf.run.prepare import choose_prompts, prompt_counts

_REQUEST = EditRequest("{} works in", "Ada", "P101", Entity("Q1", "physics"), Entity("Q2", "law"))
_NUMBERS = st.one_of(st.just("all"), st.integers(1, 4))


def _case(people: list[tuple[str, str, list[str]]], names: bool = True) -> Case:
    """Return a case with prompts of people: (gender, answer that they hold, templates)."""
    prompts = [
        AttributePrompt(f"person {n} {t}", Entity(f"Q{n}", f"person {n}"), t if names else "", holds, (gender,))
        for n, (gender, holds, templates) in enumerate(people)
        for t in templates
    ]
    return Case(1, _REQUEST, attribute_prompts=tuple(prompts))


def _words(case: Case) -> dict[str, list[str]]:
    words = defaultdict(list)
    for prompt in case.attribute_prompts:
        words[str(prompt.subject.id)].append(prompt.text.split()[-1])
    return words


_PEOPLE = st.lists(
    st.tuples(
        st.sampled_from(["men", "women"]),
        st.sampled_from(["target_new", "target_true"]),
        st.lists(st.sampled_from("abcdef"), min_size=1, unique=True).map(sorted),
    ),
    max_size=12,
)


@given(_PEOPLE, _NUMBERS, _NUMBERS, st.integers(0, 99))
def test_prompts_are_some_of_the_record_in_its_order(
    people: list[tuple[str, str, list[str]]], k: Number, holders: Number, seed: int
) -> None:
    case = _case(people)
    chosen = choose_prompts(case, PromptDesign(k, holders), seed)
    assert list(chosen.attribute_prompts) == [p for p in case.attribute_prompts if p in set(chosen.attribute_prompts)]
    assert replace(chosen, attribute_prompts=case.attribute_prompts) == case
    recorded, asked = _words(case), _words(chosen)
    assert all(len(words) == min(len(recorded[person]), k if k != "all" else 99) for person, words in asked.items())
    strata = Counter((gender, holds) for gender, holds, _ in people)
    assert len(asked) == sum(min(size, holders if holders != "all" else 99) for size in strata.values())


@given(st.integers(2, 9), st.integers(1, 6), st.integers(0, 99), st.booleans())
def test_everybody_of_an_edit_gets_the_same_templates(number: int, k: int, seed: int, names: bool) -> None:
    case = _case([("men", "target_new", list("abcdef"))] * number, names)
    own = {tuple(words) for words in _words(choose_prompts(case, PromptDesign(k), seed)).values()}
    assert len(own) == 1
    fewer = _words(choose_prompts(case, PromptDesign(max(1, k - 1), 1), seed))
    ((person, words),) = fewer.items()
    assert set(words) <= set(next(iter(own)))
    assert person in _words(choose_prompts(case, PromptDesign(k, 2), seed))


def test_the_published_design_asks_every_template_of_a_hundred_holders_of_each_gender() -> None:
    cases = load_cases("sample", "cross_subject")
    asked = [choose_prompts(case, DESIGNS["paper"], 0) for case in cases]
    for case, chosen in zip(cases, asked, strict=True):
        by_person = Counter((p.holds, p.subject.id, p.gender) for p in chosen.attribute_prompts)
        recorded = Counter((p.holds, p.subject.id, p.gender) for p in case.attribute_prompts)
        assert all(recorded[person] == number for person, number in by_person.items())
        holders = Counter((holds, gender) for holds, _, gender in by_person)
        everybody = Counter((holds, gender) for holds, _, gender in recorded)
        assert holders == Counter({key: min(100, number) for key, number in everybody.items()})
    assert prompt_counts(asked)["prompts"] < prompt_counts(cases)["prompts"]


def test_a_number_replaces_that_of_the_design() -> None:
    assert Job("seesaw-tiny", editors=("ft",)).prompt_design == PromptDesign(2, "all")
    assert Job("seesaw-tiny", editors=("ft",), prompts="paper", people_per_edit=7).prompt_design == PromptDesign(
        "all", 7
    )
    with pytest.raises(RecordError, match="people_per_edit is 0, expected a whole number of at least 1, or 'all'"):
        Job("seesaw-tiny", editors=("ft",), people_per_edit=0)
    with pytest.raises(UnknownNameError, match="papre"):
        Job("seesaw-tiny", editors=("ft",), prompts="papre")


@pytest.mark.slow
def test_a_run_records_its_design_and_refuses_another(tmp_path: Path) -> None:
    job = Job("seesaw-tiny", editors=("ft",), data="sample", limit=3, threads=1)
    run = make_run(job, tmp_path)
    assert run.manifest.settings["design"] == {"prompts_per_person": 2, "people_per_edit": "all"}
    counts = run.manifest.data["others"]
    assert isinstance(counts, dict)
    assert counts["asked"] == prompt_counts(run.cases)
    claim_folder(tmp_path, run.manifest)
    with pytest.raises(RunFolderError, match=r"settings\.design\.prompts_per_person: the folder has 2, this run 1"):
        claim_folder(tmp_path, make_run(replace(job, prompts_per_person=1), tmp_path).manifest)
