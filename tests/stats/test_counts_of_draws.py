"""Numbers of draws, chunks and bins that nothing can be drawn with, and seeds that no generator takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects import AuditSettings, stratify
from seesaw_cf.errors import RecordError
from seesaw_cf.stats import pigeonhole_draws


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"permutations": -1}, "permutations is -1, expected a whole number from 0 to 1000000"),
        ({"seed": -1}, "seed is -1, expected a whole number from 0"),
        ({"seed": 2**32}, f"seed is {2**32}"),
    ],
)
def test_permutations_of_an_audit(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=f"audit: {message}"):
        AuditSettings(**changed)


@pytest.mark.parametrize("chunk", [0, -1])
def test_pigeonhole_chunks(chunk: int) -> None:
    code = np.arange(4) // 2
    with pytest.raises(RecordError, match=f"pigeonhole: chunk is {chunk}, expected a whole number of at least 1"):
        pigeonhole_draws(code, code, np.arange(4.0), [np.arange(4)], draws=3, seed=0, chunk=chunk)


def test_pigeonhole_chunks_change_memory_only() -> None:
    """As documented: 7 draws in chunks of 1, 3 and 100 are the same numbers."""
    case, person = np.arange(12) // 3, np.arange(12) % 5
    found = [
        pigeonhole_draws(case, person, np.arange(12.0), [np.arange(12)], draws=7, seed=1, chunk=chunk)
        for chunk in (1, 3, 100)
    ]
    assert found[0].shape == (7, 1)
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[1], found[2])


@pytest.mark.parametrize("bins", [0, -1])
def test_strata(bins: int) -> None:
    rows = pd.DataFrame({"x": [1.0, 2.0]})
    with pytest.raises(RecordError, match=f"stratify: bins is {bins}, expected a whole number of at least 1"):
        stratify(rows, rows["x"], bins=bins)
    assert list(stratify(rows, rows["x"], bins=2)["stratum"]) == ["0", "1"]
