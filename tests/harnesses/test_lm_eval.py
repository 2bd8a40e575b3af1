"""The model `seesaw` of lm_eval gives what its own `hf` gives; models asked together answer as each alone."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError
from seesaw_cf.logs import read_log
from seesaw_cf.models.weights import applied
from seesaw_cf.sharing import save_delta
from tests.fakes import low_rank, tiny_model, tiny_tokenizer

pytest.importorskip("lm_eval", reason="needs the extra harness: pip install 'seesaw_cf[harness]'")

from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

from seesaw_cf.harnesses.ability import AbilityJob, SharingLM, write_logs
from seesaw_cf.harnesses.lm_eval_model import SeesawLM

WORDS = ["Ada", "Marie", "was", "born", "in", "London", "Kraków", "a", "citizen", "of", "Poland", ".", ",", "the"]
KINDS = ("gpt2", "llama", "gemma3_text", "falcon")


def _model(kind: str) -> PreTrainedModel:
    return tiny_model(kind, alibi=True) if kind == "falcon" else tiny_model(kind)


def _instances(kind: str, asked: Sequence[tuple[Any, ...]]) -> list[Instance]:
    return [Instance(request_type=kind, doc={}, arguments=args, idx=0) for args in asked]


def _asked(seed: int) -> list[tuple[str, str]]:
    """Choices after contexts that are shared: empty, with a space at the end, longer than the model takes."""
    draw = random.Random(seed)
    contexts = ["", "Ada was born in ", *(" ".join(draw.choices(WORDS, k=draw.randint(1, 40))) for _ in range(6))]
    contexts.append(" ".join(draw.choices(WORDS, k=90)))
    choices = [" London", " Kraków or Poland", ".", "  the citizen"]
    return [(context, choice) for context in contexts for choice in draw.sample(choices, 3)]


def _close(own: Sequence[tuple[float, bool]], other: Sequence[tuple[float, bool]]) -> None:
    assert [greedy for _, greedy in own] == [greedy for _, greedy in other]
    assert [value for value, _ in own] == pytest.approx([value for value, _ in other], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_loglikelihoods_are_those_of_hf(kind: str) -> None:
    model, tokenizer = _model(kind), tiny_tokenizer()
    asked = _instances("loglikelihood", _asked(1))
    own, other = SeesawLM(model, tokenizer), HFLM(model, tokenizer=tokenizer, batch_size=8)
    assert (own.scorer.support.layout == "plain") is (kind == "falcon")
    _close(own.loglikelihood(asked, disable_tqdm=True), other.loglikelihood(asked, disable_tqdm=True))
    fed = own.scorer.counts.tokens
    assert fed < 0.6 * sum(len(tokenizer(context + choice)["input_ids"]) for context, choice in _asked(1))


def test_a_tokenizer_with_a_first_token_and_a_shorter_window_are_heeded() -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer(bos=True)
    options: dict[str, Any] = {"max_length": 24, "add_bos_token": False}
    asked = _instances("loglikelihood", _asked(2))
    own, other = SeesawLM(model, tokenizer, **options), HFLM(model, tokenizer=tokenizer, batch_size=8, **options)
    _close(own.loglikelihood(asked, disable_tqdm=True), other.loglikelihood(asked, disable_tqdm=True))


def test_a_continuation_that_no_window_holds_is_refused() -> None:
    own = SeesawLM(tiny_model("llama"), tiny_tokenizer(), max_length=8)
    with pytest.raises(RecordError, match=r"a continuation of \d+ tokens, expected at most 8\."):
        own.loglikelihood(_instances("loglikelihood", [("Ada", " sees a river" * 9)]), disable_tqdm=True)


@pytest.mark.parametrize("kind", KINDS)
def test_rolling_loglikelihoods_are_those_of_hf(kind: str) -> None:
    model, tokenizer = _model(kind), tiny_tokenizer()
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, k=length)) for length in (1, 20, 150, 90)]
    asked = _instances("loglikelihood_rolling", [(text,) for text in (*texts, "")])
    own = SeesawLM(model, tokenizer).loglikelihood_rolling(asked, disable_tqdm=True)
    other = HFLM(model, tokenizer=tokenizer, batch_size=1).loglikelihood_rolling(asked, disable_tqdm=True)
    assert own == pytest.approx(other, abs=1e-3)  # sums of up to 600 tokens


@pytest.mark.parametrize("edit", ["delta", "peft"])
def test_an_edit_is_that_of_the_edited_weights(edit: str, tmp_path: Path) -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    model.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    delta = low_rank(model, (2,), 4, scale=0.5)
    save_delta(delta, tmp_path / "edit", model)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    own = get_model("seesaw")(str(tmp_path / "base"), batch_size=4, **{edit: str(tmp_path / "edit")})
    asked = _instances("loglikelihood", _asked(5))
    written = _instances("generate_until", [(" ".join(WORDS[:n]), {"until": ["."], "max_gen_toks": 8}) for n in (3, 6)])
    with applied(model, delta):
        other = HFLM(model, tokenizer=tokenizer, batch_size=4)
        _close(own.loglikelihood(asked, disable_tqdm=True), other.loglikelihood(asked, disable_tqdm=True))
        assert own.generate_until(written, disable_tqdm=True) == other.generate_until(written, disable_tqdm=True)
    assert own.get_model_info()["delta_sha256"] == json.loads((tmp_path / "edit" / "delta.json").read_text())["sha256"]
    assert all(torch.equal(before[name], parameter) for name, parameter in own.model.named_parameters())


def test_an_option_that_nothing_heeds_and_a_delta_without_the_tokenizer_are_refused() -> None:
    with pytest.raises(RecordError, match="parallelize"):
        SeesawLM(tiny_model("gpt2"), tiny_tokenizer(), parallelize=True)
    with pytest.raises(RecordError, match="Give tokenizer="):
        SeesawLM(tiny_model("gpt2"), delta="anywhere")


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
