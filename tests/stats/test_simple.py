"""Intervals of shares, paired answers and draws against published or hand-made ones."""

from __future__ import annotations

import numpy as np
import pytest

from seesaw_cf.stats import interval, paired_change

PUBLISHED = {
    # Airway responsiveness of 21 children (Bentur et al. 2009): A = 1 * 12 - 1 * 7 = 5, at most 21 / 2, so phi is 0.
    (1, 1, 7, 12): (-0.507, -0.026),
    # Response of 161 patients (Cavo et al. 2012): A = 59 * 80 - 6 * 16 = 4624, and phi takes A - 161 / 2.
    (59, 6, 16, 80): (-0.1186, -0.0046),
}
"""Cases with (both, the first alone, the second alone, neither) -> 95 % limits of the first share minus the second.

Source: Fagerland, Lydersen, Laake (2017), Statistical Analysis of Contingency Tables, chapter 8, Newcombe's
square-and-add interval with his continuity correction of phi. Without it they are (-0.502, -0.036) and
(-0.1174, -0.0059).
"""


@pytest.mark.parametrize("counts", PUBLISHED)
def test_paired_change_is_the_published_interval(counts: tuple[int, int, int, int]) -> None:
    first, second = (np.repeat(side, counts) for side in ([True, True, False, False], [True, False, True, False]))
    digits = 3 if sum(counts) < 100 else 4
    found = paired_change(second, first, sum(counts))
    assert tuple(round(limit, digits) for limit in found) == PUBLISHED[counts]


def test_interval_of_draws_by_hand() -> None:
    """0, 1, ..., 100 and a draw without a value: 5 % below 5, 5 % above 95; the sum of squares is 101 * 850."""
    low, high, stderr = interval(np.append(np.arange(101.0), np.nan), 0.9)
    assert (low, high) == pytest.approx((5, 95))
    assert stderr == pytest.approx((101 * 850 / 100) ** 0.5)
    assert interval(np.array([1.0, np.nan])) == pytest.approx((np.nan,) * 3, nan_ok=True)


def test_paired_change_has_its_level() -> None:
    """Where all answers turned right: 1 - sqrt(d^2 + d^2), and 1, with Wilson's 1 - d = n / (n + z^2)."""
    change, z = paired_change(np.zeros(20, bool), np.ones(20, bool), 20), 1.959964
    assert change == pytest.approx((1 - 2**0.5 * z**2 / (20 + z**2), 1), abs=1e-6)
