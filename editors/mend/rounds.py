"""Tasks that processes share through a folder: one leads and takes the results, those that would wait for it help."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.locks import file_lock

Tensors = dict[str, Tensor]
"""What a task is given, and what comes of it."""


@dataclass(frozen=True)
class Rounds:
    """Rounds of tasks; without helpers nothing is written.

    A task is a file until it is done. Who holds its lock does it; the lock of a killed process is free.

    Attributes:
        folder: Of the files of one piece of work.
        work: Does a task, and gives the same bytes in any process.
    """

    folder: Path
    work: Callable[[Tensors], Tensors]

    @property
    def _offer(self) -> Path:
        """The file by which helpers ask for work."""
        return self.folder / "offer"

    def lead(self, tasks: Sequence[Tensors]) -> list[Tensors]:
        """Return the results of tasks in their order; what no helper does is done here."""
        try:
            self._offer.unlink()
        except FileNotFoundError:
            return [self.work(task) for task in tasks]
        name = uuid4().hex
        files = [self.folder / f"{name}-{number:04}.task" for number in range(len(tasks))]
        for file, task in zip(files, tasks, strict=True):
            _save(file, task)
        results: dict[Path, Tensors] = {}
        for wait in (False, True):
            for file, task in zip(files, tasks, strict=True):
                if file not in results:
                    with _lock(file, wait=wait) as held:
                        if held:
                            results[file] = self._finish(file, task)
        for file in files:
            _lock_file(file).unlink(missing_ok=True)
        return [results[file] for file in files]

    def _finish(self, file: Path, task: Tensors) -> Tensors:
        """Return what a helper made of a task, or do it; its files go."""
        done = file.with_suffix(".done")
        result = load_file(done) if done.exists() else self.work(task)
        for path in (file, done):
            path.unlink(missing_ok=True)
        return result

    def help(self) -> int:
        """Offer help, do the open tasks that no other process is at, and return how many."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._offer.touch()
        number = 0
        for file in sorted(self.folder.glob("*.task")):
            with contextlib.suppress(FileNotFoundError), _lock(file) as held:  # it may have ended the round
                if held and not file.with_suffix(".done").exists():
                    result = self.work(load_file(file))
                    self._offer.touch()
                    _save(file.with_suffix(".done"), result)
                    number += 1
        return number


def _lock_file(file: Path) -> Path:
    return file.with_suffix(".lock")


def _lock(file: Path, *, wait: bool = False) -> contextlib.AbstractContextManager[bool]:
    return file_lock(_lock_file(file), wait=wait, required=False)


def _save(file: Path, tensors: Tensors) -> None:
    """Write tensors that are read at once and thrown away; some may be the same memory (inputs of two projections)."""
    own = {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    with atomic_path(file, flush=False) as temporary:
        save_file(own, temporary)
