"""Numbers of a run for a tracker of experiments, such as Trackio or Weights & Biases, while they come about."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Protocol

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import need

TRACKERS = ("trackio", "wandb")


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

    def __init__(self, library: Any) -> None:
        """Keep the library."""
        self.library = library

    def log(self, step: str, numbers: Mapping[str, float]) -> None:
        """Log the numbers as "STEP/NAME"."""
        self.library.log({f"{step}/{name}": value for name, value in numbers.items()})


@contextlib.contextmanager
def tracking(name: str | None, run: str, settings: Mapping[str, object]) -> Iterator[Tracker | None]:
    """Yield a tracker; None without a name.

    Args:
        name: Out of `TRACKERS`.
        run: What the run is called there, in the project "seesaw_cf".
        settings: What it is made with.

    Raises:
        UnknownNameError: No such tracker.
        MissingExtraError: Its library is not installed.
    """
    if name is None:
        yield None
        return
    one_of("tracker", name, TRACKERS)
    with need(name, extra=name, what_for=f"--track {name}"):
        library: Any = import_module(name)
    library.init(project="seesaw_cf", name=run, config=dict(settings))
    try:
        yield LibraryTracker(library)
    finally:
        library.finish()
