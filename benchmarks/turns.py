"""Ways of doing the same, measured in turn: a machine whose speed drifts treats them alike."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

__all__ = ["in_turn", "ratios"]


def in_turn(ways: Mapping[str, Callable[[int], float]], seconds: float, least: int = 3) -> dict[str, list[float]]:
    """Seconds of every way in every turn.

    Args:
        ways: Name -> what measures it, given the number of the turn.
        seconds: Turns are taken until they have taken so long together.
        least: And at least so many.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    done, start = 0, time.monotonic()
    while done < least or time.monotonic() - start < seconds:
        for name, measure in ways.items():
            times[name].append(measure(done))
        done += 1
    return times


def ratios(times: Mapping[str, Sequence[float]], to: str) -> dict[str, dict[str, float]]:
    """How many times as long as `to` every other way takes.

    Returns:
        Per way the geometric mean over turns, `low` and `high` of its 95 % interval (Student's t of the logarithms) and
        the number of turns.
    """
    from scipy import stats  # not where only seconds are measured

    found = {}
    for name, taken in times.items():
        logs = [math.log(own / other) for own, other in zip(taken, times[to], strict=True)]
        middle, count = statistics.mean(logs), len(logs)
        half = stats.t.ppf(0.975, count - 1) * statistics.stdev(logs) / math.sqrt(count)
        values = {"ratio": middle, "low": middle - half, "high": middle + half}
        found[name] = {key: math.exp(value) for key, value in values.items()} | {"turns": count}
    return {name: ratio for name, ratio in found.items() if name != to}
