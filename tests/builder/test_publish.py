"""Publishing over real HTTP: two versions, loaded by name, revision, stream and path; refusals in clear words."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from seesaw_cf.builder_scripts.dataset.build import CONFIGS
from seesaw_cf.builder_scripts.dataset.card import benchmark, published_card
from seesaw_cf.cli import main
from seesaw_cf.records import sample, write_card, write_config
from seesaw_cf.records.relations import RELATIONS, TASKS

from ..hub_server import Hub
from .conftest import record

TOKEN, READER = "hf_writer_secret", "hf_reader_secret"
LIST_TAGS = """
from huggingface_hub import HfApi
print(sorted(tag.name for tag in HfApi().list_repo_refs("org/seesaw_cf", repo_type="dataset").tags))
"""
FOREIGN = """
from huggingface_hub import HfApi
place = {"repo_id": "org/seesaw_cf", "repo_type": "dataset"}
HfApi().create_repo(**place)
HfApi().upload_file(path_or_fileobj=b"x", path_in_repo="mine.txt", **place)
"""
COMMAND = "import sys; from seesaw_cf.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path / "hub", writers=(TOKEN,), readers=(READER,)) as server:
        yield server


def folder(path: Path, version: str, people: list[str], **more: pa.Array) -> Path:
    table = pa.table({"id": [f"Q{number}" for number, _ in enumerate(people)], "label": people, **more})
    write_config(path, "demographics", {"test": table})
    write_config(path, "other", {"test": table.select(["id"])})
    write_card(path, {"demographics": "people", "other": "ids"}, body="# Test", version=version)
    return path


def call(hub: Hub, code: str, *words: str, token: str | None = TOKEN) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=hub.environment(token), capture_output=True, text=True, check=False
    )
    text = done.stdout + done.stderr
    assert TOKEN not in text
    return done.returncode, text


def publish(hub: Hub, path: Path, *words: str, token: str | None = TOKEN) -> tuple[int, str]:
    return call(hub, COMMAND, "publish", str(path), "--repo", "org/seesaw_cf", *words, token=token)


@pytest.mark.slow(40)
def test_two_versions_load_by_name_revision_stream_and_path(hub: Hub, tmp_path: Path) -> None:
    one = folder(tmp_path / "one", "1.0.0", ["Ada", "Bea"])
    two = folder(tmp_path / "two", "1.1.0", ["Ada", "Bea", "Cyd"])
    code, text = publish(hub, one)
    assert code == 0, text
    assert "demographics: 2 rows, loaded back and the same" in text
    code, text = publish(hub, two)
    assert code == 0, text
    commits = len(hub.repo("dataset", "org/seesaw_cf").commits)
    assert publish(hub, two)[0] == 0
    assert len(hub.repo("dataset", "org/seesaw_cf").commits) == commits, "the same again changes nothing"
    code, text = call(
        hub,
        """
from datasets import load_dataset
import pandas
for revision in ("v1.0.0", "v1.1.0", None):
    plain = load_dataset("org/seesaw_cf", "demographics", split="test", revision=revision)
    stream = load_dataset("org/seesaw_cf", "demographics", split="test", revision=revision, streaming=True)
    assert list(stream) == list(plain)
    print(len(plain), plain[-1]["label"])
print(len(load_dataset("hf://datasets/org/seesaw_cf", "demographics", split="test")))
print(len(pandas.read_parquet("hf://datasets/org/seesaw_cf@v1.0.0/data/demographics/test-00000-of-00001.parquet")))
""",
    )
    assert code == 0, text
    assert text.split("\n")[:5] == ["2 Bea", "3 Cyd", "3 Cyd", "3", "2"]
    files = hub.files("org/seesaw_cf", "dataset")
    assert {"README.md", "seesaw_cf.json"} < set(files)
    assert "eval.yaml" not in files, "none of its configs is measured on"


@pytest.mark.slow(20)
def test_every_config_of_the_sample_loads_by_name_with_the_declared_features(hub: Hub, tmp_path: Path) -> None:
    for name in sample.configs():
        shutil.copytree(sample.path() / "data" / name, tmp_path / "sample" / "data" / name)
    shutil.copy(sample.path() / "README.md", tmp_path / "sample")
    code, text = publish(hub, tmp_path / "sample")
    assert code == 0, text
    assert all(f"{name}: " in text for name in sample.configs())
    code, text = call(
        hub,
        """
