"""What every built case keeps, and who is drawn: a function of the seed and of who is there, not of order."""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.cases import cross_property, cross_subject, holders
from seesaw_cf.builder_scripts.edits import Edit, generate
from seesaw_cf.builder_scripts.embedded import render
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import Source, StoreSource
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE, entity_iri
from seesaw_cf.records import flag_cases
from seesaw_cf.records.relations import RELATIONS, TEMPLATES, templates
from seesaw_cf.types import Case
from tests.builder.embedded import SMALL_OPTIONS, small_tables

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
        others = [
            person
            for person in everyone
            if new in person.holds(relation_id)
            and true not in person.holds(relation_id)
            and person.id != case.extra["subject_id"]
        ]
        fit = {g: {person.id for person in others if g in person.holds("P21")} for g in (MALE, FEMALE)}
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
        assert set(case.gold) == set(facts.labels(person.holds(case.effect_relation_id)).values())
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


TINY = BuildOptions(edits={"P27": 4, "P21": 2}, per_gender=3, true_per_gender=2, per_pair=2, min_holders=1,
                    grouped_gender=False)  # fmt: skip


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """The sample's first hundred people as N-Triples, with everything that is no person."""
    text = render(*small_tables()).splitlines()
    human = f"<{entity_iri('P31')}> <{entity_iri('Q5')}>"
    left_out = set(sorted(line.split(" ")[0] for line in text if human in line)[100:])
    return [line for line in text if line.split(" ")[0] not in left_out]


def stored(folder: Path, lines: Sequence[str]) -> StoreSource:
    file = folder / "facts.nt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return StoreSource(file)


def cases_of(source: Source, options: BuildOptions = TINY) -> list[Case]:
    facts = Facts(source, options)
    edits = {id: generate(facts, id) for id in RELATIONS}
    return [*cross_subject(facts, [edit for found in edits.values() for edit in found]), *cross_property(facts, edits)]


@pytest.fixture(scope="module")
def expected(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    return cases_of(stored(tmp_path_factory.mktemp("expected"), lines))


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_facts_repeats_and_things_that_are_no_people_change_nothing(
    lines: list[str], expected: list[Case], tmp_path: Path, seed: int
) -> None:
    assert {case.request.relation_id for case in expected} == {"P27", "P21"}
    shuffled = random.Random(seed).sample(lines, len(lines))
    name = "http://www.w3.org/2000/01/rdf-schema#label"
    strangers = [f'<{entity_iri("Q900001")}> <{name}> "A ship"@en .']
    strangers.append(f"<{entity_iri('Q900001')}> <{entity_iri('P27')}> <{entity_iri('Q30')}> .")
    assert cases_of(stored(tmp_path, [*strangers, *shuffled, *lines[::3]])) == expected


def test_another_seed_is_another_draw_with_the_same_rules(lines: list[str], tmp_path: Path) -> None:
    source = stored(tmp_path, lines)
    drawn = [cases_of(source, replace(TINY, seed=seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    subjects = [[case.extra["subject_id"] for case in cases] for cases in drawn]
    assert subjects[0] != subjects[2]
    assert [case.case_id for case in drawn[0] if not case.effect_relation_id] == list(range(1, 7))


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5])
def test_men_and_women_alternate_and_an_odd_number_has_one_man_more(store: StoreSource, number: int) -> None:
    found = generate(Facts(store, replace(SMALL_OPTIONS, edits={"P27": number})), "P27")
    assert [edit.subject.gender for edit in found] == ([("men",), ("women",)] * number)[:number]


def test_holders_are_in_the_order_of_a_hash_of_seed_and_identifier(store: StoreSource) -> None:
    """Computed here with hashlib: SHA-256 of "SEED IRI", as the queries say; the store has all of them."""
    for seed in (0, 7):
        facts = Facts(store, replace(SMALL_OPTIONS, seed=seed))
        found = facts.holders("P27", "Q30", FEMALE)
        assert len(found) > 5
        order = [hashlib.sha256(f"{seed} {entity_iri(id)}".encode()).hexdigest() for id in found]
        assert order == sorted(order)
