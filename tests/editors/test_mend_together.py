"""Processes that train one MEND network together: the bytes of one alone, whoever is killed."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.base.locks import file_lock
from seesaw_cf.editors.mend.network import MENDNetwork
from seesaw_cf.editors.mend.rounds import Rounds, Tensors
from seesaw_cf.editors.mend.training import train
from tests.editors.test_mend import FAST, TOKENIZER, training_examples, untrained
from tests.fakes import tiny_model

WAIT = 30  # seconds


class Killed(BaseException):
    """What a signal would do to a process, to one thread."""


class Passes:
    """Passes through models, by thread: the first waits for an offer, the leader for a helper; one may be killed."""

    def __init__(self, folder: Path, victim: str) -> None:
        self.folder, self.victim = folder, victim
        self.of: dict[int, int] = {}

    def __call__(self, *_: Any) -> None:
        me = threading.get_ident()
        if not self.of:
            self.of[me] = 0
            self.wait("offer")
        self.of[me] = self.of.get(me, 0) + 1
        leads = me == next(iter(self.of))
        while leads and len(self.of) == 1 and [*self.folder.rglob("*.task")]:
            time.sleep(0.001)
        if len(self.of) == 2 and self.victim == ("leader" if leads else "helper"):
            self.victim = "nobody"
            raise Killed

    def wait(self, name: str) -> None:
        end = time.monotonic() + WAIT
        while not [*self.folder.rglob(name)]:
            assert time.monotonic() < end, f"no {name}"
            time.sleep(0.001)


@pytest.mark.parametrize("victim", ["nobody", "helper", "leader"])
def test_two_train_the_network_of_one(victim: str, tmp_path: Path) -> None:
    alone = train(
        untrained(tiny_model("llama")),
        tiny_model("llama"),
        TOKENIZER,
        training_examples(),
        FAST,
        cache=tmp_path / "alone",
    )
    passes = Passes(tmp_path / "together", victim)

    def one(model: Any) -> MENDNetwork | None:
        model.register_forward_pre_hook(passes)
        try:
            return train(untrained(model), model, TOKENIZER, training_examples(), FAST, cache=tmp_path / "together")
        except Killed:
            return None

    with ThreadPoolExecutor(2) as pool:
        found = [network for network in pool.map(one, [tiny_model("llama"), tiny_model("llama")]) if network]
    assert len(found) == (2 if victim == "nobody" else 1)
    assert len(passes.of) == 2
    assert min(passes.of.values()) > 0
    for network in found:
        for name, tensor in alone.state_dict().items():
            assert torch.equal(tensor, network.state_dict()[name]), name
    (folder,) = (path for path in (tmp_path / "together" / "mend").iterdir() if path.is_dir())
    assert [path.name for path in folder.iterdir()] == ["network"]


def _square(task: Tensors) -> Tensors:
    return {"square": task["x"].square()}


def _tasks(numbers: list[int]) -> list[Tensors]:
    return [{"x": torch.tensor([number])} for number in numbers]


@settings(max_examples=20, deadline=None)
@given(rounds=st.lists(st.lists(st.integers(-9, 9), max_size=5), min_size=1, max_size=4), helpers=st.integers(0, 3))
def test_results_are_in_order_whoever_helps(
    rounds: list[list[int]], helpers: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, end = tmp_path_factory.mktemp("rounds"), threading.Event()

    def help_out() -> int:
        answered = 0
        while not end.is_set():
            answered += Rounds(folder, _square).help()
        return answered

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(help_out) for _ in range(helpers)]
        leader = Rounds(folder, _square)
        found = [[int(answer["square"]) for answer in leader.lead(_tasks(numbers))] for numbers in rounds]
        end.set()
        assert sum(helper.result() for helper in waiting) <= sum(map(len, rounds))
    assert found == [[number**2 for number in numbers] for numbers in rounds]
    assert not [*folder.glob("*.task"), *folder.glob("*.done")]


def test_nothing_is_written_where_nobody_helps(tmp_path: Path) -> None:
    assert Rounds(tmp_path / "rounds", _square).lead(_tasks([3]))[0]["square"] == 9
    assert not (tmp_path / "rounds").exists()


def test_a_task_that_another_process_is_at_is_left_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.task").write_bytes(b"")
    with file_lock(tmp_path / "a.lock"):
        assert Rounds(tmp_path, _square).help() == 0
