"""Passages, ratings, annotations and report from end to end; killed at any point, a run ends with the same tables."""

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.tables import read_table
from seesaw_cf.base.types import JsonObject
from seesaw_cf.cli import main
from seesaw_cf.editors.ft import FTConfig
from seesaw_cf.errors import EditError, RecordError
from seesaw_cf.generation import HFGenerator, OpenAIGenerator, Sampling
from seesaw_cf.models.weights import LowRank, WeightDelta, digest, parameter_hashes
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.texts import RateJob
from seesaw_cf.texts.records import EditedCase, coupled_cases
from seesaw_cf.texts.run import run_rate
from seesaw_cf.texts.tables import ANNOTATIONS, CALLS, EDITS, FLAWS, PASSAGES, RATINGS
from seesaw_cf.texts.write import PassageRun
from seesaw_cf.types import EditRequest
from tests import fresh
from tests.fakes import tiny_tokenizer, trained_model
from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.server import KEY, Fault, JudgeServer, OpenAIServer
from tests.longform.coupled import record
from tests.longform.people_runs import write_run


@dataclass(frozen=True)
class Pushing:
    """A small real editor: one rank-1 change; refuses one subject."""

    config: FTConfig = field(default_factory=lambda: FTConfig(layers=(1,)))

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Self:
        return self

    def edit(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> WeightDelta:
        if requests[0].subject == "Nobody":
            raise EditError("no such person")
        return WeightDelta({"model.layers.1.mlp.down_proj.weight": LowRank(3 * torch.ones(32, 1), torch.ones(1, 48))})


def cases() -> list[EditedCase]:
    rows = [record(1), record(2, related=False), record(3)]
    rows[2]["requested_rewrite"]["subject"] = "Nobody"
    return [
        replace(
            case, prompts=tuple(replace(one, text=one.text and f"About {one.entity.label}:") for one in case.prompts)
        )
        for case in coupled_cases(rows)
    ]


def run(out: Path, **changes: object) -> PassageRun:
    model = trained_model("llama")
    facts: JsonObject = {"id": "tiny", "weights": digest(parameter_hashes(model))}
    settings = {
        "generator": HFGenerator(model, tiny_tokenizer()),
        "editors": {"push": Pushing()},
        "cases": cases(),
        "manifest": RunManifest(facts, {}, {}, "leme", 0, {}),
        "out": out,
        "samples": 2,
        "sampling": Sampling(max_new_tokens=6),
        "block": 2,
        "progress": False,
    }
    return PassageRun(**{**settings, **changes})  # type: ignore[arg-type]


def texts(table: pa.Table) -> list[tuple[object, ...]]:
    names = ("editor", "case_id", "passage", "sample", "text", "status")
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def test_passages_before_and_after_with_everything_counted(tmp_path: Path) -> None:
    table = run(tmp_path / "run").run()
    assert table.schema.equals(PASSAGES)
    rows = table.to_pylist()
    assert len(rows) == 2 * 3 * 2 * 2  # editors, cases, prompts, samples
    no_related = [row for row in rows if row["case_id"] == 2 and row["passage"] == "related"]
    assert {row["status"] for row in no_related} == {"the record has no related entity"}
    refused = [row for row in rows if row["case_id"] == 3 and row["editor"] == "push"]
    assert {row["status"] for row in refused} == {"not edited: refused: no such person"}
    good = [row for row in rows if row["status"] == "ok"]
    assert {(row["editor"], row["phase"]) for row in good} == {("none", "pre"), ("push", "post")}
    assert all(0 < row["new_tokens"] <= 6 and row["finish"] in ("stop", "length") for row in good)
    before, after = ([r for r in good if r["editor"] == name and r["case_id"] == 1] for name in ("none", "push"))
    assert [row["seed"] for row in before] == [row["seed"] for row in after]
    assert len({row["seed"] for row in before}) == 4
    assert [row["text"] for row in before] != [row["text"] for row in after]
    edits = read_table(tmp_path / "run" / "edits.parquet", EDITS).to_pylist()
    assert [row["status"] for row in edits] == ["ok", "ok", "refused: no such person"]
    assert edits[0]["delta_norm"] == pytest.approx(3 * (32 * 48) ** 0.5)


@pytest.mark.slow
def test_what_exists_is_not_written_again_and_the_tables_are_the_same(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole").run()
    broken = tmp_path / "broken"
    run(broken).run()
    kept = sorted((broken / "shards").rglob("*.parquet"))
    assert len(kept) == 4
    kept[1].unlink()
    stamp = kept[0].stat().st_mtime_ns
    assert run(broken).run().equals(whole)
    assert kept[0].stat().st_mtime_ns == stamp
    kept[2].write_bytes(kept[2].read_bytes()[:-9])  # damaged: made again
    assert run(broken).run().equals(whole)
    assert kept[0].stat().st_mtime_ns == stamp


def test_any_subset_regenerates_identically(tmp_path: Path) -> None:
    whole = texts(run(tmp_path / "whole").run())
    part = texts(run(tmp_path / "part", cases=cases()[:1], samples=1, block=1).run())
    assert len(part) == 4
    assert set(part) <= set(whole)


def test_an_editor_that_writes_to_the_model_is_caught(tmp_path: Path) -> None:
    wrong = RunManifest({"id": "tiny", "weights": "0"}, {}, {}, "leme", 0, {})
    with pytest.raises(EditError, match="cannot be trusted"):
        run(tmp_path / "run", manifest=wrong).run()


@pytest.mark.slow
def test_an_api_model_is_edited_in_its_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(chat_model(), chat_tokenizer()) as server:
        server.faults += [Fault(429, wait=0.0)]
        writer = OpenAIGenerator(server.url, "tiny", chat=True, wait=0.001)
        found = run(tmp_path / "run", generator=writer, editors={"ike": None}, cases=cases()[:1], samples=1).run()
        asked = [body["messages"] for body in server.seen]
    assert found["status"].to_pylist() == ["ok"] * 4
    assert [len(turns) for turns in asked].count(2) == 2  # after the edit: instructions and the edit
    assert "Marie Curie was born in London" in "".join(turns[1]["content"] for turns in asked if len(turns) == 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--editor", "mmit"], "'mmit'"),
        (["--editor", "rome", "--base-url", "http://localhost:1/v1", "--key-env", ""], "changes weights"),
        (["--editor", "ike", "--base-url", "http://localhost:1/v1"], "OPENAI_API_KEY is not set"),
        (["--rate", "lexcal"], "rater 'lexcal' could not be loaded"),
        (["--generation", "leem"], "'leem'"),
    ],
)
def test_what_is_missing_is_asked_before_a_text_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("seesaw_cf.texts.run.load_model", lambda *_, **__: pytest.fail("a model was loaded"))
    own = ["--model", "some/model", "--out", str(tmp_path / "run"), "--quiet"]
    assert main(["texts", "write", *words, *own]) == 1
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


MODEL = ["--model", "seesaw-tiny", "--config", "coupled_counterfact", "--config", "open_ended"]
SMALL = [*MODEL, "--data", "sample", "--limit", "3", "--max-new-tokens", "24", "--quiet"]


@pytest.mark.slow(30)
def test_the_sample_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedded model and data; classified as it is written, and rated by a judge over HTTP."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    out = tmp_path / "run"
    assert main(["texts", "write", *SMALL, "--rate", "lexical", "--report", "--out", str(out)]) == 0
    with JudgeServer(chat_model(), chat_tokenizer()) as server:
        words = ["texts", "rate", str(out), "--rater", "tiny", "--base-url", server.url, "--limit", "2"]
        assert main(words) == 0
        calls = len(server.seen)
        assert main(words) == 0
        assert len(server.seen) == calls  # everything came from the folder
    passages = read_table(out / "passages.parquet", PASSAGES)
    assert set(passages["passage"].to_pylist()) == {"subject", "related", "guided", "free"}
    ratings = read_table(out / "ratings.parquet", RATINGS)
    assert ratings.num_rows == 2 * 3 * 9  # editors x cases x items
    assert len(set(ratings["rater"].to_pylist())) == 1
    annotators = read_table(out / "annotations.parquet", ANNOTATIONS)["annotator"].unique().to_pylist()
    assert annotators == ["lexical", ratings["rater"][0].as_py()], "rows of other raters stay"
    assert read_table(out / "flaws.parquet", FLAWS).num_rows == 2 * 7
    assert read_table(out / "calls.parquet", CALLS)["kind"].unique().to_pylist() == ["survey", "claims", "flaws"]
    assert KEY.encode() not in b"".join(file.read_bytes() for file in out.rglob("*") if file.is_file())
    assert (out / "report" / "report.json").exists()


@pytest.mark.slow(40)
def test_kill_and_resume_loses_nothing(tmp_path: Path) -> None:
    words = ["texts", "write", *SMALL, "--rate", "lexical", "--block", "1", "--out"]
    code, said = fresh.command([*words, "whole"], tmp_path)
    assert code == 0, said
    out = tmp_path / "killed"
    shards = out / "shards"
    for wanted in (1, 4):  # in the middle of the texts before, then of those after the edits
        process = fresh.start(fresh.module, ["seesaw_cf", *words, "killed"], tmp_path)
        deadline = time.monotonic() + 240
        while len(list(shards.rglob("*.parquet"))) < wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert not (out / "passages.parquet").exists()
    assert len(list(shards.rglob("*.parquet"))) >= 4
    code, said = fresh.command([*words, "killed"], tmp_path)
    assert code == 0, said
    for name in ("passages", "edits", "annotations"):
        assert (out / f"{name}.parquet").read_bytes() == (tmp_path / "whole" / f"{name}.parquet").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"what": ("flaws",)}, "nothing that 'lexical' can rate. It does claims; the run has texts for survey, claims"),
        ({"raters": ("seesaw-tiny",), "shots": 8}, "0 of 0 answered examples share neither .*8 are needed"),
    ],
)
def test_what_cannot_be_rated_is_said(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    run = write_run(tmp_path / "run")
    with pytest.raises(RecordError, match=message):
        run_rate(RateJob(run, **change))
    with pytest.raises(RecordError, match=r"pairs from a file have no run folder\. Say where .* --out"):
        run_rate(RateJob(run / "passages.parquet"))
