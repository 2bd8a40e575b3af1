"""A real SPARQL server, spoiled in every way that public endpoints are, gives the same answers."""

from __future__ import annotations

import re
import socket
from email.utils import formatdate
from pathlib import Path
from time import time

import pytest

from seesaw_cf.builder_scripts import Asking
from seesaw_cf.builder_scripts.endpoint import EndpointSource
from seesaw_cf.builder_scripts.sources import CachedSource, StoreSource
from seesaw_cf.builder_scripts.sparql import Parameter, SourceError, query
from seesaw_cf.errors import RecordError
from tests.fakes import slowly

from .fault_proxy import FaultProxy

HOLDERS: dict[str, Parameter] = {
    "property": "P27", "value": "Q30", "gender": "Q6581072", "language": "en", "seed": 0, "limit": 5,
}  # fmt: skip
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
