"""Names as people have them: quotes, right-to-left scripts, several languages; and what becomes of odd identifiers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seesaw_cf.builder_scripts.cases import attribute_prompt, edit_case
from seesaw_cf.builder_scripts.edits import Edit, attribute_set, generate
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE, entity_iri, query
from seesaw_cf.errors import RecordError
from seesaw_cf.records import cases_to_table, groups, table_to_cases
from seesaw_cf.records.relations import templates

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
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


def test_names_reach_prompts_cases_and_tables_unchanged(crowd: Facts) -> None:
    template = templates("P27", "cloze")[0]
    for person in crowd.people(["Q1", "Q3", "Q6"]):
        prompt = attribute_prompt(template, person)
        assert prompt.text == template.present.replace("{}", person.entity.label)
        assert prompt.subject == person.entity
        case = edit_case(crowd, Edit(person, "P27", "Q30", "Q17", names=("Léon | \n 'X'", "Japan")), 5)
        assert case.request.target_true.label == "Léon | \n 'X'"
        assert case.request.text == template.present.replace("{}", person.entity.label)
        assert table_to_cases(cases_to_table([case])) == [case]


@pytest.mark.parametrize("bad", ["no tag", "@en", " @en", "a\\u0022@en", "two\nlines@en", "\u200f@en", "x@EN", 5])
def test_what_is_no_name_never_enters_a_query(bad: object) -> None:
    with pytest.raises(RecordError, match="query parameter 'names': got "):
        query("link", {"names": bad})  # type: ignore[dict-item]


def test_the_asked_language_wins_whatever_the_order_of_tags(small: Callable[..., Facts]) -> None:
    """Languages before and after "mul" in the alphabet; a person without either has no name."""
    labels = 'wd:Q1 rdfs:label "de"@de, "mul"@mul, "zh"@zh . wd:Q2 rdfs:label "zh"@zh . wd:Q3 rdfs:label "m"@mul .\n'
    for language, expected in (("de", {"Q1": "de", "Q3": "m"}), ("zh", {"Q1": "zh", "Q2": "zh", "Q3": "m"}),
                               ("fr", {"Q1": "mul", "Q3": "m"})):  # fmt: skip
        assert small(labels, language=language).labels(["Q1", "Q2", "Q3"]) == expected


def test_a_deleted_item_has_no_name_and_is_left_out(small: Callable[..., Facts]) -> None:
    """Statements still point to it: the value is known by number, and makes neither an edit nor a candidate."""
    facts = small(
        human("Q1", "Ann", f"; wdt:P21 wd:{FEMALE} ; wdt:P27 wd:Q30, wd:Q9999 ")
        + human("Q2", "Bob", f"; wdt:P21 wd:{MALE} ; wdt:P27 wd:Q9999 ")
        + 'wd:Q30 rdfs:label "USA"@en .\n',
        edits={"P27": 4},
        min_holders=0,
    )
    assert facts.people(["Q1"])[0].holds("P27") == ("Q30", "Q9999")
    assert facts.people(["Q4711"]) == [], "a deleted person"
    assert attribute_set(facts, "P27") == ["Q30"]
    assert all("Q9999" not in (edit.true, edit.new) for edit in generate(facts, "P27"))


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


def test_values_are_sorted_without_repeats_and_unknown_ones_leave_no_trace(small: Callable[..., Facts]) -> None:
    (person,) = small(human("Q1", "Ann", "; wdt:P27 wd:Q9, wd:Q10, wd:Q9 ; wdt:P101 _:x ; wdt:P19 wd:Q1 ")).people(
        ["Q1"]
    )
    assert dict(person.values) == {"P27": ("Q10", "Q9"), "P19": ("Q1",)}
    assert (person.gender, person.race, person.region, person.sitelinks) == ((), (), (), None)


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
