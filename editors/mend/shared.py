"""Tasks that processes share through a folder: one needs the results, those that would wait for it help."""

from __future__ import annotations

import contextlib
import time
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
PATIENCE = 300.0
"""Seconds of waiting after which the task of a helper that was stopped, but not killed, is done by who needs it."""
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class SharedTasks:
    """Tasks of one piece of work. A task is a file until it is done; who holds its lock does it.

    Attributes:
        folder: Of the files; nothing is written there while nobody helps.
        do: Does a task, and gives the same bytes in any process of the same kind.
    """

    folder: Path
    do: Callable[[Tensors], Tensors]

    @property
    def _offer(self) -> Path:
        """The file by which helpers ask for tasks."""
        return self.folder / "offer"

    def do_all(self, tasks: Sequence[Tensors]) -> list[Tensors]:
        """Return the results of tasks in their order; what no helper does is done here."""
        try:
            self._offer.unlink()
        except FileNotFoundError:
            return [self.do(task) for task in tasks]
        name = uuid4().hex
        files = {self.folder / f"{name}-{number:04}.task": task for number, task in enumerate(tasks)}
        for file, task in files.items():
            _save(file, task)
        end = time.monotonic() + PATIENCE
        results: dict[Path, Tensors] = {}
        while left := [file for file in files if file not in results]:
            for file in left:
                with _lock(file) as free:
                    if free or time.monotonic() > end:
                        results[file] = self._finish(file, files[file])
                        end = time.monotonic() + PATIENCE
            time.sleep(POLL_SECONDS / 10)
        return [results[file] for file in files]

    def _finish(self, file: Path, task: Tensors) -> Tensors:
        """Return what a helper made of a task, or do it; its files go."""
        done = file.with_suffix(".done")
        result = _load(done) if done.exists() else self.do(task)
        for path in (file, done, file.with_suffix(".lock")):
            with contextlib.suppress(OSError):  # Windows: while a helper has it open
                path.unlink(missing_ok=True)
        return result

    def help(self) -> int:
        """Offer help, do the tasks that no other process is at, and return how many.

        Raises:
            OSError, StorageError, SafetensorError: Also where another process deletes the folder meanwhile.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._offer.touch()
        number = 0
        for file in sorted(self.folder.glob("*.task")):
            with _lock(file) as free:
                if free and not file.exists():  # its results were taken since
                    file.with_suffix(".lock").unlink(missing_ok=True)
                elif free and not file.with_suffix(".done").exists():
                    result = self.do(_load(file))
                    self._offer.touch()
                    _save(file.with_suffix(".done"), result)
                    number += 1
        return number


def _lock(file: Path) -> contextlib.AbstractContextManager[bool]:
    return file_lock(file.with_suffix(".lock"), required=False)


def _load(file: Path) -> Tensors:
    """Read tensors into memory of their own, laid out as any other: results of products can depend on that."""
    return {name: tensor.clone() for name, tensor in load_file(file).items()}


def _save(file: Path, tensors: Tensors) -> None:
    """Write tensors that are read at once and thrown away; some may be the same memory (inputs of two projections)."""
    own = {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    with atomic_path(file, flush=False) as temporary:
        save_file(own, temporary)
