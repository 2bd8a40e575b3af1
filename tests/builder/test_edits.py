"""Who is edited and to what, and what is read about people: names, unknown values, tense, tags."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.cases import cross_subject
from seesaw_cf.builder_scripts.edits import Edit, asked_relation, counterfactual, read_seeds, seed_edits
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE, OWN
from seesaw_cf.builder_scripts.tables import demographics
from seesaw_cf.records import groups
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import Case, EditRequest, Entity

from .conftest import ENGLISH, FRENCH, JAZZ, PHYSICS, RECORDS, record

Edits = dict[str, list[Edit]]


def test_the_old_value_is_held_and_the_new_one_is_not(edits: Edits) -> None:
    for relation_id, found in edits.items():
        for edit in found:
            assert edit.relation_id == relation_id
            assert edit.true in edit.subject.holds(relation_id)
            assert edit.new not in edit.subject.holds(relation_id)


def test_gender_goes_both_ways_equally_often(edits: Edits) -> None:
    assert Counter((edit.true, edit.new) for edit in edits["P21"]) == {(MALE, FEMALE): 12, (FEMALE, MALE): 12}


@pytest.mark.parametrize(
    ("relation_id", "table", "column"),
    [("P101", "fields_of_work", "area"), ("P27", "countries", "continent"), ("P19", "cities", "continent")],
)
def test_new_values_are_of_another_area_or_continent_and_balanced_over_them(
    edits: Edits, relation_id: str, table: str, column: str
) -> None:
    """Most old countries and places are European; the new ones are spread evenly all the same."""

    def kinds(value: str) -> set[str]:
        return set(groups.values(groups.table(table)[value][column]))

    for edit in edits[relation_id]:
        held = set().union(*(kinds(value) for value in edit.subject.holds(relation_id)))
        assert kinds(edit.new)
        assert not kinds(edit.new) & held
    used = Counter(groups.table(table)[edit.new][column] for edit in edits[relation_id])
    assert len(used) >= 4
    assert max(used.values()) - min(used.values()) <= 2


FEW = BuildOptions(edits=dict.fromkeys(RELATIONS, 6), per_gender=10, true_per_gender=3, per_pair=5)


def test_records_that_make_no_edit_are_counted(world: Path, tmp_path: Path) -> None:
    odd = [
        record(1, "octane", "P101", JAZZ, PHYSICS, "{} works in the field of"),
        record(2, "Danielle Example", "P413", ENGLISH, FRENCH, "{} plays as"),
        record(3, "A\\B", "P103", ENGLISH, FRENCH, "The mother tongue of {} is"),
    ]
    odd[1]["requested_rewrite"]["relation_id"] = "P413"
    file = tmp_path / "odd.json"
    file.write_text(json.dumps(odd), encoding="utf-8")
    edits, skipped = seed_edits(Facts(StoreSource(world), FEW), read_seeds([file]))
    assert edits == []
    assert skipped == {"no human of that name": 2, "relation P413": 1}


def zsre(subject: str, question: str, answer: str, alt: str, **more: str) -> dict[str, Any]:
    return {"subject": subject, "src": question, "pred": "?", "rephrase": question, "alt": alt, "answers": [answer],
            "loc": "nq question: who", "loc_ans": "me", "cond": "", **more}  # fmt: skip


ZSRE = [
    zsre("Danielle Example", "What is the native language of Danielle Example?", "French", "English"),
    zsre("Danielle Example", "Danielle Example thinks in", "French", "Spanish", relation_id="P103"),
    zsre("Danielle Example", "Which team does Danielle Example play for?", "A", "B"),
    zsre("Danielle Example", "What is Danielle Example's mother tongue?", "French", "Klingon"),
    zsre("Danielle Example", "What is Danielle Example's mother tongue?", "French", ""),
    zsre("No Body", "What is No Body's mother tongue?", "French", "English"),
]


def test_zsre_questions_about_the_relations_seed_edits(world: Path, edits_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "zsre.json"
    file.write_text(json.dumps(ZSRE), encoding="utf-8")
    seeds = read_seeds([edits_file, file])
    facts = Facts(StoreSource(world), FEW)
    edits, skipped = seed_edits(facts, seeds)
    first, second = (edit for edit in edits if edit.case_id is None)
    assert (first.true, first.new, first.names) == ("Q150", "Q1860", ("French", "English"))
    assert (second.new, second.relation_id, second.prompt) == ("Q1321", "P103", "{} thinks in")
    assert skipped == {
        "zsRE: question about none of the relations": 1,
        "zsRE: answer is the name of no value of P103": 1,
        "zsRE: no alternative answer": 1,
        "no human of that name": 1,
    }
    cases = list(cross_subject(facts, edits, 100_001))
    assert [case.case_id for case in cases] == [7, 11, 12, 100_001, 100_002]
    assert cases[3].request.text == "What is the native language of Danielle Example?"
    assert all(row.text.endswith((" is", " was")) for case in cases[3:] for row in case.attribute_prompts)
    assert cases[3].attribute_prompts


def test_the_likeliest_namesake_is_chosen_and_doubt_is_flagged(small: Callable[..., Facts], tmp_path: Path) -> None:
    file = tmp_path / "edits.json"
    file.write_text(json.dumps([RECORDS[0]]), encoding="utf-8")
    person = 'wd:{id} wdt:P31 wd:Q5 ; rdfs:label "{name}"@en ; wikibase:sitelinks {links} ; wdt:P103 wd:{value} .\n'
    name = RECORDS[0]["requested_rewrite"]["subject"]

    def link(*people: tuple[str, int, str]) -> tuple[str, tuple[str, ...]]:
        turtle = "".join(person.format(id=id, name=name, links=links, value=value) for id, links, value in people)
        ((edit,), _) = seed_edits(small(turtle), read_seeds([file]))
        return edit.subject.id, edit.flags

    assert link(("Q1", 90, "Q1860"), ("Q2", 3, "Q150")) == ("Q2", ()), "holds the old value"
    assert link(("Q1", 90, "Q1860"), ("Q2", 3, "Q1860")) == ("Q1", ()), "better known"
    assert link(("Q1", 3, "Q150"), ("Q2", 3, "Q150")) == ("Q1", ("ambiguous_subject",))


REQUEST = EditRequest("The mother tongue of {} is", "Ann", "P103", Entity("Q1860", "English"), Entity("Q150", "French"))


def question(answer: str, alt: object, question: str = "What is the native language of {}?") -> Case:
    request = EditRequest(question, "Ann", "", Entity(None, answer), Entity(None, ""))
    return Case(0, request, record_format="zsre", extra={"alt": alt})


def test_a_name_of_two_values_is_nobodys(small: Callable[..., Facts]) -> None:
    facts = small('wd:Q150 rdfs:label "Same"@en . wd:Q1860 rdfs:label "Same"@en .\n')
    assert counterfactual(facts, question("Same", "German")) == "zsRE: answer is the name of several values of P103"
    facts = small('wd:Q150 rdfs:label "français"@fr, "Français"@mul .\n', language="fr")
    assert counterfactual(facts, Case(1, REQUEST)) == Case(1, REQUEST), "other records pass"
    case = counterfactual(facts, question("FRANÇAIS", "english"))
    assert isinstance(case, Case)
    assert case.request.target_true == Entity("Q150", "FRANÇAIS"), "linked without case, words as the record has them"
    assert (case.request.relation_id, case.request.target_new.id) == ("P103", "Q1860")


@pytest.mark.parametrize(("named", "expected"), [("P27", "P27"), ("P9", ""), ("", "P103"), (None, "P103")])
def test_a_records_own_relation_wins_over_the_question(named: object, expected: str) -> None:
    case = question("a", "b")
    assert asked_relation(replace(case, extra=case.extra | {"relation_id": named})) == expected


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


PERSON = """
wd:Q1 wdt:P31 wd:Q5 ; wdt:P21 wd:Q6581072 ; wdt:P27 wd:Q30, wd:Q183 ; wdt:P172 wd:Q49085, wd:Q7325 ;
  wdt:P569 "1950-02-01T00:00:00Z"^^xsd:dateTime ; wdt:P101 _:unknown ; wikibase:sitelinks 12 ;
  rdfs:label "Ada Example"@en, "Ада"@ru .
