"""Says that something is waited for, when it takes longer than a person expects."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

__all__ = ["SILENCE", "say_when_waiting"]

log = logging.getLogger(__name__)

SILENCE = 2.0  # seconds


@contextlib.contextmanager
def say_when_waiting(message: Callable[[], str], after: float = SILENCE) -> Iterator[None]:
    """Logs what `message` gives after `after` seconds, once, as a warning; nothing when that is empty by then."""

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
