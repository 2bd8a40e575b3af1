"""Bias benchmarks by the id of a data set: a Hub on loopback holds them as the real ones do, and items are the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seesaw_cf.errors import RecordError
from seesaw_cf.logs.bias_files import read_rows
from seesaw_cf.logs.bias_items import read_bias_items
from tests.conftest import REFERENCE
from tests.hub_routes import Repo
from tests.hub_server import Hub

AUTHORS = REFERENCE / "benchmarks"
STORY = {
    "category": "Age", "example_id": 7, "question_index": "1", "context_condition": "ambig", "label": 2,
    "additional_metadata": {"stereotyped_groups": ["old"]}, "context": "A boy met his grandmother.",
    "answer_info": {"ans0": ["boy", "nonOld"], "ans1": ["grandmother", "old"], "ans2": ["Unknown", "unknown"]},
    "ans0": "The boy", "ans1": "The grandmother", "ans2": "Unknown",
}  # fmt: skip
QUESTIONS = [
    STORY | {"question_polarity": "neg", "question": "Who is slow?"},
    STORY | {"question_polarity": "nonneg", "question": "Who is quick?", "example_id": 8},
]
FACTS = "category,example_id,question_index,target_loc\nAge,7,1,1\nAge,8,1,0\n"
PAIRS = "id,sent_more,sent_less,stereo_antistereo,bias_type\n0,Old men nap.,Young men nap.,stereo,age\n"
SENTENCES = "sentid\tsentence\nnurse.guest.1.male.txt\tThe nurse met the guest as he came.\n" \
    "nurse.guest.1.female.txt\tThe nurse met the guest as she came.\n"  # fmt: skip
STATS = "occupation\tbls_pct_female\nnurse\t89.6\n"
LINES = ["1 [The nurse] met the guard, because [he] hadn't slept.", "2 The nurse met [the guard] and saw [him]."]
WORDS = {"stereotype": "tired", "anti-stereotype": "quick", "unrelated": "seven"}
TERM = {"id": "a1", "target": "grandfather", "bias_type": "gender", "context": "The grandfather sat down."}
TERMS = TERM | {"sentences": [{"gold_label": label, "sentence": f"He was {word}."} for label, word in WORDS.items()]}
NUMBERS = {"anti-stereotype": 0, "stereotype": 1, "unrelated": 2}
AS_AUTHORS: Mapping[str, Mapping[str, str]] = {
    "bbq": {"Age.jsonl": "\n".join(map(json.dumps, QUESTIONS)), "additional_metadata_Age.csv": FACTS},
    "crows_pairs": {"pairs.csv": PAIRS},
    "winogender": {"all_sentences.tsv": SENTENCES, "occupations-stats.tsv": STATS},
    "winobias": {"anti_stereotyped_type1.txt.dev": "\n".join(LINES)},
    "stereoset": {"dev.json": json.dumps({"version": "1", "data": {"intersentence": [TERMS]}})},
}


def _parquet(rows: list[dict[str, object]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return bytes(sink.getvalue().to_pybytes())


def _tokens(line: str) -> dict[str, object]:
    """A line of WinoBias as the Hub has it: tokens, and first and last token of each mention."""
    tokens = re.sub(r"([.,])|(n't)", r" \1\2", line.partition(" ")[2]).split()
    ends = [str(at) for at, token in enumerate(tokens) for mark in "[]" if mark in token]
    return {"tokens": [token.strip("[]") for token in tokens], "coreference_clusters": ends}


def _numbered() -> dict[str, object]:
    """The cluster of StereoSet as the Hub has it: columns of texts and of numbers for labels."""
    columns = {
        "sentence": [f"He was {word}." for word in WORDS.values()],
        "gold_label": [NUMBERS[one] for one in WORDS],
    }
    return TERM | {"sentences": columns}


ON_HUB: Mapping[str, Mapping[str, bytes]] = {
    "bbq": {"data/Age.jsonl": "\n".join(map(json.dumps, QUESTIONS)).encode(), "bbq.py": b"raise SystemExit\n"},
    "crows_pairs": {
        "english/test-00000-of-00001.parquet": _parquet(
            [dict(zip(*(line.split(",") for line in PAIRS.splitlines()), strict=True))]
        ),
        "french/test-00000-of-00001.parquet": _parquet([{"phrase": "x"}]),
    },
    "winogender": {"test.tsv": SENTENCES.encode(), "gotcha.tsv": b"".join(
        line for line in SENTENCES.encode().splitlines(keepends=True) if b"female" not in line)},
    "winobias": {"type1_anti/validation-00000-of-00001.parquet": _parquet(list(map(_tokens, LINES)))},
    "stereoset": {"intersentence/validation-00000-of-00001.parquet": _parquet([_numbered()])},
}  # fmt: skip

READ = """
import json, sys
from seesaw_cf.logs.bias_items import read_bias_items
names = json.loads(sys.argv[1])
for name, place in names.items():
    print(json.dumps([[i.task, i.context, i.choices, dict(i.fields), i.target, i.metrics([-1.0, -2.0, -3.0])
                       if len(i.choices) == 3 else i.metrics([-1.0, -2.0])] for i in read_bias_items(name, place)]))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path / "hub") as server:
        for name, files in ON_HUB.items():
            repo = server.repos["dataset", f"org/{name}"] = Repo(private=False)
            blobs = {path: server.store(content, path.endswith(".parquet")) for path, content in files.items()}
            repo.add("main", "all", blobs | {"README.md": server.store(b"# data\n", False)})
        yield server


