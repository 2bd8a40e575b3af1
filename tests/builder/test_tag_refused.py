"""What cannot be tagged, or not with this source, is said with its reason and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import FEW, CachedSource, Source, StoreSource
from seesaw_cf.builder_scripts.sparql import SourceError, SourceTimeout
from seesaw_cf.builder_scripts.tag import People, look_up
from seesaw_cf.cli import main

from .conftest import PREFIXES
from .test_tag import MEN, PEOPLE, RECORDS, WORLD, write_pairs


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path, RECORDS)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    file = tmp_path / "world.ttl"
    file.write_text(WORLD, encoding="utf-8")
    return file


def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: object) -> str:
    """What the command says when it fails; nothing may be left at --out."""
    out = tmp_path / "tagged"
    assert main(["tag", *map(str, words), "--cache", str(tmp_path / "replies"), "--out", str(out)]) == 1
    assert not out.exists()
    said = " ".join(capsys.readouterr().err.split())
    assert "could not write" not in said
    return said


def test_a_source_that_knows_nobody_is_refused(pairs: Path, tmp_path: Path, world: Path, capsys: Any) -> None:
    other = tmp_path / "other.ttl"
    other.write_text(f"{PREFIXES}wd:Q1 wdt:P21 wd:{MEN} .\n")
    said = refused(capsys, tmp_path, pairs, "--source", other)
    assert "other.ttl knows nobody: it was asked about 450 people (Q90000000, " in said


def test_records_without_anybody_are_refused(tmp_path: Path, world: Path, capsys: Any) -> None:
    file = tmp_path / "edits.json"
    file.write_text('[{"subject": "Ada", "prompt": "Ada was born in", "target_new": "Rome"}]')
    said = refused(capsys, tmp_path, file, "--source", world)
    assert "none of the 1 records identifies anybody" in said
    assert "seesaw-cf build --edits" in said


def test_what_was_given_cannot_be_used(pairs: Path, tmp_path: Path, world: Path, capsys: Any) -> None:
    assert "source 'nowhere.nt': no such file" in refused(capsys, tmp_path, pairs, "--source", "nowhere.nt")
    assert "would both be config 'P27_P101'" in refused(capsys, tmp_path, pairs, pairs, "--source", world)
    (tmp_path / "folder" / "data").mkdir(parents=True)
    assert "a folder without cases in data/" in refused(capsys, tmp_path, tmp_path / "folder", "--source", world)
    taken = tmp_path / "tag_facts.json"
    taken.write_bytes(pairs.read_bytes())
    assert "config 'tag_facts' is taken" in refused(capsys, tmp_path, taken, "--source", world)


class Slow(Source):
    """Does not finish queries about more than some people."""

    identity = "slow"

    def __init__(self, source: Source, most: int) -> None:
        self._source, self._most, self.sizes = source, most, list[int]()

    def ask(self, text: str, *, patient: bool = True) -> bytes:
        people = text.split("{", 2)[2].split("}")[0].count("<")
        self.sizes.append(people)
        if people > self._most:
            raise SourceTimeout("no answer in 2 tries; the last: timed out")
        return self._source.ask(text, patient=patient)


def recorded(source: Source) -> People:
    people = People()
    look_up(people, Facts(source, BuildOptions()), "source", PEOPLE)
    return people


def test_an_endpoint_that_ends_large_queries_is_asked_small_ones(world: Path) -> None:
    store = StoreSource(world)
    slow = Slow(store, FEW)
    found = recorded(slow)
    assert found == recorded(store)
    assert slow.sizes[0] == 200
    assert set(slow.sizes[1:]) <= set(range(FEW + 1)), "what it cannot do is tried once"


def test_what_was_not_finished_in_time_is_repeated_offline(world: Path, tmp_path: Path) -> None:
    slow = Slow(StoreSource(world), FEW)
    found = recorded(CachedSource(slow, tmp_path))
    asked = list(slow.sizes)
    assert recorded(CachedSource(slow, tmp_path, offline=True)) == found
    assert slow.sizes == asked


def test_an_endpoint_that_finishes_no_form_is_named(world: Path) -> None:
    slow = Slow(StoreSource(world), 0)
    with pytest.raises(SourceError, match=r"^slow did not finish any form .* about one of the people"):
        recorded(slow)
    assert slow.sizes == [200, 10, 1]
