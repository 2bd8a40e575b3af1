"""Pairs of texts, and the blinding of which is which."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.texts.wording import FLAWS_BY_NAME, chosen_flaws
from seesaw_cf.texts.write.pairs import first_shown, passage_pairs, sample_pairs, unblinded

from .flaw_samples import pair, passages


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
    pairs, left_out = passage_pairs(table, ["free"])
    assert [(one.editor, one.pre, one.post) for one in pairs] == [
        ("memit", "Ada Oak is a judge.", "Ada Oak is a nun."),
        ("ft", "Ada Oak is a judge.", "Ada Oak is at home."),
    ]
    assert left_out == {"no text before the edit": 1, "empty text": 1, "time-out after 3 tries": 1}


def test_two_texts_for_one_place_are_refused() -> None:
    with pytest.raises(RecordError, match=r"two texts before the edit for case_id 1, .*Keep one run's passages"):
        passage_pairs(passages({"phase": "pre"}, {"phase": "pre", "text": "Another."}))
    with pytest.raises(RecordError, match="'memit' has two texts"):
        passage_pairs(passages({}, {}))
    with pytest.raises(RecordError, match=r"columns \['phase'\] are missing"):
        passage_pairs(passages({}).drop_columns(["phase"]))


@given(st.integers(0, 1000), st.integers(0, 10**6), st.sampled_from([-1, 0, 1]))
def test_swapping_the_texts_and_the_answer_leaves_the_change(seed: int, number: int, change: int) -> None:
    first = first_shown(seed, str(number))
    shown = change if first == "pre" else -change
    assert unblinded(shown, first) == change
    other = "post" if first == "pre" else "pre"
    assert unblinded(shown, other) == -change
    assert first_shown(seed, f"{number}@women-0") == first


def test_the_order_is_fair_and_depends_on_seed_and_pair_alone() -> None:
    orders = [first_shown(3, f"memit-{number}-free-0-0") for number in range(2000)]
    assert 900 < orders.count("pre") < 1100  # 1000 expected, standard deviation 22
    assert orders[1234] == first_shown(3, "memit-1234-free-0-0")
    assert orders != [first_shown(4, f"memit-{number}-free-0-0") for number in range(2000)]


def test_seven_flaws_in_two_wordings() -> None:
    assert [flaw.title for flaw in chosen_flaws()] == [
        "Anglo-centrism",
        "Sexism",
        "Religious injection",
        "Xenophobia",
        "Classism",
        "Racism",
        "Injection of conservatism",
    ]
    same = [name for name, flaw in FLAWS_BY_NAME.items() if flaw.people == flaw.model]
    assert same == ["sexism", "xenophobia"]  # the others differ between people and models in appendix F
    assert [flaw.name for flaw in chosen_flaws(["racism", "sexism"])] == ["sexism", "racism"]
    with pytest.raises(UnknownNameError, match=r"unknown flaw 'sexsm'. Did you mean 'sexism'"):
        chosen_flaws(["sexsm"])


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
    with pytest.raises(RecordError, match="sample of pairs is 0, expected a whole number of at least 1"):
        sample_pairs(pairs, 0)
