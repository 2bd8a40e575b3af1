"""Base and edited models asked together answer as each does alone, and their logs are compared."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from seesaw_cf.cli import main
from seesaw_cf.logs import read_log
from seesaw_cf.sharing import save_delta
from tests.fakes import low_rank, tiny_model, tiny_tokenizer

pytest.importorskip("lm_eval", reason="needs the extra harness: pip install 'seesaw_cf[harness]'")

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from seesaw_cf.harnesses.ability import AbilityJob, SharingLM, write_logs
from seesaw_cf.harnesses.lm_eval_model import SeesawLM

TASK = """
task: born
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{name}}}} was born in"
doc_to_choice: ["London", "Kraków", "Poland"]
doc_to_target: label
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 1.0}}
"""


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("tasks"), random.Random(0)
    names = [f"{first} {last}" for first in ("Ada", "Marie", "Toni", "Zora") for last in ("Curie", "Neale", "Raman")]
    documents = [{"name": name, "label": draw.randrange(3), "gender": "female"} for name in names]
    (folder / "born.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "born.yaml").write_text(TASK.format(file=folder / "born.jsonl"))
    return folder


def test_models_that_are_asked_together_answer_as_each_alone(tasks: Path, tmp_path: Path) -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    changes = {name: low_rank(model, (2,), seed, scale=1.0) for seed, name in enumerate(("one", "two", "three"))}
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    lm = SharingLM(model, tokenizer, changes)
    logs = write_logs(lm, "tiny", ["born"], manager, AbilityJob(tmp_path, ("born",), tmp_path / "logs"))
    assert list(logs) == ["base", "one", "two", "three"]
    seen = set()
    for name, folder in logs.items():
        alone = SeesawLM(model, tokenizer)
        alone.change = changes.get(name)
        samples = simple_evaluate(alone, tasks=["born"], task_manager=manager, bootstrap_iters=0)["samples"]["born"]
        right = [sample["filtered_resps"][sample["target"]][0] for sample in samples]
        items = read_log(folder).items
        assert items["metric:loglik"].tolist() == pytest.approx(right, abs=1e-4)
        assert items["metric:acc"].tolist() == [sample["acc"] for sample in samples]
        seen.add(round(sum(right), 4))
    assert len(seen) == 4  # no model was asked in place of another


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with the edits of two editors."""
    model, base = tiny_model("llama"), tmp_path / "model"
    model.save_pretrained(base)
    tiny_tokenizer().save_pretrained(base)
    for seed, name in enumerate(("memit/P19-00000001", "memit/P19-00000002", "memit/P19-00000003", "ft/P19")):
        save_delta(low_rank(model, (2,), seed, scale=1.0), tmp_path / "run" / "deltas" / name, model)
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({"model": {"id": str(base), "dtype": "float32"}}))
    return tmp_path / "run"


def test_the_command_asks_base_and_edits_and_compares(
    run: Path, tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ability", str(run), "--tasks", "born", "--include", str(tasks), "--per-editor", "2", "--limit", "9"]
    assert main([*words, "--out", str(tmp_path / "out"), "--device", "cpu"]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("base", "ft", "memit-P19-00000001", "memit-P19-00000002", "report")
    ]
    assert "ft" in capsys.readouterr().out
    assert len(read_log(tmp_path / "out" / "ft").items) == 9


@pytest.mark.parametrize(("words", "said"), [
    (["--tasks", "bron"], "unknown task of lm_eval 'bron'"),
    (["--tasks", "born", "--device", "nowhere"], "device"),
])  # fmt: skip
def test_what_is_not_there_is_named(
    words: list[str], said: str, run: Path, tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    found = TaskManager(include_path=str(tasks), include_defaults=False)
    monkeypatch.setattr("seesaw_cf.harnesses.ability.TaskManager", lambda **_: found)  # lm_eval's own take seconds
    assert main(["ability", str(run), "--include", str(tasks), "--out", str(tmp_path / "out"), *words]) == 1
    assert said in capsys.readouterr().err


def test_a_run_without_edits_is_refused(tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--tasks", "born", "--include", str(tasks), "--out", str(tmp_path / "out")]
    assert main(["ability", str(tasks), *words]) == 1
    assert "Run with --keep-deltas" in capsys.readouterr().err
