"""Raw replies: what is read out of them, what is refused, and what a damaged cache costs (one more query)."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.sources import CachedSource, Source, StoreSource
from seesaw_cf.builder_scripts.sparql import SourceError, rows

from .conftest import PREFIXES

TERMS = st.fixed_dictionaries({"type": st.sampled_from(["uri", "literal", "bnode"]), "value": st.text(max_size=8)})
SOLUTIONS = st.lists(st.dictionaries(st.sampled_from("abc"), TERMS, max_size=3), max_size=4)


def reply(solutions: object) -> bytes:
    return json.dumps({"head": {"vars": list("abc")}, "results": {"bindings": solutions}}).encode()


@settings(max_examples=40)
@given(SOLUTIONS.filter(bool), st.data())
def test_no_beginning_of_a_reply_passes_for_a_whole_one(solutions: list[Any], data: st.DataObject) -> None:
    whole = reply(solutions)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(SourceError, match="not a whole SPARQL result in JSON"):
        rows(whole[:cut])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "JSONDecodeError"),
        (b"<html>busy</html>", "it begins b'<html>busy"),
        (b"[]", "TypeError"),
        (b"null", "TypeError"),
        (b'{"results": []}', "TypeError"),
        (b'{"results": {}}', "KeyError: 'bindings'"),
        (b'{"boolean": true}', "KeyError: 'results'"),
        (b'{"results": {"bindings": [7]}}', "AttributeError"),
        (b'{"results": {"bindings": [{"a": {"type": "uri"}}]}}', "KeyError: 'value'"),
        (b'{"results": {"bindings": [{"a": {"value": "x"}}]}}', "KeyError: 'type'"),
        (b'{"results": {"bindings": [{"a": "x"}]}}', "TypeError"),
        (b"\xff\xfe{", "UnicodeDecodeError"),
    ],
)  # fmt: skip
def test_what_is_no_result_says_why_and_what_came(content: bytes, problem: str) -> None:
    with pytest.raises(SourceError, match=r"Ask again; check that the address is a SPARQL endpoint\.$") as raised:
        rows(content)
    assert problem in str(raised.value)


class Counting(Source):
    """A source that answers every query with one row, and counts."""

    identity = "counting"

    def __init__(self, identity: str = "counting") -> None:
        self.identity = identity
        self.asked: Counter[str] = Counter()

    def ask(self, text: str, *, patient: bool = True) -> bytes:
        self.asked[text] += 1
        return reply([{"a": {"type": "literal", "value": text * 20}}])


def _damages(whole: bytes) -> dict[str, bytes]:
    """Ways in which a gzip file is spoiled. Ten bytes of header, then RFC 1951: block type 3 does not exist."""
    block = whole[:10] + b"\x07" + whole[11:]
    return {"block": block, "cut": whole[:-3], "header": whole[:10], "checksum": whole[:-8] + b"\0" * 8,
            "other": gzip.compress(b"{}")}  # fmt: skip


@pytest.mark.parametrize("damage", ["block", "cut", "header", "checksum", "other"])
def test_a_spoiled_reply_is_reported_and_asked_for_again(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = Counting()
    cached = CachedSource(source, tmp_path)
    expected = cached.ask("q")
    (file,) = tmp_path.rglob("*.gz")
    whole = file.read_bytes()
    file.write_bytes(_damages(whole)[damage])
    assert cached.ask("q") == expected
    assert "asked for again" in caplog.text
    assert source.asked == {"q": 2}
    assert file.read_bytes() == whole, "the same reply is the same bytes"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "7", "{}", '{"sha256": 5}'])
def test_a_spoiled_description_is_no_description(tmp_path: Path, content: str) -> None:
    source = Counting()
    cached = CachedSource(source, tmp_path)
    expected = cached.ask("q")
    (file,) = tmp_path.rglob("*.json")
    file.write_text(content, encoding="utf-8")
    assert cached.ask("q") == expected
    assert (source.asked["q"], cached.misses, cached.hits) == (2, 2, 0)
    assert cached.ask("q") == expected
    assert (source.asked["q"], cached.misses, cached.hits) == (2, 2, 1)


def test_two_sources_share_a_folder_and_never_a_reply(tmp_path: Path) -> None:
    one, two = Counting("one"), Counting("two")
    for source in (one, two, one, two):
        CachedSource(source, tmp_path).ask("q")
    assert (one.asked["q"], two.asked["q"]) == (1, 1)
    assert len(list(tmp_path.rglob("*.gz"))) == len(list(tmp_path.rglob("*.json"))) == 2
    described = sorted(json.loads(file.read_text(encoding="utf-8"))["source"] for file in tmp_path.rglob("*.json"))
    assert described == ["one", "two"]


def test_the_last_reply_that_was_used_dates_a_build(tmp_path: Path, store: StoreSource) -> None:
    asked = "SELECT ?s WHERE { ?s ?p ?o } LIMIT 1"
    first = CachedSource(store, tmp_path)
    assert first.latest == ""
    first.ask(asked)
    assert first.latest == first.time_of(asked) != ""
    [about] = tmp_path.glob("*/*.json")
    about.write_text(about.read_text().replace(first.latest, "2020-02-03T04:05:06+00:00"))
    again = CachedSource(store, tmp_path, offline=True)
    again.ask(asked)
    assert again.latest == "2020-02-03T04:05:06+00:00", "a repeated build has the date of the first"


def test_a_store_is_known_by_what_is_in_its_files_not_by_their_names(tmp_path: Path) -> None:
    texts = {"a.ttl": "wd:Q1 wdt:P27 wd:Q2 .", "b.ttl": "wd:Q1 wdt:P27 wd:Q2 .", "c.ttl": "wd:Q1 wdt:P27 wd:Q3 ."}
    for name, text in texts.items():
        (tmp_path / name).write_text(PREFIXES + text, encoding="utf-8")
    a, b, c = (StoreSource(tmp_path / name).identity for name in texts)
    assert a == b != c
    assert a.startswith("store:sha256:")
