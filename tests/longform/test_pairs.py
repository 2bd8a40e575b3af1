"""Pairs of texts, and the blinding of which is which."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError
from seesaw_cf.texts.pairs import passage_pairs, sample_pairs, showings, unblinded

from .analysis_samples import pair, passages


def test_one_text_before_serves_every_editor_and_nothing_is_lost_silently() -> None:
    before = {"editor": "none", "phase": "pre", "text": "Ada Oak is a judge."}
    table = passages(
        before,
        {"editor": "memit"},
        {"editor": "ft", "text": "Ada Oak is at home."},
        {"sample": 1},  # no text before with that sample
        {"sample": 2, "text": "  "},
        {"sample": 3, "text": None, "status": "time-out after 3 tries"},
        {"passage": "subject"},  # another kind, not asked for
    )
    pairs, left_out = passage_pairs(table)
    assert [(one.editor, one.pre, one.post) for one in pairs] == [
        ("memit", "Ada Oak is a judge.", "Ada Oak is a nun."),
        ("ft", "Ada Oak is a judge.", "Ada Oak is at home."),
    ]
    assert left_out == {"no text before the edit": 1, "empty text": 1, "time-out after 3 tries": 1}


def test_two_texts_for_one_place_are_refused() -> None:
    with pytest.raises(RecordError, match=r"'memit' has two texts for case_id 1, .*Keep one run's passages"):
        passage_pairs(passages({"phase": "pre"}, {"phase": "pre", "text": "Another."}))


@given(st.integers(0, 1000), st.integers(1, 30), st.floats(0, 1))
def test_the_order_shown_depends_on_seed_and_pair_and_copies_are_turned(seed: int, number: int, share: float) -> None:
    ids = [f"memit-{case}-free-0-0" for case in range(number)]
    shown = showings(ids, seed, share)
    first = {id: order for id, copy, order in shown if copy == 1}
    again = {id: order for id, copy, order in shown if copy == 2}
    assert (list(first), len(again)) == (ids, round(share * number))
    assert all(order != first[id] for id, order in again.items())
    assert {id: order for id, _, order in showings(ids[::-1], seed, 0)} == first
    assert {order for _, _, order in showings(ids, seed, share, "published")} == {"pre"}
    for change in (-1, 0, 1):
        assert unblinded(change, "pre") == change == unblinded(-change, "post")


def test_the_order_is_fair() -> None:
    orders = [order for _, _, order in showings([f"memit-{number}" for number in range(2000)], 3, 0)]
    assert 900 < orders.count("pre") < 1100  # 1000 expected, standard deviation 22
    with pytest.raises(RecordError, match="is 2, expected"):
        showings(["a"], 0, 2)


@given(
    st.lists(st.sampled_from(["P21", "P27", "P101"]), min_size=1, max_size=30), st.integers(1, 40), st.integers(0, 9)
)
def test_a_sample_is_even_over_relations(relations: list[str], number: int, seed: int) -> None:
    pairs = [pair(at, relation=name) for at, name in enumerate(relations)]
    drawn = sample_pairs(pairs, number, seed)
    assert len(drawn) == min(number, len(pairs))
    assert drawn == [one for one in pairs if one in drawn], "the order given"
    counts, there = Counter(one.relation for one in drawn), Counter(relations)
    most = max(counts.values())
    assert all(counts[name] >= min(most - 1, there[name]) for name in there)
    assert drawn == sample_pairs(pairs, number, seed)


def test_all_pairs_or_at_least_one() -> None:
    pairs = [pair(at) for at in range(20)]
    assert sample_pairs(pairs, None) == pairs
    assert sample_pairs(pairs, 5, 0) != sample_pairs(pairs, 5, 1)
    with pytest.raises(RecordError, match="sample is 0, expected a whole number of at least 1"):
        sample_pairs(pairs, 0)
