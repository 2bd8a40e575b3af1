"""What is read about people: names, values that are unknown, tense, tags; and who is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from seesaw_cf.builder_scripts.coupled import RecordedClaims
from seesaw_cf.builder_scripts.facts import MARGIN, Facts
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE

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
    assert RecordedClaims(facts).of(["Q1"]) == {"Q1": {"P27": ["Q17"]}}


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


def _crowd(size: int, gender: str) -> str:
    return "".join(
        f"wd:Q{number} wdt:P31 wd:Q5 ; wdt:P21 wd:{gender} ; wdt:P27 wd:Q17 ; rdfs:label 'Person {number}'@en .\n"
        for number in range(1000, 1000 + size)
    )


@pytest.mark.slow
def test_holders_are_a_uniform_sample_of_all(small: Callable[..., Facts]) -> None:
    """Over 200 seeds each of 60 people is drawn 200 * 30 / 60 = 100 times, give or take 4 standard deviations (7.1)."""
    drawn: Counter[str] = Counter()
    for seed in range(200):
        facts = small(_crowd(60, MALE), per_gender=30 - MARGIN, true_per_gender=0, seed=seed)
        drawn.update(facts.holders("P27", "Q17", MALE))
    assert len(drawn) == 60
    assert all(abs(count - 100) <= 28 for count in drawn.values())


def test_holders_are_bounded_and_other_genders_are_found(small: Callable[..., Facts]) -> None:
    other = "wd:Q1 wdt:P31 wd:Q5 ; wdt:P21 wd:Q48270 ; wdt:P27 wd:Q17 ; rdfs:label 'Person 1'@en .\n"
    facts = small(_crowd(60, MALE) + other, per_gender=5, true_per_gender=0)
    assert len(facts.holders("P27", "Q17", MALE)) == 5 + MARGIN
    assert facts.holders("P27", "Q17", "") == ["Q1"]
    assert facts.holders("P27", "Q17", FEMALE) == []
