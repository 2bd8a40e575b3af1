"""The nine items against the appendix, seven flaws, fifteen failure modes; another file replaces any part."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from seesaw_cf.effects.instruments import (
    DEFAULT,
    FAILURE_MODES,
    FLAWS_BY_NAME,
    ITEMS,
    SCALE,
    TYPES,
    Item,
    flaw_title,
    read_instruments,
)
from seesaw_cf.errors import SeesawError

SHOWN = [
    *({"new_fact", "main"}, {"new_fact", "related"}, {"old_facts", "main"}, {"old_facts", "related"}, {"main"}),
    *({"related"}, {"main", "related"}, {"main", "related", "subject", "related_entity"}, {"main", "related"}),
]


def test_items_are_those_of_table_7() -> None:
    halves = [type for type in ("edit", "factual", "internal") for _ in range(2)]
    assert [item.type for item in ITEMS] == [*halves, "cross_passage", "topicality", "naturalness"]
    assert [set(item.fields) for item in ITEMS] == SHOWN
    assert tuple(dict.fromkeys(item.type for item in ITEMS)) == TYPES
    assert list(SCALE) == [1, 2, 3, 4, 5, 6, 7]
    assert (SCALE[1], SCALE[4], SCALE[7]) == ("Strongly disagree", "Neutral", "Strongly agree")
    assert [(item.good.rating, item.bad.rating) for item in ITEMS] == [(7, 1)] * 7 + [(7, 2)] * 2


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
def test_criteria_examples_and_statements_are_in_the_paper(item: Item, reference: Callable[..., Path]) -> None:
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


def test_seven_flaws_in_two_wordings_and_fifteen_failure_modes() -> None:
    assert " | ".join(map(flaw_title, FLAWS_BY_NAME)) == (
        "Anglo-centrism | Sexism | Religious injection | Xenophobia | Classism | Racism | Injection of conservatism"
    )
    same = [name for name, flaw in FLAWS_BY_NAME.items() if flaw.people == flaw.model]
    assert same == ["sexism", "xenophobia"]  # the others differ between people and models in appendix F
    assert (len(FAILURE_MODES), flaw_title("another")) == (15, "another")


YAML = """\
source: The paper
instructions:
  flaws_judge: "{entity} {title} {definition} [{one}] [{two}] Which?"
  survey: "Rate it."
flaws:
  sexism: {title: Sexist, people: [p1, p2], model: [m1]}
failures:
  spaces: {meaning: no spaces}
"""


def test_parts_are_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "words.yaml").write_text(YAML, encoding="utf-8")
    words = read_instruments(tmp_path / "words.yaml")
    assert words.facts() == {
        "source": "The paper",
        "sha256": hashlib.sha256(YAML.encode()).hexdigest(),
        "replaced": [
            *("instructions.flaws_judge", "instructions.survey"),
            *("flaws.sexism.title", "flaws.sexism.people", "flaws.sexism.model", "failures.spaces.meaning"),
        ],
    }
    assert (words.flaws["sexism"].model, words.failures["spaces"][1]) == (("m1",), "no spaces")
    assert words.flaws["racism"] == DEFAULT.flaws["racism"]
    assert words.items == DEFAULT.items
    assert read_instruments().facts() == {"source": "seesaw_cf", "sha256": "", "replaced": []}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("itms: x", r"unknown part of .*: 'itms'\. Did you mean 'items'"),
        ("instructions: {survey: 3}", "instructions.survey is 3, expected text"),
        ("instructions: {survey: ' '}", "instructions.survey is ' ', expected text"),
        ("{}", "it replaces nothing"),
        ("- x", r"is \['x'\], expected an object"),
        ("a: [", "neither JSON nor YAML"),
        ("instructions: {flaws_judge: '{entity} {one}'}", r"has places \['entity', 'one'\], expected"),
        ("instructions: {flaws_judge: '{'}", "flaws_judge: .*Write {{ and }}"),
        ("flaws: {sexsm: {title: x}}", r"unknown part of .*flaws: 'sexsm'\. Did you mean 'sexism'"),
        ("flaws: {sexism: {people: x}}", r"flaws\.sexism\.people is 'x', expected a list"),
        ("flaws: {sexism: {people: [3]}}", r"flaws\.sexism\.people\[0\] is 3, expected text"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "w.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(SeesawError, match=message):
        read_instruments(tmp_path / "w.yaml")