import sys
from datasets import load_dataset
for name in sys.argv[2:]:
    local = load_dataset(sys.argv[1], name, split="test")
    there = load_dataset("org/seesaw_cf", name, split="test", revision="v1.0.0")
    stream = load_dataset("org/seesaw_cf", name, split="test", revision="v1.0.0", streaming=True)
    assert there.features == local.features == stream.features, name
    assert list(stream) == list(there) == list(local), name  # read to its end: a thread of pyarrow outlives half
    print(name, "equal")
""",
        str(tmp_path / "sample"),
        *sample.configs(),
    )
    assert code == 0, text
    assert all(f"{name} equal" in text for name in sample.configs())
    files = hub.files("org/seesaw_cf", "dataset")
    assert files["eval.yaml"].decode() == benchmark("SEESAW-CF", sample.configs())
    card = files["README.md"].decode()
    code, text = call(hub, card.split("```python\n")[1].split("```")[0])  # as a reader on the Hub copies it
    assert code == 0, text
    code, text = call(hub, "from seesaw_cf.records.load import load_revised_cases as load\n"
                           "print(load('org/seesaw_cf', 'cross_subject')[1])")  # fmt: skip
    assert text.splitlines()[-1] == list(hub.repo("dataset", "org/seesaw_cf").commits)[-1]


@pytest.mark.slow(60)
def test_cases_and_coupled_edits_are_published_into_one_repository(hub: Hub, tmp_path: Path) -> None:
    """A build of the sample with couples of CounterFact's and of zsRE's records; every config loads by its name."""
    rows = pq.read_table(sample.path() / "data" / "coupled_counterfact").to_pylist()[:3]
    counterfact, zsre = [], []
    for number, row in enumerate(rows, 1):
        edit = row["requested_rewrite"]
        counterfact.append(record(number, edit["subject"], edit["relation_id"], pair(edit, "new"), pair(edit, "true"),
                                  edit["prompt"]))  # fmt: skip
        name, old, new = edit["subject"], edit["target_true"]["str"], edit["target_new"]["str"]
        asked = {"src": f"Which one is {name} of?", "rephrase": f"Of what is {name}?"}
        other = {"pred": "?", "loc": "nq question: who", "loc_ans": "me", "cond": "?"}
        zsre.append({"subject": name, "alt": new, "answers": [old], **asked, **other})
    for name, records in (("counterfact.json", counterfact), ("zsre.json", zsre)):
        (tmp_path / name).write_text(json.dumps(records), encoding="utf-8")
    few = ["--number", *(f"{id}=4" for id in RELATIONS), "--per-gender", "3", "--version", "1.2.0"]
    coupled = ["--coupled", str(tmp_path / "counterfact.json"), str(tmp_path / "zsre.json")]
    assert main(["build", "--source", "sample", "--out", str(tmp_path / "out"), *coupled, *few]) == 0
    code, text = publish(hub, tmp_path / "out")
    assert code == 0, text
    names = (*CONFIGS, "coupled_counterfact", "coupled_zsre")
    code, text = call(hub, """
import sys
from datasets import get_dataset_config_names, load_dataset
print(get_dataset_config_names("org/seesaw_cf"))
for name in sys.argv[1:]:
    print(name, len(load_dataset("org/seesaw_cf", name, split="test", revision="v1.2.0")))
