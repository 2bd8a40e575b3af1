"""An endpoint that ends every query that takes long: the same data set, or what could be had, and how it was had."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.builder_scripts import Asking, BuildOptions
from seesaw_cf.builder_scripts import facts as facts_module
from seesaw_cf.builder_scripts.dataset import build, choose_edits
from seesaw_cf.builder_scripts.endpoint import EndpointSource
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import CachedSource, Source, StoreSource
from seesaw_cf.builder_scripts.sparql import FEMALE, SourceError, SourceTimeout
from seesaw_cf.builder_scripts.tag import People, look_up
from seesaw_cf.records.relations import RELATIONS

from .fault_proxy import FaultProxy

FEW = BuildOptions(edits=dict.fromkeys(RELATIONS, 2), per_gender=5, true_per_gender=2, per_pair=2)
# What makes a query long: everybody is sorted, everybody is looked through, statements are counted.
ALIKE = (pytest.mark.slow, pytest.mark.exhaustive)
SORTS = re.compile(r"(?s)wdt:P31 wd:Q5.*ORDER BY SHA256")
LOOKS = re.compile("SHA256")
COUNTS = re.compile(r"COUNT\(")


def ends(*patterns: re.Pattern[str]) -> Any:
    """The fault of a server that ends the queries of some patterns after its minute."""
    return lambda query: "timeout" if any(pattern.search(query) for pattern in patterns) else ""


def limited(proxy: FaultProxy, cache: Path, **more: Any) -> CachedSource:
    return CachedSource(EndpointSource(proxy.url, Asking(timeout=10), sleep=lambda _: None), cache, **more)


def recorded(source: Source, ids: list[str]) -> People:
    people = People()
    look_up(people, Facts(source, FEW), "source", ids)
    return people


def make(out: Path, source: Source) -> tuple[dict[str, bytes], dict[str, Counter[str]]]:
    """The files of a build but its card, and which ways were taken."""
    facts = Facts(source, FEW)
    build(out, facts, choose_edits(facts), {})
    return {path.name: path.read_bytes() for path in out.rglob("*.parquet")}, facts.ways


@pytest.fixture(scope="module")
def whole(world: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    files, ways = make(tmp_path_factory.mktemp("whole"), StoreSource(world))
    assert {way for counts in ways.values() for way in counts} == {"whole"}
    return files


@pytest.mark.slow
def test_slices_give_the_same_people_and_nobody_is_asked_to_sort_all(
    whole: dict[str, bytes], world_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are more statements than an endpoint sorts in time, no query that it would end is even asked."""
    monkeypatch.setattr(facts_module, "WHOLE", 20)
    with FaultProxy(world_server) as proxy:
        files, ways = make(tmp_path / "out", limited(proxy, tmp_path / "cache"))
    assert files == whole
    assert {way for counts in ways.values() for way in counts} == {"whole", "slices"}
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"| citizenship | {ways['P27']['whole']} | {ways['P27']['slices']} |" in card


@pytest.fixture(scope="module")
def women(world: Path) -> tuple[str, str, str]:
    """The women of the country that most people are citizens of."""
    return "P27", StoreSource(world).select("values", property="P27", limit=1)[0]["value"].split("/")[-1], FEMALE


@pytest.mark.slow
@pytest.mark.parametrize(
    "patterns", [pytest.param([SORTS], marks=ALIKE), [SORTS, COUNTS]], ids=["sorts", "sorts and counts"]
)
def test_an_endpoint_that_ends_every_sort_gives_the_same_data_set(
    whole: dict[str, bytes], world_server: str, tmp_path: Path, patterns: list[re.Pattern[str]]
) -> None:
    with FaultProxy(world_server, ends=ends(*patterns)) as proxy:
        source = limited(proxy, tmp_path / "cache")
        files, ways = make(tmp_path / "out", source)
        asked = Counter(proxy.queries)
        assert files == whole
        assert {way for counts in ways.values() for way in counts} == {"slices"}
        assert set(asked.values()) == {1}, "nobody waits twice for what the endpoint does not finish"
        assert make(tmp_path / "again", source)[0] == whole
        assert Counter(proxy.queries) == asked
    offline = limited(proxy, tmp_path / "cache", offline=True)
    assert make(tmp_path / "offline", offline)[0] == whole