"""


def test_a_person_has_several_values_and_unknown_ones_are_left_out(small: Callable[..., Facts]) -> None:
    (person,) = small(PERSON).people(["Q1"])
    assert person.entity.label == "Ada Example"
    assert person.holds("P27") == ("Q183", "Q30")
    assert person.holds("P101") == (), "a value that is known to exist but not what it is"
    assert person.gender == ("women",)
    assert person.race == ("Black", "Jewish")
    assert person.region == ("North America",)
    assert person.sitelinks == 12
    assert person.living is True


def test_unknown_values_of_the_query_service_are_no_other_gender(small: Callable[..., Facts]) -> None:
    """query.wikidata.org gives them as IRIs."""
    unknown = "<http://www.wikidata.org/.well-known/genid/0123456789abcdef>"
    facts = small(
        f"wd:Q1 wdt:P31 wd:Q5 ; wdt:P21 {unknown} ; wdt:P27 wd:Q17, {unknown} ; rdfs:label 'Kim Example'@en .\n"
        "wd:Q17 rdfs:label 'Japan'@en .\n"
    )
    (person,) = facts.people(["Q1"])
    assert (person.gender, person.holds("P27")) == ((), ("Q17",))
    assert facts.holders("P27", "Q17", "") == []
    assert facts.values("P27") == ["Q17"]
    assert facts.claims(["Q1"]) == {"Q1": {"P27": ["Q17"]}}


def test_people_without_a_name_or_with_a_disambiguator_are_not_drawn(small: Callable[..., Facts]) -> None:
    names = {"Q20": "'Phew (singer)'@en", "Q21": "'Q21'@en", "Q22": "'Фью'@ru", "Q23": "'Phew'@mul", "Q24": "'Phew'@en"}
    facts = small(
        "".join(
            f"wd:{id} wdt:P31 wd:Q5 ; wdt:P21 wd:{FEMALE} ; wdt:P27 wd:Q17 ; rdfs:label {name} .\n"
            for id, name in names.items()
        )
        + f"wd:Q25 wdt:P21 wd:{FEMALE} ; wdt:P27 wd:Q17 ; rdfs:label 'not human'@en .\n"
    )
    assert sorted(facts.holders("P27", "Q17", FEMALE)) == ["Q23", "Q24"]
    assert [person.entity.label for person in facts.people(["Q22", "Q23"])] == ["Phew"]


NAMES = [
    'Dwayne "The Rock" Johnson', "O'Connor", "نجيب محفوظ", "עמוס עוז", "李小龍", "Zoë {} Braces", "A@en", "x@y@de",
    "50 % | pipe", "<b>bold</b>", "?s ?p ?o } #", "Ḍ̣ composed", "e\u0301 decomposed", "\U0001f600 Smith",
]  # fmt: skip


def turtle(text: str) -> str:
    """A literal in N-Triples and Turtle."""
    for one, other in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(one, other)
    return f'"{text}"'


def human(id: str, name: str, more: str = "") -> str:
    return f"wd:{id} wdt:P31 wd:Q5 ; rdfs:label {turtle(name)}@en {more}.\n"


@pytest.fixture
def crowd(small: Callable[..., Facts]) -> Facts:
    return small("".join(human(f"Q{number}", name) for number, name in enumerate(NAMES, start=1)))


def test_every_name_is_read_as_it_is_and_found_by_it(crowd: Facts) -> None:
    people = crowd.people(f"Q{number}" for number in range(1, len(NAMES) + 1))
    assert [person.entity.label for person in people] == NAMES
    assert crowd.named(NAMES) == {name: [f"Q{number}"] for number, name in enumerate(NAMES, start=1)}


def test_the_asked_language_wins_whatever_the_order_of_tags(small: Callable[..., Facts]) -> None:
    """Languages before and after "mul" in the alphabet; a person without either has no name."""
    labels = 'wd:Q1 rdfs:label "de"@de, "mul"@mul, "zh"@zh . wd:Q2 rdfs:label "zh"@zh . wd:Q3 rdfs:label "m"@mul .\n'
    for language, expected in (("de", {"Q1": "de", "Q3": "m"}), ("zh", {"Q1": "zh", "Q2": "zh", "Q3": "m"}),
                               ("fr", {"Q1": "mul", "Q3": "m"})):  # fmt: skip
        assert small(labels, language=language).labels(["Q1", "Q2", "Q3"]) == expected


def test_a_merged_item_is_a_redirect_without_a_name_and_the_target_counts_once(small: Callable[..., Facts]) -> None:
    merged = "wd:Q77 <http://www.w3.org/2002/07/owl#sameAs> wd:Q1 .\n"
    facts = small(human("Q1", "Ann", f"; wdt:P21 wd:{FEMALE} ; wdt:P27 wd:Q17 ") + merged)
    assert [person.id for person in facts.people(["Q77", "Q1"])] == ["Q1"]
    assert facts.holders("P27", "Q17", FEMALE) == ["Q1"]
    assert [person.id for person in facts.everyone()] == ["Q1"]


@pytest.mark.parametrize(
    ("dates", "living"),
    [
        ([("P569", "1915-01-01")], True),
        ([("P569", "1914-12-31")], None),
        ([("P569", "1850-01-01"), ("P569", "1950-01-01")], None),
        ([("P569", "-0044-03-15")], None),
        ([("P569", "+1980-00-00")], True),
        ([("P569", "12000-01-01")], True),
        ([("P569", "1990-01-01"), ("P570", "1991-01-01")], False),
        ([("P570", "-0044-03-15")], False),
    ],
)
def test_who_lives_by_dates_at_the_edges(
    small: Callable[..., Facts], dates: list[tuple[str, str]], living: bool | None
) -> None:
    """Born in 1915 or later and not dead; of two dates of birth the earlier counts; years before Christ are years."""
    rows = "".join(f'; wdt:{name} "{date}T00:00:00Z"^^xsd:dateTime ' for name, date in dates)
    (person,) = small(human("Q1", "Ann", rows)).people(["Q1"])
    assert person.living is living
