"""A real SPARQL server, spoiled or limited in every way that public endpoints are, gives the same answers."""

import json
import re
import socket
from collections import Counter
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import pytest

from seesaw_cf.builder_scripts import Asking, BuildOptions
from seesaw_cf.builder_scripts import facts as facts_module
from seesaw_cf.builder_scripts.dataset import build, choose_edits
from seesaw_cf.builder_scripts.endpoint import EndpointSource
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import CachedSource, Source, StoreSource
from seesaw_cf.builder_scripts.sparql import FEMALE, Parameter, SourceError, SourceTimeout, query
from seesaw_cf.builder_scripts.tag import People, look_up
from seesaw_cf.errors import RecordError
from seesaw_cf.records.relations import RELATIONS
from tests.fakes import slowly

from .conftest import HOLDERS
from .fault_proxy import FaultProxy

FACTS: dict[str, Parameter] = {"people": ["Q23357", "Q7186"], "listed": ["P27", "P569"]}
PEOPLE = query("facts", FACTS)


class Waits(list[float]):
    """Stands in for time.sleep and remembers."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def test_the_server_answers_as_the_embedded_store(server: str, store: StoreSource) -> None:
    endpoint = EndpointSource(server)
    for name, parameters in (("holders", HOLDERS), ("facts", FACTS)):
        rows = endpoint.select(name, **parameters)
        assert rows
        assert rows == store.select(name, **parameters)


@pytest.mark.parametrize(
    "faults",
    [
        ["429:1", "429"], ["500", "502", "503", "504"], ["half"], ["unfinished"], ["page"], ["other"], ["drop", "drop"],
        *slowly(["hang:3"], ["drip:4"]), ["503:2", "half", "page", "drop", "429:0"], ["429:²", "503:-5", "503:1.5"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_fault_is_survived_and_the_answer_is_the_same(server: str, faults: list[str]) -> None:
    expected = EndpointSource(server).ask(PEOPLE)
    waits = Waits()
    with FaultProxy(server, faults) as proxy:
        assert EndpointSource(proxy.url, Asking(timeout=2), sleep=waits).ask(PEOPLE) == expected
        assert len(proxy.queries) == len(faults) + 1
        assert len(set(proxy.queries)) == 1
    assert len(waits) == len(faults)


def test_the_server_is_given_the_time_it_asks_for(server: str) -> None:
    waits = Waits()
    date = formatdate(time() + 100, usegmt=True)
    with FaultProxy(server, ["429:7", f"503:{date}", "429", "429", "503:nonsense"]) as proxy:
        EndpointSource(proxy.url, sleep=waits).ask(PEOPLE)
    assert waits[0] == 7
    assert 97 <= waits[1] <= 101
    # Back-off: pause * 2^attempt, between half of it and all of it.
    for attempt, wait in enumerate(waits[2:], start=2):
        assert 2**attempt / 2 <= wait <= 2**attempt


def test_too_long_a_wait_ends_the_build_with_a_message(server: str) -> None:
    with FaultProxy(server, ["429:86400"]) as proxy, pytest.raises(SourceError, match="asks to wait 86400 s"):
        EndpointSource(proxy.url).ask(PEOPLE)


@pytest.mark.slow
@pytest.mark.usefixtures("short_silence")
def test_a_silent_endpoint_is_named_at_once_and_not_asked_seven_times(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/query"
        with pytest.raises(SourceError, match="is silent: in 1 s nothing came"):
            EndpointSource(url, Asking(timeout=1), sleep=Waits()).ask(PEOPLE)
    assert f"waiting for {url}, which has not answered yet: 1 s at the most" in caplog.text


def test_a_try_that_failed_shows_no_password(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SourceError, match=r"http://\*\*\*@127"):
        EndpointSource("http://me:secret@127.0.0.1:9/query?key=secret", sleep=Waits()).ask(PEOPLE)
    assert "http://***@127.0.0.1:9/query?***: " in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(("code", "remedy"), [(401, "wants a login"), (403, "Name a contact"), (404, "nothing at")])
def test_refusals_are_not_repeated(server: str, code: int, remedy: str) -> None:
    with FaultProxy(server, [str(code)]) as proxy:
        with pytest.raises(SourceError, match=rf"HTTP {code} .*{remedy}.*try later"):
            EndpointSource(proxy.url, sleep=Waits()).ask(PEOPLE)
        assert len(proxy.queries) == 1


def test_settings_that_cannot_work() -> None:
    for url in ("wikidata.org", "ftp://x.org/", "http://x.org/ y", "http://x.org/\n", "http://[", "http://"):
        with pytest.raises(RecordError, match="expected one such as"):
            EndpointSource(url)
    with pytest.raises(RecordError, match="timeout is 0"):
        Asking(timeout=0)
    with pytest.raises(RecordError, match="expected a mail address"):
        Asking(contact="me\r\nHost: other")


def test_the_user_agent_is_honest(server: str) -> None:
    with FaultProxy(server) as proxy:
        EndpointSource(proxy.url, Asking(contact="mail@example.org")).ask(PEOPLE)
        assert re.fullmatch(r"seesaw_cf/\S+ \(https://\S+; mail@example\.org\) SPARQLWrapper", proxy.agents[0])


def test_a_reply_is_asked_for_once_and_replayed_offline(server: str, tmp_path: Path) -> None:
    with FaultProxy(server) as proxy:
        first = CachedSource(EndpointSource(proxy.url), tmp_path)
        rows = first.select("holders", **HOLDERS)
        assert first.select("holders", **HOLDERS) == rows
        again = CachedSource(EndpointSource(proxy.url), tmp_path)
        assert again.select("holders", **HOLDERS) == rows
        assert len(proxy.queries) == 1
        assert (first.misses, first.hits, again.misses, again.hits) == (1, 1, 0, 1)
        url = proxy.url
    offline = CachedSource(EndpointSource(url), tmp_path, offline=True)
    assert offline.select("holders", **HOLDERS) == rows
    with pytest.raises(SourceError, match="no kept reply of http://127"):
        offline.select("holders", **HOLDERS | {"seed": 1})


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
    assert make(tmp_path / "offline", limited(proxy, tmp_path / "cache", offline=True))[0] == whole


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
def test_every_way_of_saying_that_a_query_took_too_long(world_server: str, fault: str) -> None:
    """QLever says it with a 429, others with a 5xx, Wikidata's also in the middle of a reply."""
    with FaultProxy(world_server, ends=lambda query: fault if LOOKS.search(query) else "") as proxy:
        source = EndpointSource(proxy.url, Asking(timeout=1), sleep=lambda _: None)
        place: dict[str, Any] = {"property": "P27", "held": ["Q30"]}
        assert source.try_select("slice", first="0000", last="g", seed=0, **place) is None
        assert source.try_select("size", **place)
        assert len([query for query in proxy.queries if b"SHA256" in query]) == 1
