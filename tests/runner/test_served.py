"""Audits of models on a server: numbers of the model loaded here, refusals with a remedy, no key in any file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks import gpu
from benchmarks.gpu import of_server
from seesaw_cf.errors import (
    DeltaMismatchError,
    RecordError,
    RunFolderError,
    ServiceError,
    UnknownNameError,
    UnsupportedModelError,
)
from seesaw_cf.generation.server import Client
from seesaw_cf.models.load import load_model, model_path
from seesaw_cf.report import Results, read_results
from seesaw_cf.report.write import run_report
from seesaw_cf.run.job import make_run, run_job
from seesaw_cf.run.jobs import Job
from seesaw_cf.scoring import make_scorer
from seesaw_cf.stats.simple import tolerance
from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.scoring_server import ScoringServer
from tests.generation.server import KEY, OpenAIServer
from tests.models.test_changes import noisy
from tests.runner.test_edited import NATS, rows_of, same

TOKENIZER = str(model_path("seesaw-tiny"))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SERVER_KEY", KEY)


Loaded = tuple[PreTrainedModel, PreTrainedTokenizerBase]


@pytest.fixture(scope="module")
def tiny() -> Loaded:
    return load_model("seesaw-tiny", device="cpu", progress=False)


@pytest.fixture(scope="module")
def base(tiny: Loaded) -> Iterator[ScoringServer]:
    with ScoringServer(*tiny, name="base") as server:
        yield server


@pytest.fixture
def changed(tiny: Loaded) -> Iterator[ScoringServer]:
    with ScoringServer(noisy(tiny[0], scale=0.01), tiny[1], name="mine") as server:
        yield server


def job_of(model: str, changed: str, **options: Any) -> Job:
    how = {"data": "sample", "configs": ("cross_property",), "limit": 1, "device": "cpu", **options}
    return Job(model, changed=(f"theirs={changed}",), **{"key_env": "SERVER_KEY", **how})


def words_of(results: Results) -> str:
    """Everything that a run and its report wrote, as text."""
    run_report(results).write(results.folder / "report")
    files = [file for file in results.folder.rglob("*") if file.is_file()]
    return "".join(file.read_bytes().decode(errors="ignore") for file in files)


@pytest.mark.slow
def test_a_served_change_has_the_numbers_of_the_model_loaded_here(
    tiny: Loaded, changed: ScoringServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_job(job_of("seesaw-tiny", changed.url), tmp_path / "run", progress=False)
    after, before = rows_of(tmp_path / "run"), rows_of(tmp_path / "run", phase="pre")
    assert max(abs(after[cloze] - before[cloze]) for cloze in after) > 100 * NATS
    same(after, make_scorer(changed.model, tiny[1])[0])
    same(before, make_scorer(*tiny)[0])
    text = words_of(read_results(tmp_path / "run"))
    assert KEY not in text + caplog.text
    assert "in another order and one at a time, it moves log-probabilities by up to" in " ".join(text.split())
    asked = len(changed.seen)
    run_job(job_of("seesaw-tiny", changed.url), tmp_path / "run", progress=False)
    assert len(changed.seen) - asked <= 25, "what is finished is not asked again, but for whether the model is the same"


@pytest.mark.slow
def test_a_served_base_has_them_too(tiny: Loaded, base: ScoringServer, changed: ScoringServer, tmp_path: Path) -> None:
    native = changed.url.replace("/v1", "/generate")
    job = job_of(base.url, native, tokenizer=TOKENIZER)
    run_job(job, tmp_path / "run", progress=False)
    same(rows_of(tmp_path / "run"), make_scorer(changed.model, tiny[1])[0])
    same(rows_of(tmp_path / "run", phase="pre"), make_scorer(*tiny)[0])
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["model"]["dtype"], manifest["machine"]["server"]["model"]) == ("as served", "base")
    assert KEY not in words_of(read_results(tmp_path / "run"))


@pytest.mark.slow(15)
def test_a_served_change_stands_beside_a_served_null(
    tiny: Loaded, changed: ScoringServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = job_of("seesaw-tiny", changed.url, configs=("cross_subject",), limit=2, holders=2)
    with ScoringServer(noisy(tiny[0], scale=0.001), tiny[1], name="null") as null:
        run_job(replace(job, nulls=(f"theirs={null.url}",)), tmp_path / "run", progress=False)
        same(rows_of(tmp_path / "run", "random(theirs)"), make_scorer(null.model, tiny[1])[0])
    results = read_results(tmp_path / "run")
    assert set(results.levels["control"]) == {"random(theirs)", ""}
    assert "a change that was named as the null (--null)" in words_of(results)
    assert "it has no control" not in caplog.text
    run_job(job, tmp_path / "alone", progress=False)
    assert "name it with --null" in caplog.text


@pytest.mark.slow
def test_the_noise_of_the_server_is_the_limit_of_the_run(changed: ScoringServer, tmp_path: Path) -> None:
    changed.noise = 0.01
    manifest = make_run(job_of("seesaw-tiny", changed.url), tmp_path / "run").manifest
    nats, source = tolerance({"machine": manifest.machine})
    assert nats > 0.01
    assert source == "measured"


@pytest.mark.slow
def test_another_model_at_the_same_address_is_noticed(changed: ScoringServer, tmp_path: Path) -> None:
    job = job_of("seesaw-tiny", changed.url)
    run_job(job, tmp_path / "run", progress=False)
    with torch.no_grad():
        for parameter in changed.model.parameters():
            parameter.mul_(0.9)
    with pytest.raises(RunFolderError, match=r"answers moved by up to .* since this run began.*new --out"):
        make_run(job, tmp_path / "run")


@pytest.mark.slow
def test_a_served_model_cannot_be_audited(base: ScoringServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(job: Job, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            make_run(job, tmp_path / "run")

    monkeypatch.setattr(Client, "_pause", lambda *_: 0.0)
    url = base.url
    with OpenAIServer(chat_model(0), chat_tokenizer()) as silent:
        job = job_of("seesaw-tiny", silent.url)
        refused(job, UnsupportedModelError, "no log-probabilities of the prompt.*vLLM, SGLang")
    refused(job_of("seesaw-tiny", f"{url}#other"), UnknownNameError, r"unknown model of 127.*'other'.*base")
    refused(job_of("seesaw-tiny", "http://127.0.0.1:9/v1", key_env=""), ServiceError, "nothing came from this server")
    refused(job_of("seesaw-tiny", "http://:9"), RecordError, "--changed theirs is 'http://:9', expected one such as")
    refused(job_of("seesaw-tiny", url, key_env="NO_KEY"), ServiceError, "NO_KEY is not set")
    refused(job_of(url, url), UnknownNameError, "no tokenizer at 'base' .* with --tokenizer")
    with pytest.raises(RecordError, match=r"^folder: the base http.* is on a server, and weights"):
        job_of(url, "folder", tokenizer=TOKENIZER)
    with pytest.raises(RecordError, match=r"--editor ft: the base http.* is on a server"):
        Job(url, ("ft",), key_env="SERVER_KEY")


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    with (
        ScoringServer(chat_model(0), chat_tokenizer(), name="chat") as server,
        pytest.raises(DeltaMismatchError, match=r"chat at .*Another tokenizer.*--model"),
    ):
        make_run(job_of("seesaw-tiny", server.url), tmp_path / "run")


@pytest.mark.slow
def test_truncation_is_refused(changed: ScoringServer, tmp_path: Path) -> None:
    changed.longest = 5
    with pytest.raises(DeltaMismatchError, match=r"truncates prompts"):
        make_run(job_of("seesaw-tiny", changed.url), tmp_path / "run")


@pytest.mark.slow
def test_a_served_model_is_timed_beside_the_engine(tiny: Loaded) -> None:
    with ScoringServer(*tiny, key="") as server:
        facts = of_server(f"{TOKENIZER}={server.url}", rounds=2, limit=30)
    assert facts["pairs"] == 30
    assert facts["seconds"] > 0
    assert facts["noise"]["n"] == 24
    with pytest.raises(SystemExit, match="expected TOKENIZER=http"):
        of_server(TOKENIZER, rounds=1)


def test_the_seconds_of_a_served_model_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "rates", lambda *_: {})
    monkeypatch.setattr(gpu, "of_server", lambda *_: {"seconds": 1.5})
    words = ["--device", "cpu", "--shape", "--server", "tiny=http://localhost", "--out", str(tmp_path / "gpu.json")]
    monkeypatch.setattr("sys.argv", ["gpu", *words])
    gpu.main()
    assert json.loads((tmp_path / "gpu.json").read_text())["tiny=http://localhost"] == {"seconds": 1.5}
