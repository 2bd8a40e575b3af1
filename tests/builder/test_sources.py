"""Queries are made of checked identifiers only, and the embedded store answers them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.builder_scripts.sparql import QUERIES, Parameter, query
from seesaw_cf.errors import RecordError

HOLDERS: dict[str, Parameter] = {
    "property": "P27", "value": "Q30", "gender": "Q6581072", "language": "en", "seed": 0, "limit": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [
        "Q42> . ?s ?p ?o } #", "Q42 wd:Q43", "q42", "Q042", "Q", "", "United States of America",
        'https://x.org/"', "https://x.org/a b", "https://x.org/>", "ftp://x.org/a", "Q42\n", "https://x.org/\\u003E",
    ],
)  # fmt: skip
def test_what_is_no_identifier_never_enters_a_query(bad: str) -> None:
    with pytest.raises(RecordError, match="is not an identifier: expected a QID"):
        query("holders", HOLDERS | {"value": bad})


@given(st.text())
def test_an_accepted_identifier_cannot_leave_its_brackets(text: str) -> None:
    try:
        filled = query("present", {"property": "P27", "values": [text]})
    except RecordError:
        return
    inside = re.search(r"VALUES \?value \{ <([^<>]*)> \}", filled)
    assert inside is not None
    assert not set(inside[1]) & set(' "{}|^`\\\n\t')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"language": 'en") } #'}, "query parameter 'language': got "),
        ({"language": "EN"}, "query parameter 'language': got 'EN'"),
        ({"seed": "0 1"}, "query parameter 'seed': got '0 1'"),
        ({"limit": True}, "query parameter 'limit': got True"),
        ({"value": 30}, "'30' is not an identifier"),
    ],
)
def test_other_parameters_are_checked_too(change: dict[str, Parameter], message: str) -> None:
    with pytest.raises(RecordError, match=re.escape(message)):
        query("holders", HOLDERS | change)


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


def test_the_store_answers_in_the_querys_order(store: StoreSource) -> None:
    first = store.select("holders", **HOLDERS)
    assert len(first) == 5
    assert all(set(row) == {"person"} for row in first)
    assert first == store.select("holders", **HOLDERS)
    longer = store.select("holders", **HOLDERS | {"limit": 20})
    assert longer[:5] == first, "a longer sample begins with the shorter one"
    assert store.select("holders", **HOLDERS | {"seed": 1}) != first
    with pytest.raises(RecordError):
        store.select("holders", **HOLDERS | {"value": "Q30 Q31"})


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
    opened = StoreSource(tmp_path / "db")
    assert opened.select("holders", **HOLDERS) == store.select("holders", **HOLDERS)
