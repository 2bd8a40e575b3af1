"""Numbers of draws, chunks and bins that nothing can be drawn with, and seeds that no generator takes."""

from __future__ import annotations

from typing import Any

import pytest

from seesaw_cf.effects import AuditSettings
from seesaw_cf.errors import RecordError


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
