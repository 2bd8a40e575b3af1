"""Queries are made of checked identifiers only, and the embedded store answers them."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.sources import CachedSource, Source, StoreSource
from seesaw_cf.builder_scripts.sparql import QUERIES, Parameter, SourceError, query, rows
from seesaw_cf.errors import RecordError

from .conftest import HOLDERS, PREFIXES

NO_IDENTIFIERS = (
    *("Q42> . ?s ?p ?o } #", "Q42 wd:Q43", "q42", "Q042", "Q", "", "United States of America", 30, "Q42\n"),
    *('https://x.org/"', "https://x.org/a b", "https://x.org/>", "ftp://x.org/a", "https://x.org/\\u003E"),
)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("value", bad) for bad in NO_IDENTIFIERS),
        *(("names", [bad]) for bad in ("no tag", "@en", " @en", "a\\u0022@en", "two\nlines@en", "\u200f@en", "x@EN")),
        *(("language", "en') } #"), ("language", "EN"), ("seed", "0 1"), ("limit", True)),
    ],
)
def test_what_was_not_meant_never_enters_a_query(name: str, bad: Parameter) -> None:
    given_parameters = {"names": bad} if name == "names" else HOLDERS | {name: bad}
    with pytest.raises(RecordError, match=f"query parameter '{name}': got|is not an identifier: expected a QID"):
        query("link" if name == "names" else "holders", given_parameters)


@given(st.text())
def test_an_accepted_identifier_cannot_leave_its_brackets(text: str) -> None:
    try:
        filled = query("present", {"property": "P27", "values": [text]})
    except RecordError:
        return
    inside = re.search(r"VALUES \?value \{ <([^<>]*)> \}", filled)
    assert inside is not None
    assert not set(inside[1]) & set(' "{}|^`\\\n\t')


@pytest.mark.parametrize("file", sorted(QUERIES.glob("*.rq")), ids=lambda file: file.stem)
def test_queries_are_portable(file: Path) -> None:
    """Every prefix is declared, no label service, every place is documented, and the order is fixed."""
    text = file.read_text(encoding="utf-8")
    code = re.sub(r"<[^>]*>|\"[^\"]*\"", "", "\n".join(line for line in text.splitlines() if line[:1] != "#"))
    declared = set(re.findall(r"PREFIX (\w+):", text))
    used = set(re.findall(r"\b([a-z]\w*):(?=\w)", code))
    assert used <= declared
    assert declared <= used
    assert "SERVICE" not in text
    assert "\nORDER BY" in text or file.stem in {"size", "page"}
    comments = " ".join(line for line in text.splitlines() if line[:1] == "#")
    assert all(re.search(rf"\b{place}\b", comments) for place in re.findall(r"\{\{(\w+)\}\}", text))


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    broken = tmp_path / "broken.nt"
    broken.write_text("<http://x.org/a> <http://x.org/b> .\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"broken\.nt: not valid RDF"):
        StoreSource(broken)
    for place in ("none.nt", "."):
        with pytest.raises(RecordError, match="not valid RDF, or no store"):
            StoreSource(tmp_path / place)


def test_a_store_on_disk_answers_as_the_files_do(tmp_path: Path, store: StoreSource) -> None:
    from tests.builder.embedded import write_small

    ox = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed")
    disk = ox.Store(str(tmp_path / "db"))
    disk.bulk_load(path=str(write_small(tmp_path / "small.nt")))
    disk.flush()
    del disk
    assert StoreSource(tmp_path / "db").select("holders", **HOLDERS) == store.select("holders", **HOLDERS)


TERMS = st.fixed_dictionaries({"type": st.sampled_from(["uri", "literal", "bnode"]), "value": st.text(max_size=8)})


def reply(solutions: object) -> bytes:
    return json.dumps({"head": {"vars": list("abc")}, "results": {"bindings": solutions}}).encode()


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), TERMS, max_size=3), max_size=4).filter(bool), st.data())
def test_no_beginning_of_a_reply_passes_for_a_whole_one(solutions: list[Any], data: st.DataObject) -> None:
    whole = reply(solutions)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(SourceError, match="not a whole SPARQL result"):
        rows(whole[:cut])


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", b"[]", b"null", b'{"results": []}', b'{"results": {}}', b'{"boolean": true}', b"\xff\xfe{",
     b'{"results": {"bindings": [7]}}', b'{"results": {"bindings": [{"a": {"type": "uri"}}]}}',
     b'{"results": {"bindings": [{"a": {"value": "x"}}]}}', b'{"results": {"bindings": [{"a": "x"}]}}'],
)  # fmt: skip
def test_what_is_no_result_is_refused_with_what_came(content: bytes) -> None:
    with pytest.raises(SourceError, match="not a whole SPARQL result"):
        rows(content)


class Counting(Source):
    """A source that answers every query with one row, and counts."""

    identity = "counting"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def ask(self, text: str, *, patient: bool = True) -> bytes:
        self.asked[text] += 1
        return reply([{"a": {"type": "literal", "value": text * 20}}])


def _damages(whole: bytes) -> dict[str, bytes]:
    """Ways in which a gzip file is spoiled. Ten bytes of header, then RFC 1951: block type 3 does not exist."""
    block = whole[:10] + b"\x07" + whole[11:]
    return {"block": block, "cut": whole[:-3], "header": whole[:10], "checksum": whole[:-8] + b"\0" * 8,
            "other": gzip.compress(b"{}")}  # fmt: skip


SPOILED = [("*.gz", damage) for damage in ("block", "cut", "header", "checksum", "other")]
SPOILED += [("*.json", content) for content in ("", "{", "[]", "null", "7", "{}", '{"sha256": 5}')]


@pytest.mark.parametrize(("pattern", "damage"), SPOILED)
def test_a_spoiled_reply_or_description_is_asked_for_again(
    tmp_path: Path, pattern: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = Counting()
    cached = CachedSource(source, tmp_path)
    expected = cached.ask("q")
    (file,) = tmp_path.rglob(pattern)
    whole = file.read_bytes()
    file.write_bytes(_damages(whole)[damage] if pattern == "*.gz" else damage.encode())
    assert cached.ask("q") == expected
    assert "asked for again" in caplog.text
    assert (source.asked["q"], cached.misses, cached.hits) == (2, 2, 0)
    assert cached.ask("q") == expected
    assert (source.asked["q"], cached.hits) == (2, 1)
    assert pattern == "*.json" or file.read_bytes() == whole, "the same reply is the same bytes"


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
