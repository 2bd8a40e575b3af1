"""Messages and files show no user, password or query of a URL."""

from __future__ import annotations

import pytest

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import StorageError, hide_secrets

URLS = {
    "https://me:secret@host:8000/v1": "https://***@host:8000/v1",
    "https://secret@host/v1/x.json": "https://***@host/v1/x.json",
    "https://host/x?X-Amz-Signature=secret&a=b": "https://host/x?***",
    "https://host/x#token=secret": "https://host/x#***",
    "simplecache::s3://key:secret@bucket/x": "simplecache::s3://***@bucket/x",
    "zip://in.csv::https://me:secret@host/x.zip?sig=secret": "zip://in.csv::https://***@host/x.zip?***",
    "s3:/key:secret@bucket/x?Signature=secret": "s3:/***@bucket/x?***",
    "C:/me@here/x": "C:/me@here/x",
    "hf://datasets/org/name@main/x.parquet": "hf://datasets/org/name@main/x.parquet",
    "https://query.wikidata.org/sparql": "https://query.wikidata.org/sparql",
    "a@example.org asked what? nothing": "a@example.org asked what? nothing",
}


@pytest.mark.parametrize("url", URLS)
def test_secrets_of_urls_are_hidden(url: str) -> None:
    assert hide_secrets(f"read {url} twice: {url} here") == f"read {URLS[url]} twice: {URLS[url]} here"
    assert "secret" not in str(StorageError(f"{url}: no such file."))
    assert shown(url) == repr(URLS[url])
