"""The table of wrong implementations fits the source; `python -m benchmarks.mutations` tries them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_snippet_stands_in_the_source_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.right) == 1
    assert mutant.wrong != mutant.right
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