@pytest.mark.slow(5)
def test_items_by_id_are_those_of_the_authors_files(hub: Hub, tmp_path: Path) -> None:
    places = {name: f"org/{name}@main" for name in AS_AUTHORS}
    command = [sys.executable, "-c", READ, json.dumps(places)]
    done = subprocess.run(command, env=hub.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (name, files), line in zip(AS_AUTHORS.items(), done.stdout.splitlines(), strict=True):
        (tmp_path / name).mkdir()
        for path, text in files.items():
            (tmp_path / name / path).write_text(text, encoding="utf-8")
        own = [[item.task, item.context, item.choices, dict(item.fields), item.target,
                item.metrics([-1.0, -2.0, -3.0][: len(item.choices)])]
               for item in read_bias_items(name, tmp_path / name)]  # fmt: skip
        assert json.loads(line) == json.loads(json.dumps(own)), name
        assert own


@pytest.mark.slow(5)
@pytest.mark.parametrize("place", ["org/nobody", "org/bbq@nowhere"])
def test_an_id_that_is_not_there_is_explained(place: str, hub: Hub) -> None:
    command = [sys.executable, "-m", "seesaw_cf", "bias", "--model", "seesaw-tiny", "--benchmark", f"bbq={place}"]
    command += ["--changed", "x=y", "--out", "out"]
    done = subprocess.run(command, env=hub.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{place}: no such file or folder, and the Hub gives no data set of that id" in " ".join(done.stderr.split())


def test_other_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("sentence,label\nOld men nap.,1\n")
    with pytest.raises(RecordError, match=r"x\.csv: got the columns \['sentence', 'label'\], expected also sent_more"):
        read_bias_items("crows_pairs", tmp_path)
    (tmp_path / "y.parquet").write_bytes(b"nothing")
    with pytest.raises(RecordError, match=r"y\.parquet: not a Parquet file"):
        list(read_rows(tmp_path / "y.parquet", ()))


@pytest.mark.skipif(not AUTHORS.is_dir(), reason="the authors' files are not here")
def test_biased_answers_without_the_authors_tables_are_theirs_or_open(tmp_path: Path) -> None:
    whole = {item.name: item for item in read_bias_items("bbq", AUTHORS / "bbq")}
    for file in (AUTHORS / "bbq").glob("*.jsonl"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    derived = read_bias_items("bbq", tmp_path)
    answers = [([0.0, -1.0, -1.0], [-1.0, 0.0, -1.0], [-1.0, -1.0, 0.0]) for _ in derived]
    same = [[item.metrics(one) for one in own] == [whole[item.name].metrics(one) for one in own]
            for item, own in zip(derived, answers, strict=True)]  # fmt: skip
    assert sum(same) >= 156
    assert len(derived) == 160
