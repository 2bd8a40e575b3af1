"""Edits one after another: laws, an independent loop over nested edits, kills, refusals, what is asked of whom.

Run as a program it is killed with SIGKILL at a chosen edit: `python -m tests.runner.test_sequence OUT EDITS`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.controls import ControlConfig, RandomControl
from seesaw_cf.errors import EditError, RecordError, RunFolderError
from seesaw_cf.models.weights import LowRank, WeightDelta, applied
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.questions import case_rows
from seesaw_cf.run.runner import Run
from seesaw_cf.run.sequence import Sequences, sequence_units
from seesaw_cf.run.units import PROBES
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import AttributePrompt, Case, Cloze, EditRequest, Entity
from tests.runner import small
from tests.tokenizer_styles import byte_level

TABLES = ("scores.parquet", "edits.parquet", "dose.json")
COUNTS = (1, 3, 6)
SETTINGS = {"checkpoints": [*COUNTS], "orders": 2}
EDITED = ("Ada", "Marie", "Zora", "Toni", "Chinua", "Alan")


def cases() -> list[Case]:
    """Six facts, two cases about the third; each asks about three people, one of whom is edited by another fact."""
    made = []
    for number, name in enumerate((*EDITED, "Zora")):
        request = EditRequest("{} was born in", name, "P19", Entity(None, "London"), Entity(None, "Paris"))
        asked = ("Rosa Parks", "Ella Baker", "Ida Wells", EDITED[0])
        people = [Entity(f"Q{other}", other) for other in asked]
        prompts = tuple(
            AttributePrompt(f"{p.label} was born in", p, holds="target_new", gender=("women",)) for p in people
        )
        near = ("Rosa lives in", f"{EDITED[1]} lives in")
        made.append(Case(number, request, attribute_prompts=prompts, neighborhood_prompts=near))
    return made


@dataclass(frozen=True)
class Lean:
    """Moves a weight by a rank-1 update that depends on the weight as it is, and on the keys that it remembers."""

    config: Any = field(default_factory=dict)
    past: Mapping[int, Tensor] = field(default_factory=dict)
    die_at: int = -1
    refuse: str = ""
    error: type[Exception] = EditError
    seen: list[str] = field(default_factory=list, compare=False)

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Lean:
        return self

    def edit(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> WeightDelta:
        if len(self.seen) == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        [request] = requests
        self.seen.append(request.subject)
        if request.subject == self.refuse:
            raise self.error("it cannot")
        weight = model.get_parameter(small.PARAMETER).detach()
        right = torch.randn(1, weight.shape[1], generator=torch.Generator().manual_seed(sum(map(ord, request.text))))
        spared = sum(float(keys.norm()) for keys in self.past.values())
        return WeightDelta({small.PARAMETER: LowRank((0.1 + 0.02 * spared) * weight @ right.T, right)})

    def remember(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> Lean:
        key = model.get_parameter(small.PARAMETER).detach().double().mean(1, keepdim=True)
        return replace(self, past={1: torch.cat([self.past[1], key], 1) if self.past else key})


def run(
    out: Path, lean: Lean | None = None, made: Sequence[Case] = (), orders: int = 2, first: Sequence[int] = ()
) -> Lean:
    base, lean, tokenizer = small.model(), lean or Lean(), byte_level(bos=False)
    editors: dict[str, Any] = {"lean": lean, "random(lean)": RandomControl(ControlConfig(seed=3), inner=lean)}
    plan = sequence_units(list(made) or cases(), COUNTS, orders, 0)
    manifest = small.manifest(base, protocol="sequential", settings=SETTINGS)
    scorer = HFScorer(base, tokenizer)
    all_of_it = Run(base, tokenizer, scorer, editors, list(made) or cases(), manifest, out, plan=plan, progress=False)
    all_of_it.store.claim()
    for number in first:
        all_of_it.do(all_of_it.blocks[number])
    all_of_it.complete()
    return lean


def table(out: Path) -> pd.DataFrame:
    return pq.read_table(out / "scores.parquet").to_pandas()


def order_of(number: int) -> list[EditRequest]:
    """The requests of an order, from the plan's last state."""
    unit = [own for own in sequence_units(cases(), COUNTS, 2, 0) if own.labels["order"] == number][-1]
    return list(dict.fromkeys(case.request for case in unit.cases))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sequence") / "run"
    run(out)
    return out


