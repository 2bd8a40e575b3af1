"""Processes that train one MEND network together: the bytes of one alone, whoever is killed."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.base.locks import file_lock
from seesaw_cf.editors.mend.factors import batch_of, capture, divergence, outer_loss, text_batch
from seesaw_cf.editors.mend.network import MENDNetwork, Upper
from seesaw_cf.editors.mend.shared import SharedTasks, Tensors
from seesaw_cf.editors.mend.tasks import (
    OUTER,
    UNRELATED,
    ModelTasks,
    factor_tasks,
    join,
    loss_tasks,
    total_gradient,
    total_loss,
)
from seesaw_cf.editors.mend.training import train
from seesaw_cf.models.hooks import frozen
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
            wait_for(lambda: bool([*self.folder.rglob("offer")]))
        self.of[me] = self.of.get(me, 0) + 1
        leads = me == next(iter(self.of))
        if leads and len(self.of) == 1 and [*self.folder.rglob("*.task")]:
            wait_for(lambda: len(self.of) == 2)
        if len(self.of) == 2 and self.victim == ("leader" if leads else "helper"):
            self.victim = "nobody"
            raise Killed


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.slow
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


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(rounds=st.lists(st.lists(st.integers(-9, 9), max_size=5), min_size=1, max_size=4), helpers=st.integers(0, 3))
def test_results_are_in_order_whoever_helps(
    rounds: list[list[int]], helpers: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, end = tmp_path_factory.mktemp("rounds"), threading.Event()

    def help_out() -> int:
        answered = 0
        while not end.is_set():
            answered += SharedTasks(folder, _square).help()
        return answered

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(help_out) for _ in range(helpers)]
        try:
            if helpers:
                wait_for(lambda: (folder / "offer").exists())
            leader = SharedTasks(folder, _square)
            found = [[int(result["square"]) for result in leader.do_all(_tasks(numbers))] for numbers in rounds]
        finally:
            end.set()
        assert sum(helper.result() for helper in waiting) <= sum(map(len, rounds))
    assert found == [[number**2 for number in numbers] for numbers in rounds]
    assert not [*folder.glob("*.task"), *folder.glob("*.done")]


def test_nothing_is_written_where_nobody_helps(tmp_path: Path) -> None:
    assert SharedTasks(tmp_path / "rounds", _square).do_all(_tasks([3]))[0]["square"] == 9
    assert not (tmp_path / "rounds").exists()


def test_a_task_that_another_process_is_at_is_left_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.task").write_bytes(b"")
    with file_lock(tmp_path / "a.lock"):
        assert SharedTasks(tmp_path, _square).help() == 0


def test_what_a_stopped_helper_began_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seesaw_cf.editors.mend.shared.PATIENCE", 0.05)
    monkeypatch.setattr("seesaw_cf.editors.mend.shared.uuid4", lambda: uuid.UUID(int=0))
    (tmp_path / "offer").touch()
    with file_lock(tmp_path / f"{uuid.UUID(int=0).hex}-0000.lock"):
        assert SharedTasks(tmp_path, _square).do_all(_tasks([3]))[0]["square"] == 9


@pytest.mark.slow
def test_a_process_that_cannot_help_waits_for_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> int:
        raise MemoryError("no memory left")

    monkeypatch.setattr(SharedTasks, "help", full)

    def one(model: Any) -> MENDNetwork:
        model.register_forward_pre_hook(lambda *_: wait_for(lambda: "no memory left" in caplog.text))
        return train(untrained(model), model, TOKENIZER, training_examples(), FAST, cache=tmp_path)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(one, [tiny_model("llama"), tiny_model("llama")]))
    assert "cannot help and waits (MemoryError" in caplog.text
    assert all(torch.equal(one, two) for one, two in zip(*(n.state_dict().values() for n in found), strict=True))


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_gradient_is_that_of_the_whole_batch(parts: int) -> None:
    """w0 * mean NLL + w1 * mean KL over five edits, by autograd through the network, in float64 but for attention."""
    model = tiny_model("llama", dtype=torch.float64, initializer_range=0.3)
    batch, weights = [7, 0, 3, 9, 4], {OUTER: 0.3, UNRELATED: 50.0}
    networks = [untrained(model, edit_lr=0.05).double() for _ in range(2)]
    names = [matrix.name for matrix in networks[0].shape.matrices]
    tasks = ModelTasks(model, TOKENIZER, training_examples(), weights, Upper(names))
    changes = networks[0](join([tasks.do(task) for task in factor_tasks(batch, parts)], model.device), observe=True)
    results = [tasks.do(task) for task in loss_tasks(batch, parts, changes, of=len(batch), gradient=True)]
    gradient = total_gradient(results, model.device)
    torch.autograd.backward([t for n in changes for t in changes[n]], [t for n in changes for t in gradient[n]])

    examples = [training_examples()[number] for number in batch]
    with frozen(model):
        factors = capture(model, names, batch_of(TOKENIZER, [e.edit for e in examples]), each_row=True)
        whole = networks[1](factors, observe=True)
        nll = outer_loss(whole, model, batch_of(TOKENIZER, [e.outer for e in examples]))
        moved = divergence(whole, model, text_batch(TOKENIZER, [e.unrelated for e in examples], model))
        loss = 0.3 * nll + 50.0 * moved
        loss.backward()
    assert 0.1 < (50 * moved / (0.3 * nll)).item() < 10, "or one of them is not tested"
    assert total_loss(results) == pytest.approx(loss.item(), rel=1e-6)
    for name, parameter in networks[1].named_parameters():
        wanted, found = parameter.grad, networks[0].get_parameter(name).grad
        assert wanted is not None
        assert found is not None
        assert float((found - wanted).norm()) <= 1e-5 * float(wanted.norm()), name
