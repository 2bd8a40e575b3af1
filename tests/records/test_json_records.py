"""One JSON record ↔ one Case: exact for all formats, and every kind of damage has its message."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings

from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.records import cases_to_table, parse_record, table_to_cases, write_record
from tests.records import samples


@given(samples.records())
@settings(max_examples=150, deadline=None)
def test_json_case_parquet_case_json(record: dict[str, Any]) -> None:
    before = copy.deepcopy(record)
    case = parse_record(record, number=3)
    assert record == before
    (back,) = table_to_cases(cases_to_table([case]))
    assert back == case
    # Through text, so that 1, 1.0 and true count as different.
    assert json.dumps(write_record(back), sort_keys=True) == json.dumps(before, sort_keys=True)


@pytest.mark.parametrize("kind", samples.RECORDS)
def test_the_keys_tell_the_format(kind: str) -> None:
    case = parse_record(samples.RECORDS[kind])
    assert case.record_format == kind
    assert write_record(case) == samples.RECORDS[kind]


@pytest.mark.parametrize(
    ("relation", "name", "text", "template", "living"),
    [
        ("P19", "Ada", "Ada was born in", "P19-cloze-01", None),  # one form for both tenses: says nothing
        ("P27", "Ada", "Ada lives in", "", None),  # none of ours
        ("P101", "Ada", "Ada works in the field of ", "P101-cloze-01", None),  # the released trailing space
        ("P101", "Ada", "The expertise of Ada was", "P101-cloze-03", False),
        ("P27", "The works of Ada", "The worked of Ada was a citizen of", "P27-cloze-01", False),  # damaged name
    ],
)
def test_template_and_tense(relation: str, name: str, text: str, template: str, living: bool | None) -> None:
    record = samples.changed(samples.SEESAW, "requested_rewrite.relation_id", relation)
    record |= {"attribute_prompts": [text], "attribute_aux_info": ["Q7259"], "attribute_aux_ent": [name]}
    (row,) = parse_record(record).attribute_prompts
    assert (row.text, row.template_id, row.living) == (text, template, living)


def test_zsre_becomes_an_edit_of_the_first_answer() -> None:
    case = parse_record(samples.ZSRE, number=12)
    assert case.case_id == 12
    assert case.request.prompt == "What university did {} attend?"
    assert case.request.target_new.label == "Illinois Institute of Technology"
    assert case.request.target_true.label == ""
    assert case.paraphrase_prompts == (samples.ZSRE["rephrase"],)
    assert case.neighborhood_prompts == (samples.ZSRE["loc"],)
    assert case.extra["loc_ans"] == "Hugo Weaving"
    assert case.extra["answers"] == samples.ZSRE["answers"]


def test_easyedit_asks_its_whole_prompt_and_may_not_know_the_old_answer() -> None:
    case = parse_record(samples.EASYEDIT)
    assert case.request.prompt == "The mother tongue of {} is"
    assert (case.request.target_new.label, case.request.target_true.label) == ("English", "French")
    assert (case.request.relation_id, case.case_id) == ("", 3)
    assert case.paraphrase_prompts == (samples.EASYEDIT["rephrase_prompt"],)
    bare = parse_record({key: samples.EASYEDIT[key] for key in ("subject", "prompt", "target_new")}, number=8)
    assert (bare.case_id, bare.request.target_true.label, bare.paraphrase_prompts) == (8, "", ())


DAMAGE = [
    ("seesaw", "attribute_aux_ent", ..., "missing 'attribute_aux_ent'"),
    ("seesaw", "case_id", ..., "missing 'case_id'"),
    ("seesaw", "case_id", "7", "case_id is '7', expected a whole number"),
    ("seesaw", "case_id", True, "case_id is True"),
    ("seesaw", "case_id", 2**63, "case_id is 9223372036854775808"),
    ("seesaw", "attribute_aux_info", ["Q1"], "attribute_prompts has 2, attribute_aux_info has 1"),
    ("seesaw", "attribute_prompts", "text", "attribute_prompts is 'text', expected a list of texts"),
    ("seesaw", "attribute_prompts", ["a", 5], r"attribute_prompts\[1\] is 5"),
    ("seesaw", "generation_prompts", [" "], r"generation_prompts\[0\] is ' '"),
    ("seesaw", "requested_rewrite", [], r"requested_rewrite is \[\]"),
    ("seesaw", "requested_rewrite.subject", ..., "expected an object with .*'subject'"),
    ("seesaw", "requested_rewrite.subject", 5, r"requested_rewrite\.subject is 5"),
    ("seesaw", "requested_rewrite.prompt", "He is", r"has 0 '\{\}' placeholders"),
    ("seesaw", "requested_rewrite.target_new.str", "", r"target_new\.str is ''"),
    ("seesaw", "requested_rewrite.target_new", "Japan", "target_new is 'Japan'"),
    ("seesaw", "requested_rewrite.target_new.id", 17, r"target_new\.id is 17"),
    ("seesaw", "requested_rewrite.target_new.id", "Q36", "both targets are Q36"),
    ("seesaw", "requested_rewrite.relation_id", "P102", r"unknown relation 'P102'\. Did you mean .*'P10[13]'"),
    ("eff", "requested_rewrite.relation_id", "P102", "unknown relation 'P102'"),
    ("eff", "attribute_prompts", ["Another is a citizen of"], "expected the edit's own prompt"),
    ("counterfact", "neighborhood_prompts", ..., "missing 'neighborhood_prompts'"),
    ("counterfact", "requested_rewrite.relation_id", "capital", "expected a Wikidata property"),
    ("zsre", "subject", "Nobody", "subject 'Nobody' is not in src"),
    ("zsre", "answers", [], "answers is empty"),
    ("zsre", "answers", [""], r"answers\[0\] is ''"),
    ("zsre", "rephrase", None, "rephrase is None"),
    ("easyedit", "subject", "Nobody", "subject 'Nobody' is not in prompt"),
    ("easyedit", "target_new", " ", "target_new is ' '"),
    ("easyedit", "prompt", ..., "missing 'prompt'"),
]


@pytest.mark.parametrize(("kind", "path", "value", "message"), DAMAGE)
def test_damage_is_explained(kind: str, path: str, value: Any, message: str) -> None:
    with pytest.raises((RecordError, UnknownNameError), match=rf"(?s)^file\.json: record 3.*{message}"):
        parse_record(samples.changed(samples.RECORDS[kind], path, value), where="file.json: record 3")


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, {"prompt": "x"}])
def test_what_is_no_record(value: Any) -> None:
    with pytest.raises(RecordError, match=r"^file: .*[Ee]xpected"):
        parse_record(value, where="file")
