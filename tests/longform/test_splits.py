"""Splits: union-find and whole groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError
from seesaw_cf.texts.train.scores import grouped_folds, join_groups

KEYS = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "x", "y", "z", "w"])), max_size=12)


def _reachable(rows: list[tuple[str, str]], start: int) -> set[int]:
    """Rows that a chain of shared keys leads to, by breadth-first search."""
    seen, frontier = {start}, [start]
    while frontier:
        row = frontier.pop()
        for other, (sample, text) in enumerate(rows):
            same = sample == rows[row][0] or (text != "" and text == rows[row][1])
            if same and other not in seen:
                seen.add(other)
                frontier.append(other)
    return seen


@given(KEYS)
def test_groups_are_the_connected_components(rows: list[tuple[str, str]]) -> None:
    groups = join_groups([sample for sample, _ in rows], [text for _, text in rows])
    for row in range(len(rows)):
        assert {i for i, group in enumerate(groups) if group == groups[row]} == _reachable(rows, row)


def test_white_space_and_case_do_not_tell_texts_apart() -> None:
    assert join_groups(["a", "b", "c"], ["He  was", "he was", "she"]) == [0, 0, 1]


def test_keys_of_different_lengths() -> None:
    with pytest.raises(RecordError, match=r"keys for \[1, 2\] rows"):
        join_groups(["a"], ["x", "y"])


@given(st.lists(st.integers(0, 8), min_size=1, max_size=60), st.integers(0, 5))
def test_folds_never_split_a_group_and_none_is_empty(groups: list[int], seed: int) -> None:
    folds = len(set(groups))
    if folds < 2:
        return
    found = grouped_folds(groups, folds, seed)
    assert set(found) == set(range(folds))
    for group in set(groups):
        assert len({fold for fold, own in zip(found, groups) if own == group}) == 1
    assert found == grouped_folds(groups, folds, seed)


def test_folds_are_about_equal() -> None:
    # Sizes 5, 3, 2, 2 in two folds: 5 | 3, then 2 to the smaller (5), then 2: 7 and 5.
    groups = [0] * 5 + [1] * 3 + [2] * 2 + [3] * 2
    found = grouped_folds(groups, 2)
    assert sorted(found.count(fold) for fold in (0, 1)) == [5, 7]


def test_more_folds_than_groups() -> None:
    with pytest.raises(RecordError, match="4 folds of 2 independent groups"):
        grouped_folds([0, 0, 1], 4)