def test_every_checkpoint_has_the_scores_of_a_plain_loop_over_nested_edits(whole: Path) -> None:
    rows, model, tokenizer = table(whole), small.model(), byte_level(bos=False)
    norms = []
    for number in (0, 1):
        lean = Lean()
        with contextlib.ExitStack() as stack:
            for step, request in enumerate(order_of(number), 1):
                delta = lean.edit(model, tokenizer, [request])
                norms.append(delta.norms()[small.PARAMETER])
                stack.enter_context(applied(model, delta))
                lean = lean.remember(model, tokenizer, [request])
                if step in COUNTS:
                    own = rows[(rows["editor"] == "lean") & (rows["checkpoint"] == step) & (rows["order"] == number)]
                    own = own[(own["phase"] == "post") & (own["status"] == "ok")]
                    asked = [Cloze(*pair) for pair in zip(own["prompt"], own["target"])]
                    expected = [score.logprob for score in HFScorer(model, tokenizer).score(asked)]
                    assert len(own) > 20
                    assert np.allclose(own["logprob"], expected, atol=2e-5)
    edits = pq.read_table(whole / "edits.parquet").to_pandas()
    last = edits[(edits["editor"] == "lean") & (edits["checkpoint"] == 6)].drop_duplicates(["order", "subject"])
    assert np.allclose(sorted(last["delta_norm"]), sorted(norms), rtol=1e-5)


def test_the_first_checkpoint_is_the_edit_alone(whole: Path, tmp_path: Path) -> None:
    """Nobody but the edited people is left out of what is asked."""
    base, tokenizer = small.model(), byte_level(bos=False)
    made = small.manifest(base)
    scorer = HFScorer(base, tokenizer)
    Run(base, tokenizer, scorer, {"lean": Lean()}, cases(), made, tmp_path / "o", progress=False).complete()
    keys = ["case_id", "kind", "prompt", "target", "phase"]
    alone, rows = table(tmp_path / "o").set_index(keys)["logprob"], table(whole)
    for number in (0, 1):
        subject = order_of(number)[0].subject
        numbers = [case.case_id for case in cases() if case.request.subject == subject]
        first = rows[(rows["editor"] == "lean") & (rows["checkpoint"] == 1) & (rows["order"] == number)]
        own = first[first["case_id"].isin(numbers)].set_index(keys)["logprob"]
        assert len(own) >= 2 * (2 + 2 + 6)
        assert np.allclose(own, alone.loc[own.index], atol=1e-6)


def test_the_control_takes_steps_of_the_same_norms_in_directions_of_its_own(whole: Path) -> None:
    edits = pq.read_table(whole / "edits.parquet").to_pandas()
    keys = ["case_id", "checkpoint", "order"]
    sides = [edits[edits["editor"] == name].set_index(keys) for name in ("lean", "random(lean)")]
    assert sides[0]["status"].equals(sides[1]["status"])
    assert sides[0]["delta_norm"].equals(sides[1]["delta_norm"])
    rows = table(whole)
    rows = rows[(rows["phase"] == "post") & (rows["editor"] == "random(lean)") & (rows["case_id"] >= 0)]
    keys = ["case_id", "kind", "prompt", "target"]
    last = [rows[(rows["checkpoint"] == 6) & (rows["order"] == number)] for number in (0, 1)]
    first, second = (own.set_index(keys).sort_index().index for own in last)
    assert first.equals(second), "every order is asked the same"


def test_one_step_of_one_fact_has_a_random_direction_of_its_own_in_each_order(tmp_path: Path) -> None:
    editors = {"random(lean)": RandomControl(ControlConfig(seed=3), inner=Lean())}
    plan = sequence_units(cases()[:1], (1,), 2, 0)
    states = Sequences(small.model(), byte_level(bos=False), tmp_path, "run", plan)
    first, second = (states.outcome("random(lean)", lambda _: Lean(), editors, unit).delta for unit in plan)
    assert not torch.equal(first.dense(small.PARAMETER), second.dense(small.PARAMETER))  # type: ignore[union-attr]


def test_every_state_asks_the_same_of_others_and_nobody_who_is_edited(whole: Path) -> None:
    rows = table(whole)
    assert not set(rows.loc[rows["kind"] == "cross_subject", "subject"]) & set(EDITED)
    assert not rows.loc[rows["kind"] == "neighborhood", "prompt"].str.contains(EDITED[1]).any()
    people = rows[(rows["kind"] == "cross_subject") & (rows["phase"] == "post")]
    assert people.groupby(["editor", "checkpoint", "order"]).size().nunique() == 1
    efficacy = rows[(rows["kind"] == "efficacy") & (rows["phase"] == "post") & (rows["editor"] == "lean")]
    counts = efficacy.groupby(["checkpoint", "order"])["prompt"].nunique().groupby("checkpoint").max()
    assert counts.tolist() == [1, 3, 6]
    assert (rows["case_id"] == PROBES).any()


