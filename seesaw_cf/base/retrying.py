"""Trying again: one loop for every server, with the pauses that it asks for or that grow."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

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

    def stop(state: RetryCallState) -> bool:
        return stop_after_attempt(tries)(state) or _failure(state).last

    def wait(state: RetryCallState) -> float:
        delay = _failure(state).wait
        return pause(state.attempt_number - 1) if delay is None else delay

    again = retry_if_exception_type(TryAgain)
    return Retrying(retry=again, stop=stop, wait=wait, sleep=sleep, reraise=True)(ask)


def _failure(state: RetryCallState) -> TryAgain:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, TryAgain)
    return error


# What is said while something takes long: a warning when nothing comes, and progress bars or none of them.

log = logging.getLogger(__name__)

SILENCE = 2.0  # seconds

# Read by the libraries while they are imported, and by worker processes.
_QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


@contextlib.contextmanager
def say_when_waiting(message: Callable[[], str], after: float = SILENCE) -> Iterator[None]:
    """Log what `message` gives after `after` seconds, once, as a warning; nothing when that is empty by then."""

    def say() -> None:
        if text := message():
            log.warning("%s", text)

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
    before = {name: os.environ.get(name) for name in _QUIET}
    if silent:
        os.environ.update(_QUIET)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def no_bars() -> bool | None:
    """Return the value for `tqdm(disable=...)`: bars in terminals only, unless `quiet` or the environment forbids."""
    return os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS") == "1" or None
