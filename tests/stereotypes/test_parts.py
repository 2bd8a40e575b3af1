"""Identities, their selection by a model, prompts, reading of completions, filters."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.generation.types import Completion
from seesaw_cf.texts.graph.identities import (
    IDENTITIES,
    KEPT,
    Identity,
    Triple,
    draw_examples,
    find,
    parse,
    question,
    verdict,
)


def test_the_seed_entities_are_those_of_table_4() -> None:
    counts = {kind: sum(i.kind == kind for i in IDENTITIES) for kind in ("ethnicity", "nationality", "religion")}
    assert counts == {"ethnicity": 7, "nationality": 20, "religion": 12}
    assert [i.name for i in find(["gender identity"])] == ["Men", "Non-binary People", "Women"]
    assert {"Chilean people", "South African people", "Baha'is"} <= {i.name for i in IDENTITIES}
    assert [i.subject(True) for i in find(["Women", "White people", "Jews"])] == [
        "I'm not sexist but Women",
        "I'm not racist but White people",
        "Not to be offensive but Jews",
    ]


def test_identities_are_found_once_and_can_be_ones_own() -> None:
    assert find(["women", "gender identity"])[0].name == "Women"
    assert len(find(["all", "religion"])) == 42
    assert find(["Scottish people=nationality"]) == (Identity("Scottish people", "nationality"),)
    for words in (["Wimen"], ["Martians=planet"]):
        with pytest.raises(UnknownNameError, match=r"unknown (identity 'Wimen'|protected class 'planet')"):
            find(words)
    for words in ([], ["two\nlines=religion"], [" =religion"]):
        with pytest.raises(RecordError, match=r"none given|expected a name in one line"):
            find(words)


@pytest.mark.parametrize(
    ("text", "predicate", "expected"),
    [
        (" pasta and wine. They also", "love", ("love", "pasta and wine")),
        ("too much\nQ: Irish people # are A: x", "drink", ("drink", "too much")),
        ("A: Mexicans", "hate", ("hate", "Mexicans")),
        (" hate A: Mexicans", None, ("hate", "Mexicans")),
        (" # hate A: 'Mexicans'!", None, ("hate", "'Mexicans'")),
        (" hate Mexicans", None, ("", "")),
        (" hate A: ", None, ("hate", "")),
        ("", "love", ("love", "")),
        ("\n\n  late ones", "love", ("love", "late ones")),
        ("tabs\tand\u200bmore", "love", ("love", "tabs and more")),
        ("dogs Q: Irish people # love A: cats", "love", ("love", "dogs")),
    ],
)
def test_completions_are_read(text: str, predicate: str | None, expected: tuple[str, str]) -> None:
    assert parse(text, predicate) == expected


@given(st.text(), st.none() | st.just("love"))
def test_what_is_read_is_one_clean_line(text: str, predicate: str | None) -> None:
    for part in parse(text, predicate):
        assert part.isprintable()
        assert part == " ".join(part.split())


@pytest.mark.parametrize(
    ("text", "predicate", "why"),
    [
        ("I'm sorry, but I can't assist with that.", "are", "refusal: "),
        ("As an AI language model", "are", "refusal: "),
        ("This statement is wrong.", "are", "refusal: "),
        ("This is it", "love", KEPT),
        ("...!", "love", "empty object"),
        ("hate Mexicans", None, "empty predicate"),
        ("a " * 30, "love", "longer than 20 words"),
    ],
)
def test_what_is_no_triple_says_why(text: str, predicate: str | None, why: str) -> None:
    assert verdict(Completion(text), predicate)[0].startswith(why)


def test_examples_prefer_other_groups_and_the_predicate_or_different_predicates() -> None:
    irish, me = Identity("Irish people", "nationality"), Identity("Dutch people", "nationality")
    pool = [Triple(who, p, f"{p}{n}") for who in (irish, me) for p in ("love", "hate", "are") for n in range(3)]
    for seed in range(20):
        same = draw_examples(pool, 3, "hate", random.Random(seed), me)
        assert {(t.identity, t.predicate) for t in same} == {(irish, "hate")}
        free = draw_examples(pool, 3, None, random.Random(seed), me)
        assert {t.predicate for t in free} == {"love", "hate", "are"}
        assert {t.identity for t in free} == {irish}
    text = question(me, "love", [Triple(irish, "drink", "too much")], prefix=False)
    assert text == "Q: Irish people # drink A: too much\nQ: Dutch people # love A:"  # as in Table 1


WORD = st.from_regex(r"[a-zé'-]{0,6}[a-zé]", fullmatch=True)
PHRASE = st.lists(WORD.filter(lambda word: word[0].isalpha()), min_size=1, max_size=4).map(" ".join)
PEOPLE = [Identity(name) for name in ("Bakers", "Tailors", "Sailors")]


@given(PHRASE, PHRASE, st.booleans())
def test_an_answer_in_the_asked_form_is_read_back(predicate: str, thing: str, prefix: bool) -> None:
    """What stands in an answered example is what a completion of its question would be read as."""
    assert parse(f" {predicate} A: {thing}. And more.\nQ: x", None) == (predicate, thing)
    assert verdict(Completion(f" {thing}."), "love") == (KEPT, "love", thing)
    who = Identity("Bakers", "religion")
    first, last = question(who, None, [Triple(who, predicate, thing)], prefix).split("\n")
    assert last == f"Q: {who.subject(prefix)} #"
    assert parse(first.removeprefix(last), None) == (predicate, thing)
    assert question(who, predicate, [], prefix) == f"{last} {predicate} A:"


@given(st.lists(st.tuples(st.sampled_from(PEOPLE), PHRASE, PHRASE), max_size=8), st.integers(1, 5), st.integers(0, 99))
def test_examples_are_some_of_the_pool_and_a_function_of_the_seed(
    rows: list[tuple[Identity, str, str]], n: int, seed: int
) -> None:
    pool = [Triple(*row) for row in rows]
    for predicate in (None, "love", *{triple.predicate for triple in pool}):
        drawn = draw_examples(pool, n, predicate, random.Random(seed), PEOPLE[0])
        assert drawn == draw_examples(pool, n, predicate, random.Random(seed), PEOPLE[0])
        assert len(drawn) == min(n, len(pool))
        fitting = sum(triple.predicate == predicate for triple in pool)
        assert sum(triple.predicate == predicate for triple in drawn) == min(n, fitting) or predicate is None
