"""What cannot be tagged, or not with this source, is said with its reason and what to do."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.base.retrying import TryAgain
from seesaw_cf.builder_scripts.endpoint import EndpointSource, RequestPolicy
from seesaw_cf.builder_scripts.sources import FEW, CachedSource, Source, StoreSource
from seesaw_cf.builder_scripts.sparql import SourceError, SourceTimeout
from seesaw_cf.builder_scripts.tag_people import PeopleSource
from seesaw_cf.cli import main

from .conftest import PREFIXES
from .fault_proxy import FaultProxy
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


def test_files_that_were_cut_off_are_named(pairs: Path, tmp_path: Path, world: Path, capsys: Any) -> None:
    cut = tmp_path / "cut.nt"
    line = "<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P21> <http://www.wiki"
    cut.write_text(line)
    assert "cut.nt: not valid RDF (" in (said := refused(capsys, tmp_path, pairs, "--source", cut))
    assert "Take the file again if it was cut off" in said
    pairs.write_bytes(pairs.read_bytes()[:-400])
    assert "seesaw_cf_P27_P101.json: not whole JSON" in refused(capsys, tmp_path, pairs, "--source", world)


def test_what_was_given_cannot_be_used(pairs: Path, tmp_path: Path, world: Path, capsys: Any) -> None:
    assert "source 'nowhere.nt': no such file" in refused(capsys, tmp_path, pairs, "--source", "nowhere.nt")
    assert "would both be config 'P27_P101'" in refused(capsys, tmp_path, pairs, pairs, "--source", world)
    (tmp_path / "folder" / "data").mkdir(parents=True)
    assert "no config in its data/ holds cases" in refused(capsys, tmp_path, tmp_path / "folder", "--source", world)
    taken = tmp_path / "tag_facts.json"
    taken.write_bytes(pairs.read_bytes())
    assert "config 'tag_facts' is taken" in refused(capsys, tmp_path, taken, "--source", world)


class Slow(Source):
    """Does not finish queries about more than some people."""

    identity = "slow"

    def __init__(self, source: Source, most: int) -> None:
        self._source, self._most, self.sizes = source, most, list[int]()

    def ask(self, text: str) -> bytes:
        people = text.split("{", 2)[2].split("}")[0].count("<")
        self.sizes.append(people)
        if people > self._most:
            raise SourceTimeout("no answer in 2 tries; the last: timed out")
        return self._source.ask(text)


def test_an_endpoint_that_ends_large_queries_is_asked_small_ones(world: Path) -> None:
    store = StoreSource(world)
    slow = Slow(store, FEW)
    found = PeopleSource("slow", slow).people(PEOPLE)
    assert found == PeopleSource("quick", store).people(PEOPLE)
    assert slow.sizes[0] == 200
    assert set(slow.sizes[1:]) <= set(range(FEW + 1)), "what it cannot do is tried once"


def test_what_was_not_finished_in_time_is_repeated_offline(world: Path, tmp_path: Path) -> None:
    slow = Slow(StoreSource(world), FEW)
    found = PeopleSource("slow", CachedSource(slow, tmp_path)).people(PEOPLE)
    asked = list(slow.sizes)
    assert PeopleSource("slow", CachedSource(slow, tmp_path, offline=True)).people(PEOPLE) == found
    assert slow.sizes == asked


def test_an_endpoint_that_finishes_no_form_is_named(world: Path) -> None:
    slow = Slow(StoreSource(world), 0)
    with pytest.raises(SourceError, match=r"^slow did not finish any form .* about one of the people"):
        PeopleSource("slow", slow).people(PEOPLE)
    assert slow.sizes == [200, 10, 1]


@pytest.mark.slow
def test_an_endpoint_that_answers_504_to_everything_is_named(
    pairs: Path, tmp_path: Path, server: str, capsys: Any
) -> None:
    with FaultProxy(server, ends=lambda query: "504") as proxy:
        said = refused(capsys, tmp_path, pairs, "--source", proxy.url, "--timeout", "5")
    assert f"{proxy.url}: no answer in 2 tries; the last: HTTP 504 Gateway Timeout. Check the" in said


@pytest.mark.slow
@pytest.mark.usefixtures("short_silence")
def test_a_silent_endpoint_is_named_at_once(pairs: Path, tmp_path: Path, capsys: Any, caplog: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/query"
        said = refused(capsys, tmp_path, pairs, "--source", url, "--timeout", "2")
    assert f"waiting for {url}, which has not answered yet: 2 s at the most" in caplog.text
    assert f"{url} is silent: in 2 s nothing came" in said


def test_a_server_that_says_it_took_too_long_is_believed(server: str) -> None:
    """Wikidata's answers with an error 500 whose text names a TimeoutException, others with a 504."""
    policy = RequestPolicy(silent_attempts=2, pause=0.01)
    for fault in ("timeout", "504"):
        with FaultProxy(server, [fault] * 3) as proxy:
            with pytest.raises(SourceTimeout, match="no answer in 2 tries"):
                EndpointSource(proxy.url, policy, sleep=lambda _: None).ask("SELECT * WHERE { ?s ?p ?o } LIMIT 1")
            assert len(proxy.queries) == 2
    with (
        FaultProxy(server, ["500"] * 9) as proxy,
        pytest.raises(SourceError, match="no answer in 3 tries") as error,
    ):
        EndpointSource(proxy.url, RequestPolicy(attempts=3, pause=0.01), sleep=lambda _: None).ask("SELECT * {}")
    assert not isinstance(error.value, SourceTimeout)
    assert not isinstance(error.value, TryAgain)
