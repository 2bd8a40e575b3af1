"""What `run_on_ray` uses of Ray, in one process, where it can be said which nodes there are and which actors die."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

Reference = Callable[[], Any]
"""An answer that is made when it is asked for."""


class FakeRay(ModuleType):
    """A cluster.

    Attributes:
        started: The actors so far.
        fails: (Name of a method, its arguments) -> errors that calls of it end in, one after the other.
        stuck: Actors, by their number, that never get their place.
        ends: Name of a method and its arguments of the call during which the node of all actors is lost.
    """

    def __init__(self, nodes: Sequence[Mapping[str, float]], stuck: Sequence[int] = ()) -> None:
        super().__init__("ray")
        self.exceptions = ModuleType("ray.exceptions")
        vars(self.exceptions).update(
            RayTaskError=RayTaskError, RayActorError=RayActorError, OutOfMemoryError=OutOfMemoryError
        )
        lost = {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}}
        self.nodes = lambda: [lost, *({"Alive": True, "Resources": has} for has in nodes)]
        self.cluster_resources = lambda: {"GPU": sum(has.get("GPU", 0.0) for has in nodes)}
        self.is_initialized = lambda: True
        self.started: list[Any] = []
        self.fails: dict[tuple[Any, ...], list[Exception]] = {}
        self.stuck = stuck
        self.waits: set[Reference] = set()
        self.ends: tuple[Any, ...] | None = None
        self.lost: set[Any] = set()

    def remote(self, **resources: float) -> Callable[[type], Any]:
        """As `ray.remote(num_cpus=1, ...)(Class)`, whose `remote` starts an actor."""
        return lambda kind: SimpleNamespace(remote=lambda *args: self._actor(kind(*args)))

    def _actor(self, inner: Any) -> Any:
        actor = _Actor(self, inner, len(self.started) in self.stuck)
        self.started.append(actor)
        return actor

    def get(self, reference: Reference) -> Any:
        """The answer, or the error."""
        return reference()

    def wait(self, references: Sequence[Reference], num_returns: int) -> tuple[list[Reference], list[Reference]]:
        """The first one that is not stuck."""
        done = next(reference for reference in references if reference not in self.waits)
        return [done], [reference for reference in references if reference is not done]


class RayActorError(Exception):
    """An actor died."""


class OutOfMemoryError(Exception):
    """An actor took too much memory and was killed."""


@dataclass
class RayTaskError(Exception):
    """A method raised `cause`."""

    cause: Exception


@dataclass(eq=False)
class _Actor:
    ray: FakeRay
    inner: Any
    stuck: bool

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=partial(self._ask, name))

    def _ask(self, name: str, *args: Any) -> Reference:
        def answer() -> Any:
            if (name, *args) == self.ray.ends:
                self.ray.lost, self.ray.ends = set(self.ray.started), None
            if self in self.ray.lost:
                raise RayActorError("its node is lost")
            errors = self.ray.fails.get((name, *args))
            if errors:
                raise errors.pop(0)
            return getattr(self.inner, name)(*args)

        vars(answer)["call"] = (name, *args)
        if self.stuck:
            self.ray.waits.add(answer)
        return answer


@dataclass
class FakeRun:
    """A run of some blocks that do nothing; it notes what is done."""

    blocks: Sequence[int]
    done: list[int] = field(default_factory=list)
    merged: int = 0
    notes: Sequence[str] = ()
    out: Path = Path("nowhere")
    manifest: Any = field(default_factory=lambda: SimpleNamespace(notes=()))
    store: Any = field(default_factory=lambda: SimpleNamespace(claim=lambda: None))

    def is_open(self, block: int) -> bool:
        """The block is not done."""
        return block not in self.done

    def do(self, block: int) -> None:
        """Does it."""
        self.done.append(block)

    def merge(self) -> None:
        """Counts how often."""
        self.merged += 1
