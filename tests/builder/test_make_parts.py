"""Parts between facts and files by hand and by law: couples, zsRE answers, prompts, endpoint options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from seesaw_cf.builder_scripts import PAPER_RULES, BuildOptions
from seesaw_cf.builder_scripts.cases import generation_prompts
from seesaw_cf.builder_scripts.coupled import edits_of
from seesaw_cf.builder_scripts.edits import ATTRIBUTES, asked_relation, counterfactual, listed_values
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import FEMALE, OWN
from seesaw_cf.builder_scripts.tables import candidates, demographics
from seesaw_cf.records import groups
from seesaw_cf.records.relations import RELATIONS, templates
from seesaw_cf.types import Case, EditRequest, Entity

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
    assert counterfactual(small(""), zsre(answer, alt)) == reason
    assert counterfactual(small(""), Case(1, REQUEST)) == Case(1, REQUEST), "other records pass"


def test_a_name_of_two_values_is_nobodys(small: Callable[..., Facts]) -> None:
    facts = small('wd:Q150 rdfs:label "Same"@en . wd:Q1860 rdfs:label "Same"@en .\n')
    assert counterfactual(facts, zsre("Same", "German")) == "zsRE: answer is the name of several values of P103"
    facts = small('wd:Q150 rdfs:label "français"@fr, "Français"@mul .\n', language="fr")
    case = counterfactual(facts, zsre("FRANÇAIS", "english"))
    assert isinstance(case, Case)
    assert case.request.target_true == Entity("Q150", "FRANÇAIS"), "linked without case, words as the record has them"
    assert (case.request.relation_id, case.request.target_new.id) == ("P103", "Q1860")


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
    options = BuildOptions(**PAPER_RULES) if paper else BuildOptions()
    found = generation_prompts(person, relation_id, watched, options)
    guided = templates(watched, "property") if watched else templates(relation_id, "open")
    expected = [template.past.replace("{}", "Ann Lee") for template in guided]
    expected += [] if paper and not watched and relation_id in ("P101", "P103") else ["Ann Lee was"]
    assert list(found) == [text for text in expected for _ in range(5 if paper else 1)]


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
