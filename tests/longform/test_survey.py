"""The nine items against the appendix, and what is shown for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from seesaw_cf.effects.survey_items import ITEMS, SCALE, TYPES, Item, chosen_items
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.texts.rate.judge import instructions, question_text
from seesaw_cf.texts.rate.survey import Rating, SurveyQuestion, survey, survey_samples
from seesaw_cf.texts.tables import RATINGS
from tests.longform.coupled import MAIN, RELATED, passages, record, sample

# Table 7 of the paper: statement by statement, with its heading.
TABLE_7 = [
    ("edit", "The main passage is written as if the new fact is true"),
    ("edit", "The related passage does not contradict the new fact"),
    ("factual", "Ignoring the new fact, most of the old facts are still true in the main passage."),
    ("factual", "Ignoring the new fact, most of the old facts are still true in the related passage."),
    ("internal", "Ignoring the old and new facts, the main passage does not contradict itself."),
    ("internal", "Ignoring the old and new facts, the related passage does not contradict itself."),
    (
        "cross_passage",
        "Ignoring the old and new facts, the main passage and the related passage do not contradict each other.",
    ),
    (
        "topicality",
        "The main passage is focused on the subject and the related passage is focused on the related entity",
    ),
    ("naturalness", "Both passages are natural sounding text close to what a human would write."),
]
# What Table 6 shows of an example for each item: new fact, old facts, passages.
SHOWN = [
    {"new_fact", "main"},
    {"new_fact", "related"},
    {"old_facts", "main"},
    {"old_facts", "related"},
    {"main"},
    {"related"},
    {"main", "related"},
    {"main", "related", "subject", "related_entity"},
    {"main", "related"},
]


def test_items_are_those_of_table_7() -> None:
    assert [(item.type, item.statement) for item in ITEMS] == TABLE_7
    assert [set(item.fields) for item in ITEMS] == SHOWN
    assert tuple(dict.fromkeys(item.type for item in ITEMS)) == TYPES
    assert (list(SCALE), SCALE[1], SCALE[4], SCALE[7]) == (
        [1, 2, 3, 4, 5, 6, 7],
        "Strongly disagree",
        "Neutral",
        "Strongly agree",
    )
    assert [(item.good.rating, item.bad.rating) for item in ITEMS] == [(7, 1)] * 7 + [(7, 2)] * 2


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
def test_criteria_examples_and_statements_stand_in_the_paper(item: Item, reference: Callable[..., Path]) -> None:
    """Item by item against the text of the paper that lies beside this checkout."""
    paper = reference().parent / "papers" / "leme.txt"
    if not paper.exists():
        pytest.skip("the paper's text (../shared/papers/leme.txt) is not beside this checkout")
    known = _plain(paper.read_text(encoding="utf-8"))
    texts = [item.statement, *(text for shown in (item.good, item.bad) for text in (shown.main, shown.related) if text)]
    texts += [fact for shown in (item.good, item.bad) for fact in shown.old_facts]
    if item.name != "topicality":  # its heading says "the related entity is focused" by mistake
        texts.append(item.criterion)
    for text in texts:
        assert _plain(text) in known, text


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower().replace("provess", "prowess")).strip()


def test_every_item_shows_its_fields_and_nothing_else() -> None:
    whole = {
        "new_fact": "New fact: Marie Curie was born in London",
        "main": MAIN,
        "related": RELATED,
        "old_facts": "The occupation of",
        "subject": "Subject: Marie Curie",
        "related_entity": "Related entity: Pierre Curie",
    }
    for item, fields in zip(ITEMS, SHOWN, strict=True):
        text = question_text(SurveyQuestion(item, sample()))
        assert {name for name, words in whole.items() if words in text} == fields, item.name
        assert item.statement in text
        assert text.endswith("\nRating:")
    related = question_text(SurveyQuestion(ITEMS[3], sample()))
    assert "- The occupation of Pierre Curie is physicist." in related
    assert "Marie Curie is" not in related  # old facts of the right entity


def test_instructions_hold_criterion_examples_and_scale() -> None:
    for item in ITEMS:
        text = instructions(item)
        assert f"criterion: {item.criterion}" in text
        assert item.good.reason in text
        assert item.bad.reason in text
        assert "7 = Strongly agree" in text
        assert f"Rating: {item.bad.rating} ({SCALE[item.bad.rating]})" in text


class Four:
    """Answers 4, and keeps what it was asked."""

    name = "four"

    def __init__(self) -> None:
        self.asked: list[SurveyQuestion] = []

    def rate(self, questions: Sequence[SurveyQuestion]) -> list[Rating]:
        self.asked += questions
        return [Rating(4.0) for _ in questions]


def reasons(table: pa.Table) -> dict[str, str]:
    return {row["item"]: row["status"] for row in table.to_pylist()}


def test_all_items_are_asked_and_kept_in_order() -> None:
    records = [record(1), record(2)]
    table, calls = survey(survey_samples(passages(records), records), Four())
    assert table.schema.equals(RATINGS)
    assert table["item"].to_pylist() == [item.name for item in ITEMS] * 2
    assert set(table["rating"].to_pylist()) == {4.0}
    assert (table["case_id"].to_pylist()[::9], calls.num_rows) == ([1, 2], 0)
    with pytest.raises(UnknownNameError, match="topicality"):
        chosen_items(("topicalty",))
    assert [item.name for item in chosen_items(("fluency", "topicality"))] == ["topicality", "fluency"]


def test_a_record_without_related_entity_is_rated_where_it_can_be() -> None:
    records = [record(related=False)]
    rater = Four()
    table, _ = survey(survey_samples(passages(records), records), rater)
    found = reasons(table)
    assert {name for name, why in found.items() if why == "ok"} == {
        "new_fact_main_passage",
        "main_passage_old_facts",
        "main_passage_consistency",
    }
    assert found["fluency"] == "related passage: the record has no related entity"
    assert len(rater.asked) == 3
    assert table["rating"].null_count == 6


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("  ", "main passage: empty"),
        ("Мария Кюри родилась в Варшаве и жила в Париже.", "main passage: does not read like English"),
    ],
)
def test_empty_and_foreign_passages_have_a_status_and_no_rating(text: str, why: str) -> None:
    table, _ = survey([sample(main=text)], Four())
    found = reasons(table)
    assert found["new_fact_main_passage"].startswith(why)
    assert found["new_fact_related_passage"] == "ok"


def test_passages_without_record_or_twice_are_refused() -> None:
    with pytest.raises(RecordError, match="case 2 has no coupled record"):
        survey_samples(passages([record(2)]), [record(1)])
    twice = pa.concat_tables([passages([record()]), passages([record()])])
    with pytest.raises(RecordError, match="two subject passages"):
        survey_samples(twice, [record()])
