"""The runner: resumable to the same bytes, honest about edits that did nothing, deaf to nothing that goes wrong."""

import math
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest
import torch
from transformers import PreTrainedModel

from seesaw_cf.base.tables import CONTROL_SEEDS
from seesaw_cf.editors import remembered
from seesaw_cf.editors.ft import LoRA
from seesaw_cf.errors import EditError
from seesaw_cf.models.weights import WeightDelta, applied
from seesaw_cf.run import runner
from seesaw_cf.run.edits import edit_units
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.questions import questions
from seesaw_cf.run.units import units
from seesaw_cf.run.workers import run_job
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Case, Cloze, EditRequest, Entity
from tests.runner import small
from tests.tokenizer_styles import byte_level

TABLES = ("scores.parquet", "edits.parquet")


def test_rows_are_what_was_asked_and_post_scores_are_the_edited_models(tmp_path: Path) -> None:
    small.run(tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    # Nine cases: two efficacy questions and four people times two targets, each before and after.
    assert len(rows) == 9 * (2 + 4 * 2) * 2
    assert {row["status"] for row in rows} == {"ok"}
    model, tokenizer = small.model(), byte_level(bos=False)
    case = small.cases()[4]
    delta = small.Nudge().edit(model, tokenizer, [case.request])
    with applied(model, delta):
        expected = [score.logprob for score in HFScorer(model, tokenizer).score([q.cloze for q in questions(case)])]
    got = [row["logprob"] for row in rows if row["case_id"] == 4 and row["phase"] == "post"]
    assert got == pytest.approx(expected, abs=1e-5)
    before = [row["logprob"] for row in rows if row["case_id"] == 4 and row["phase"] == "pre"]
    assert max(abs(a - b) for a, b in zip(before, got, strict=True)) > 1e-3


@pytest.mark.slow(15)
def test_killed_and_started_again_the_tables_are_the_same_bytes(tmp_path: Path) -> None:
    def killed(at: int) -> int:
        command = [sys.executable, "-m", "tests.runner.small", str(tmp_path / "killed"), str(at)]
        return subprocess.run(command, check=False, capture_output=True).returncode

    # Edits are counted from the start of a program. Killed in the middle of a block of eight, all of it is lost.
    for at, kept in ((0, 0), (3, 0), (8, 8)):
        assert killed(at) == -signal.SIGKILL
        assert not (tmp_path / "killed" / "scores.parquet").exists()
        assert len(list((tmp_path / "killed").rglob("shards/nudge/*.parquet"))) == kept
    small.main(str(tmp_path / "killed"))
    small.main(str(tmp_path / "whole"))
    for table in TABLES:
        assert (tmp_path / "killed" / table).read_bytes() == (tmp_path / "whole" / table).read_bytes()


@pytest.mark.slow
def test_cases_of_one_request_share_one_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = small.cases()
    twins = [replace(case, case_id=case.case_id + 100, attribute_prompts=case.attribute_prompts[:2]) for case in own]
    tables = {}
    for name, cases in (("own", own), ("twins", twins), ("both", [*own, *twins])):
        monkeypatch.setattr(small, "cases", lambda found=cases: found)
        assert len(small.run(tmp_path / name)["nudge"].seen) == 9
        rows = pq.read_table(tmp_path / name / "scores.parquet").to_pylist()
        key = ("case_id", "prompt_id", "kind", "role", "target", "phase")
        tables[name] = {tuple(row[part] for part in key): row["logprob"] for row in rows}
        assert len(tables[name]) == len(rows)
    assert tables["both"] == pytest.approx(tables["own"] | tables["twins"], abs=1e-5)
    edits = pq.read_table(tmp_path / "both" / "edits.parquet")
    assert sorted(edits["case_id"].to_pylist()) == [*range(9), *range(100, 109)]
    # Not the key of its first case alone: a folder of an older version must not give one case's rows for two.
    assert [unit.key for unit in units([*own, *twins], "single")][:2] == ["P19-00000000-and-1", "P21-00000001-and-1"]
    assert next(unit.key for unit in units(own, "single")) == "P19-00000000"


def test_batch_edits_a_relation_together_and_the_first_of_two_contradicting_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(small.run(tmp_path / "run", protocol="batch")["nudge"].seen) == 3
    assert [unit.key for unit in units(small.cases(), "batch")] == ["P19", "P21", "P103"]
    model, tokenizer = small.model(), byte_level(bos=False)
    first, other = (
        Case(number, EditRequest("{} was born in", "Ada Lovelace", "P19", Entity(None, new), Entity(None, "Paris")))
        for number, new in enumerate(("London", "Rome"))
    )
    edited = edit_units(model, tokenizer, small.Nudge(), [[first, other]])
    refused = "refused: contradicts case 0 of the same batch"
    assert edited[0].status == {0: "ok", 1: refused}
    monkeypatch.setattr(small, "cases", lambda: [first, other])
    small.run(tmp_path / "contradicting", protocol="batch")
    rows = pq.read_table(tmp_path / "contradicting" / "scores.parquet").to_pylist()
    assert {row["status"] for row in rows if row["case_id"] == 1 and row["phase"] == "post"} == {refused}
    edits = pq.read_table(tmp_path / "contradicting" / "edits.parquet").to_pylist()
    assert [(row["status"], row["success"] is None, row["raised"] is None) for row in edits] == [
        ("ok", False, False),
        (refused, True, True),
    ]


@pytest.mark.slow
def test_editors_that_edit_many_are_given_whole_blocks_and_one_bad_request_spoils_no_other(tmp_path: Path) -> None:
    class Many(small.Nudge):
        blocks: ClassVar[list[list[str]]] = []

        def edit_each(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> list[WeightDelta]:
            Many.blocks.append([request.text for request in requests])
            return [small.Nudge().edit(model, tokenizer, [request]) for request in requests]

        def edit(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> WeightDelta:
            if "Marie" in requests[0].subject:
                raise EditError("no")
            return super().edit(model, tokenizer, requests)

    small.run(tmp_path / "plain")
    small.run(tmp_path / "many", {"nudge": Many()})
    assert [len(block) for block in Many.blocks] == [8]
    for table in TABLES:
        assert (tmp_path / "plain" / table).read_bytes() == (tmp_path / "many" / table).read_bytes()
    # A resumed run makes the edits of whole blocks again, whatever was finished, and so the same ones.
    next((tmp_path / "many" / "shards" / "nudge").glob("*00000003.parquet")).unlink()
    small.run(tmp_path / "many", {"nudge": Many()})
    assert [len(block) for block in Many.blocks] == [8, 8]
    assert (tmp_path / "plain" / TABLES[0]).read_bytes() == (tmp_path / "many" / TABLES[0]).read_bytes()

    class Fussy(Many):
        def edit_each(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> list[WeightDelta]:
            raise EditError("one of them is bad")

    small.run(tmp_path / "fussy", {"nudge": Fussy()})
    status = {row["subject"]: row["status"] for row in pq.read_table(tmp_path / "fussy" / "edits.parquet").to_pylist()}
    assert {name: text for name, text in status.items() if text != "ok"} == {"Marie Curie": "refused: no"}


class _Returns(small.Nudge):
    def edit(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> WeightDelta:
        made: WeightDelta = self.config(model, super().edit(model, tokenizer, requests))
        return made


def _refuse(model: PreTrainedModel, delta: WeightDelta) -> WeightDelta:
    raise EditError("the loss is NaN at step 3")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda model, delta: WeightDelta({small.PARAMETER: torch.zeros(16, 32)}), "zero delta"),
        (lambda model, delta: WeightDelta({small.PARAMETER: torch.full((16, 32), math.nan)}), "non-finite delta"),
        (_refuse, "refused: the loss is NaN at step 3"),
    ],
)
def test_edits_that_did_nothing_are_counted(tmp_path: Path, change: Any, status: str) -> None:
    small.run(tmp_path / "run", {"bad": _Returns(change)}, editors={"bad": {}})
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()
    assert {row["status"] for row in edits} == {status}
    assert len(edits) == 9
    if status != "zero delta":
        rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
        assert {row["status"] for row in rows if row["phase"] == "post"} == {status}
        assert all(row["logprob"] is None for row in rows if row["phase"] == "post")
        assert {row["raised"] for row in edits} == {None}
    else:
        assert not any(row["raised"] for row in edits)


@pytest.mark.parametrize("name", [small.PARAMETER, "model.embed_tokens.weight"])
def test_an_editor_that_writes_to_the_model_is_caught(tmp_path: Path, name: str) -> None:
    def in_place(model: PreTrainedModel, delta: WeightDelta) -> WeightDelta:
        with torch.no_grad():
            model.get_parameter(name).add_(1e-6)
        return delta

    with pytest.raises(EditError, match=r"outside its delta|outside\s+its delta"):
        small.run(tmp_path / "run", {"bad": _Returns(in_place)}, editors={"bad": {}})
    assert not (tmp_path / "run" / "scores.parquet").exists()


def test_context_edits_put_their_text_before_every_prompt(tmp_path: Path) -> None:
    small.run(
        tmp_path / "run",
        {"ike": _Returns(lambda model, delta: WeightDelta(context="Marie Curie was born in London.\n"))},
        editors={"ike": {}},
    )
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    row = next(row for row in rows if row["phase"] == "post" and row["kind"] == "cross_subject")
    model = small.model()
    cloze = Cloze("Marie Curie was born in London.\n" + row["prompt"], row["target"])
    assert row["logprob"] == pytest.approx(HFScorer(model, byte_level(bos=False)).score([cloze])[0].logprob, abs=1e-5)
    assert not row["prompt"].startswith("Marie Curie was born in London.\n")


class _Forgets:
    def __new__(cls, editor: Any, limit: int) -> Any:
        return editor


@pytest.mark.slow
def test_controls_take_the_edits_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`random` needs the very edits that were audited: they are made once, and the tables are the same either way."""
    made: list[int] = []
    edit_each = LoRA.edit_each

    def counted(self: LoRA, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> list[WeightDelta]:
        made.append(len(requests))
        return edit_each(self, model, tokenizer, requests)

    monkeypatch.setattr(LoRA, "edit_each", counted)
    editors: Any = {"editors": ("lora",), "editor_config": {"lora": {"layers": [0], "steps": 2}}}
    editors |= {"controls": ("random", "identity"), "configs": ("cross_subject",)}
    job = Job("seesaw-tiny", **editors, limit=4, device="cpu", block=2)
    run_job(job, tmp_path / "kept", progress=False)
    assert made == [2, 2] * 2  # the edits, and those of identity
    monkeypatch.setattr(remembered, "_size", lambda _: 10**12)
    run_job(job, tmp_path / "small", progress=False)
    assert made == [2, 2] * 4  # a block's control comes right after it: no room for more than its edits is needed
    monkeypatch.setattr(runner, "Remembered", _Forgets)
    run_job(job, tmp_path / "anew", progress=False)
    assert made == [2, 2] * 9  # for each of the three seeds
    for name in ("scores.parquet", CONTROL_SEEDS):
        for other in ("small", "anew"):
            assert (tmp_path / "kept" / name).read_bytes() == (tmp_path / other / name).read_bytes()
