"""`build --push` over real HTTP: two versions, loaded by name, revision, stream and path; refusals in clear words."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from seesaw_cf.builder_scripts.build import push_dataset
from seesaw_cf.builder_scripts.card import benchmark
from seesaw_cf.builder_scripts.dataset import CONFIGS
from seesaw_cf.errors import StorageError
from seesaw_cf.records import load as sample
from seesaw_cf.records import write_card, write_config
from seesaw_cf.records.relations import RELATIONS, TASKS

from ..hub_routes import Repo
from ..hub_server import TOKEN, Hub

PUSH = """
import sys
from pathlib import Path
from seesaw_cf.builder_scripts.build import push_dataset
print(push_dataset(Path(sys.argv[1]), sys.argv[2]))
"""
COMMAND = "import sys; from seesaw_cf.cli import main; sys.exit(main(sys.argv[1:]))"


def folder(path: Path, version: str, people: list[str]) -> Path:
    table = pa.table({"id": [f"Q{number}" for number, _ in enumerate(people)], "label": people})
    write_config(path, "demographics", table)
    write_config(path, "other", table.select(["id"]))
    write_card(path, {"demographics": "people", "other": "ids"}, template="# Test", version=version)
    (path / "build.json").write_text("{}")
    return path


def call(hub: Hub, code: str, *words: str, token: str | None = TOKEN) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=hub.environment(token), capture_output=True, text=True, check=False
    )
    text = done.stdout + done.stderr
    assert TOKEN not in text
    return done.returncode, text


def push(hub: Hub, path: Path, repo: str = "org/seesaw_cf", token: str | None = TOKEN) -> tuple[int, str]:
    return call(hub, PUSH, str(path), repo, token=token)


@pytest.mark.slow(40)
def test_two_versions_load_by_name_revision_stream_and_path(hub: Hub, tmp_path: Path) -> None:
    one = folder(tmp_path / "one", "1.0.0", ["Ada", "Bea"])
    two = folder(tmp_path / "two", "1.1.0", ["Ada", "Bea", "Cyd"])
    broken = "import sys\nfrom huggingface_hub import HfApi\nHfApi.create_tag = lambda *_, **__: sys.exit(9)\n"
    assert call(hub, broken + PUSH, str(one), "org/seesaw_cf")[0] == 9
    code, text = push(hub, one)
    assert code == 0, text  # a publication that ended before its tag goes on
    assert push(hub, two)[0] == 0
    code, text = push(hub, folder(tmp_path / "again", "1.1.0", ["Eve"]))
    assert code == 1
    assert "has version 1.1.0 already: published versions never change" in text
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
    assert "README.md" in files
    assert "eval.yaml" not in files, "none of its configs is measured on"


@pytest.mark.slow(60)
def test_a_build_is_pushed_and_every_config_loads_with_the_declared_features(hub: Hub, tmp_path: Path) -> None:
    """A build of the sample with couples; the card's snippet runs as a reader on the Hub copies it."""
    out = str(tmp_path / "out")
    few = ["--number", *(f"{id}=4" for id in RELATIONS), "--per-gender", "3", "--version", "1.2.0"]
    code, text = call(hub, COMMAND, "build", "--out", out, "--push", "org/seesaw_cf", *few)
    assert code == 0, text
    assert 'load_dataset("org/seesaw_cf", "cross_subject", revision="v1.2.0")' in text
    names = (*CONFIGS, "coupled_counterfact", "coupled_zsre")
    code, text = call(
        hub,
        """
import sys
from datasets import get_dataset_config_names, load_dataset
assert sorted(get_dataset_config_names("org/seesaw_cf")) == sorted(sys.argv[2:])
for name in sys.argv[2:]:
    local = load_dataset(sys.argv[1], name, split="test")
    there = load_dataset("org/seesaw_cf", name, split="test", revision="v1.2.0")
    assert there.features == local.features and list(there) == list(local), name
    print(name, "equal")
""",
        out,
        *names,
    )
    assert code == 0, text
    assert all(f"{name} equal" in text for name in names)
    files = hub.files("org/seesaw_cf", "dataset")
    assert files["eval.yaml"].decode() == benchmark("SEESAW-CF", names)
    card = files["README.md"].decode()
    assert "`coupled_counterfact` and `coupled_zsre` one per edit and the entity that is coupled" in card
    code, text = call(hub, card.split("```python\n")[1].split("```")[0])
    assert code == 0, text
    code, text = call(hub, "from seesaw_cf.records.load import load_revised_cases as load\n"
                           "print(load('org/seesaw_cf', 'cross_subject')[1])")  # fmt: skip
    assert text.splitlines()[-1] == list(hub.repo("dataset", "org/seesaw_cf").commits)[-1]


@pytest.mark.slow
def test_a_repository_with_something_else_is_left_alone(near_hub: Hub, tmp_path: Path) -> None:
    near_hub.repos["dataset", "org/seesaw_cf"] = other = Repo(False)
    other.add("main", "mine", {"mine.txt": near_hub.store(b"x", False)})
    with pytest.raises(StorageError, match=r"exists and holds something else \(mine\.txt\)"):
        push_dataset(folder(tmp_path / "one", "1.0.0", ["Ada"]), "org/seesaw_cf")


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
