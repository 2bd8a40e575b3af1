"""What people see: lists that fit the terminal, no secret of a URL, no formula in a sheet, whole citations, quiet."""

import io
import math
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base import terminal
from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import StorageError, hide_secrets
from seesaw_cf.base.files import csv_text, neutral
from seesaw_cf.base.retrying import no_bars, quiet
from tests import fresh
from tests.page_reader import original

MARKDOWN = """# What \\*was\\* found

**Bold** and `code`, a\\_b &lt;c&gt; \x1b[31mred\u202e.

| Name | n |
| --- | ---: |
| *a\\|b* | 1,234 |
"""


def test_a_markdown_report_is_laid_out_for_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    drawn = terminal.markdown_for_terminal(MARKDOWN)
    assert max(map(len, drawn.split("\n"))) <= 80
    assert "\x1b" not in drawn
    assert "\u202e" not in drawn
    for text in ("What *was* found", "Bold and code, a_b <c>", "a|b", "1,234"):
        assert text in drawn


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


@given(st.text(alphabet="'=+-@\t\ra1", max_size=6))
def test_no_text_begins_as_a_formula_and_the_original_comes_back(text: str) -> None:
    number = re.fullmatch(r"[+-]\d+", text) or len(text) == 1
    assert number or not neutral(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert original(neutral(text)) == text


def test_numbers_and_lone_signs_are_no_formulas() -> None:
    numbers = ["-", "-0.3", "+1.2e-05*", "-75.0% [-80.1, -3.0]", "+1,234 n=3", "+0.014 (too few: 3 in women, 5 needed)"]
    assert [neutral(text) for text in numbers] == numbers
    formulas = ("=1", "-1+cmd|' /C calc'!A0", "-1 (SUM(A1))", "+0.1 [0.1, B1]", "=\n1", "-1\n=1", "+A1", "@a")
    assert [neutral(text) for text in formulas] == [f"'{text}" for text in formulas]


def test_csv_keeps_numbers_and_neutralises_text() -> None:
    frame = pd.DataFrame({"subject": ["=HYPERLINK(1)", "Ada", None], "D": [-0.5, math.nan, 2.0], "=n": [-1, 2, 3]})
    shown = csv_text(frame)
    assert shown.split("\n")[:2] == ["subject,D,'=n", "'=HYPERLINK(1),-0.5,-1"]
    back = pd.read_csv(io.StringIO(shown))
    assert back["D"].tolist()[0::2] == [-0.5, 2.0]
    assert back["'=n"].tolist() == [-1, 2, 3]


def test_bars_are_off_in_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS", raising=False)
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    with quiet(False):
        assert not no_bars()
    with quiet(True):
        assert no_bars()
        assert os.environ["TRANSFORMERS_VERBOSITY"] == "error"
    assert not no_bars()
    assert os.environ["TRANSFORMERS_VERBOSITY"] == "info"


@pytest.mark.slow(20)
def test_a_quiet_command_writes_nothing_to_stderr(tmp_path: Path) -> None:
    words = ["audit", "seesaw-tiny", "--editor", "ft", "--limit", "1", "--control", "none", "--device", "cpu"]
    words += ["--quiet", "--out", str(tmp_path / "run")]
    assert fresh.python("-m", "seesaw_cf", *words).stderr == ""
