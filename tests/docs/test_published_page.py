"""docs/published.md holds what its command computes from the released scores and ratings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.published import claims, markdown, verdict

PAGE = (Path(__file__).parents[2] / "docs" / "published.md").read_text(encoding="utf-8")


@pytest.mark.slow(15)
def test_the_page_holds_the_tables_of_its_command(reference: Callable[..., Path]) -> None:
    for name, table in claims(reference()).items():
        assert "\n".join(markdown(table, name)) in PAGE, name


@pytest.mark.parametrize(
    ("change", "p", "sign", "claim"),
    [
        (-0.1, 0.01, -1, "stands"),
        (0.1, 0.01, -1, "falls"),
        (-0.1, 0.01, 0, "falls"),
        (-0.1, 0.2, 0, "not decided"),
        (0.1, 0.2, 1, "not decided"),
    ],
)
def test_no_effect_is_never_shown_by_a_test(change: float, p: float, sign: int, claim: str) -> None:
    assert verdict({"change": change, "p_adjusted": p, "sign": sign}) == claim
