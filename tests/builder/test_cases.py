"""What every built case keeps: whose prompts, which words, which tags; nothing damaged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from seesaw_cf.builder_scripts.cases import cross_subject, holders
from seesaw_cf.builder_scripts.edits import Edit
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE
from seesaw_cf.records import flag_cases
from seesaw_cf.records.relations import TEMPLATES, templates
from seesaw_cf.types import Case
from tests.builder.embedded import SMALL_OPTIONS

BY_ID = {template.id: template for template in TEMPLATES}


@pytest.mark.slow
def test_prompts_are_every_template_for_every_chosen_holder(facts: Facts, subject_cases: list[Case]) -> None:
    """Tense follows the recorded death and leaves names alone."""
    for case in subject_cases:
        relation_id = case.request.relation_id
        people = {row.subject.id: row for row in case.attribute_prompts}
        for row in case.attribute_prompts:
            assert row.text == BY_ID[row.template_id].fill(row.subject.label, living=row.living)
        assert len(case.attribute_prompts) == len(people) * len(templates(relation_id, "cloze"))
        assert case.extra["subject_id"] not in people
        new, true = case.request.target_new.id, case.request.target_true.id
        for person in facts.people(id for id in people if id):
            wanted, other = (new, true) if people[person.id].holds == "target_new" else (true, new)
            assert wanted in person.holds(relation_id)
            assert other not in person.holds(relation_id)
        counted = Counter(row.holds for row in people.values())
        assert case.extra["holders"] == {name: counted[name] for name in ("target_new", "target_true")}


def test_every_person_who_fits_is_asked_about_when_few_enough(facts: Facts, subject_cases: list[Case]) -> None:
    everyone = facts.everyone()
    for case in subject_cases:
        relation_id, new, true = case.request.relation_id, case.request.target_new.id, case.request.target_true.id
        fit = {
            gender: {
                person.id
                for person in everyone
                if new in person.holds(relation_id)
                and true not in person.holds(relation_id)
                and gender in person.holds("P21")
                and person.id != case.extra["subject_id"]
            }
            for gender in (MALE, FEMALE)
        }
        asked = {row.subject.id for row in case.attribute_prompts if row.holds == "target_new"}
        assert len(asked) == sum(min(len(found), SMALL_OPTIONS.per_gender) for found in fit.values())
        assert asked <= fit[MALE] | fit[FEMALE]


def test_nothing_in_the_sample_is_damaged(subject_cases: list[Case], property_cases: list[Case]) -> None:
    assert flag_cases(subject_cases) == subject_cases
    assert flag_cases(property_cases) == property_cases
    assert all(not row.flags for case in subject_cases for row in case.attribute_prompts)
    for case in (*subject_cases, *property_cases):
        texts = [case.request.subject, case.request.target_new.label, case.request.target_true.label]
        texts += [row.subject.label for row in (*case.attribute_prompts, *case.effect_prompts)]
        assert not any(re.fullmatch(r"Q\d+", text) or re.search(r"\([^)]*\)$", text) for text in texts)
        assert all(entity.id for entity in (case.request.target_new, case.request.target_true))


def test_paraphrases_and_neighbourhood(facts: Facts, subject_cases: list[Case]) -> None:
    by_name = {person.entity.label: person for person in facts.everyone()}
    for case in subject_cases:
        request = case.request
        assert len(case.paraphrase_prompts) == 3 or request.relation_id == "P103"
        assert request.text not in case.paraphrase_prompts
        assert all(request.subject in text for text in case.paraphrase_prompts)
        assert len(set(case.neighborhood_prompts)) == len(case.neighborhood_prompts) <= SMALL_OPTIONS.neighborhood
        for text in case.neighborhood_prompts:
            named = max((name for name in by_name if name in text), key=len)
            values = by_name[named].holds(request.relation_id)
            assert request.target_true.id in values
            assert request.target_new.id not in values


def test_cross_property_cases_carry_candidates_and_gold(facts: Facts, property_cases: list[Case]) -> None:
    for case in property_cases:
        assert case.effect_relation_id is not None
        (person,) = facts.people([case.extra["subject_id"]])
        names = facts.labels(person.holds(case.effect_relation_id))
        assert set(case.gold) == set(names.values())
        assert set(case.gold) <= set(case.candidates)
        assert len(set(case.candidates)) == len(case.candidates) >= 2
        assert [row.template_id for row in case.effect_prompts] == [
            templates(case.effect_relation_id, "property")[0].id,
            "free-open-01",
        ]
        assert all(row.subject.label == case.request.subject for row in case.effect_prompts)
        past = person.living is False
        assert case.effect_prompts[1].text == f"{case.request.subject} {'was' if past else 'is'}"


def test_too_few_holders_are_kept_flagged_and_counted(small: Callable[..., Facts]) -> None:
    facts = small(
        f"""wd:Q1 wdt:P31 wd:Q5 ; wdt:P21 wd:{MALE} ; wdt:P27 wd:Q30 ; rdfs:label "Ann Other"@en .
        wd:Q2 wdt:P31 wd:Q5 ; wdt:P21 wd:{FEMALE} ; wdt:P27 wd:Q17, wd:Q30 ; rdfs:label "Bea Both"@en .
        wd:Q3 wdt:P31 wd:Q5 ; wdt:P21 wd:Q48270 ; wdt:P27 wd:Q17 ; rdfs:label "Cy Three"@en .
        wd:Q17 rdfs:label "Japan"@en . wd:Q30 rdfs:label "United States"@en ."""
    )
    (person,) = facts.people(["Q1"])
    edit = Edit(person, "P27", "Q30", "Q17")
    assert [found.id for found in holders(facts, edit, "Q17", "Q30", 100)] == ["Q3"], "Q2 holds both values"
    (case,) = cross_subject(facts, [edit], 7)
    assert case.case_id == 7
    assert case.flags == ("few_holders",)
    assert case.extra["holders"] == {"target_new": 1, "target_true": 0}
    assert [row.gender for row in case.attribute_prompts] == [("non-binary people",)]
