"""`seesaw-cf check`: what holds, and which clause a careless editor breaks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from seesaw_cf.cli import main
from seesaw_cf.editors.contract import check_contract
from seesaw_cf.models import WeightDelta
from tests.api.own_editor import OneStep, OneStepConfig
from tests.fakes import REQUESTS, tiny_model, tiny_tokenizer

OWN = Path(__file__).with_name("own_editor.py")


@dataclass(frozen=True)
class Careless(OneStep):
    """Breaks one promise after another."""

    slip: str = ""

    def edit(self, model: Any, tokenizer: Any, requests: Any) -> WeightDelta:
        delta = super().edit(model, tokenizer, requests)
        [name] = delta.updates
        update = delta.dense(name)
        if self.slip == "in place":
            with torch.no_grad():
                model.get_parameter(name).add_(1.0)
        if self.slip == "random":
            return WeightDelta({name: update + 1e-3 * torch.rand(1)}, delta.meta)
        wrong: dict[str, Any] = {
            "zero": {name: 0 * update},
            "shape": {name: update[:1]},
            "nan": {name: float("nan") * update},
            "unknown": {"model.nothing": update},
            "backwards": {name: -update},
        }
        return WeightDelta(wrong.get(self.slip, {name: update}), delta.meta)


def broken(slip: str) -> dict[str, str]:
    model = tiny_model("llama")
    editor = Careless(OneStepConfig.for_model(model), slip=slip)
    clauses = check_contract(editor, model, tiny_tokenizer(), REQUESTS[:2])
    return {clause: fault for clause, fault in clauses.items() if fault}


def test_an_honest_editor_keeps_every_clause() -> None:
    assert broken("") == {}


@pytest.mark.parametrize(
    ("slip", "clause", "fault"),
    [
        ("in place", "edit leaves model, tokenizer, random state and disk as they were", "weights"),
        ("random", "the same request gives the same change, bit for bit", "other numbers in"),
        ("zero", "the change fits the model", "every number is 0"),
        ("shape", "the change fits the model", "of another shape"),
        ("nan", "the change fits the model", "not finite"),
        ("unknown", "the change fits the model", "no parameters of the model: model.nothing"),
        ("backwards", "the new answer becomes likelier", "nats before"),
    ],
)
def test_a_careless_editor_is_told_which_clause_it_breaks(slip: str, clause: str, fault: str) -> None:
    assert fault in broken(slip)[clause]


@pytest.mark.slow(15)
def test_the_command_says_what_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(OWN), "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert all(line.startswith("holds") for line in lines)
