"""A finished run, made once for all tests of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from seesaw_cf.report import Results, read_results
from seesaw_cf.report.write import run_report
from tests.report.runs import cases, property_cases, write_run


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "two editors"
    return write_run(folder, cases(("P27", "P101"), 6, 12) + property_cases(4), ("memit", "ft"), refused=1)


@pytest.fixture(scope="session")
def two_editors(run_folder: Path) -> Results:
    return read_results(run_folder)


@pytest.fixture(scope="session")
def report(two_editors: Results, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The report's folder and its terminal table."""
    out = tmp_path_factory.mktemp("report")
    return out, run_report(two_editors, full=True).write(out, pictures=True, full=True)