@pytest.mark.slow
def test_ranges_that_get_too_wide_get_narrow_again(
    women: tuple[str, str, str], world: Path, world_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of people of the endpoint is unknown, and what it can do is found out."""
    expected = Facts(StoreSource(world), FEW).holders(*women)
    monkeypatch.setattr(facts_module, "SLICES", 400)

    def wide(query: str) -> str:
        ends = re.search(r'>= "(\w+)" && \?hash < "(\w+)"', query)
        if ends is None:
            return "timeout" if SORTS.search(query) or COUNTS.search(query) else ""
        first, last = (int(end, 16) if end != "g" else 1 << 16 for end in ends.groups())
        return "timeout" if last - first > 300 else ""

    with FaultProxy(world_server, ends=wide) as proxy:
        facts = Facts(limited(proxy, tmp_path / "cache"), FEW)
        assert facts.holders(*women) == expected
        assert facts.ways["P27"] == {"slices": 1}
        monkeypatch.setattr(facts_module, "SLICES", 20)
        facts = Facts(limited(proxy, tmp_path / "cache"), FEW)
        some = facts.holders(*women)
        assert 0 < len(some) < len(expected)
        assert some == expected[: len(some)], "the beginning of the same order"
        assert facts.ways["P27"] == {"slices": 1}


def test_an_endpoint_that_finishes_no_form_is_named(world_server: str, tmp_path: Path) -> None:
    with FaultProxy(world_server, ends=ends(LOOKS, COUNTS)) as proxy:
        facts = Facts(limited(proxy, tmp_path / "cache"), FEW)
        with pytest.raises(SourceTimeout, match=r"http://.* did not finish any form .* P27 Q30\. Give it longer"):
            facts.holders("P27", "Q30", "")
        with pytest.raises(SourceTimeout, match=r"http://.* did not finish any form .* P27 of any value\."):
            facts.values("P27")


@pytest.mark.parametrize("how", ["206", "state", "most", "cut"])
@pytest.mark.parametrize("most", [300, 20])
def test_a_reply_that_is_not_whole_is_asked_again_about_fewer(
    world: Path, world_server: str, tmp_path: Path, how: str, most: int
) -> None:
    """Never taken as whole, never kept: the answer is that of a server without the limit."""
    ids = [person.id for person in Facts(StoreSource(world), FEW).everyone()][:150]
    expected = recorded(StoreSource(world), ids).persons
    with FaultProxy(world_server, ends=lambda query: f"part:{most} {how}") as proxy:
        source = limited(proxy, tmp_path)
        found = recorded(source, ids)
    assert found.persons == expected
    kept = [json.loads(file.read_text(encoding="utf-8")) for file in tmp_path.rglob("*.json")]
    assert sum(one.get("timed_out", False) for one in kept) == len(kept) - len(list(tmp_path.rglob("*.gz"))) > 0
    assert recorded(limited(proxy, tmp_path, offline=True), ids) == found


@pytest.mark.parametrize("how", ["206", "state", "most", "cut"])
def test_a_part_about_one_person_is_an_error(world: Path, world_server: str, tmp_path: Path, how: str) -> None:
    ids = [person.id for person in Facts(StoreSource(world), FEW).everyone()][:3]
    with (
        FaultProxy(world_server, ends=lambda query: f"part:1 {how}") as proxy,
        pytest.raises(SourceError, match=r"did not finish any form .* the last was about one"),
    ):
        recorded(limited(proxy, tmp_path), ids)
    assert not list(tmp_path.rglob("*.gz"))


@pytest.mark.parametrize("fault", ["429 said", "500 said", "503 said", "408", "504", "broken", "hang:1.5"])
def test_every_way_of_saying_that_a_query_took_too_long(world_server: str, tmp_path: Path, fault: str) -> None:
    """QLever says it with a 429, others with a 5xx, Wikidata's also in the middle of a reply."""
    with FaultProxy(world_server, ends=lambda query: fault if LOOKS.search(query) else "") as proxy:
        source = EndpointSource(proxy.url, Asking(timeout=1), sleep=lambda _: None)
        place: dict[str, Any] = {"property": "P27", "held": ["Q30"]}
        assert source.try_select("slice", first="0000", last="g", seed=0, **place) is None
        assert source.try_select("size", **place)
        assert len([query for query in proxy.queries if b"SHA256" in query]) == 1
