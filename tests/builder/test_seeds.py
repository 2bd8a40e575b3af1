"""Edits out of files: who is meant, what makes no edit, zsRE questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.cases import cross_subject
from seesaw_cf.builder_scripts.edits import asked_relation, read_seeds, seed_edits
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.errors import RecordError
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import Case, EditRequest, Entity

from .conftest import ENGLISH, FRENCH, JAZZ, PHYSICS, RECORDS, record

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


@pytest.mark.parametrize(
    ("question", "relation_id"),
    [
        ("What gender is {}?", "P21"), ("What is {}'s field of work?", "P101"), ("{} specializes in what?", "P101"),
        ("What country is {} a citizen of?", "P27"), ("What was the nationality of {}?", "P27"),
        ("In which city was {} born?", "P19"), ("Where was {} born?", "P19"), ("What is the birthplace of {}?", "P19"),
        ("Which language did {} speak natively?", "P103"), ("When was {} born?", ""), ("Who is {}?", ""),
        ("What is the gender and nationality of {}?", ""),
    ],
)  # fmt: skip
def test_the_words_of_a_question_tell_its_relation(question: str, relation_id: str) -> None:
    request = EditRequest(question, "Ann", "", Entity(None, "a"), Entity(None, ""))
    assert asked_relation(Case(0, request, record_format="zsre")) == relation_id


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


def test_two_files_with_the_same_number_are_refused(edits_file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    copy.write_bytes(edits_file.read_bytes())
    with pytest.raises(RecordError, match=r"copy\.json: case_id 7 is in another edits file too"):
        read_seeds([edits_file, copy])
