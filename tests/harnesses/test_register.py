"""Entries for the register of inspect_evals: their fields are those of its schema, their counts those of the tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seesaw_cf.errors import RecordError

pytest.importorskip("inspect_ai", reason="needs the extra harness: pip install 'seesaw_cf[harness]'")

from seesaw_cf.harnesses import inspect_tasks
from seesaw_cf.harnesses.register import TASKS, main, register_entry, source_line

REPOSITORY, COMMIT = "https://github.com/org/seesaw_cf", "0123456789abcdef" * 2 + "01234567"
# `ExternalEvalMetadata` and its parts in inspect_evals 0.28.0, src/inspect_evals/metadata.py; other fields are refused.
REQUIRED = {"full_title", "common_title", "description", "contributors", "tasks", "source"}
FIELDS = REQUIRED | {"arxiv", "paper_title", "tags", "metadata", "evaluation_report"}
SOURCE = {"repository_url", "repository_commit", "maintainers", "comment"}
TASK = {"name", "dataset_samples", "human_baseline", "comment", "task_path", "kind"}


def _written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    words = ["register", str(folder), "--repository", REPOSITORY, "--commit", COMMIT, "--by", "somebody"]
    monkeypatch.setattr("sys.argv", words)
    main()
    files = sorted(folder.glob("*/eval.yaml"))
    return {file.parent.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}


def test_an_entry_has_the_fields_of_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = _written(tmp_path, monkeypatch)
    assert set(entries) == {f"seesaw_cf_{task}" for task in TASKS}
    for entry in entries.values():
        assert set(entry) >= REQUIRED
        assert set(entry) <= FIELDS
        assert set(entry["source"]) <= SOURCE
        (task,) = entry["tasks"]
        assert set(task) <= TASK
        assert (Path(__file__).parents[2] / task["task_path"]).is_file()
        assert task["dataset_samples"] == len(getattr(inspect_tasks, task["name"])().dataset) > 100
        assert len(entry["description"].split()) <= 80
        assert "\n" not in entry["description"]


@pytest.mark.parametrize("task", TASKS)
def test_the_address_for_the_form_leads_to_the_task(task: str) -> None:
    address, _, line = source_line(task, REPOSITORY, COMMIT).partition("#L")
    path = address.removeprefix(f"{REPOSITORY}/blob/{COMMIT}/")
    lines = (Path(__file__).parents[2] / path).read_text(encoding="utf-8").splitlines()
    assert lines[int(line) - 1] == "@task"
    assert lines[int(line)].startswith(f"def {task}(")


@pytest.mark.parametrize(("repository", "commit", "message"), [
    (REPOSITORY, "main", "--commit: got 'main', expected 40 hexadecimal digits"),
    ("org/repo", COMMIT, "--repository: got 'org/repo', expected https"),
])  # fmt: skip
def test_what_pins_nothing_is_refused(repository: str, commit: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        register_entry("cross_subject", repository, commit, ["somebody"])
