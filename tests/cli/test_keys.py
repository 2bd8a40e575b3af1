"""A key that is missing is said before a model is loaded, a text is made or a folder is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from seesaw_cf.base.tables import write_table
from seesaw_cf.cli import main
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.identities import find
from seesaw_cf.texts.graph.settings import CrawlSettings
from seesaw_cf.texts.tables import PASSAGES
from tests.stereotypes.fakes import FakeGenerator

SERVER = "http://127.0.0.1:9/v1"
UNSCORED = ["--regard", "none", "--attack", "none"]
WRITER = ["--editor", "ike", "--base-url", SERVER, "--key-env", "NO_SUCH_KEY"]
OK = "--acknowledge-content"


@pytest.mark.parametrize(
    "words",
    [
        ["texts", "write", "m", *WRITER, "--rate", "local/judge", "--out", "new"],
        ["texts", "rate", "passages.parquet", "--rater", "m", *WRITER[2:], "--out", "new"],
        ["graph", "run", "m", *WRITER[2:], *UNSCORED, "--identities", "Women", "--out", "new", OK],
        ["graph", "run", "m", *WRITER[2:], *UNSCORED, "--select", "dynamic", "--out", "new", OK],
        ["graph", "run", "m", "--regard", "none", "--attack", "perspective", "--out", "new", OK],
    ],
    ids=["writer", "judge", "crawl", "selection", "perspective"],
)
def test_a_missing_key_is_the_first_thing_that_is_said(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for key in ("NO_SUCH_KEY", "PERSPECTIVE_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    write_table(tmp_path / "passages.parquet", PASSAGES.empty_table())
    crawl_identities(FakeGenerator(), find(["Women"]), CrawlSettings(triples=4), tmp_path / "crawl")
    for place in ("AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification", "AutoTokenizer"):
        monkeypatch.setattr(
            f"transformers.{place}.from_pretrained", lambda *_, **__: pytest.fail("a model was loaded before")
        )
    capsys.readouterr()
    assert main(words) == 1
    key = "PERSPECTIVE_API_KEY" if "perspective" in words else "NO_SUCH_KEY"
    assert f"the environment variable {key} is not set" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
