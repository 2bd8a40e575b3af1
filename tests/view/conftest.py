"""A finished run with a control and refused edits, opened once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seesaw_cf.report.view.prompts import Prompts, open_prompts
from tests.report.runs import cases, property_cases, write_run


@pytest.fixture(scope="session")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = cases(("P27", "P101"), 6, 12) + property_cases(2)
    # A name that is a pattern and a partition for a reader of files.
    folder = tmp_path_factory.mktemp("view") / "a='1' [run]*"
    return write_run(folder, made, ("memit", "ft", "random(memit)"), refused=1)


@pytest.fixture(scope="session")
def prompts(viewed: Path) -> Iterator[Prompts]:
    with open_prompts(viewed) as found:
        yield found
