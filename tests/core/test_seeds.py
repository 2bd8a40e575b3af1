"""Seeds made of words: they differ in every part, stay as they were, and fit where they go."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.text import chance_of, seed_of

ROOT = Path(__file__).resolve().parents[2]


def test_seeds_of_a_crawl_differ_in_every_part_and_stay() -> None:
    places = [(s, i, r, n, t) for s in (0, 1) for i in ("a", "b") for r in (0, 1) for n in (0, 1, 11) for t in (0, 1)]
    seeds = [seed_of(*place, bits=31, joined="\x1f") for place in places]
    assert len(set(seeds)) == len(places)
    assert all(0 <= seed < 2**31 for seed in seeds)
    # sha256("0\x1fWomen\x1f0\x1f0\x1f0"), first four bytes, without the last bit.
    assert seed_of(0, "Women", 0, 0, 0, bits=31, joined="\x1f") == 1440640870


def test_a_seed_is_the_first_bits_of_the_hash() -> None:
    digest = hashlib.sha256(b'[0, "a\\u00e9", 2]').digest()  # passages and controls: JSON
    assert seed_of(0, "a\u00e9", 2) == int.from_bytes(digest[:6], "big")
    assert seed_of(0, "a\u00e9", 2, bits=63) == int.from_bytes(digest[:8], "big") >> 1
    digest = hashlib.sha256(b"3\0order\0x").digest()  # pairs that people rate
    assert chance_of(3, "order", "x", bits=56, joined="\0") == int.from_bytes(digest[:7], "big") / 2**56


@given(st.lists(st.one_of(st.integers(), st.text(st.characters(codec=None)))), st.integers(1, 64))
def test_every_text_has_a_seed_and_a_chance_in_range(parts: list[int | str], bits: int) -> None:
    for joined in (None, "\0"):
        assert 0 <= seed_of(*parts, bits=bits, joined=joined) < 2**bits
        assert 0 <= chance_of(*parts, joined=joined) < 1
    assert seed_of(*parts, 1) != seed_of(*parts, 2)
