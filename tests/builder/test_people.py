"""What is read about people: names, values that are unknown, tense, tags; and who is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from seesaw_cf.builder_scripts.facts import MARGIN, Facts
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE, entity_iri
from seesaw_cf.records import groups

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


def test_tags_come_from_recorded_groups_alone(small: Callable[..., Facts]) -> None:
    """Every group of the packaged table, one person each; a group outside the table adds nothing."""
    listed = groups.table("ethnic_groups")
    lines = [human(f"Q{n}", f"P {n}", f"; wdt:P172 <{entity_iri(id)}> ") for n, id in enumerate(listed, start=10**6)]
    facts = small("".join(lines) + human("Q1", "Ann", "; wdt:P172 wd:Q99999999 "))
    people = facts.people([f"Q{n}" for n, _ in enumerate(listed, start=10**6)])
    assert len(people) == len(listed)
    for person, row in zip(people, listed.values(), strict=True):
        assert person.race == tuple(sorted(set(groups.values(row["race"]))))
        assert person.region == tuple(sorted(set(groups.values(row["region"]))))
    assert facts.people(["Q1"])[0].race == ()
