"""Queries are made of checked identifiers only, and the embedded store answers them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.builder_scripts.sparql import OWN, QUERIES, Parameter, entity_id, entity_iri, query
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError

HOLDERS: dict[str, Parameter] = {
    "property": "P27", "value": "Q30", "gender": "Q6581072", "language": "en", "seed": 0, "limit": 5,
}  # fmt: skip


def test_identifiers_become_iris_and_back() -> None:
    assert entity_iri("Q42") == "http://www.wikidata.org/entity/Q42"
    assert entity_iri("P27") == "http://www.wikidata.org/prop/direct/P27"
    assert entity_iri(OWN + "someone") == OWN + "someone"
    for id in ("Q42", "P27", OWN + "someone"):
        assert entity_id(entity_iri(id)) == id
    assert entity_id("http://www.wikidata.org/entity/statement/1") == "http://www.wikidata.org/entity/statement/1"


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
        ({"language": 'en") } #'}, "expected a language tag such as 'en'"),
        ({"language": "EN"}, "expected a language tag"),
        ({"seed": "0"}, "query parameter 'seed': got '0', expected a whole number"),
        ({"limit": True}, "query parameter 'limit': got True, expected a whole number"),
        ({"value": 30}, "query parameter 'value': got 30, expected one or more identifiers"),
        ({"extra": "Q1"}, "expected exactly"),
    ],
)
def test_other_parameters_are_checked_too(change: dict[str, Parameter], message: str) -> None:
    with pytest.raises(RecordError, match=re.escape(message)):
        query("holders", HOLDERS | change)


def test_unknown_query_and_missing_parameter() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown query 'holder'\. Did you mean 'holders'"):
        query("holder", {})
    with pytest.raises(RecordError, match=r"query 'labels': got parameters \[\], expected exactly \['entities', 'lang"):
        query("labels", {})


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


def test_labels_prefer_the_language_asked(tmp_path: Path) -> None:
    file = tmp_path / "labels.nt"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    file.write_text(
        "".join(
            f'<http://www.wikidata.org/entity/{id}> {label} "{text}"@{tag} .\n'
            for id, text, tag in (("Q1", "Москва", "ru"), ("Q1", "Moscow", "en"), ("Q2", "Ada", "mul"))
        ),
        encoding="utf-8",
    )
    rows = StoreSource(file).select("labels", entities=["Q1", "Q2"], language="en")
    assert [(entity_id(row["entity"]), row["label"], row["language"]) for row in rows] == [
        ("Q1", "Moscow", "en"),
        ("Q2", "Ada", "mul"),
    ]


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    broken = tmp_path / "broken.nt"
    broken.write_text("<http://x.org/a> <http://x.org/b> .\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"broken\.nt: not valid RDF"):
        StoreSource(broken)
    with pytest.raises(StorageError, match=r"none\.nt: no readable RDF file"):
        StoreSource(tmp_path / "none.nt")
    with pytest.raises(StorageError, match="no readable RDF file or store"):
        StoreSource(tmp_path)


def test_a_store_on_disk_answers_as_the_files_do(tmp_path: Path, store: StoreSource) -> None:
    from tests.builder.embedded import write_small

    ox = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed")
    disk = ox.Store(str(tmp_path / "db"))
    disk.bulk_load(path=str(write_small(tmp_path / "small.nt")))
    disk.flush()
    del disk
    opened = StoreSource(tmp_path / "db")
    assert opened.select("holders", **HOLDERS) == store.select("holders", **HOLDERS)


def test_the_package_imports_without_the_store(tmp_path: Path) -> None:
    """The extra is asked for only where the store is made."""
    import sys

    code = (
        "import sys; sys.modules['pyoxigraph'] = None\n"
        "from seesaw_cf.builder_scripts.sources import StoreSource\n"
        "try: StoreSource('a.nt')\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "pip install 'seesaw_cf[build]'" in done.stdout
