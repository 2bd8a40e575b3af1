"""The trie's laws, without a model: every prefix once, masks by ancestry, rows that do not depend on order."""

import random

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.scoring.encode import EncodedCloze
from seesaw_cf.scoring.layout import Layout, TrieRow, chunks, lay_out, make_rows, subset, unique_nodes


@st.composite
def items(draw: st.DrawFn) -> list[EncodedCloze]:
    """Distinct texts over few tokens, so that they share prefixes."""
    texts = draw(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=9), min_size=1, max_size=30))
    made = {EncodedCloze(tuple(text), draw(st.integers(1, len(text) - 1))) for text in texts}
    return sorted(made, key=lambda item: random.Random(str(item)).random())


def _path(row: TrieRow, node: int) -> tuple[int, ...]:
    path: list[int] = []
    while node >= 0:
        path.insert(0, row.tokens[node])
        node = row.parents[node]
    return tuple(path)


@given(items(), st.integers(1, 40), st.integers(1, 60))
def test_every_ask_has_its_own_context_as_path(given_items: list[EncodedCloze], target: int, limit: int) -> None:
    rows = make_rows(given_items, target, limit)
    asked = [(item, (*_path(row, node), token)) for row in rows for node, token, item in row.asks]
    wanted = [(n, i.ids[: place + 1]) for n, i in enumerate(given_items) for place in range(i.start, len(i.ids))]
    assert sorted(asked) == sorted(wanted)
    assert all(len(row) <= max(limit, *(len(i.ids) for i in given_items)) for row in rows)


@given(items())
def test_one_unlimited_row_feeds_each_distinct_prefix_once_and_no_last_token(given_items: list[EncodedCloze]) -> None:
    (row,) = make_rows(given_items, 10_000, 10_000)
    paths = [_path(row, node) for node in range(len(row))]
    prefixes = {item.ids[:length] for item in given_items for length in range(1, len(item.ids))}
    assert sorted(paths) == sorted(prefixes)
    assert len(row) == unique_nodes(given_items)
    assert [len(path) - 1 for path in paths] == row.depths


@given(items(), st.integers(1, 20), st.integers(0, 5))
def test_order_of_items_changes_nothing(given_items: list[EncodedCloze], target: int, seed: int) -> None:
    mixed = random.Random(seed).sample(given_items, len(given_items))
    first, second = (
        [(row.tokens, row.parents, [(node, token, some[i]) for node, token, i in row.asks]) for row in rows]
        for some, rows in ((given_items, make_rows(given_items, target, 40)), (mixed, make_rows(mixed, target, 40)))
    )
    assert first == second


@given(items(), st.integers(1, 30), st.booleans())
@settings(deadline=None)
def test_masks_show_each_node_its_ancestors_and_itself_only(
    given_items: list[EncodedCloze], target: int, packed: bool
) -> None:
    rows = make_rows(given_items, target, 40)
    layout = lay_out(rows, packed, torch.device("cpu"), torch.float32)
    assert torch.isfinite(layout.mask).all()
    for number, row in enumerate(rows):
        for node in range(len(row)):
            place = layout.starts[number] + node
            family, at = set(), node
            while at >= 0:
                family.add(at + layout.starts[number])
                at = row.parents[at]
            assert sorted(_seen(layout, place)) == sorted(family)
            assert layout.ids.flatten()[place] == row.tokens[node]
            assert layout.positions.flatten()[place] == row.depths[node]


def _seen(layout: Layout, place: int) -> list[int]:
    """Places that the node at a place looks at, each as often as it does."""
    group, node = divmod(place, layout.mask.shape[2])
    keys = (layout.mask[group, 0, node] == 0).nonzero()[:, 0]
    if layout.windows is not None:
        return layout.windows.keys.unflatten(0, (len(layout.mask), -1))[group, keys].tolist()
    return (keys + (0 if len(layout.mask) == 1 else layout.starts[group])).tolist()


@given(items(), st.integers(1, 30), st.data())
def test_a_subset_keeps_paths_of_its_items(given_items: list[EncodedCloze], target: int, data: st.DataObject) -> None:
    wanted = data.draw(st.sets(st.sampled_from(range(len(given_items))), min_size=1))
    for row in make_rows(given_items, target, 40):
        small, kept = subset(row, wanted)
        assert [row.tokens[node] for node in kept] == small.tokens
        got = sorted((_path(small, node), token, item) for node, token, item in small.asks)
        assert got == sorted((_path(row, node), token, item) for node, token, item in row.asks if item in wanted)
        leaves = set(range(len(small))) - set(small.parents)
        assert leaves <= {node for node, _, _ in small.asks}


@given(items(), st.integers(1, 30), st.integers(1, 60), st.integers(1, 20), st.booleans())
def test_chunks_hold_every_row_once_within_their_bounds(
    given_items: list[EncodedCloze], target: int, tokens: int, asks: int, padded: bool
) -> None:
    rows = make_rows(given_items, target, 40)
    parts = list(chunks(rows, tokens, asks, padded=padded))
    assert sorted(id(row) for part in parts for row in part) == sorted(map(id, rows))
    for part in parts:
        used = len(part) * len(part[0]) if padded else sum(map(len, part))
        assert len(part) == 1 or (used <= tokens and sum(row.asked for row in part) <= asks)
        assert not padded or used <= 1.2 * sum(map(len, part))


def test_nothing_to_score() -> None:
    assert make_rows([], 10, 10) == []
    assert list(chunks([], 10, 10, padded=True)) == []
    assert unique_nodes([]) == 0
