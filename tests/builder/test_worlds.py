"""Invented worlds: the same for the same seed, in Wikidata's shape and skew."""

from __future__ import annotations

from pathlib import Path

from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.types import Case, EditRequest, Entity
from tests.builder.worlds import World, triples, write_world

SEED = Case(
    3,
    EditRequest(
        "The mother tongue of {} is", 'Ann "Q" Lee', "P103", Entity("Q150", "French"), Entity("Q1860", "English")
    ),
)


def test_the_same_seed_is_the_same_world() -> None:
    assert list(triples(World(50, seed=1))) == list(triples(World(50, seed=1)))
    assert list(triples(World(50, seed=1))) != list(triples(World(50, seed=2)))


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
