"""Parts between facts and files by hand and by law: couples, zsRE answers, prompts, endpoint options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.cases import generation_prompts
from seesaw_cf.builder_scripts.coupled import (
    Profile,
    RecordedClaims,
    edits_of,
)
from seesaw_cf.builder_scripts.edits import ATTRIBUTES, listed_values
from seesaw_cf.builder_scripts.jobs import BuildOptions
from seesaw_cf.builder_scripts.jobs import paper as paper_rules
from seesaw_cf.builder_scripts.people import FEMALE, Facts
from seesaw_cf.builder_scripts.seeds import asked_relation, rewrites
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.builder_scripts.sparql import OWN
from seesaw_cf.builder_scripts.tables import WORDINGS, candidates, demographics, prompt, prompt_properties
from seesaw_cf.records import groups
from seesaw_cf.records.open_ended import OPEN_ENDED, open_ended
from seesaw_cf.records.relations import FREE, RELATIONS, templates
from seesaw_cf.types import Case, EditRequest, Entity

from .conftest import PREFIXES

REQUEST = EditRequest("The mother tongue of {} is", "Ann", "P103", Entity("Q1860", "English"), Entity("Q150", "French"))


def zsre(answer: str, alt: object, question: str = "What is the native language of {}?") -> Case:
    request = EditRequest(question, "Ann", "", Entity(None, answer), Entity(None, ""))
    return Case(0, request, record_format="zsre", extra={"alt": alt})


def test_a_zsre_record_is_two_edits_and_others_are_one() -> None:
    (plain,) = edits_of([Case(1, REQUEST)])
    assert plain[1:] == ("counterfactual", REQUEST.target_true)
    factual, counter = edits_of([zsre("French", " English ")])
    assert factual[1:] == ("factual", Entity(None, "French"))
    assert counter[0].request.target_new == Entity(None, "English"), "white space is no part of an answer"
    assert counter[0].request.target_true == counter[2] == Entity(None, "French")
    for alt in (None, "", "  ", "French", " French"):
        assert [kind for _, kind, _ in edits_of([zsre("French", alt)])] == ["factual"]


HOW = st.sampled_from(["other", "target", "shared", None])


@given(st.dictionaries(st.from_regex(r"P[1-9][0-9]?", fullmatch=True), HOW, max_size=14), st.booleans())
def test_prompts_name_at_most_ten_properties_the_coupled_ones_first(held: dict[str, str | None], whole: bool) -> None:
    coupled = {name: how for name, how in held.items() if how}
    profile = Profile(Entity("Q1", "x"), {name: ["Q2"] for name in held}, coupled)
    labels = {name: f"label {name}" for name in held}
    found = prompt_properties(profile, labels, whole=whole)
    order = ["other", "target", "shared", ""]
    assert len(found) == min(10, len(held) if whole else len(coupled))
    keys = [(order.index(coupled.get(name, "")), labels[name]) for name in found]
    assert keys == sorted(keys)
    left = [(order.index(coupled.get(name, "")), labels[name]) for name in held if name not in found]
    assert whole or not any(name not in coupled for name in found)
    assert not (keys and whole) or all(key > keys[-1] for key in left)


@given(st.text(max_size=8), st.lists(st.text(max_size=4), max_size=3), st.sampled_from(sorted(WORDINGS)))
def test_a_prompt_is_its_wording_and_a_line_per_property(name: str, properties: list[str], wording: str) -> None:
    text = prompt(wording, name, properties)
    head = WORDINGS[wording].split("{name}")
    assert text.startswith(head[0] + name + head[1])
    assert text.removeprefix(head[0] + name + head[1]) == "".join(f"\n- {item}" for item in properties)


def test_claims_are_asked_once_and_excluded_properties_left_out(tmp_path: Path) -> None:
    (excluded, *_) = groups.table("excluded_properties")
    lines = f'wd:Q1 wdt:P27 wd:Q3, wd:Q2 ; wdt:{excluded} wd:Q9 ; wdt:P569 "1900-01-01T00:00:00Z"^^xsd:dateTime .\n'
    (tmp_path / "a.ttl").write_text(PREFIXES + lines, encoding="utf-8")
    source = StoreSource(tmp_path / "a.ttl")
    claims = RecordedClaims(source, Facts(source, BuildOptions()))
    assert claims.of(["Q1", "Q8"]) == {"Q1": {"P27": ["Q2", "Q3"]}, "Q8": {}}
    assert claims.of(iter(["Q8"])) == {"Q8": {}}


@pytest.mark.parametrize(
    ("answer", "alt", "reason"),
    [
        ("French", "", "zsRE: no alternative answer"),
        ("French", "French", "zsRE: no alternative answer"),
        ("French", None, "zsRE: no alternative answer"),
        ("French", "Klingon", "zsRE: answer is the name of no value of P103"),
        ("Dwarvish", "French", "zsRE: answer is the name of no value of P103"),
    ],
)
def test_zsre_answers_that_make_no_edit_are_counted(
    small: Callable[..., Facts], answer: str, alt: object, reason: str
) -> None:
    found, skipped = rewrites(small(""), [zsre(answer, alt), Case(1, REQUEST)])
    assert found == [Case(1, REQUEST)], "other records pass"
    assert skipped == {reason: 1}


def test_zsre_answers_are_linked_without_case_and_by_the_sources_own_names(small: Callable[..., Facts]) -> None:
    facts = small('wd:Q150 rdfs:label "français"@fr, "Français"@mul .\n', language="fr")
    (case,), skipped = rewrites(facts, [zsre("FRANÇAIS", "english")])
    assert (case.request.relation_id, case.request.target_true.id, case.request.target_new.id) == (
        "P103",
        "Q150",
        "Q1860",
    )
    assert (case.request.target_true.label, skipped) == ("FRANÇAIS", {}), "words stay as the record has them"


def test_a_name_of_two_values_is_nobodys(small: Callable[..., Facts]) -> None:
    facts = small('wd:Q150 rdfs:label "Same"@en . wd:Q1860 rdfs:label "Same"@en .\n')
    assert rewrites(facts, [zsre("Same", "German")])[1] == {"zsRE: answer is the name of several values of P103": 1}


@pytest.mark.parametrize(("named", "expected"), [("P27", "P27"), ("P9", ""), ("", "P103"), (None, "P103")])
def test_a_records_own_relation_wins_over_the_question(named: object, expected: str) -> None:
    case = zsre("a", "b")
    assert asked_relation(replace(case, extra=case.extra | {"relation_id": named})) == expected


@pytest.mark.parametrize("relation_id", RELATIONS)
@pytest.mark.parametrize("watched", [None, "P101", "P27"])
@pytest.mark.parametrize("paper", [False, True])
def test_open_ended_prompts_are_guided_then_free(
    small: Callable[..., Facts], relation_id: str, watched: str | None, paper: bool
) -> None:
    (person,) = small('wd:Q1 rdfs:label "Ann Lee"@en ; wdt:P570 _:died .\n').people(["Q1"])
    options = paper_rules(BuildOptions()) if paper else BuildOptions()
    found = generation_prompts(person, relation_id, watched, options)
    guided = templates(watched, "property") if watched else templates(relation_id, "open")
    expected = [template.past.replace("{}", "Ann Lee") for template in guided]
    expected += [] if paper and not watched and relation_id in ("P101", "P103") else ["Ann Lee was"]
    assert list(found) == [text for text in expected for _ in range(5 if paper else 1)]


def test_the_table_of_open_ended_prompts_names_the_free_one_in_both_tenses() -> None:
    case = Case(7, REQUEST, generation_prompts=("Ann is", "Ann was", "Ann is known for"), extra={"subject_id": "Q5"})
    rows = open_ended("cross_subject", [case]).to_pylist()
    assert [row["use"] for row in rows] == ["free", "free", "guided"]
    assert rows[0]["requested_rewrite"]["target_new"] == {"str": "English", "id": "Q1860"}
    assert open_ended("x", []).schema.equals(OPEN_ENDED)
    assert FREE.id == "free-open-01"


def test_candidates_are_the_listed_values_that_somebody_holds(small: Callable[..., Facts]) -> None:
    facts = small(
        "wd:Q1 wdt:P27 wd:Q142, wd:Q30 ; wdt:P103 wd:Q150 .\n"
        'wd:Q142 rdfs:label "France"@en . wd:Q30 rdfs:label "America"@en .\n'
        'wd:Q183 rdfs:label "Germany"@en . wd:Q150 rdfs:label "French"@en .\n'
    )
    rows = candidates(facts).to_pylist()
    assert [(row["relation_id"], row["label"]) for row in rows] == [
        ("P27", "America"), ("P27", "France"), ("P103", "French"),
    ]  # fmt: skip
    assert [row["continent"] for row in rows[:2]] == [
        list(groups.values(groups.table("countries")[id]["continent"])) for id in ("Q30", "Q142")
    ]
    assert all(row["provenance"] for row in rows)
    assert set(ATTRIBUTES) == set(RELATIONS)
    assert listed_values("P106") == {}


def test_demographics_are_sorted_by_name_and_say_where_they_are_from(small: Callable[..., Facts]) -> None:
    facts = small(
        f'wd:Q2 rdfs:label "Bea"@en ; wdt:P21 wd:{FEMALE} . wd:Q1 rdfs:label "Zoe"@en ; wdt:P27 wd:Q9999 .\n'
        f'<{OWN}ann> rdfs:label "Ann"@en . wd:{FEMALE} rdfs:label "female"@en .\n'
    )
    people = facts.people(["Q1", "Q2", f"{OWN}ann"])
    rows = demographics(facts, people).to_pylist()
    assert [row["label"] for row in rows] == ["Ann", "Bea", "Zoe"]
    assert [row["provenance"] for row in rows] == [[], *([f"https://www.wikidata.org/wiki/Q{n}"] for n in (2, 1))]
    (ann,) = small('<http://example.org/ann> rdfs:label "Ann"@en .').people(["http://example.org/ann"])
    assert demographics(facts, [ann])["provenance"].to_pylist() == [["http://example.org/ann"]], "no page of Wikidata"
    assert rows[1]["sex_or_gender"] == [{"str": "female", "id": FEMALE}]
    assert rows[2]["citizenship"] == [{"str": None, "id": "Q9999"}], "a value without a name is kept by its number"
    assert demographics(facts, []).num_rows == 0
