"""Shares and paired answers against published intervals."""

from __future__ import annotations

import numpy as np
import pytest

from seesaw_cf.stats import paired_change

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