def test_orders_are_nested_and_do_not_depend_on_the_checkpoints() -> None:
    first, second = sequence_units(cases(), (1, 3, 6), 2, 0), sequence_units(cases(), (6, 2), 2, 0)
    assert [case.case_id for case in first[2].cases] == [case.case_id for case in second[1].cases]
    later = [unit.asked_only for unit in first[:3]]
    assert later[0] > later[1] > later[2] == frozenset()
    assert {case.case_id for unit in first for case in unit.cases} == set(range(7))
    assert [unit.labels["checkpoint"] for unit in sequence_units(cases(), (), 1, 0)] == [1]
    with pytest.raises(RecordError, match="--checkpoints up to 7 edits, and the data has 6"):
        sequence_units(cases(), (7,), 1, 0)


@pytest.mark.slow(15)
def test_killed_anywhere_the_tables_are_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    def killed(at: int) -> int:
        command = [sys.executable, "-m", "tests.runner.test_sequence", str(tmp_path / "killed"), str(at)]
        return subprocess.run(command, check=False, capture_output=True).returncode

    # Edits are counted from the start of a program: what was made before the last checkpoint is not made again.
    for at, states in ((0, 0), (2, 1), (4, 2), (1, 2)):
        assert killed(at) == -signal.SIGKILL
        assert len(list((tmp_path / "killed").rglob("shards/lean/*.parquet"))) == states
    assert len(list((tmp_path / "killed").rglob("sequences/lean/*.safetensors"))) == 1
    torch.set_num_threads(1)
    assert len(run(tmp_path / "killed").seen) == 3 + 6
    for name in TABLES:
        assert (tmp_path / "killed" / name).read_bytes() == (whole / name).read_bytes(), name


def test_states_done_in_any_order_are_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    run(tmp_path / "run", first=(5, 0, 4, 2))  # some before the state they go on from, some after it was deleted
    for name in TABLES:
        assert (tmp_path / "run" / name).read_bytes() == (whole / name).read_bytes(), name


def test_rows_of_a_case_are_prepared_once_for_all_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[tuple[int, int]]()

    def counted(case: Case, asked: Any, before: Any) -> Any:
        made.append((case.case_id, len(asked)))
        return case_rows(case, asked, before)

    monkeypatch.setattr("seesaw_cf.run.edits.case_rows", counted)
    run(tmp_path / "run")
    rest = [pair for pair in made if pair[0] != PROBES]
    assert len(rest) == len({*rest}) <= 2 * len(cases())
    assert len(made) - len(rest) == 2  # probes once for each order


def test_a_state_of_another_run_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "run", orders=1)
    [state] = (tmp_path / "run").rglob("sequences/lean/*.safetensors")
    for shard in (tmp_path / "run").rglob(f"shards/lean/{state.stem}.parquet"):
        shard.unlink()
    from seesaw_cf.editors.tensor_files import load_tensors, save_tensors

    tensors, facts = load_tensors(state)
    save_tensors(state, tensors, facts | {"run": "another"})
    with pytest.raises(RunFolderError, match="another run"):
        run(tmp_path / "run", orders=1)


@pytest.mark.parametrize(("error", "name"), [(EditError, ""), (ZeroDivisionError, "ZeroDivisionError: ")])
def test_refused_and_contradicting_edits_are_counted_and_the_sequence_goes_on(
    error: type[Exception], name: str, tmp_path: Path
) -> None:
    other = EditRequest("{} was born in", EDITED[3], "P19", Entity(None, "Rome"), Entity(None, "Paris"))
    made = [case for case in cases() if case.case_id != 1] + [Case(7, other)]
    assert set(run(tmp_path / "run", Lean(refuse=EDITED[2], error=error), made, orders=1).seen) <= set(EDITED)
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pandas()
    for _, own in edits[edits["checkpoint"] == 6].groupby("editor"):
        status = own.set_index("case_id")["status"]
        assert status[2] == status[6] == f"refused: {name}it cannot"
        assert sorted(status[[3, 7]])[1].startswith("refused: contradicts case")
        assert (status.drop([2, 6, 3, 7]) == "ok").all()
        assert own.loc[own["status"].str.startswith("refused"), "delta_norm"].isna().all()
    rows = table(tmp_path / "run")
    assert set(rows.loc[rows["case_id"] >= 0, "status"]) == {"ok"}, "others are asked whatever became of the own edit"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"editors": ("ike",)}, "ike"),
        ({"changed": ("mine=org/name",)}, "changed models"),
        ({"controls": ("identity",)}, "identity"),
        ({"save_checkpoints": True}, "whole models"),
        ({"pairs": ("P27,P101",)}, "pairs"),
        ({"protocol": "single", "checkpoints": (1,)}, "checkpoints are for"),
    ],
)
def test_what_no_sequence_can_be_made_of_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        Job("seesaw-tiny", **{"editors": ("ft",), "protocol": "sequential"} | words)


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(Path(sys.argv[1]), Lean(die_at=int(sys.argv[2])))
