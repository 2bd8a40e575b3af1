"""Texts of `--corpus`: each form gives the same texts, at most as many as asked, and says what is wrong with it."""

import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import SeesawError
from seesaw_cf.models.corpus import Corpus, corpus_facts
from tests import fresh

from ..hub_server import Hub

TEXTS = ["Lima lies in Peru.", "Zoë wrote “Über” in Zürich.", "第三"]
ROWS = [{"text": text, "n": number, "title": f"t{number}"} for number, text in enumerate(TEXTS)]


def _jsonl(rows: object = ROWS) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()  # type: ignore[attr-defined]


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    return bytes(sink.getvalue().to_pybytes())


PLAIN = "\ufeff" + "\r\n".join(TEXTS) + "\n\n  \n"


@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("texts", PLAIN.encode(), "", TEXTS),
        ("a:b.txt", PLAIN.encode(), "", TEXTS),
        ("texts.txt.gz", gzip.compress(PLAIN.encode(), mtime=0), "", TEXTS),
        ("texts.jsonl", _jsonl(), "", TEXTS),
        ("texts.jsonl", _jsonl(), ":title", ["t0", "t1", "t2"]),
        ("texts.jsonl.gz", gzip.compress(_jsonl(), mtime=0), ":text", TEXTS),
        ("texts.jsonl", _jsonl([{"body": text} for text in [*TEXTS, None, " "]]), "", TEXTS),
        ("texts.parquet", _parquet(), "", TEXTS),
        ("texts.parquet", _parquet(), ":title", ["t0", "t1", "t2"]),
    ],
)
def test_every_kind_of_file_gives_its_texts(
    tmp_path: Path, name: str, content: bytes, column: str, expected: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    spec = f"{tmp_path / name}{column}"
    corpus = Corpus(spec)
    assert list(corpus) == expected
    assert (corpus[0], corpus[1:]) == (expected[0], expected[1:])
    digest = hashlib.sha256(b"".join(b"%d:" % len(text.encode()) + text.encode() for text in expected)).hexdigest()
    assert corpus_facts(corpus) == {"corpus": {"source": spec, "texts": len(expected), "seed": 0, "sha256": digest}}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    """The name of a file of that many texts, "000", "001", ..."""
    folder = tmp_path_factory.mktemp("numbers")

    def named(n: int) -> str:
        file = folder / f"{n}.txt"
        file.write_text("".join(f"{number:03d}\n" for number in range(n)))
        return str(file)

    return named


@given(n=st.integers(1, 60), limit=st.integers(1, 70), seed=st.integers(0, 5))
def test_a_sample_has_the_size_and_order_of_a_draw_without_replacement(
    numbers: Callable[[int], str], n: int, limit: int, seed: int
) -> None:
    spec = numbers(n)
    drawn = list(Corpus(spec, limit, seed))
    assert drawn == sorted(set(drawn)) == list(Corpus(spec, limit, seed))
    assert set(drawn) <= {f"{number:03d}" for number in range(n)}
    assert len(drawn) == min(n, limit)


BAD: list[tuple[str, bytes | None, str, str]] = [
    ("no.txt", None, "", r"no\.txt: cannot be read \(no such file\)\. Expected a text file"),
    ("t.txt", b"good\n\xff\xfe\n", "", r"t\.txt: cannot be read \(UnicodeDecodeError: "),
    ("t.txt", gzip.compress(b"text", mtime=0), "", r"t\.txt: cannot be read \(UnicodeDecodeError: "),
    ("t.txt", b"\n  \n\t\n", "", r"t\.txt: no text in it has visible characters"),
    ("t.csv", b"a,b\n", "", ".csv files are not read. Expected a text file"),
    ("t.txt.gz", b"plain", "", r"t\.txt\.gz: cannot be read \("),
    ("t.txt.gz", gzip.compress(b"text" * 999, mtime=0)[:-9], "", r"t\.txt\.gz: cannot be read \("),
    ("t.jsonl", b'{"text": "a"}\n{"text": ', "", r"t\.jsonl: cannot be read \("),
    ("t.jsonl", b"[" * 100_000, "", "cannot be read"),
    ("t.jsonl", _jsonl(), ":tite", r"unknown column of .*'tite'\. Did you mean 'title'.*Known: n, text, title"),
    ("t.jsonl", _jsonl(), ":n", r"column 'n' holds 0, expected text"),
    ("t.jsonl", b'{"a": "x", "b": "y"}', "", r"which column\? .*Columns of text: a, b; all: a, b"),
    ("t.jsonl", b'{"text": "x\\ud800"}', "", "cannot be read"),
    ("t.parquet", _parquet(), ":txt", r"unknown column of .*'txt'\. Did you mean 'text'"),
    ("t.parquet", _parquet()[:-30] + random.Random(0).randbytes(30), "", r"t\.parquet: cannot be read \("),
    ("t.parquet", b"", "", "cannot be read"),
]


@pytest.mark.parametrize(("name", "content", "column", "message"), BAD)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, content: bytes | None, column: str, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SeesawError, match=message):
        len(Corpus(f"{tmp_path / name}{column}"))


READ = """
import sys
import datasets
from datasets import Dataset, DatasetDict
datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN = 0  # the library's pause after every stream
from seesaw_cf.models.corpus import Corpus
from seesaw_cf.errors import SeesawError
numbers = range(300)
rows = Dataset.from_dict({"text": [f"text {i}" for i in numbers], "body": [f"b{i}" for i in numbers], "n": numbers})
rows.push_to_hub("org/one")
for config in ("en", "de"):
    DatasetDict({"train": rows.select([1]), "test": rows.select([2])}).push_to_hub("org/two", config)
print(sorted(Corpus("org/one"), key=lambda text: int(text[5:])) == list(rows["text"]))
few = list(Corpus("org/one:default:train:body", limit=20, seed=3))
print(few == list(Corpus("org/one:::body", limit=20, seed=3)) != list(Corpus("org/one:::body", limit=20, seed=4)))
print(len(set(few)), set(few) <= set(rows["body"]))
print(list(Corpus("org/two:en")), list(Corpus("org/two:de:test:body")))
for spec in ("org/two", "org/two:fr", "org/two:en:tset", "org/one:::txet", "org/one:::n", "org/none"):
    try:
        len(Corpus(spec))
    except SeesawError as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.slow(15)
def test_a_data_set_of_the_hub_is_streamed(tmp_path: Path) -> None:
    with Hub(tmp_path) as hub:
        done = fresh.python("-c", READ, env=hub.environment("hf_write"))
    *read, which, config, split, column, kind, unknown = done.stdout.splitlines()
    assert read == ["True", "True", "20 True", "['text 1'] ['b2']"]
    assert which.startswith("StorageError: corpus org/two: cannot be read (ValueError: Config name is missing")
    assert config.startswith(
        "StorageError: corpus org/two:fr: cannot be read (ValueError: BuilderConfig 'fr' not found"
    )
    assert "unknown split of data set org/two:en:tset 'tset'. Did you mean 'test'?" in split
    assert "'txet'. Did you mean 'text'? Known: body, n, text." in column
    assert re.fullmatch(r"RecordError: corpus org/one:::n: column 'n' holds \d+, expected text\.", kind)
    assert unknown.startswith("StorageError: corpus org/none: cannot be read (DatasetNotFoundError")
