"""Rows packed into sequences: every token once, in its row's order, and little padding."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.editors.locate.positions import InputRow
from seesaw_cf.editors.locate.resume import pack_rows

lengths = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=60)


@given(lengths)
def test_each_token_has_one_place_and_less_than_a_third_of_the_places_is_padding(sizes: list[tuple[int, int]]) -> None:
    """n sequences of at least twice the longest row r waste at most (n - 1) r places, and n - 1 < total / (2 r)."""
    rows = [InputRow(tuple(range(100 * i, 100 * i + skip + size)), skip) for i, (skip, size) in enumerate(sizes)]
    head, tail = pack_rows(rows, [skip for skip, _ in sizes], torch.device("cpu"))
    for i, (skip, size) in enumerate(sizes):
        for part, tokens in ((head, range(skip)), (tail, range(skip, skip + size))):
            at = part.starts[i] + torch.tensor(list(tokens), dtype=torch.long)
            assert part.ids.flatten()[at].tolist() == [100 * i + token for token in tokens]
            assert part.places.flatten(1)[:, at].T.tolist() == [[i, token] for token in tokens]
    total = sum(size for _, size in sizes)
    assert int((tail.places[0] >= 0).sum()) == total
    assert tail.ids.numel() < 1.5 * total
