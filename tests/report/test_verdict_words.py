"""From numbers to verdicts: one row a case, of levels and of groups."""

import math
from typing import Any

import pytest

from seesaw_cf.report.build import _reach
from seesaw_cf.report.frame import LEVEL_VERDICTS, level_verdict
from seesaw_cf.types import Estimate

# value, corrected p, farther end of the 90 % interval, edits, sign of harm -> verdict; margin .02, noise floor .001
LEVELS = [
    (0.05, 0.001, 0.07, 100, 1, "worse"),
    (-0.05, 0.001, 0.07, 20, -1, "worse"),
    (-0.05, 0.001, 0.07, 100, 1, "better"),
    (0.05, 0.06, 0.07, 100, 1, "undecided"),
    (0.0199, 0.001, 0.03, 100, 1, "slightly_worse"),
    (0.015, 0.001, 0.018, 10, 1, "slightly_worse"),
    (-0.015, 0.001, 0.018, 100, 1, "no_worse"),
    (0.002, 0.6, 0.0199, 80, 1, "no_worse"),
    (0.002, 0.6, 0.018, 79, 1, "undecided"),
    (0.002, 0.6, 0.0201, 100, 1, "undecided"),
    (0.0005, 0.001, 0.0007, 100, 1, "no_worse"),  # below the noise floor nothing is decided
    (0.05, math.nan, 0.07, 100, 1, "too_few"),
]


@pytest.mark.parametrize(("value", "p", "reach", "edits", "sign", "expected"), LEVELS)
def test_a_level_has_the_verdict_of_its_numbers(
    value: float, p: float, reach: float, edits: int, sign: int, expected: str
) -> None:
    row: dict[str, Any] = {"value": value, "p_adjusted": p, "reach": reach, "margin": 0.02, "n_edits": edits}
    row |= {"scale": "probability", "note": "too few edits: 3"}
    verdict, reason = level_verdict(row, sign, 0.001, 0.05)
    assert verdict == expected
    assert verdict in LEVEL_VERDICTS.values()
    assert ("too few edits: 3" in reason) == (expected == "too_few")
    if expected == "no_worse":  # a floor above the margin allows no equality
        assert level_verdict(row, sign, 0.03, 0.05)[0] == "undecided"


def test_the_farther_end_is_that_of_90_per_cent() -> None:
    assert _reach(Estimate(-0.5, stderr=1.0, df=1e9)) == pytest.approx(0.5 + 1.644854, abs=1e-5)
