"""Invented worlds: the same for the same seed, in Wikidata's shape and skew."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from seesaw_cf.builder_scripts.jobs import BuildOptions
from seesaw_cf.builder_scripts.people import FEMALE, MALE, Facts
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.errors import RecordError
from seesaw_cf.types import Case, EditRequest, Entity
from tests.builder.worlds import FIRST_ID, World, triples, write_world

TRIPLE = re.compile(r'<[^<>]+> <([^<>]+)> (<[^<>]+>|_:\w+|"(?:[^"\\]|\\.)*"(?:@\w+|\^\^<[^<>]+>)) \.\n')
SEED = Case(
    3,
    EditRequest(
        "The mother tongue of {} is", 'Ann "Q" Lee', "P103", Entity("Q150", "French"), Entity("Q1860", "English")
    ),
)


def test_the_same_seed_is_the_same_world() -> None:
    assert list(triples(World(50, seed=1))) == list(triples(World(50, seed=1)))
    assert list(triples(World(50, seed=1))) != list(triples(World(50, seed=2)))


def test_lines_are_triples_and_people_have_about_ten() -> None:
    lines = list(triples(World(2000)))
    assert all(TRIPLE.fullmatch(line) for line in lines)
    about = Counter(line.split(" ")[0] for line in lines if f"/entity/Q{FIRST_ID // 1_000_000}" in line)
    assert len(about) == 2000
    assert 8 <= sum(about.values()) / 2000 <= 11


def test_shape_and_skew() -> None:
    """Shares of `_properties`, within 4 standard deviations of 5000 draws (at most 4 * 0.5 / sqrt(5000) = 0.028)."""
    lines = list(triples(World(5000)))
    people = Counter(
        match[1].rpartition("/")[2] for line in lines if (match := TRIPLE.match(line)) and "/Q9000" in line
    )
    holders = {name: len({line.split(" ")[0] for line in lines if f"/prop/direct/{name}>" in line}) for name in
               ("P27", "P19", "P101", "P103", "P172")}  # fmt: skip
    assert people["P31"] == 5000
    for name, share in {"P27": 0.9, "P19": 0.7, "P101": 0.35, "P103": 0.35, "P172": 0.15}.items():
        assert holders[name] / 5000 == pytest.approx(share, abs=0.03)
    countries = Counter(line.split(" ")[2] for line in lines if "/prop/direct/P27>" in line)
    first, second, *_, last = (count for _, count in countries.most_common())
    assert first > 1.5 * second
    assert last < first / 50
    assert len(countries) > 50
    men = sum(f"P21> <http://www.wikidata.org/entity/{MALE}>" in line for line in lines)
    women = sum(f"P21> <http://www.wikidata.org/entity/{FEMALE}>" in line for line in lines)
    assert men / women == pytest.approx(0.78 / 0.21, rel=0.15)


def test_awkward_people_are_in_it() -> None:
    text = "".join(triples(World(2000)))
    assert '"@mul' in text
    assert "Имя" in text
    assert "(singer)" in text
    assert "> _:u" in text
    assert "P570> _:d" in text


def test_subjects_of_edits_live_in_the_world(tmp_path: Path) -> None:
    count = write_world(tmp_path / "world.nt", World(100, edits=[SEED]))
    assert count == len((tmp_path / "world.nt").read_text(encoding="utf-8").splitlines())
    facts = Facts(StoreSource(tmp_path / "world.nt"), BuildOptions())
    (ids,) = facts.named([SEED.request.subject]).values()
    (person,) = facts.people(ids)
    assert person.holds("P103") == ("Q1860",)


def test_an_empty_world_is_refused() -> None:
    with pytest.raises(RecordError, match="world: 0 people, expected at least 1"):
        World(0)
