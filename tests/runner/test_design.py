"""Whom an edit's prompts are about, drawn once for all of its people, and which answers a target is ranked among."""

import math
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.errors import RecordError, RunFolderError, UnknownNameError
from seesaw_cf.records.load import load_cases
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import DESIGNS, Job, Number, PromptDesign
from seesaw_cf.run.manifest import claim_folder
from seesaw_cf.run.prepare import choose_prompts, prompt_counts
from seesaw_cf.run.questions import MOST_CANDIDATES, candidates_of
from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import AttributePrompt, Case, Cloze, EditRequest, Entity
from tests.runner import small
from tests.tokenizer_styles import byte_level

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
    job = Job("seesaw-tiny", editors=("ft",), prompts="paper", people_per_edit=7)
    assert job.prompt_design == PromptDesign("all", 7)
    with pytest.raises(RecordError, match="audit: people_per_edit is 0, expected a whole number"):
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


def case(number: int, true: str, new: str, subject: str = "", relation: str = "P19") -> Case:
    request = EditRequest("{} was born in", subject or f"S{number}", relation, Entity(None, new), Entity(None, true))
    return Case(number, request)


def test_every_target_of_the_relation_is_a_candidate_the_own_ones_first() -> None:
    found = candidates_of([case(1, "Paris", "Rome"), case(2, "Oslo", "Paris"), case(3, "law", "art", relation="P101")])
    assert found.of(case(1, "Paris", "Rome")) == ("Paris", "Rome", "Oslo")
    assert found.of(case(3, "law", "art", relation="P101")) == ("law", "art")
    assert found.clozes(case(1, "Paris", "Rome"))[2] == Cloze("S1 was born in", "Oslo")


def test_what_is_also_true_of_the_subject_is_no_competitor() -> None:
    records = [
        case(1, "Paris", "Rome", "Ada"),
        case(2, "Oslo", "Rome", "Ada"),
        replace(case(3, "x", "y", "Ada", "P27"), effect_relation_id="P19", candidates=("Bonn", "Kyiv"), gold=("Bonn",)),
        case(4, "Riga", "Rome", "Bob"),
    ]
    assert set(candidates_of(records).of(records[0])) == {"Paris", "Rome", "Kyiv", "Riga"}
    assert set(candidates_of(records).of(records[3])) == {"Riga", "Rome", "Paris", "Oslo", "Bonn", "Kyiv"}


def test_there_are_never_more_than_stated_and_the_seed_draws_them() -> None:
    records = [case(number, f"T{number:03d}", f"N{number:03d}") for number in range(40)]
    one, same, other = (candidates_of(records, seed).of(records[0]) for seed in (0, 0, 1))
    assert len(one) == len(set(one)) == MOST_CANDIDATES
    assert one[:2] == ("T000", "N000")
    assert one == same != other
    assert candidates_of(reversed(records)).of(records[0]) == one


@pytest.mark.slow
def test_a_run_scores_the_candidates_before_the_edit(tmp_path: Path) -> None:
    base, tokenizer, made = small.model(), byte_level(bos=False), small.cases()
    extra = [case(100 + number, f"City {number}", "London") for number in range(3)]
    found = candidates_of([*made, *extra])
    run = Run(
        base, tokenizer, HFScorer(base, tokenizer), {"nudge": small.Nudge()}, made, small.manifest(base), tmp_path,
        progress=False, candidates=found,
    )  # fmt: skip
    run.complete()
    rows = pq.read_table(tmp_path / "edits.parquet").to_pylist()
    for row, asked in zip(rows, made, strict=True):
        scores = HFScorer(base, tokenizer).score(found.clozes(asked))
        logprobs = np.array([score.logprob for score in scores])
        assert row["candidates"] == list(found.of(asked))
        assert row["candidates_pre"] == pytest.approx(logprobs.tolist(), abs=1e-4)
        assert row["n_candidates"] == len(logprobs) == (5 if asked.request.relation_id == "P19" else 2)
        assert row["candidates_pre"][:2] == pytest.approx([row["true_pre"], row["new_pre"]], abs=0)
        assert row["true_rank"] == 1 + int((logprobs[1:] >= logprobs[0]).sum())
        assert row["true_share"] == pytest.approx(math.exp(logprobs[0]) / np.exp(logprobs).sum(), rel=1e-3)
        assert row["known"] is (row["true_rank"] == 1)
    scored = pq.read_table(tmp_path / "scores.parquet")["target"].to_pylist()
    assert not {name for name in scored if name.startswith("City")}, "candidates are not asked after the edit"
