"""What is said while something takes long: a warning when nothing comes, and progress bars or none of them."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator

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
    """No progress bar and no note of any library in the block; what is wrong is still said."""
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
    """For `tqdm(disable=...)`: none when `quiet` or the user's environment says so, else a bar in terminals only."""
    return os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS") == "1" or None
