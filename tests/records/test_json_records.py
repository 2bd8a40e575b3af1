"""One JSON record ↔ one Case: exact for all formats, and every kind of damage has its message."""

from __future__ import annotations

import copy
import dataclasses
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


def test_seesaw_prompts_get_what_their_text_proves() -> None:
    case = parse_record(samples.SEESAW, effect_relation_id="P101")
    dead, unknown = case.attribute_prompts
    assert case.effect_relation_id == "P101"
    assert (dead.template_id, dead.living, dead.holds) == ("P27-cloze-01", False, "target_new")
    assert (unknown.template_id, unknown.living, unknown.holds) == ("P27-cloze-01", None, "target_new")
    assert (dead.subject.id, dead.subject.label) == ("Q81731", "Murasaki Shikibu")


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


def test_eff_prompt_is_the_edit_itself_and_about_nobody_else() -> None:
    case = parse_record(samples.EFF)
    assert case.attribute_prompts == ()
    assert case.request.text == "Marie Curie is a citizen of"


def test_counterfact_keeps_the_empty_list_and_the_unknown_key() -> None:
    case = parse_record(samples.COUNTERFACT)
    assert case.extra == {"pararel_idx": 2796, "generation_prompts": []}
    assert case.paraphrase_prompts == ("Rain fell. France, which has the capital city",)
    assert [row.text for row in case.attribute_prompts] == ["The Saone flows through"]


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


def test_zsre_subject_twice_in_the_question() -> None:
    record = samples.ZSRE | {"subject": "Ada", "src": "Did Ada know Ada?"}
    case = parse_record(record)
    assert case.request.prompt == "Did {} know Ada?"
    assert write_record(case) == record


def test_people_without_an_id() -> None:
    record = samples.SEESAW | {"attribute_aux_info": [None, "Q11323532"]}
    case = parse_record(record)
    assert [row.subject.id for row in case.attribute_prompts] == [None, "Q11323532"]
    assert write_record(case) == record


SEESAW, EFF, COUNTERFACT, ZSRE = samples.SEESAW, samples.EFF, samples.COUNTERFACT, samples.ZSRE
EASYEDIT = samples.EASYEDIT
WHERE = r"file\.json: record 3"
DAMAGE = [
    (
        SEESAW,
        "attribute_aux_ent",
        ...,
        r"\(case_id 7\): missing 'attribute_aux_ent'; got the keys .*Add what is missing",
    ),
    (SEESAW, "case_id", ..., r"missing 'case_id'"),
    (SEESAW, "case_id", "7", r"case_id is '7', expected a whole number"),
    (SEESAW, "case_id", True, r"case_id is True, expected a whole number"),
    (SEESAW, "case_id", 2**63, r"case_id is 9223372036854775808"),
    (
        SEESAW,
        "attribute_aux_info",
        ["Q1"],
        r"attribute_prompts has 2, attribute_aux_info has 1, attribute_aux_ent has 2",
    ),
    (SEESAW, "attribute_prompts", "text", r"attribute_prompts is 'text', expected a list of texts"),
    (SEESAW, "attribute_prompts", ["a", 5], r"attribute_prompts\[1\] is 5, expected text"),
    (SEESAW, "generation_prompts", [" "], r"generation_prompts\[0\] is ' ', expected text"),
    (SEESAW, "requested_rewrite", [], r"requested_rewrite is \[\], expected an object with 'prompt', 'subject'"),
    (SEESAW, "requested_rewrite.subject", ..., r"requested_rewrite is \{.*expected an object with .*'subject'"),
    (SEESAW, "requested_rewrite.subject", 5, r"requested_rewrite\.subject is 5, expected text"),
    (SEESAW, "requested_rewrite.prompt", "He is", r"prompt 'He is' has 0 '\{\}' placeholders, expected exactly one"),
    (SEESAW, "requested_rewrite.target_new.str", "", r"target_new\.str is '', expected text\. Fill it in or drop"),
    (SEESAW, "requested_rewrite.target_true.str", " ", r"target_true\.str is ' ', expected text"),
    (SEESAW, "requested_rewrite.target_new", "Japan", r"target_new is 'Japan', expected \{'str': name, 'id': QID\}"),
    (SEESAW, "requested_rewrite.target_new.id", 17, r"target_new\.id is 17, expected text"),
    (SEESAW, "requested_rewrite.target_new.id", "Q36", r"both targets are Q36 \('Japan'\), so nothing is edited"),
    (
        EFF,
        "attribute_prompts",
        ["Another is a citizen of"],
        r"expected the edit's own prompt .*Marie Curie is a citizen of",
    ),
    (COUNTERFACT, "neighborhood_prompts", ..., r"missing 'neighborhood_prompts'"),
    (ZSRE, "subject", "Nobody", r"subject 'Nobody' is not in src 'What university"),
    (ZSRE, "answers", [], r"answers is empty, expected at least one"),
    (ZSRE, "answers", [""], r"answers\[0\] is '', expected text"),
    (ZSRE, "rephrase", None, r"rephrase is None, expected text"),
    (EASYEDIT, "subject", "Nobody", r"subject 'Nobody' is not in prompt 'The mother tongue of Danielle"),
    (EASYEDIT, "target_new", " ", r"target_new is ' ', expected text"),
    (EASYEDIT, "prompt", ..., r"missing 'prompt'; .*A record of easyedit needs"),
]


@pytest.mark.parametrize(("record", "path", "value", "message"), DAMAGE)
def test_damage_is_explained(record: dict[str, Any], path: str, value: Any, message: str) -> None:
    with pytest.raises(RecordError, match=rf"(?s)^{WHERE}.*{message}"):
        parse_record(samples.changed(record, path, value), where="file.json: record 3")


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, {"prompt": "x"}])
def test_what_is_no_record(value: Any) -> None:
    with pytest.raises(RecordError, match=rf"^{WHERE}: .*[Ee]xpected"):
        parse_record(value, where="file.json: record 3")


@pytest.mark.parametrize("record", [SEESAW, EFF])
def test_unknown_relation_suggests_near_ones(record: dict[str, Any]) -> None:
    bad = samples.changed(record, "requested_rewrite.relation_id", "P102")
    with pytest.raises(UnknownNameError, match=rf"^{WHERE}.*unknown relation 'P102'\. Did you mean .*'P10[13]'"):
        parse_record(bad, where="file.json: record 3")


def test_counterfact_takes_any_property_but_nothing_else() -> None:
    assert parse_record(COUNTERFACT).request.relation_id == "P36"
    with pytest.raises(UnknownNameError, match="unknown relation 'capital', expected a Wikidata property"):
        parse_record(samples.changed(COUNTERFACT, "requested_rewrite.relation_id", "capital"))


def test_unknown_format_on_writing() -> None:

    case = dataclasses.replace(parse_record(SEESAW), record_format="zsrre")
    with pytest.raises(UnknownNameError, match=r"unknown record format 'zsrre'\. Did you mean 'zsre'"):
        write_record(case)
