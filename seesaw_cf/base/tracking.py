"""Numbers of a run for a tracker of experiments, such as Trackio or Weights & Biases, while they come about."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Protocol

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import ServiceError, need

_REMEDIES = {
    "trackio": "Check that its folder (TRACKIO_DIR) can be written; a Space needs `hf auth login`",
    "wandb": "Log in once with `wandb login`, or set WANDB_MODE=offline",
}
TRACKERS = tuple(_REMEDIES)


class Tracker(Protocol):
    """What is told of every step."""

    def log(self, step: str, numbers: Mapping[str, float]) -> None:
        """Take the numbers of a step.

        Args:
            step: What was done, such as "blocks" or "memit/target_new".
            numbers: Name -> value.
        """


class LibraryTracker:
    """A tracker whose library has `init`, `log` and `finish`, as Trackio and Weights & Biases do."""

    def __init__(self, module: Any) -> None:
        """Keep the imported module."""
        self.module = module

    def log(self, step: str, numbers: Mapping[str, float]) -> None:
        """Log the numbers as "STEP/NAME"."""
        self.module.log({f"{step}/{name}": value for name, value in numbers.items()})


_CURRENT: ContextVar[Tracker | None] = ContextVar("tracker", default=None)


def track(step: str, numbers: Mapping[str, float]) -> None:
    """Give the numbers of a step to the tracker, where there is one.

    Args:
        step, numbers: See `Tracker.log`.
    """
    if (tracker := _CURRENT.get()) is not None:
        tracker.log(step, numbers)


@contextlib.contextmanager
def tracking(tracker: str | Tracker | None, run: str = "", settings: Mapping[str, object] = {}) -> Iterator[None]:
    """Track what runs and reports do inside the block, in this process.

    Args:
        tracker: Out of `TRACKERS`, or an object of your own; None for none.
        run: What the run is called there, in the project "seesaw_cf".
        settings: What it is made with.

    Raises:
        UnknownNameError: No such tracker.
        MissingExtraError: Its library is not installed.
        ServiceError: It could not begin a run, as without login or network.
    """
    library: Any = None
    if isinstance(tracker, str):
        one_of("tracker", tracker, TRACKERS)
        with need(tracker, extra=tracker, what_for=f"--track {tracker}"):
            library = import_module(tracker)
        try:
            library.init(project="seesaw_cf", name=run, config=dict(settings))
        except Exception as error:  # no login, no network, no right to write
            raise ServiceError(
                f"--track {tracker}: {tracker} could not begin a run ({type(error).__name__}: {shown(str(error))}). "
                f"{_REMEDIES[tracker]}; or leave --track out."
            ) from error
        tracker = LibraryTracker(library)
    token = _CURRENT.set(tracker)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        if library is not None:
            library.finish()
