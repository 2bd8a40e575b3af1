"""Groups of rows that share a sample or a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError
from seesaw_cf.texts.train.rows import join_groups

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
