"""Every number of edit success worked by hand, and laws that hold whatever the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.prompts import SIDES
from seesaw_cf.effects.success import NUMBERS, TESTS, edit_success
from seesaw_cf.stats.simple import proportion

few = settings(derandomize=True, deadline=None, max_examples=8)


def tokens(rows: Sequence[tuple[int, str, int, int, int, int]]) -> dict[str, Any]:
    """(case, test, tokens right, tokens kept, tokens, generated)."""
    case, test, right, kept, n, generated = (list(column) for column in zip(*rows, strict=True))
    empty: list[float | None] = [None] * len(rows)
    given = {"case_id": case, "test": test, "tokens_right": right, "tokens_kept": kept, "n_tokens": n}
    return given | {"generated": generated} | dict.fromkeys(SIDES, empty)


def test_every_number_of_the_token_protocols_by_hand() -> None:
    rows = [
        (1, "rewrite", 1, 0, 2, 0),
        (2, "rewrite", 3, 0, 3, 1),
        (1, "paraphrase", 1, 0, 4, 1),
        (1, "paraphrase", 3, 0, 4, 0),
        (2, "paraphrase", 0, 0, 2, 1),
        (1, "neighborhood", 2, 1, 2, 1),
        (2, "neighborhood", 1, 4, 4, 0),
        (2, "portability", 1, 0, 5, 1),
    ]
    found = edit_success(tokens(rows))
    values = {protocol: {name: one.value for name, one in own.items()} for protocol, own in found.numbers.items()}
    # rewrite (1/2 + 3/3)/2; paraphrase ((1/4 + 3/4)/2 + 0)/2; neighbourhood (2/2 + 1/4)/2;
    # score 3/(4/3 + 4 + 8/5) = 45/104
    expected = {"efficacy": 0.75, "paraphrase": 0.25, "specificity": 0.625, "score": 45 / 104}
    assert values["zsre"] == pytest.approx(expected)
    # locality (1/2 + 4/4)/2; portability: case 2 alone, 1/5
    expected = {"rewrite": 0.75, "rephrase": 0.25, "locality": 0.75, "portability": 0.2}
    assert values["easyedit"] == pytest.approx(expected)
    # (0 + 1)/2; ((1 + 0)/2 + 1)/2; (1 + 0)/2; 1
    expected = {"rewrite": 0.5, "paraphrase": 0.75, "neighborhood": 0.5, "portability": 1.0}
    assert values["generation"] == pytest.approx(expected)
    assert all(math.isnan(value) for value in values["counterfact"].values())
    paraphrase = found.numbers["zsre"]["paraphrase"]
    assert (paraphrase.n, paraphrase.clusters) == (3, {"case": 2})
    assert found.numbers["zsre"]["score"].clusters == {"case": 2}


# Whole nats: their sums and differences are exact.
NATS = st.integers(-9, 0).map(float)
ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from(TESTS[:3]), NATS, NATS, NATS, NATS), min_size=1, max_size=16
)
Row = tuple[int, str, float, float, float, float]


def columns(rows: Sequence[Row]) -> dict[str, Any]:
    """(case, test, pre new, pre true, post new, post true)."""
    empty: list[float | None] = [None] * len(rows)
    given = dict(zip(("case_id", "test", *SIDES), (list(column) for column in zip(*rows, strict=True))))
    return given | dict.fromkeys(("tokens_right", "tokens_kept", "n_tokens", "generated"), empty)


def counterfact(rows: Sequence[Row], nats: float = 0.0) -> dict[str, float]:
    found = edit_success(columns(rows), nats=nats).numbers["counterfact"]
    return {name: one.value for name, one in found.items()}


def same(found: float, expected: float) -> bool:
    return found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@few
@given(ROWS)
def test_swapping_the_two_answers_turns_winning_into_losing(rows: list[Row]) -> None:
    found = counterfact(rows)
    turned = counterfact([(case, test, a, b, true, new) for case, test, a, b, new, true in rows])
    assert same(turned["ES"], found["still_true"])
    assert same(turned["still_true"], found["ES"])
    for name in ("EM", "PM", "NM"):
        assert same(turned[name], -found[name])


@few
@given(ROWS)
def test_before_and_after_are_asked_in_the_same_way(rows: list[Row]) -> None:
    swapped: list[Row] = [
        (case, test, post_new, post_true, pre_new, pre_true)
        for case, test, pre_new, pre_true, post_new, post_true in rows
    ]
    assert same(counterfact(swapped)["already_true"], counterfact(rows)["ES"])


@few
@given(ROWS, st.integers(0, 5))
def test_a_likelier_new_answer_never_harms_the_edit_and_never_helps_locality(rows: list[Row], rise: int) -> None:
    found = counterfact(rows)
    raised = counterfact([(*row[:4], min(0.0, row[4] + rise), row[5]) for row in rows])
    for name in ("ES", "PS", "EM", "PM"):
        assert math.isnan(found[name]) or raised[name] >= found[name] - 1e-12
    for name in ("NS", "NM", "still_true"):
        assert math.isnan(found[name]) or raised[name] <= found[name] + 1e-12
    assert same(raised["already_true"], found["already_true"])


@few
@given(ROWS, st.integers(-5, 0))
def test_a_constant_in_both_answers_keeps_who_wins_and_scales_margins(rows: list[Row], shift: int) -> None:
    found = counterfact(rows)
    moved = counterfact([(*row[:4], row[4] + shift, row[5] + shift) for row in rows])
    for name in ("ES", "PS", "NS", "S", "already_true", "still_true"):
        assert same(moved[name], found[name])
    for name in ("EM", "PM", "NM"):
        assert moved[name] == pytest.approx(found[name] * math.exp(shift), abs=1e-12, nan_ok=True)


@few
@given(ROWS)
def test_copies_weigh_nothing_within_a_case_and_alike_as_cases(rows: list[Row]) -> None:
    found = counterfact(rows)
    assert counterfact(rows * 3) == pytest.approx(found, abs=1e-12, nan_ok=True)
    assert counterfact([*rows, *((row[0] + 10, *row[1:]) for row in rows)]) == pytest.approx(
        found, abs=1e-12, nan_ok=True
    )


@few
@given(ROWS, st.permutations(range(1, 7)))
def test_names_of_cases_carry_no_information(rows: list[Row], names: list[int]) -> None:
    renamed = [(names[row[0] - 1], *row[1:]) for row in rows]
    assert counterfact(renamed) == pytest.approx(counterfact(rows), abs=1e-12, nan_ok=True)


@few
@given(ROWS, st.floats(0, 3), st.floats(0, 3))
def test_a_wider_tie_never_lets_more_edits_succeed(rows: list[Row], one: float, other: float) -> None:
    narrow, wide = (counterfact(rows, nats) for nats in sorted((one, other)))
    for name in ("ES", "PS", "NS", "still_true", "already_true"):
        assert math.isnan(narrow[name]) or wide[name] <= narrow[name] + 1e-12
    for name in ("EM", "PM", "NM"):
        assert same(wide[name], narrow[name])
    assert math.isnan(wide["ES"]) or wide["ES"] + wide["still_true"] <= 1 + 1e-12


@few
@given(ROWS)
def test_the_score_lies_between_its_parts_and_is_nothing_without_one(rows: list[Row]) -> None:
    found = counterfact(rows)
    parts = [found[name] for name in ("ES", "PS", "NS")]
    if any(math.isnan(part) for part in parts):
        assert math.isnan(found["S"])
    elif min(parts) == 0:
        assert found["S"] == 0
    else:
        assert min(parts) - 1e-12 <= found["S"] <= max(parts) + 1e-12


@few
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 1)), min_size=1, max_size=12))
def test_wrong_instead_of_right_is_the_complement(rows: list[tuple[int, int]]) -> None:
    made = [(case, "rewrite", right * 2, 0, 2, right) for case, right in rows]
    turned = [(case, "rewrite", 2 - right * 2, 0, 2, 1 - right) for case, right in rows]
    one, other = (edit_success(tokens(each)).numbers for each in (made, turned))
    for protocol in ("zsre", "generation"):
        name = "efficacy" if protocol == "zsre" else "rewrite"
        assert same(one[protocol][name].value, 1 - other[protocol][name].value)


def test_rows_without_measurement_are_counted_and_change_nothing() -> None:
    rows: list[Row] = [(case, "rewrite", -2, -1, -1 - case % 2, -1.5) for case in range(1, 7)]
    alone = edit_success(columns(rows))
    more = columns([*rows, (1, "rewrite", math.nan, math.nan, math.nan, math.nan)])
    found = edit_success(more)
    assert (alone.n_empty, found.n_empty, found.n_rows) == (0, 1, 7)
    assert found.numbers["counterfact"]["ES"] == alone.numbers["counterfact"]["ES"]


@pytest.mark.parametrize("cases", [1, 4, 5, 160])
def test_share_of_edits_has_the_interval_of_a_proportion_and_margins_need_five(cases: int) -> None:
    rows: list[Row] = [(case, "rewrite", -2, -1, -1 - case % 2, -1.5) for case in range(cases)]
    found = edit_success(columns(rows)).numbers["counterfact"]
    share = proportion(math.ceil(cases / 2), cases)  # even cases win: -1 against -1.5
    assert [found["ES"].value, found["ES"].low, found["ES"].high] == pytest.approx([share.value, share.low, share.high])
    assert bool(found["EM"].note) is (cases < 5) is math.isnan(found["EM"].low)


def test_equal_edits_have_a_wide_share_and_no_interval_of_the_margin() -> None:
    rows: list[Row] = [(case, test, -2, -1, -1, -2) for case in range(160) for test in ("rewrite", "paraphrase")]
    rows += [(case, "neighborhood", -2, -1, -2, -1) for case in range(160)]
    found = edit_success(columns(rows)).numbers["counterfact"]
    for name in ("ES", "PS", "NS", "S"):
        assert (found[name].value, found[name].high) == (1, 1)
        assert found[name].low == pytest.approx(160 / (160 + 1.96**2), abs=1e-4)  # Wilson for 160 of 160: .9766
    assert math.isnan(found["EM"].low)
    assert found["EM"].note == "all values equal: no error to estimate"


def test_every_protocol_has_its_numbers_whatever_is_given() -> None:
    found = edit_success(columns([(1, "rewrite", -1, -1, -1, -1)]))
    assert {name: set(own) - {"S", "score"} for name, own in found.numbers.items()} == {
        name: set(own) for name, own in NUMBERS.items()
    }
    assert found.numbers["counterfact"]["ES"].value == found.numbers["counterfact"]["still_true"].value == 0  # a tie
