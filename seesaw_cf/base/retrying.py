"""Trying again: one loop for every server, with the pauses that it asks for or that grow."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from tqdm import tqdm

T = TypeVar("T")


class TryAgain(Exception):
    """A try that another may better.

    Attributes:
        reason: In words.
        wait: Seconds that the server asks for; None = as the caller's pauses grow.
        last: No further try is of use.
    """

    def __init__(self, reason: str, wait: float | None = None, last: bool = False) -> None:
        """Keep the reason."""
        super().__init__(reason)
        self.reason, self.wait, self.last = reason, wait, last


def try_again(
    ask: Callable[[], T], tries: int, pause: Callable[[int], float], sleep: Callable[[float], None] = time.sleep
) -> T:
    """Call `ask` until it raises no `TryAgain`, `tries` times at the most.

    Args:
        ask: One try.
        tries: At least 1.
        pause: Number of the failed try, from 0 -> seconds before the next, where the server does not say.
        sleep: Waits; what it raises ends the tries.

    Raises:
        TryAgain: Of the last try.
    """

    tried = 0
    while True:
        try:
            return ask()
        except TryAgain as error:
            tried += 1
            if error.last or tried >= tries:
                raise
            delay = pause(tried - 1) if error.wait is None else error.wait
        sleep(delay)


# What is said while something takes long: a warning when nothing comes, and progress bars or none of them.

log = logging.getLogger(__name__)

SILENCE = 2.0  # seconds
BETWEEN_LINES = 5.0  # seconds, of a bar where no line can be drawn again

# Read by the libraries while they are imported, and by worker processes.
_QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


@contextlib.contextmanager
def say_when_waiting(
    message: Callable[[], str], after: float = SILENCE, write: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Write what `message` gives after `after` seconds, once and by default as a warning; nothing when it is empty."""

    def say() -> None:
        if text := message():
            (write or log.warning)(text)

    timer = threading.Timer(after, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def quiet(silent: bool) -> Iterator[None]:
    """Silence progress bars and notes of libraries in the block. Warnings and errors still appear."""
    before = {name: os.environ[name] for name in _QUIET if name in os.environ}
    if silent:
        os.environ.update(_QUIET)
    try:
        yield
    finally:
        for name in _QUIET:
            os.environ.pop(name, None)
        os.environ.update(before)


def no_bars() -> bool:
    """Return the value for `Bar(disable=...)`: whether `quiet` or the environment forbids progress bars."""
    return os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS") == "1"


T_co = TypeVar("T_co", covariant=True)


class _Lines:
    """What a bar draws, as lines of a log file."""

    def write(self, text: str) -> None:
        """Write a line, unless the text only moves the cursor."""
        if text.strip():
            sys.stderr.write(f"{text.strip()}\n")

    def flush(self) -> None:
        """Flush the log file."""
        sys.stderr.flush()


class Bar(tqdm, Generic[T_co]):  # type: ignore[type-arg]
    """A progress bar in a terminal; in a log file a line as it begins, then one every `BETWEEN_LINES` seconds."""

    def __init__(self, items: Iterable[T_co] | None = None, desc: str = "", total: int | None = None, **options: Any):
        if not sys.stderr.isatty():
            # Below another bar, of whatever library, tqdm would move up and down: no place of its own in a file.
            options |= {"mininterval": BETWEEN_LINES, "maxinterval": BETWEEN_LINES, "ncols": 79, "position": 0}
            options["file"] = _Lines()
        super().__init__(items, desc, total, **options)


_STAGES: list[Bar[object]] = []


@contextlib.contextmanager
def stages(work: str, number: int, *, silent: bool = False) -> Iterator[None]:
    """Show a bar around work that calls `stage` so many times; inside of another block that shows its own, none."""
    off = silent or no_bars()
    # Nothing is drawn before the first stage: until then the work may be refused.
    with Bar[object](desc=work, total=number, unit="stage", disable=off, delay=1e-9) as bar:
        _STAGES.append(bar)
        try:
            yield
            bar.update(max(bar.total or 0, bar.n) - bar.n)
        finally:
            _STAGES.remove(bar)
            bar.disable = bar.disable or not bar.n  # nothing was drawn: what was refused leaves no line


def expect_stages(number: int) -> None:
    """Set how many more stages follow in the innermost block of `stages`, where only the work itself knows."""
    for bar in _STAGES[-1:]:
        bar.total = bar.n + number + 1  # the last one is over at the end


def stage(name: str) -> None:
    """Say what begins: the bar of `stages` moves on, and the log has it with -v."""
    log.info("%s", name)
    for bar in _STAGES[-1:]:
        bar.set_postfix_str(name)
        bar.total = max(bar.total or 0, bar.n + 1)
        bar.update()