""", *names)  # fmt: skip
    assert code == 0, text
    said = text.splitlines()
    assert sorted(names) == sorted(literal_eval(next(line for line in said if line.startswith("["))))
    counts = dict(line.split() for line in said if line.partition(" ")[0] in names)
    assert set(counts) == set(names)
    assert counts["coupled_counterfact"] == "3"
    assert counts["cross_subject"] == "20"
    card = hub.files("org/seesaw_cf", "dataset")["README.md"].decode()
    assert "`coupled_counterfact` and `coupled_zsre` one per edit and the entity that is coupled" in card


def pair(edit: dict[str, dict[str, str]], which: str) -> tuple[str, str]:
    target = edit[f"target_{which}"]
    return target["id"], target["str"]


def test_the_card_names_the_repository_where_it_is_read() -> None:
    here = (sample.path() / "README.md").read_text(encoding="utf-8")
    assert 'load_dataset("seesaw_cf", "cross_subject", split="test")' in here
    there = published_card(here, "org/people", "1.2.0")
    assert 'load_dataset("org/people", "cross_subject", split="test", revision="v1.2.0")' in there
    assert "checkout" not in there
    for part in ("Flex Tape Can't Fix That", "2403.00180", "Long-form evaluation of model editing", "2402.09394"):
        assert part in there


@pytest.mark.slow(20)
def test_a_publication_that_ended_before_its_tag_goes_on(hub: Hub, tmp_path: Path) -> None:
    one = folder(tmp_path / "one", "1.0.0", ["Ada"])
    broken = "from huggingface_hub import HfApi\nHfApi.create_tag = lambda *_, **__: sys.exit(9)\n"
    words = ("publish", str(one), "--repo", "org/seesaw_cf")
    assert call(hub, f"import sys\n{broken}{COMMAND}", *words)[0] == 9
    code, text = publish(hub, one)
    assert code == 0, text
    assert call(hub, LIST_TAGS)[1].strip() == "['v1.0.0']"


@pytest.mark.slow(40)
def test_published_versions_never_change(hub: Hub, tmp_path: Path) -> None:
    assert publish(hub, folder(tmp_path / "one", "1.0.0", ["Ada"]))[0] == 0
    code, text = publish(hub, folder(tmp_path / "two", "1.0.0", ["Bea"]))
    assert code == 1
    assert "has version 1.0.0 already, with other content" in text
    code, text = publish(hub, folder(tmp_path / "four", "2.0.0", ["Bea"], age=pa.array([3])))
    assert code == 0, text
    tags = call(hub, LIST_TAGS)[1]
    assert "['v1.0.0', 'v2.0.0']" in tags


@pytest.mark.slow(40)
def test_refusals_say_what_to_do(hub: Hub, tmp_path: Path) -> None:
    path = folder(tmp_path / "one", "1.0.0", ["Ada"])
    for token, message in ((READER, "lacks the right to write"), (None, "token")):
        code, text = publish(hub, path, token=token)
        assert code == 1
        assert message in text
        assert "Traceback" not in text
    assert ("dataset", "org/seesaw_cf") not in hub.repos
    code, text = call(hub, COMMAND, "publish", str(path), "--repo", "no slash")
    assert code == 1
    assert "expected ORG/NAME" in text
    call(hub, FOREIGN)
    code, text = publish(hub, path)
    assert code == 1
    assert "exists and holds something else (mine.txt)" in text


@pytest.mark.slow
def test_a_folder_that_is_not_what_its_card_says_is_refused(hub: Hub, tmp_path: Path) -> None:
    stale = folder(tmp_path / "stale", "1.0.0", ["Ada"])
    write_config(stale, "demographics", {"test": pa.table({"id": ["Q9"], "label": ["Zoe"]})})
    code, text = publish(hub, stale)
    assert code == 1
    assert "the files of config 'demographics' are not those that README.md describes" in text
    code, text = publish(hub, tmp_path)
    assert code == 1
    assert "no README.md" in text


def test_every_task_of_the_benchmark_is_a_config_and_split_that_loads() -> None:
    text = benchmark("SEESAW-CF: people", sample.configs())
    assert text == benchmark("SEESAW-CF: people", sample.configs())
    declared = yaml.safe_load(text)
    assert (list(declared), declared["name"]) == (["name", "description", "tasks"], "SEESAW-CF: people")
    for task in declared["tasks"]:
        assert (sample.path() / "data" / task["config"] / f"{task['split']}-00000-of-00001.parquet").exists()
        assert task["id"] in declared["description"]
    ids = [task["id"] for task in declared["tasks"]]
    assert sorted(set(ids)) == sorted(TASKS) == sorted(ids)
    assert [task["id"] for task in yaml.safe_load(benchmark("x", ["cross_property"]))["tasks"]] == ["other_facts"]
    assert benchmark("x", ["demographics"]) == ""
