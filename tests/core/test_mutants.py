"""The table of wrong implementations fits the source; `python -m benchmarks.mutations` tries them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.mutants import MUTANTS, Mutant
from benchmarks.mutations import apply
from seesaw_cf.errors import RecordError

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


def test_a_snippet_that_is_gone_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1\nx = 1\n")
    mutant = Mutant("twice", "code.py", "x = 1", "x = 2", "", ())
    with pytest.raises(RecordError, match=r"mutant twice: 'x = 1' occurs 2 times in code\.py, expected once"):
        apply(mutant, tmp_path)
    assert (tmp_path / "code.py").read_text() == "x = 1\nx = 1\n"
    apply(mutant._replace(right="1\nx = 1", wrong="1\nx = 2"), tmp_path)
    assert (tmp_path / "code.py").read_text() == "x = 1\nx = 2\n"
