"""Benchmarks' ratios: a machine that slows down for whole turns changes none, and the interval is the promised one."""

from __future__ import annotations

import math
from functools import partial

import pytest

from benchmarks.turns import in_turn, ratios


def test_a_machine_that_slows_down_changes_no_ratio() -> None:
    speeds = (1.0, 1.7, 0.6, 1.2)
    found = ratios({"engine": [2 * s for s in speeds], "loop": [10 * s for s in speeds]}, "engine")
    assert found.keys() == {"loop"}
    assert found["loop"] == pytest.approx({"ratio": 5.0, "low": 5.0, "high": 5.0, "turns": 4})


def test_the_interval_is_students_of_the_logarithms() -> None:
    """Two turns with ratios e^1 and e^3: mean 2, standard error 1, t(0.975, 1) = 12.7062."""
    found = ratios({"bound": [1.0, 1.0], "engine": [math.e, math.e**3]}, "bound")["engine"]
    assert math.log(found["ratio"]) == pytest.approx(2.0)
    assert math.log(found["low"]) == pytest.approx(2.0 - 12.7062, abs=1e-3)
    assert math.log(found["high"]) == pytest.approx(2.0 + 12.7062, abs=1e-3)


def test_every_way_is_measured_in_every_turn() -> None:
    asked: list[tuple[str, int]] = []

    def way(name: str, number: int) -> float:
        asked.append((name, number))
        return 1.0 + number

    times = in_turn({name: partial(way, name) for name in "ab"}, 0.0, least=3)
    assert times == {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]}
    assert asked == [(name, number) for number in range(3) for name in "ab"]
